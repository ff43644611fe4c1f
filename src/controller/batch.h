/* batch: many writes at once, few at first: one, two, four, ... as long as all of them succeed.
 *
 * A server that refuses everything then hears one call, not three hundred. While claims wait, it is few at any time.
 *
 * Owns:     its calls; embedded by who runs it, who must not go before `finished`.
 * Threads:  the loop's. Callbacks come in later turns.
 */
#ifndef SILICA_CONTROLLER_BATCH_H
#define SILICA_CONTROLLER_BATCH_H

#include "controller/shared.h"
#include "controller/step.h"
#include "ev/loop.h"

struct batch_call;

struct batch {
    struct shared *shared;
    const char *manager;
    /* Write i; it must live until the next one is asked for. */
    const struct step *(*step)(void *ctx, size_t i);
    /* Its answer; false: the batch stops after those that are under way. */
    bool (*answered)(void *ctx, size_t i, const struct kube_answer *answer);
    void (*finished)(void *ctx);
    /* Asked before each round: true: the batch ends here, and nothing has failed. NULL: never. */
    bool (*yields)(void *ctx);
    void *ctx;
    size_t count;   /* writes in all */
    size_t begun;   /* of them; those after it were never sent */
    size_t waiting; /* for answers */
    size_t size;    /* of the present round */
    size_t most;    /* and of any */
    bool has_failed;
    struct batch_call *calls; /* one for each write */
    struct ev_task task;
};

/* All but the numbers below `ctx` is the caller's to fill. `finished` comes in a later turn, also for no writes. */
void batch_start(struct batch *b, size_t count);
/* After `finished`. */
void batch_done(struct batch *b);

#endif
