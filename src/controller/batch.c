#include "controller/batch.h"

#include "controller/limits.h"

struct batch_call {
    struct batch *batch;
    size_t i;
};

static void next_round(struct batch *b);

static void take(struct batch *b, size_t i, const struct kube_answer *answer)
{
    if (answer->object && !answer->refusal && !object_is_deleting(answer->object))
        shared_learn(b->shared, answer->object, NULL);
    b->waiting--;
    if (!b->answered(b->ctx, i, answer))
        b->has_failed = true;
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct batch_call *call = ctx;
    struct batch *b = call->batch;

    take(b, call->i, answer);
    if (!b->waiting)
        next_round(b);
}

static void on_turn(void *ctx)
{
    next_round(ctx);
}

/* A write that could not be sent has failed here and now. */
static void send(struct batch *b, size_t i)
{
    OWN(status_done) struct status st = STATUS_INIT;
    const struct step *step = b->step(b->ctx, i);
    struct kube_call *call;
    struct err e;

    b->calls[i] = (struct batch_call){ b, i };
    b->waiting++;
    if (step_start(b->shared->client, step, b->manager, on_answer, &b->calls[i], &call, &e) == 0)
        return;
    (void)status_of_err(&st, &e);
    take(b, i, &(struct kube_answer){ .refusal = &st });
}

static void next_round(struct batch *b)
{
    size_t few = MAX((b->count - b->begun) / BATCH_BUSY_PART, (size_t)BATCH_BUSY);
    size_t now = shared_is_busy(b->shared) ? MIN(b->size, few) : b->size;
    size_t end = MIN(b->begun + now, b->count);

    if (b->has_failed || b->begun == b->count || (b->yields && b->yields(b->ctx))) {
        b->finished(b->ctx);
        return;
    }
    b->size = MIN(2 * b->size, b->most);
    while (b->begun < end)
        send(b, b->begun++);
    if (!b->waiting)
        ev_post(kube_client_loop(b->shared->client), &b->task, on_turn, b);
}

void batch_start(struct batch *b, size_t count)
{
    b->count = count;
    b->begun = b->waiting = 0;
    b->size = 1;
    b->most = b->shared->is_remote ? BATCH_REMOTE : SIZE_MAX / 2;
    b->has_failed = false;
    b->calls = own_array(count + 1, sizeof *b->calls);
    ev_post(kube_client_loop(b->shared->client), &b->task, on_turn, b);
}

void batch_done(struct batch *b)
{
    free(take_ptr(&b->calls));
}
