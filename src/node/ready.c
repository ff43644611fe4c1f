/* Is a sandbox ready? Where silica-runtime is what it runs: when that takes a connection, which is asked from 1 ms on,
 * ever less often. Elsewhere at once. */
#include "node/dialin.h"
#include "node/limits.h"
#include "node/make.h"

#include "ev/timer.h"

#include <string.h>

#define ASK_FIRST_MS 1
#define ASK_MOST_MS  1000

struct ready {
    struct ready *next, **at_list;
    struct node *node;
    struct run_id id;               /* the record may go meanwhile */
    uint16_t ports[MAKE_PORTS_MAX]; /* asked in turn */
    size_t port_count, asked;
    uint64_t wait_ms;
    struct ev_timer again;
    struct dialin *dial;
};

static void ask(void *ctx);

static struct record *still(const struct ready *q, size_t *ret_at)
{
    struct record *r = record_find_uid(q->node, q->id.uid);
    size_t at = r ? record_container(r, q->id.container) : SIZE_MAX;

    if (at == SIZE_MAX || r->life.v[at].now.state != RUN_UP ||
        r->life.v[at].now.attempt != q->id.attempt)
        return NULL;
    *ret_at = at;
    return r;
}

static void end(struct ready *q)
{
    ev_timer_stop(q->node->loop, &q->again);
    if (q->dial)
        dialin_cancel(take_ptr(&q->dial));
    *q->at_list = q->next;
    if (q->next)
        q->next->at_list = q->at_list;
    free(q);
}

static void say_ready(struct record *r, size_t at)
{
    r->life.v[at].is_started = r->life.v[at].is_ready = true;
}

static void on_dialed(void *ctx, int fd, const struct err *e)
{
    struct ready *q = ctx;
    struct record *r;
    size_t at;

    q->dial = NULL;
    if (!e)
        (void)close(fd);
    r = still(q, &at);
    if (r && !e) {
        say_ready(r, at);
        node_wake(q->node, r);
    }
    if (!r || !e) {
        end(q);
        return;
    }
    ev_timer_start(q->node->loop, &q->again, q->wait_ms, ask, q);
    q->wait_ms = MIN(q->wait_ms * 2, (uint64_t)ASK_MOST_MS);
}

static void ask(void *ctx)
{
    struct ready *q = ctx;
    char box[RUN_NAME_BYTES];
    struct record *r;
    size_t at;

    r = still(q, &at);
    if (!r) {
        end(q);
        return;
    }
    record_box(r, at, q->id.attempt, box);
    q->dial = dialin_start(q->node->loop, q->node->crew, box, q->ports[q->asked++ % q->port_count],
                           on_dialed, q);
}

void ready_begin(struct record *r, size_t at)
{
    struct node *n = r->node;
    struct ready *q = NEW(struct ready);

    q->port_count = make_server_ports(r, at, q->ports);
    if (!q->port_count) {
        free(q);
        say_ready(r, at);
        return;
    }
    q->node = n;
    (void)snprintf(q->id.uid, sizeof q->id.uid, "%s", r->uid);
    (void)snprintf(q->id.container, sizeof q->id.container, "%s", r->parts[at].name);
    q->id.attempt = r->life.v[at].now.attempt;
    q->wait_ms = ASK_FIRST_MS;
    q->at_list = &n->asking;
    q->next = n->asking;
    if (q->next)
        q->next->at_list = &q->next;
    n->asking = q;
    ask(q);
}

void ready_close(struct node *n)
{
    while (n->asking)
        end(n->asking);
}
