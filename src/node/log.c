/* The log of a container, as a client wants to see it. */
#include "node/limits.h"
#include "node/node_impl.h"
#include "node/streams.h"
#include "node/tail.h"

#include "podstream/log_filter.h"

#include <stdio.h>

struct pod_log {
    struct node *node;
    struct tail *tail;
    const struct pod_log_events *events;
    void *ctx;
    struct pod_log_wish wish;
    char since[64];
    struct log_filter filter;
    struct buf out;
};

static void log_free(void *obj)
{
    struct pod_log *l = obj;

    buf_done(&l->out);
    free(l);
}

static void on_begin(void *ctx, uint64_t skip)
{
    struct pod_log *l = ctx;

    log_filter_init(&l->filter, &l->wish, skip);
}

static void on_entry(void *ctx, const struct logs_entry *entry)
{
    struct pod_log *l = ctx;
    const struct log_entry shown = {
        .time = entry->time,
        .stream = entry->stream == SANDBOX_STDOUT ? POD_STDOUT : POD_STDERR,
        .is_end = entry->is_end,
        .text = entry->text,
    };

    log_filter_add(&l->filter, &shown, &l->out);
}

static bool on_piece(void *ctx)
{
    struct pod_log *l = ctx;
    OWN(buf_done) struct buf piece = BUF_INIT(LOG_OUTPUT_MAX);
    bool is_full = log_filter_is_full(&l->filter);

    buf_move(&piece, &l->out);
    if (piece.n)
        l->events->on_output(l->ctx, buf_span(&piece)); /* which may end us */
    return !is_full;
}

static void on_end(void *ctx, const struct err *e)
{
    struct pod_log *l = ctx;

    l->tail = NULL; /* it ends by itself */
    l->events->on_end(l->ctx, e);
    ev_free_later(l->node->loop, l, log_free);
}

static const struct tail_events events_of_tail = { on_begin, on_entry, on_piece, on_end };

void log_pause(struct pod_log *l, bool is_paused)
{
    if (l->tail)
        tail_pause(l->tail, is_paused);
}

void log_leave(struct pod_log *l)
{
    if (!l->tail)
        return; /* within on_end */
    tail_leave(take_ptr(&l->tail));
    ev_free_later(l->node->loop, l, log_free);
}

/* Which attempt's; -1: it has none. */
static int choose(const struct life_container *c, const struct pod_request *r,
                  uint32_t *ret_attempt, struct err *e)
{
    const struct life_run *run = c->now.has_box && !r->log.is_previous ? &c->now : &c->before;

    if (run->has_box) {
        *ret_attempt = run->attempt;
        return 0;
    }
    if (r->log.is_previous)
        return err_set(e, ERR_INVALID,
                       "previous terminated container \"%s\" in pod \"%s\" not found", r->container,
                       r->pod);
    return err_set(e, ERR_INVALID, "container \"%s\" in pod \"%s\" is waiting to start: %s",
                   r->container, r->pod, c->wait_reason ? c->wait_reason : "ContainerCreating");
}

int log_open_of(struct node *n, struct ev_pool *files, const struct pod_request *r,
                const struct pod_log_events *events, void *ctx, struct pod_log **ret, struct err *e)
{
    struct record *record = record_find(n, r->ns, r->pod);
    size_t at = record ? record_container(record, r->container) : SIZE_MAX;
    char dir[4096];
    uint32_t attempt;
    struct pod_log *l;

    if (at == SIZE_MAX)
        return err_set(e, ERR_NOT_FOUND, "container not found (\"%s\")", r->container);
    if (choose(&record->life.v[at], r, &attempt, e) < 0)
        return -1;
    streams_box_dir(record, at, attempt, dir, sizeof dir);
    l = NEW(struct pod_log);
    l->node = n;
    l->events = events;
    l->ctx = ctx;
    l->wish = r->log;
    (void)snprintf(l->since, sizeof l->since, "%s", r->log.since);
    l->wish.since = l->since;
    l->out.max = LOG_OUTPUT_MAX;
    l->tail = tail_start(&(struct tail_spec){ .loop = n->loop,
                                              .files = files,
                                              .dir = dir,
                                              .is_followed = r->log.is_followed,
                                              .lines = r->log.tail,
                                              .events = &events_of_tail,
                                              .ctx = l });
    *ret = l;
    return 0;
}
