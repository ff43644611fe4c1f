#include "node/address_demand.h"

#include "base/log.h"
#include "base/time.h"
#include "base/packet.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "kube/names.h"
#include "net/listen.h"
#include "net/peer.h"
#include "node/limits.h"
#include "node/node_impl.h"
#include "node/pod_status.h"
#include "node/ports.h"

#include <string.h>

#define NAMESPACE_MAX_BYTES 63

/* A process that asks. */
struct session {
    struct session *next, **link;
    struct address_demand *of;
    struct area *area; /* NULL: it has not said which */
    int fd;
    struct ev_io io;
    bool is_answered;
};

/* A namespace whose Pods' addresses are asked for. */
struct area {
    struct area *next, **link;
    char name[NAMESPACE_MAX_BYTES + 1];
    size_t sessions; /* that said so */
    size_t awaited;  /* Pods of which the API does not have it yet */
    bool is_held;    /* an earlier node said so */
};

struct address_demand {
    struct node *node;
    bool is_every;
    struct net_listener *listener;
    struct session *sessions;
    size_t session_count;
    struct area *areas;
    struct ev_timer hold;
    struct log_limit denied;
};

static bool is_noted(const struct object *pod)
{
    const char *note = object_annotation(pod, ADDRESS_NOTE);

    return note && strcmp(note, "true") == 0;
}

/* ---- namespaces ---- */

static struct area *find_area(const struct address_demand *d, const char *name)
{
    for (struct area *a = d->areas; a; a = a->next)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

static struct area *take_area(struct address_demand *d, const char *name)
{
    struct area *a = find_area(d, name);

    if (a)
        return a;
    a = NEW(struct area);
    (void)snprintf(a->name, sizeof a->name, "%s", name);
    a->link = &d->areas;
    a->next = d->areas;
    if (a->next)
        a->next->link = &a->next;
    d->areas = a;
    return a;
}

static void unlink_area(struct area *a)
{
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
}

static void answer(struct session *s)
{
    struct iovec part = { (void *)NODE_ADDRESSES_READY, sizeof NODE_ADDRESSES_READY - 1 };
    struct err e;

    s->is_answered = true;
    if (packet_send(s->fd, &part, 1, NULL, 0, &e) < 0)
        log_warn("addresses.answer", KV("err", &e)); /* its end follows */
}

static void answer_all(struct area *a, struct address_demand *d)
{
    for (struct session *s = d->sessions; s; s = s->next)
        if (s->area == a && !s->is_answered)
            answer(s);
}

/* One less to wait for. */
static void count_down(struct record *r)
{
    struct address_demand *d = r->node->address_demand;
    struct area *a = find_area(d, r->namespace);

    r->is_address_awaited = false;
    if (a && --a->awaited == 0)
        answer_all(a, d);
}

struct walk {
    struct address_demand *d;
    struct area *area;
};

static void begin_one(struct keymap_node *node, void *ctx)
{
    struct record *r = CONTAINER(node, struct record, by_name);
    struct walk *w = ctx;

    if (strcmp(r->namespace, w->area->name) != 0 || !r->pod || record_running(r) == SIZE_MAX)
        return;
    if (!r->is_address_awaited) {
        r->is_address_awaited = true;
        w->area->awaited++;
    }
    node_wake(w->d->node, r);
}

/* At once, whatever else its Pod waits for: another program may wait for the port. */
static void end_one(struct keymap_node *node, void *ctx)
{
    struct record *r = CONTAINER(node, struct record, by_name);
    const struct walk *w = ctx;

    if (strcmp(r->namespace, w->area->name) != 0)
        return;
    r->is_address_awaited = false;
    if (!address_demand_has(r))
        ports_close(r);
    node_wake(w->d->node, r);
}

/* Nobody asks any more. */
static void end_area(struct address_demand *d, struct area *a)
{
    struct walk w = { d, a };

    if (a->sessions || a->is_held)
        return;
    log_info("addresses.end", KV("namespace", (const char *)a->name));
    unlink_area(a);
    keymap_each(&d->node->by_name, end_one, &w);
    free(a);
}

static void on_hold_over(void *ctx)
{
    struct address_demand *d = ctx;

    for (struct area *a = d->areas, *next; a; a = next) {
        next = a->next;
        a->is_held = false;
        end_area(d, a);
    }
}

/* ---- who asks ---- */

static void leave(struct session *s)
{
    struct address_demand *d = s->of;

    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    d->session_count--;
    ev_io_close(&s->io);
    own_fd_close(&s->fd);
    if (s->area) {
        s->area->sessions--;
        end_area(d, s->area);
    }
    ev_free_later(d->node->loop, s, free);
}

static void begin(struct session *s, struct span name)
{
    struct address_demand *d = s->of;
    char text[NAMESPACE_MAX_BYTES + 1];
    struct walk w = { .d = d };

    (void)snprintf(text, sizeof text, "%.*s", SPAN_ARG(name));
    s->area = w.area = take_area(d, text);
    s->area->sessions++;
    log_info("addresses.begin", KV("namespace", (const char *)text));
    keymap_each(&d->node->by_name, begin_one, &w);
    if (!s->area->awaited)
        answer(s);
}

static void on_ready(void *ctx, unsigned ready)
{
    uint8_t bytes[NAMESPACE_MAX_BYTES + 1];
    struct iovec part = { bytes, sizeof bytes };
    struct names_faults faults;
    struct session *s = ctx;
    struct err e;
    size_t n;

    (void)ready;
    if (packet_receive(s->fd, &part, 1, &n, NULL, NULL, &e) < 0) {
        if (e.code != ERR_BUSY)
            leave(s);
        return;
    }
    if (s->area || !names_check(NAMES_DNS_LABEL, span_of(bytes, n), &faults)) {
        log_warn("addresses.ask", KV("err", "it is no name of a namespace, or the second"));
        leave(s);
        return;
    }
    begin(s, span_of(bytes, n));
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct address_demand *d = ctx;
    struct session *s;
    struct err e;

    if (!net_peer_is_ours(fd, peer) || d->session_count >= ADDRESS_SESSIONS_MAX) {
        if (log_limit_pass(&d->denied, time_mono_ms()))
            log_warn("addresses.denied", KV("sessions", d->session_count),
                     KV("count", d->denied.count));
        (void)close(fd);
        return;
    }
    s = NEW(struct session);
    s->of = d;
    s->fd = fd;
    s->link = &d->sessions;
    s->next = d->sessions;
    if (s->next)
        s->next->link = &s->next;
    d->sessions = s;
    d->session_count++;
    if (ev_io_open(&s->io, d->node->loop, fd, on_ready, s, &e) < 0) {
        log_warn("addresses.accept", KV("err", &e));
        leave(s);
        return;
    }
    ev_io_want(&s->io, EV_READ);
}

/* ---- life ---- */

struct address_demand *address_demand_new(struct node *n, bool is_every_address)
{
    struct address_demand *d = NEW(struct address_demand);

    d->node = n;
    d->is_every = is_every_address;
    return d;
}

int address_demand_listen(struct address_demand *d, int listen_fd, struct err *e)
{
    if (net_listen_fd(d->node->loop, listen_fd, on_accept, d, &d->listener, e) == 0)
        return 0;
    (void)close(listen_fd);
    return -1;
}

static const char *told_reason(const struct object *pod)
{
    JSON_EACH(c, object_at(pod, "status.conditions"))
    {
        if (span_is(json_str(json_get(c, "type")), POD_STATUS_ADDRESSES))
            return json_cstr(json_get(c, "reason"));
    }
    return NULL;
}

void address_demand_resume(struct address_demand *d, const struct object *pod)
{
    if (d->is_every || is_noted(pod) || !told_reason(pod))
        return;
    take_area(d, object_namespace(pod))->is_held = true;
    if (!ev_timer_is_running(&d->hold))
        ev_timer_start(d->node->loop, &d->hold, ADDRESS_HOLD_MS, on_hold_over, d);
}

void address_demand_free(struct address_demand *d)
{
    if (!d)
        return;
    ev_timer_stop(d->node->loop, &d->hold);
    if (d->listener)
        net_listener_close(d->listener);
    while (d->sessions)
        leave(d->sessions);
    for (struct area *a; (a = d->areas);) {
        unlink_area(a);
        free(a);
    }
    free(d);
}

/* ---- Pods ---- */

bool address_demand_has(const struct record *r)
{
    const struct address_demand *d = r->node->address_demand;

    return d->is_every || (r->pod && is_noted(r->pod)) || find_area(d, r->namespace);
}

void address_demand_see(struct record *r, const struct object *pod)
{
    const char *told = pod ? told_reason(pod) : NULL, *wanted = ports_reason(r);

    if (!r->is_address_awaited)
        return;
    if (record_running(r) == SIZE_MAX ||
        (told && wanted && strcmp(told, wanted) == 0 && r->ports_state != PORTS_STRANGERS))
        count_down(r);
}

void address_demand_forget(struct record *r)
{
    if (r->is_address_awaited)
        count_down(r);
}
