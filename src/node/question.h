/* question: something that a Pod wants to be asked or done inside one of its sandboxes: a probe's try, or a hook.
 *
 *     question_start(&q, &spec) -> a way into the sandbox is made by the crew -> prober.h asks -> done, once
 *
 * Owns:     the way in. The struct is its owner's memory and must live until done, which comes exactly once, in a later turn.
 * Used by:  ready.c, hook.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_QUESTION_H
#define SILICA_NODE_QUESTION_H

#include "node/node_impl.h"
#include "node/prober.h"

/* Of the texts box, handler and container live until done; the others are copied. */
struct question_spec {
    struct node *node;
    const char *box;              /* the sandbox */
    const struct json *handler;   /* the probe, or what a hook does */
    const struct json *container; /* whose it is */
    const char *pod_ip, *cwd;
    uint64_t timeout_ms;
    bool takes_any_status; /* of httpGet: every answer is a good one */
    prober_fn done;
    void *ctx;
};

struct question {
    struct question_spec spec;
    struct crew_job job;
    char pod_ip[ADDRESS_TEXT_BYTES]; /* the record may go meanwhile */
    char *cwd;
    int fd; /* a socket inside, or a connection to PID 1 */
    struct err e;
    struct sandbox *sandbox; /* of exec */
    struct prober *prober;
    bool is_busy, is_called_off;
};

void question_start(struct question *q, const struct question_spec *spec);
/* done then gets a failure. Nothing where none is under way. */
void question_cancel(struct question *q);

#endif
