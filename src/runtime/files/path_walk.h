/* path_walk: the real path of a text, as realpath computes it, by the rule of the contract for what is missing.
 *
 * Owns:     one descriptor: of the deepest directory of the text that exists.
 * Used by:  path.c only. The answer is advice (see path.h): the tree may change while it is computed.
 */
#ifndef SILICA_RUNTIME_PATH_WALK_H
#define SILICA_RUNTIME_PATH_WALK_H

#include "base/buf.h"

enum path_missing {
    PATH_MISSING_KEPT, /* components that cannot be looked up are text, and `..` may remove them again */
    PATH_MISSING_OWN, /* the nearest existing ancestor of the *given* text, and the rest of it */
};

struct path_walk {
    struct buf text; /* absolute; "" is `/`; no slash at the end */
    size_t real_n;   /* so much of it was found to be directories, and is no link */
    bool kept_link;  /* the last component is a link that was not followed */
    int sys;         /* why what follows real_n is no directory; 0 if it is a file */
    int fd;          /* the directory text[0..real_n] */
};

/* Starts at `text`, the real path of the directory `fd` (which is duplicated). */
int path_walk_init(struct path_walk *w, int fd, const char *text, struct err *e);
void path_walk_done(struct path_walk *w);
/* Goes along `rest`. With keep_last the last component of rest is not followed if it is a link. */
int path_walk_along(struct path_walk *w, struct span rest, enum path_missing missing,
                    bool keep_last, struct err *e);

/* Removes `.`, `..` and double slashes as text, as Go's filepath.Clean does: `..` at the start of a relative
 * path stays, at the root it vanishes. Nothing left is ".". */
int path_clean(struct span path, struct buf *out, struct err *e);

#endif
