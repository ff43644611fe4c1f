/* program: the file that PID 1 is executed from. Nobody inside may change it or reach the host through it, whatever
 * becomes of /proc/1/exe: so it is a sealed file in memory, or the host's own file seen through a read-only mount that
 * is attached nowhere.
 *
 * Owns:     the file in memory, unless the caller gave one that is sealed.
 * Used by:  box.c in the parent (begin, finish, done); inside.c in the child (hold, before it gives up the host's files).
 */
#ifndef SILICA_ISOLATE_PROGRAM_H
#define SILICA_ISOLATE_PROGRAM_H

#include "isolate/box.h"

struct program {
    int fd;     /* what is executed; -1: the file at path, which the child opens */
    int own_fd; /* it, when it is ours; -1 when it came sealed */
    struct span
        pending; /* still to be written and sealed: the child has much to do before it wants it */
    struct span bytes;
    const char *path;
    dev_t dev; /* which file that was when it was looked at */
    ino_t ino;
};

#define PROGRAM_INIT ((struct program){ .fd = -1, .own_fd = -1 })

int program_begin(struct program *p, const struct box_spec *spec, struct err *e);
/* After it the child may execute the program. */
int program_finish(struct program *p, struct err *e);
void program_done(struct program *p);

/* What to execute, a descriptor of the child's. *ret_is_of_host: a file of the host, which Landlock has to grant. */
int program_hold(const struct program *p, int *ret_fd, bool *ret_is_of_host, struct err *e);

#endif
