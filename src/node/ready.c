/* Is a sandbox ready? As its probes say. Where it has no readiness probe and silica-runtime is what it runs: when that takes
 * a connection, which is asked from 1 ms on, ever less often. Elsewhere at once. */
#include "node/dialin.h"
#include "node/event.h"
#include "node/limits.h"
#include "node/make.h"
#include "node/probe.h"
#include "node/question.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/timer.h"

#include <string.h>

#define ASK_FIRST_MS    1
#define ASK_MOST_MS     1000
#define TELL_AGAIN_MS   300000 /* the same failure is told again */
#define GRACE_DEFAULT_S 30

/* One probe's try. */
struct
try {
    struct ready *of;
    struct probe *probe;
    struct question question;
    uint64_t told_ms; /* when its failure was last told, and what */
    char told[256];
};

struct ready {
    struct ready *next, **at_list; /* at_list NULL: it has ended, and waits for its tries */
    struct node *node;
    struct run_id id; /* the record may go meanwhile */
    char box[RUN_NAME_BYTES];
    struct object *pod; /* whose texts the probes are */
    /* Our own server: */
    uint16_t ports[MAKE_PORTS_MAX]; /* asked in turn */
    size_t port_count, asked;
    uint64_t wait_ms;
    struct ev_timer again;
    struct dialin *dial;
    bool is_open; /* it answered, or there is none to be asked */
    /* The Pod's probes: */
    const struct json *container;
    struct probes probes;
    struct try tries[PROBE_ROLES];
    struct ev_timer due;
};

static void ask(void *ctx);
static void plan(struct ready *q);

static struct record *still(const struct ready *q, size_t *ret_at)
{
    struct record *r = record_find_uid(q->node, q->id.uid);
    size_t at = r ? record_container(r, q->id.container) : SIZE_MAX;

    if (at == SIZE_MAX || r->life.v[at].now.state != RUN_UP || r->life.is_ending ||
        r->life.v[at].now.attempt != q->id.attempt)
        return NULL;
    *ret_at = at;
    return r;
}

/* ---- the end ---- */

static void free_if_idle(struct ready *q)
{
    for (size_t i = 0; i < PROBE_ROLES; i++)
        if (q->tries[i].question.is_busy)
            return;
    object_unref(q->pod);
    free(q);
}

static void end(struct ready *q)
{
    ev_timer_stop(q->node->loop, &q->again);
    ev_timer_stop(q->node->loop, &q->due);
    if (q->dial)
        dialin_cancel(take_ptr(&q->dial));
    *q->at_list = q->next;
    if (q->next)
        q->next->at_list = q->at_list;
    q->at_list = NULL;
    for (size_t i = 0; i < PROBE_ROLES; i++)
        question_cancel(&q->tries[i].question);
    free_if_idle(q);
}

/* What its probes and its server say, as the Pod's life sees it. */
static void say(struct ready *q, struct record *r, size_t at)
{
    struct life_container *c = &r->life.v[at];
    bool is_started = probes_is_started(&q->probes);
    bool is_ready = q->is_open && probes_is_ready(&q->probes);

    if (c->is_started == is_started && c->is_ready == is_ready)
        return;
    c->is_started = is_started;
    c->is_ready = is_ready;
    node_wake(q->node, r);
}

/* Nothing is left to be asked. */
static void settle(struct ready *q)
{
    for (size_t i = 0; i < PROBE_ROLES; i++)
        if (q->tries[i].question.is_busy)
            return;
    if (q->is_open && !ev_timer_is_running(&q->due))
        end(q);
}

/* ---- our own server ---- */

static void on_dialed(void *ctx, int fd, const struct err *e)
{
    struct ready *q = ctx;
    struct record *r;
    size_t at;

    q->dial = NULL;
    if (!e)
        (void)close(fd);
    r = still(q, &at);
    if (!r) {
        end(q);
        return;
    }
    if (!e) {
        q->is_open = true;
        say(q, r, at);
        settle(q);
        return;
    }
    ev_timer_start(q->node->loop, &q->again, q->wait_ms, ask, q);
    q->wait_ms = MIN(q->wait_ms * 2, (uint64_t)ASK_MOST_MS);
}

static void ask(void *ctx)
{
    struct ready *q = ctx;
    size_t at;

    if (!still(q, &at)) {
        end(q);
        return;
    }
    q->dial = dialin_start(q->node->loop, q->node->crew, q->box,
                           q->ports[q->asked++ % q->port_count], on_dialed, q);
}

/* ---- what probes lead to ---- */

static void tell(struct record *r, size_t at, const char *reason, const char *message)
{
    node_event(r->node->events, &(struct event_spec){ .about = r->pod,
                                                      .node = r->node->name,
                                                      .container = r->parts[at].name,
                                                      .is_init = r->life.v[at].is_init,
                                                      .is_warning = strcmp(reason, "Killing") != 0,
                                                      .reason = reason,
                                                      .message = message });
}

static void tell_failure(struct try *t, struct record *r, size_t at, const char *message)
{
    char text[PROBER_MESSAGE_MAX_BYTES + 64];
    uint64_t now_ms = time_mono_ms();

    (void)snprintf(text, sizeof text, "%s probe failed: %s", probe_role_name(t->probe->role, false),
                   message);
    log_info("probe.failed", KV("box", (const char *)t->of->box),
             KV("probe", probe_role_name(t->probe->role, true)), KV("err", message));
    if (t->told[0] && strncmp(t->told, text, sizeof t->told - 1) == 0 &&
        now_ms < t->told_ms + TELL_AGAIN_MS)
        return;
    (void)snprintf(t->told, sizeof t->told, "%.*s", (int)sizeof t->told - 1, text);
    t->told_ms = now_ms;
    if (r->pod)
        tell(r, at, "Unhealthy", text);
}

/* The container is ended, and its restartPolicy says what then. */
static void end_container(struct ready *q, struct record *r, size_t at, const struct probe *why)
{
    struct life_container *c = &r->life.v[at];
    uint64_t grace_s = GRACE_DEFAULT_S;
    char text[160];

    if (c->must_end)
        return;
    (void)json_u64(object_at(q->pod, "spec.terminationGracePeriodSeconds"), &grace_s);
    (void)json_u64(json_get(why->spec, "terminationGracePeriodSeconds"), &grace_s);
    c->must_end = true;
    c->end_by_ms = node_wall_ms() + MIN(grace_s, (uint64_t)UINT32_MAX) * 1000;
    (void)snprintf(text, sizeof text, "Container %s failed %s probe, will be restarted", c->name,
                   probe_role_name(why->role, true));
    if (r->pod)
        tell(r, at, "Killing", text);
    node_wake(q->node, r);
}

/* ---- one try ---- */

static void on_answer(void *ctx, bool is_success, const char *message)
{
    struct try *t = ctx;
    struct ready *q = t->of;
    struct probe_news news;
    struct record *r;
    size_t at;

    if (!q->at_list) {
        free_if_idle(q);
        return;
    }
    r = still(q, &at);
    if (!r) {
        end(q);
        return;
    }
    news = probe_end(&q->probes, t->probe, is_success, time_mono_ms());
    if (is_success)
        t->told[0] = '\0';
    else if (news.is_counted)
        tell_failure(t, r, at, message);
    say(q, r, at);
    if (probes_killer(&q->probes))
        end_container(q, r, at, probes_killer(&q->probes));
    plan(q);
    settle(q);
}

static void ask_probe(struct ready *q, struct probe *p, struct record *r, size_t at)
{
    struct try *t = &q->tries[p->role];

    probe_begin(p);
    question_start(&t->question, &(struct question_spec){ .node = q->node,
                                                          .box = q->box,
                                                          .handler = p->spec,
                                                          .container = q->container,
                                                          .pod_ip = r->ip,
                                                          .cwd = make_cwd(r, at),
                                                          .timeout_ms = p->rules.timeout_ms,
                                                          .done = on_answer,
                                                          .ctx = t });
}

static void on_due(void *ctx)
{
    struct ready *q = ctx;
    uint64_t due_ms;
    struct probe *p = probes_due(&q->probes, &due_ms);
    size_t at;
    struct record *r = still(q, &at);

    if (!r) {
        end(q);
        return;
    }
    if (p && due_ms <= time_mono_ms())
        ask_probe(q, p, r, at);
    plan(q);
}

/* The next try of all probes. */
static void plan(struct ready *q)
{
    uint64_t due_ms = 0, now_ms = time_mono_ms();

    if (probes_due(&q->probes, &due_ms))
        ev_timer_start(q->node->loop, &q->due, due_ms > now_ms ? due_ms - now_ms : 0, on_due, q);
    else
        ev_timer_stop(q->node->loop, &q->due);
}

/* ---- the beginning ---- */

static void begin_probes(struct ready *q, struct record *r, size_t at)
{
    const struct life_container *c = &r->life.v[at];
    uint64_t wall_ms = node_wall_ms(), now_ms = time_mono_ms();
    uint64_t age_ms = wall_ms > c->now.began_ms ? wall_ms - c->now.began_ms : 0;

    probes_init(&q->probes, q->container, now_ms - MIN(age_ms, now_ms));
    for (size_t i = 0; i < PROBE_ROLES; i++)
        q->tries[i] = (struct try){ .of = q, .probe = &q->probes.v[i] };
    /* What was said of one that is taken over holds until its probes say otherwise. */
    probes_adopt(&q->probes, c->is_started, c->is_ready);
    if (c->is_ready)
        q->is_open = true;
    plan(q);
}

void ready_begin(struct record *r, size_t at)
{
    struct node *n = r->node;
    struct ready *q = NEW(struct ready);

    q->node = n;
    q->pod = object_ref(r->pod);
    q->container = record_spec(r, at);
    (void)snprintf(q->id.uid, sizeof q->id.uid, "%s", r->uid);
    (void)snprintf(q->id.container, sizeof q->id.container, "%s", r->parts[at].name);
    q->id.attempt = r->life.v[at].now.attempt;
    record_box(r, at, q->id.attempt, q->box);
    q->wait_ms = ASK_FIRST_MS;
    q->at_list = &n->asking;
    q->next = n->asking;
    if (q->next)
        q->next->at_list = &q->next;
    n->asking = q;
    begin_probes(q, r, at);
    if (!q->probes.v[PROBE_READINESS].spec)
        q->port_count = make_server_ports(r, at, q->ports);
    q->is_open |= !q->port_count;
    say(q, r, at);
    if (q->is_open)
        settle(q);
    else
        ask(q);
}

void ready_close(struct node *n)
{
    while (n->asking)
        end(n->asking);
}
