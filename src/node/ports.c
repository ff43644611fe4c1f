#include "node/ports.h"

#include "node/address_demand.h"
#include "node/dialin.h"
#include "node/event.h"
#include "node/limits.h"
#include "node/make.h"
#include "node/pod_status.h"
#include "node/port_conflict.h"

#include "base/log.h"
#include "base/time.h"
#include "net/conn.h"
#include "net/listen.h"
#include "net/peer.h"
#include "net/relay.h"

#include <errno.h>
#include <stdio.h>

#define WARM_POOL "agents.x-k8s.io/warm-pool-sandbox"

/* A connection that came through a port. */
struct inbound {
    struct inbound *next, **at;
    struct ports *of;
    int fd; /* until it is joined to one inside */
    struct dialin *dial;
    struct relay *relay;
};

struct port {
    struct ports *of;
    uint16_t number;
    struct net_listener *listener;    /* NULL: it is taken, or too low */
    bool is_wanted, is_low, is_taken; /* told once each */
    bool is_strangers; /* with is_taken: by another account's program, or that is not known */
};

struct ports {
    struct record *record;
    struct port *v[NODE_PORTS_MAX];
    size_t n;
    uint64_t retry_ms; /* when those that are taken are tried again, by the monotonic clock */
    struct inbound *inbounds;
    struct log_limit denied;
};

/* ---- connections ---- */

static void unlink_inbound(struct inbound *in)
{
    if (in->at)
        *in->at = in->next;
    if (in->next)
        in->next->at = in->at;
    own_fd_close(&in->fd);
    free(in);
}

static void on_over(void *ctx)
{
    struct inbound *in = ctx;

    in->relay = NULL;
    unlink_inbound(in);
}

static void on_dialed(void *ctx, int fd, const struct err *e)
{
    struct inbound *in = ctx;
    struct ev_loop *loop = in->of->record->node->loop;
    struct conn *outer = NULL, *inner = NULL;
    struct err failed;

    in->dial = NULL;
    if (e) {
        log_debug("port.refused", KV("pod", in->of->record->name), KV("err", e));
        unlink_inbound(in);
        return;
    }
    if (conn_new(loop, take_fd(&in->fd), NULL, NULL, NULL, &outer, &failed) < 0 ||
        conn_new(loop, fd, NULL, NULL, NULL, &inner, &failed) < 0) {
        if (!outer)
            (void)close(fd);
        else
            conn_close(outer);
        unlink_inbound(in);
        return;
    }
    in->relay = relay_start(outer, SPAN_NONE, inner, SPAN_NONE, on_over, in);
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct port *p = ctx;
    struct record *r = p->of->record;
    size_t at = record_running(r);
    uid_t uid = (uid_t)-1;
    char box[RUN_NAME_BYTES];
    struct inbound *in;

    if (!net_peer_uid(fd, peer, &uid) || uid != geteuid() || at == SIZE_MAX) {
        if (at != SIZE_MAX && log_limit_pass(&p->of->denied, time_mono_ms()))
            log_warn("port.denied", KV("pod", r->name), KV("port", p->number), KV("uid", uid),
                     KV("count", p->of->denied.count));
        (void)close(fd);
        return;
    }
    in = NEW(struct inbound);
    in->of = p->of;
    in->fd = fd;
    in->at = &p->of->inbounds;
    in->next = *in->at;
    if (in->next)
        in->next->at = &in->next;
    *in->at = in;
    record_box(r, at, r->life.v[at].now.attempt, box);
    in->dial = dialin_start(r->node->loop, r->node->crew, box, p->number, on_dialed, in);
}

/* ---- listeners ---- */

static void tell(const struct record *r, const char *reason, const char *message)
{
    node_event(r->node->events, &(struct event_spec){ .about = r->pod,
                                                      .node = r->node->name,
                                                      .is_warning = true,
                                                      .reason = reason,
                                                      .message = message });
}

static void tell_low(const struct record *r, uint16_t number)
{
    char text[320];

    (void)snprintf(text, sizeof text,
                   "port %u is not listened on at the Pod's address %s: ports below %u are the "
                   "machine's (silica up --pod-port-min); the router and port-forward reach it",
                   number, r->ip, r->node->pod_port_min);
    log_info("port.low", KV("pod", r->name), KV("port", number));
    tell(r, "PortNotServed", text);
}

static void tell_failure(const struct record *r, uint16_t number, const struct err *e)
{
    char text[sizeof e->msg + 160];

    (void)snprintf(text, sizeof text, "port %u is not listened on at the Pod's address %s: %s",
                   number, r->ip, e->msg);
    log_warn("port.listen", KV("pod", r->name), KV("port", number), KV("err", e));
    tell(r, "PortNotServed", text);
}

static void open_port(struct record *r, struct port *p)
{
    struct net_addr at;
    struct err e;

    if (!net_addr_of_ip(span_cstr(r->ip), p->number, &at))
        return;
    if (net_listen(r->node->loop, &at, on_accept, p, &p->listener, &e) == 0) {
        p->is_taken = p->is_strangers = false;
        return;
    }
    if (e.sys == EADDRINUSE)
        port_conflicts_add(r->node->port_conflicts, r, p->number, p->is_taken);
    else if (!p->is_taken)
        tell_failure(r, p->number, &e);
    p->is_strangers |= e.sys == EADDRINUSE && !p->is_taken;
    p->is_taken = true;
}

static void want(struct record *r, uint16_t number)
{
    struct ports *ps = r->ports;
    struct port *p;

    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i]->number == number) {
            ps->v[i]->is_wanted = true;
            return;
        }
    if (!number || ps->n == LEN(ps->v))
        return; /* port-forward reaches them */
    p = NEW(struct port);
    p->of = ps;
    p->number = number;
    p->is_wanted = true;
    p->is_low = number < r->node->pod_port_min;
    ps->v[ps->n++] = p;
    if (p->is_low)
        tell_low(r, number);
    else
        open_port(r, p);
}

static void want_declared(struct record *r, size_t at)
{
    const struct json *list = json_get(record_spec(r, at), "ports");

    JSON_EACH(port, list)
    {
        const char *protocol = json_cstr(json_get(port, "protocol"));
        uint64_t number;

        if ((!protocol || span_is(span_cstr(protocol), "TCP")) &&
            json_u64(json_get(port, "containerPort"), &number) && number <= UINT16_MAX)
            want(r, (uint16_t)number);
    }
}

static void want_all(struct record *r)
{
    uint16_t served[MAKE_PORTS_MAX];
    size_t n;

    for (size_t i = 0; i < r->life.n; i++) {
        if (r->life.v[i].is_init && !r->life.v[i].is_sidecar)
            continue;
        n = make_server_ports(r, i, served);
        for (size_t k = 0; k < n; k++)
            want(r, served[k]);
        want_declared(r, i);
    }
}

static void close_port(struct port *p)
{
    if (p->listener)
        net_listener_close(p->listener);
    free(p);
}

static void close_unwanted(struct ports *ps)
{
    size_t kept = 0;

    for (size_t i = 0; i < ps->n; i++) {
        if (ps->v[i]->is_wanted)
            ps->v[kept++] = ps->v[i];
        else
            close_port(ps->v[i]);
    }
    ps->n = kept;
}

static enum ports_state state_of(const struct ports *ps)
{
    enum ports_state state = PORTS_OPEN;

    for (size_t i = 0; i < ps->n; i++) {
        if (ps->v[i]->is_strangers)
            return PORTS_STRANGERS;
        if (ps->v[i]->is_taken)
            state = PORTS_TAKEN;
    }
    return state;
}

static void retry(struct record *r)
{
    struct ports *ps = r->ports;
    uint64_t now_ms = time_mono_ms();

    if (ps->retry_ms && now_ms >= ps->retry_ms) {
        for (size_t i = 0; i < ps->n; i++)
            if (ps->v[i]->is_taken)
                open_port(r, ps->v[i]);
        ps->retry_ms = 0;
    }
    if (state_of(ps) == PORTS_OPEN)
        ps->retry_ms = 0;
    else if (!ps->retry_ms)
        ps->retry_ms = now_ms + NODE_PORT_RETRY_MS;
}

static enum ports_state sync_open(struct record *r)
{
    if (!r->ports) {
        r->ports = NEW(struct ports);
        r->ports->record = r;
    }
    for (size_t i = 0; i < r->ports->n; i++)
        r->ports->v[i]->is_wanted = false;
    want_all(r);
    close_unwanted(r->ports);
    retry(r);
    return state_of(r->ports);
}

void ports_sync(struct record *r)
{
    bool is_asked = r->pod && *r->ip && !r->life.is_leaving && record_running(r) != SIZE_MAX &&
                    address_demand_has(r);

    if (is_asked && !object_label(r->pod, WARM_POOL)) {
        r->ports_state = sync_open(r);
        return;
    }
    ports_close(r);
    r->ports_state = is_asked ? PORTS_UNCLAIMED : PORTS_UNASKED;
}

bool ports_hear(struct record *r, uint16_t port, bool is_strangers)
{
    for (size_t i = 0; r->ports && i < r->ports->n; i++) {
        struct port *p = r->ports->v[i];

        if (p->number != port || !p->is_taken || p->is_strangers == is_strangers)
            continue;
        p->is_strangers = is_strangers;
        node_wake(r->node, r);
        return true;
    }
    return false;
}

const char *ports_reason(const struct record *r)
{
    switch (r->ports_state) {
    case PORTS_UNCLAIMED:
        return "NotClaimed";
    case PORTS_OPEN:
        return POD_STATUS_LISTENING;
    case PORTS_TAKEN:
        return "PortTaken";
    case PORTS_STRANGERS:
        return POD_STATUS_STRANGERS;
    case PORTS_UNASKED:
        break;
    }
    return NULL;
}

uint64_t ports_wait_ms(const struct record *r)
{
    uint64_t now_ms = time_mono_ms();

    if (!r->ports || !r->ports->retry_ms)
        return UINT64_MAX;
    return r->ports->retry_ms > now_ms ? r->ports->retry_ms - now_ms : 1;
}

void ports_close(struct record *r)
{
    struct ports *ps = take_ptr(&r->ports);

    if (!ps)
        return;
    for (size_t i = 0; i < ps->n; i++)
        close_port(ps->v[i]);
    for (struct inbound *in = ps->inbounds, *next; in; in = next) {
        next = in->next;
        in->next = NULL; /* nobody lists it any more */
        in->at = NULL;
        if (in->dial)
            dialin_cancel(in->dial);
        if (in->relay)
            relay_close(in->relay);
        else
            unlink_inbound(in);
    }
    free(ps);
}
