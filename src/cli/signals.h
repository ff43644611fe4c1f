/* signals: those that would end us, as events of a loop.
 *
 * Owns:     the descriptor they come on. They stay blocked for the rest of the process.
 * Used by:  session.c, cp.c, stats.c, logs.c.
 */
#ifndef SILICA_CLI_SIGNALS_H
#define SILICA_CLI_SIGNALS_H

#include "ev/io.h"

typedef void (*signals_fn)(void *ctx, int number);

struct signals {
    int fd;
    struct ev_io io;
    signals_fn fn;
    void *ctx;
};

/* Blocks them: from now on none ends us, and none is lost until signals_open. `list` ends with 0. Also ignores SIGPIPE. */
void signals_block(const int *list);
int signals_open(struct signals *s, struct ev_loop *loop, const int *list, signals_fn fn, void *ctx,
                 struct err *e);
/* Tolerates one that was zeroed and never opened. */
void signals_close(struct signals *s);

/* What ends a program that has nothing to forward: INT, TERM, HUP. */
extern const int signals_that_end[];

#endif
