/* frame: the parts of a sandbox's root that are the same in all of them, /etc and /dev, made once and copied for each: one
 * call copies a tree with all of its mounts, where its rows take six calls each.
 *
 *     mould --frame_cast--> frame --(yard, clone)--> the child puts both trees in their place
 *
 * Owns:     a mould: a tree that is mounted nowhere. A frame: two such trees, until they stand in their place, and what the
 *           ground needs.
 * Used by:  yard.c, which makes them ahead; box.c and mounts.c, which use them.
 * Rights:   the trees are one for all sandboxes, so nobody may write to them: they are read-only, and private, so that
 *           nothing mounted on the host later shows in them. Only sandboxes whose user could not write there anyway have
 *           them (plan_make decides). Their own names (passwd, hosts) are links to files of their own.
 * Kernel:   trees that are mounted nowhere can be built and copied since Linux 6.15. Before that there are no moulds, and
 *           every sandbox makes its own.
 */
#ifndef SILICA_ISOLATE_FRAME_H
#define SILICA_ISOLATE_FRAME_H

#include "base/err.h"

#define FRAME_PLACES 5

/* What the host's files were when they were taken hold of. One that is replaced, by a rename, changes its directory. */
struct frame_stamp {
    struct {
        uint64_t dev, ino;
        int64_t seconds, nanoseconds;
    } places[FRAME_PLACES];
};

struct frame_mould {
    int root_fd; /* -1: none */
    struct frame_stamp stamp;
};

struct frame {
    int etc_fd, dev_fd; /* both, or both -1 */
    int lens_fd,
        ground_fd; /* what to be born on (ground.h): both, or both -1; never without the others */
};

/* clang-format off */
#define FRAME_MOULD_INIT { .root_fd = -1 }
#define FRAME_INIT { -1, -1, -1, -1 }
/* clang-format on */

void frame_stamp_look(struct frame_stamp *ret);

/* In the mount namespace of the makers: no other can copy it. */
int frame_mould_make(struct frame_mould *m, struct err *e);
void frame_mould_done(struct frame_mould *m);
/* The caller's to be done with. */
int frame_cast(const struct frame_mould *m, struct frame *ret, struct err *e);
/* The kernel waits for every processor over a tree that never found its place: yard_drop does it where nobody waits. */
void frame_done(struct frame *f);

#endif
