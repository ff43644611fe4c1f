#include "up/gate.h"

#include "base/log.h"
#include "ev/timer.h"
#include "net/listen.h"
#include "up/limits.h"
#include "up/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_FILE  "gate-address"
#define ADDRESS_BYTES 32

struct gate {
    struct ev_loop *loop;
    struct ev_children *kids;
    struct gate_spec spec;
    struct part *part;
    int fd;
    char address[ADDRESS_BYTES]; /* of fd */
    struct err e;                /* why there is no fd */
    bool has_failed, is_wanted, is_over;
    struct ev_timer retry;
    struct ev_task reap;
};

static void open_gate(void *ctx);

/* ---- what became of it ---- */

const struct part *gate_part(const struct gate *g)
{
    return g->part;
}

const char *gate_address(const struct gate *g)
{
    return g->is_wanted && g->part && part_state(g->part) == PART_SERVING ? g->address : NULL;
}

static void tell(struct gate *g)
{
    OWN(buf_done) struct buf text = BUF_INIT(UP_FILE_MAX_BYTES);
    struct json_out out;
    struct err e;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    if (gate_address(g))
        json_out_key(&out, "address"), json_out_cstr(&out, g->address);
    if (g->has_failed) {
        json_out_key(&out, "error"), json_out_cstr(&out, g->e.msg);
        json_out_key(&out, "hint"), json_out_cstr(&out, g->e.hint);
    }
    json_out_object_end(&out);
    if (json_out_end(&out, &e) < 0 ||
        dir_write(g->spec.place->dir.fd, UP_GATEWAY_FILE, buf_span(&text), &e) < 0)
        log_warn("gate.file", KV("err", &e));
    g->spec.changed(g->spec.ctx);
}

/* ---- the listener ---- */

static int listen_at(struct gate *g, const char *host, struct err *e)
{
    char text[ADDRESS_BYTES + 8];
    struct net_addr at;

    (void)snprintf(text, sizeof text, "%s:80", host);
    if (net_addr_parse(text, &at, e) < 0 || net_listen_socket(&at, &g->fd, e) < 0)
        return -1;
    (void)snprintf(g->address, sizeof g->address, "%s", host);
    return 0;
}

static int listen_anywhere(struct gate *g, struct err *e)
{
    OWN(buf_done) struct buf last = BUF_INIT(ADDRESS_BYTES);
    int dir_fd = g->spec.place->dir.fd;
    char host[ADDRESS_BYTES];

    if (dir_read(dir_fd, ADDRESS_FILE, &last, e) == 0 && last.n &&
        strncmp(buf_cstr(&last), UP_GATE_NET, strlen(UP_GATE_NET)) == 0 &&
        listen_at(g, buf_cstr(&last), e) == 0)
        return 0;
    for (unsigned i = 1; i <= PORTS_TRIED; i++) {
        (void)snprintf(host, sizeof host, UP_GATE_NET "0.%u", i);
        if (listen_at(g, host, e) == 0)
            return dir_write(dir_fd, ADDRESS_FILE, span_cstr(host), e);
        if (e->sys != EADDRINUSE)
            break;
    }
    return -1;
}

static void explain(struct gate *g)
{
    if (g->e.sys == EACCES || g->e.sys == EPERM)
        err_hint(&g->e, "sysctl -w net.ipv4.ip_unprivileged_port_start=80 lets every account "
                        "listen on port 80; root may anyway");
    else if (g->e.sys == EADDRINUSE)
        err_hint(&g->e, "another program listens on port 80 of all addresses");
    log_warn("gate.listen", KV("err", (const struct err *)&g->e), KV("retry_ms", GATE_RETRY_MS));
}

/* ---- the part ---- */

static void on_line(void *ctx, struct part *p, struct span line)
{
    (void)ctx, (void)p, (void)line;
}

static void reap(void *ctx)
{
    struct gate *g = ctx;

    part_free(take_ptr(&g->part));
    own_fd_close(&g->fd);
    if (g->is_wanted && !g->is_over)
        open_gate(g);
    tell(g);
}

static void on_change(void *ctx, struct part *p)
{
    struct gate *g = ctx;

    if (part_state(p) == PART_ENDED)
        ev_post(g->loop, &g->reap, reap, g); /* it is on the stack */
    else
        tell(g);
}

static void open_gate(void *ctx)
{
    struct gate *g = ctx;
    struct part_spec part = { .name = "gateway",
                              .argv = g->spec.argv,
                              .is_loud = g->spec.is_loud,
                              .on_line = on_line,
                              .on_change = on_change,
                              .ctx = g };

    if (listen_anywhere(g, &g->e) < 0 ||
        place_open_log(g->spec.place, part.name, &part.log_fd, &g->e) < 0) {
        own_fd_close(&g->fd);
        explain(g);
        ev_timer_start(g->loop, &g->retry, GATE_RETRY_MS, open_gate, g);
        if (!g->has_failed) {
            g->has_failed = true;
            tell(g);
        }
        return;
    }
    g->has_failed = false;
    part.listen_fd = g->fd;
    g->part = part_new(g->loop, g->kids, &part);
    part_start(g->part); /* on_change tells */
}

/* ---- life ---- */

struct gate *gate_new(struct ev_loop *loop, struct ev_children *kids, const struct gate_spec *spec)
{
    struct gate *g = NEW(struct gate);

    g->loop = loop;
    g->kids = kids;
    g->spec = *spec;
    g->fd = -1;
    return g;
}

static void end(struct gate *g, uint64_t patience_ms)
{
    ev_timer_stop(g->loop, &g->retry);
    g->is_wanted = g->has_failed = false;
    if (g->part)
        part_stop(g->part, patience_ms);
}

void gate_want(struct gate *g, bool is_wanted)
{
    if (g->is_over)
        return;
    if (is_wanted == g->is_wanted) {
        tell(g);
        return;
    }
    if (!is_wanted) {
        end(g, GATE_PATIENCE_MS);
        tell(g);
        return;
    }
    g->is_wanted = true;
    if (!g->part) /* else it is about to end, and reap goes on */
        open_gate(g);
}

void gate_stop(struct gate *g, uint64_t patience_ms)
{
    g->is_over = true;
    end(g, patience_ms);
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    assert(!g->part);
    ev_timer_stop(g->loop, &g->retry);
    own_fd_close(&g->fd);
    free(g);
}
