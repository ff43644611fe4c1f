#include "node/ports.h"

#include "node/dialin.h"
#include "node/event.h"
#include "node/limits.h"
#include "node/make.h"

#include "base/log.h"
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
    struct net_listener
        *listener; /* NULL: another program has it, or it is below the lowest port */
    bool is_wanted;
};

struct ports {
    struct record *record;
    struct port *v[NODE_PORTS_MAX];
    size_t n;
    struct inbound *inbounds;
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
        if (at != SIZE_MAX)
            log_warn("port.denied", KV("pod", r->name), KV("port", p->number), KV("uid", uid));
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

static int open_port(struct record *r, struct port *p, struct err *e)
{
    struct net_addr at;
    char text[NET_ADDR_TEXT_BYTES];

    (void)snprintf(text, sizeof text, "%s:%u", r->ip, p->number);
    if (net_addr_parse(text, &at, e) < 0 ||
        net_listen(r->node->loop, &at, on_accept, p, &p->listener, e) < 0) {
        if (e->sys == EADDRINUSE)
            return err_set(e, ERR_EXISTS,
                           "port %u of the Pod's address %s is taken, perhaps by a program that "
                           "listens on all addresses; port-forward works all the same",
                           p->number, r->ip);
        return -1;
    }
    return 0;
}

static void tell_low(struct record *r, uint16_t number)
{
    char text[320];

    (void)snprintf(text, sizeof text,
                   "port %u is not listened on at the Pod's address %s: ports below %u are the "
                   "machine's (silica up --pod-port-min); the router and port-forward reach it",
                   number, r->ip, r->node->pod_port_min);
    log_info("port.low", KV("pod", r->name), KV("port", number));
    node_event(r->node->events, &(struct event_spec){ .about = r->pod,
                                                      .node = r->node->name,
                                                      .is_warning = true,
                                                      .reason = "PortNotServed",
                                                      .message = text });
}

static void want(struct record *r, uint16_t number, struct err *e, int *rc)
{
    struct ports *ps = r->ports;
    struct port *p;

    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i]->number == number) {
            ps->v[i]->is_wanted = true;
            return;
        }
    if (ps->n == LEN(ps->v))
        return; /* port-forward reaches them */
    p = NEW(struct port);
    p->of = ps;
    p->number = number;
    p->is_wanted = true;
    ps->v[ps->n++] = p;
    if (number < r->node->pod_port_min)
        tell_low(r, number);
    else if (open_port(r, p, e) < 0)
        *rc = -1;
}

static void want_declared(struct record *r, size_t at, struct err *e, int *rc)
{
    const struct json *list = json_get(record_spec(r, at), "ports");

    JSON_EACH(port, list)
    {
        const char *protocol = json_cstr(json_get(port, "protocol"));
        uint64_t number;

        if ((!protocol || span_is(span_cstr(protocol), "TCP")) &&
            json_u64(json_get(port, "containerPort"), &number) && number && number <= UINT16_MAX)
            want(r, (uint16_t)number, e, rc);
    }
}

static void close_port(struct port *p)
{
    if (p->listener)
        net_listener_close(p->listener);
    free(p);
}

int ports_sync(struct record *r, struct err *e)
{
    uint16_t served[MAKE_PORTS_MAX];
    size_t kept = 0, n;
    int rc = 0;

    if (!r->pod || !*r->ip || r->life.is_leaving || record_running(r) == SIZE_MAX ||
        object_label(r->pod, WARM_POOL)) {
        ports_close(r);
        return 0;
    }
    if (!r->ports) {
        r->ports = NEW(struct ports);
        r->ports->record = r;
    }
    for (size_t i = 0; i < r->ports->n; i++)
        r->ports->v[i]->is_wanted = false;
    for (size_t i = 0; i < r->life.n; i++) {
        if (r->life.v[i].is_init && !r->life.v[i].is_sidecar)
            continue;
        n = make_server_ports(r, i, served);
        for (size_t k = 0; k < n; k++)
            want(r, served[k], e, &rc);
        want_declared(r, i, e, &rc);
    }
    for (size_t i = 0; i < r->ports->n; i++) {
        if (r->ports->v[i]->is_wanted)
            r->ports->v[kept++] = r->ports->v[i];
        else
            close_port(r->ports->v[i]);
    }
    r->ports->n = kept;
    return rc;
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
