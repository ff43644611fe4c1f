/* The streams of a container's main process: what it writes from now on, as its keeper writes it down. Its input is nobody's:
 * what a client sends is dropped. */
#include "node/node_impl.h"
#include "node/streams.h"
#include "node/tail.h"

struct attach {
    struct pod_process base;
    struct node *node;
    struct tail *tail;
    const struct pod_process_events *events;
    void *ctx;
};

static struct attach *of(struct pod_process *p)
{
    return CONTAINER(p, struct attach, base);
}

static void attach_free(void *obj)
{
    free(obj);
}

static void on_entry(void *ctx, const struct logs_entry *entry)
{
    struct attach *a = ctx;
    enum pod_output which = entry->stream == SANDBOX_STDOUT ? POD_STDOUT : POD_STDERR;

    a->events->on_output(a->ctx, which, entry->text);
    if (entry->is_end && a->tail) /* it may have ended us */
        a->events->on_output(a->ctx, which, SPAN("\n"));
}

static bool on_piece(void *ctx)
{
    (void)ctx;
    return true;
}

static void on_end(void *ctx, const struct err *e)
{
    struct attach *a = ctx;

    a->tail = NULL;
    a->events->on_exit(a->ctx, 0, e); /* how it ended is in the Pod's status */
    ev_free_later(a->node->loop, a, attach_free);
}

static const struct tail_events events_of_tail = { NULL, on_entry, on_piece, on_end };

static int drop(struct pod_process *p, struct span bytes, struct err *e)
{
    (void)p, (void)bytes, (void)e;
    return 0;
}

static bool is_full(const struct pod_process *p)
{
    (void)p;
    return false;
}

static void ignore_end(struct pod_process *p)
{
    (void)p;
}

static void ignore_size(struct pod_process *p, uint16_t cols, uint16_t rows)
{
    (void)p, (void)cols, (void)rows;
}

static void pause_output(struct pod_process *p, bool is_paused)
{
    if (of(p)->tail)
        tail_pause(of(p)->tail, is_paused);
}

static void leave(struct pod_process *p)
{
    struct attach *a = of(p);

    if (!a->tail)
        return; /* within on_end */
    tail_leave(take_ptr(&a->tail));
    ev_free_later(a->node->loop, a, attach_free);
}

static const struct process_ops ops = { .write = drop,
                                        .is_full = is_full,
                                        .close_stdin = ignore_end,
                                        .resize = ignore_size,
                                        .pause = pause_output,
                                        .leave = leave };

int attach_start(struct node *n, struct ev_pool *files, const struct pod_request *r,
                 const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                 struct err *e)
{
    struct record *record = record_find(n, r->ns, r->pod);
    size_t at = record ? record_container(record, r->container) : SIZE_MAX;
    struct attach *a;
    char dir[4096];

    if (at == SIZE_MAX || record->life.v[at].now.state != RUN_UP)
        return err_set(e, ERR_NOT_FOUND, "container not found (\"%s\")", r->container);
    streams_box_dir(record, at, record->life.v[at].now.attempt, dir, sizeof dir);
    a = NEW(struct attach);
    a->base.ops = &ops;
    a->node = n;
    a->events = events;
    a->ctx = ctx;
    a->tail = tail_start(&(struct tail_spec){ .loop = n->loop,
                                              .files = files,
                                              .dir = dir,
                                              .is_followed = true,
                                              .is_from_end = true,
                                              .lines = UINT64_MAX,
                                              .events = &events_of_tail,
                                              .ctx = a });
    *ret = &a->base;
    return 0;
}
