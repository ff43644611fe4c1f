/* pages: a walk over the objects that a list, a watch's beginning or a collection's delete is about.
 *
 * Owns:     a reference to the shelf it walks.
 * Used by:  read.c, watch.c, write_delete.c.
 */
#ifndef SILICA_APISERVER_PAGES_H
#define SILICA_APISERVER_PAGES_H

#include "apiserver/call.h"

struct pages {
    struct shelf *shelf;
    uint64_t version;
    struct shelf_walk walk;
    unsigned kind;
    const char *namespace; /* "": all */
    size_t left;           /* objects from here on, selected or not; known at the beginning */
    bool is_over;
};

/* The shelf is taken. after NULL: from the beginning; else behind "namespace/name". */
void pages_init(struct pages *p, const struct call *c, struct shelf *shelf, uint64_t version,
                const struct shelf_key *after);
void pages_done(struct pages *p);
/* The next object the call selects, borrowed; NULL at the end. Looks at no more than *budget others, and leaves in it
 * what is left: NULL with is_over false when that was not enough. */
struct object *pages_next(struct pages *p, const struct call *c, size_t *budget);
/* Selectors only; kind and namespace fit already. */
bool pages_selects(const struct call *c, const struct object *o);

/* Continue tokens. */
int pages_token_write(uint64_t version, const struct object *last, struct buf *out, struct err *e);
struct pages_token {
    uint64_t version; /* 0: wherever the store is now */
    char namespace[320], name[320];
};
bool pages_token_read(struct span text, struct pages_token *ret);

#endif
