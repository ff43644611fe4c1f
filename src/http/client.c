#include "http/client_impl.h"

#include "http/h2.h"
#include "http/limits.h"

#include <errno.h>
#include <sys/socket.h>

#define SURELY_ALIVE_MS 200 /* no server's patience with idle connections is shorter */

struct http_client *http_client_new(struct ev_loop *loop, const struct http_client_config *config)
{
    struct http_client *c = NEW(struct http_client);

    c->loop = loop;
    c->config = *config;
    if (!c->config.idle_max)
        c->config.idle_max = HTTP_CLIENT_IDLE_MAX;
    if (!c->config.idle_per_target_max)
        c->config.idle_per_target_max = HTTP_CLIENT_IDLE_PER_TARGET_MAX;
    if (!c->config.idle_ms)
        c->config.idle_ms = HTTP_CLIENT_IDLE_MS;
    if (!c->config.head_max_bytes)
        c->config.head_max_bytes = HTTP_HEAD_MAX_BYTES;
    if (!c->config.request_max_bytes)
        c->config.request_max_bytes = HTTP_HEAD_MAX_BYTES;
    return c;
}

static void client_free(void *obj)
{
    free(obj);
}

void http_client_let_go(struct http_client *c)
{
    if (c->is_closing && c->call_count == 0 && c->link_count == 0) {
        c->is_closing = false;
        ev_free_later(c->loop, c, client_free);
    }
}

/* ---- links ---- */

static void link_free(void *obj)
{
    struct http_link *l = obj;

    http_link_h1_done(l);
    free(l);
}

/* It is no longer kept for later, if it was. */
static void set_state(struct http_link *l, enum link_state state)
{
    if (l->state == LINK_IDLE) {
        l->client->idle_count--;
        http_site_use(l);
    }
    l->state = state;
}

void http_link_free(struct http_link *l)
{
    struct http_client *c = l->client;

    set_state(l, LINK_LEAVING);
    ev_timer_stop(c->loop, &l->idle);
    ev_timer_stop(c->loop, &l->ping);
    ev_post_cancel(&l->task);
    http_site_remove(l);
    c->link_count--;
    ev_free_later(c->loop, l, link_free);
    http_client_let_go(c);
}

void http_link_close(struct http_link *l)
{
    set_state(l, LINK_LEAVING);
    ev_timer_stop(l->client->loop, &l->idle);
    if (l->dial)
        dial_cancel(l->dial);
    if (l->conn)
        conn_close(l->conn);
}

/* Starting and stopping a timer with every call would cost more than one that comes in vain now and then. */
static void idle_too_long(void *ctx)
{
    struct http_link *l = ctx;
    struct http_client *c = l->client;
    uint64_t now_ms = ev_now_ms(c->loop), past_ms = now_ms - l->kept_ms, left_ms;

    if (l->state != LINK_IDLE)
        return;
    if (past_ms < c->config.idle_ms) {
        left_ms = c->config.idle_ms - past_ms;
        if (past_ms >= HTTP_REST_MS)
            http1_release(&l->parser); /* it rests: only now, as most have the next call at once */
        else
            left_ms = MIN(left_ms, HTTP_REST_MS - past_ms);
        ev_timer_start(c->loop, &l->idle, left_ms, idle_too_long, l);
        return;
    }
    set_state(l, LINK_LEAVING);
    conn_finish(l->conn);
}

void http_link_keep(struct http_link *l)
{
    struct http_client *c = l->client;

    if (c->is_closing || c->idle_count >= c->config.idle_max ||
        l->site->idle_count >= c->config.idle_per_target_max) {
        http_link_close(l);
        return;
    }
    l->state = LINK_IDLE;
    c->idle_count++;
    http_site_keep(l);
    l->kept_ms = ev_now_ms(c->loop);
    if (!ev_timer_is_running(&l->idle))
        ev_timer_start(c->loop, &l->idle, MIN(c->config.idle_ms, (uint64_t)HTTP_REST_MS),
                       idle_too_long, l);
}

/* A kept connection that is readable has been closed by the server, or has bytes nobody asked for. The loop tells us of
 * that, too, and what can be said again loses nothing by relying on it where the connection was in use a moment ago. */
static bool is_alive(const struct http_link *l, const struct http_call *x)
{
    char byte;

    if (x->is_idempotent && !x->is_streamed && !x->had_fd &&
        ev_now_ms(l->client->loop) - l->kept_ms < SURELY_ALIVE_MS)
        return true;
    return recv(conn_fd(l->conn), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void give(struct http_link *l, struct http_call *x)
{
    if (l->state == LINK_IDLE)
        set_state(l, LINK_BUSY);
    x->state = CALL_OPEN;
    x->link = l;
    x->has_left = true;
    l->ops->begin(x);
    if (x->state == CALL_OPEN)
        http_call_watch(x);
}

static struct http_call *leave_line(struct http_link *l)
{
    struct http_call *x = l->line;

    l->line = x->next_in_line;
    x->next_in_line = NULL;
    x->link = NULL;
    return x;
}

static bool is_h2(const struct http_link *l)
{
    const struct conn_filter *f = conn_get_filter(l->conn);

    return l->site->version == HTTP_V2 ||
           (l->site->version == HTTP_BY_ALPN && f && strcmp(f->ops->protocol(f), "h2") == 0);
}

static void on_dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    struct http_link *l = ctx;
    struct http_client *c = l->client;
    struct err why;

    l->dial = NULL;
    if (!e && conn_new(c->loop, r->fd, r->filter, &http_link_h1_events, l, &l->conn, &why) < 0) {
        if (r->filter)
            r->filter->ops->free(r->filter);
        e = &why;
    }
    if (e) {
        struct err copy = *e;

        while (l->line)
            http_call_fail(leave_line(l), &copy);
        http_link_free(l);
        return;
    }
    if (l->state == LINK_LEAVING || !l->line) { /* called off while the connection was on its way */
        l->state = LINK_LEAVING;
        conn_close(l->conn);
        return;
    }
    if (is_h2(l)) {
        http_link_h2_open(l);
        while (l->line)
            give(l, leave_line(l));
        return;
    }
    http_link_h1_open(l);
    l->state = LINK_BUSY;
    give(l, leave_line(l));
    while (l->line) /* they hoped for HTTP/2 */
        http_call_connect(leave_line(l));
}

static struct http_link *find_link(struct http_call *x)
{
    struct http_site *s = x->site;
    struct http_link *l;

    for (l = s->version == HTTP_V1 ? NULL : s->links; l; l = l->next) {
        /* A full one is passed by: its streams may be watches, which end for nobody who waits. */
        if ((l->state == LINK_MANY && h2_request_room(l->h2)) ||
            (l->state == LINK_DIALING && l->line))
            return l;
    }
    while ((l = s->idle) && !is_alive(l, x))
        http_link_close(l); /* and is idle no longer */
    return l;
}

static struct http_link *new_link(struct http_call *x)
{
    struct http_client *c = x->client;
    struct http_link *l = NEW(struct http_link);
    const struct http_site *s = x->site;
    const struct dial_spec spec = {
        .host = s->host,
        .port = s->port,
        .addr = s->has_addr ? &s->addr : NULL,
        .fd = x->fd > 0 ? take_fd(&x->fd) : 0,
        .timeout_ms = x->connect_ms,
        .maker = s->maker,
        .peer_name = s->peer_name,
        .resolver = c->config.resolver,
        .may_connect = c->config.may_connect,
        .may_ctx = c->config.may_ctx,
        .plug = x->plug,
        .place = s->place,
    };

    l->client = c;
    l->state = LINK_DIALING;
    http_site_add(x->site, l);
    c->link_count++;
    l->dial = dial_start(c->loop, &spec, on_dialed, l);
    return l;
}

void http_call_connect(struct http_call *x)
{
    struct http_link *l = x->is_fresh_only ? NULL : find_link(x);
    struct http_call **at;

    if (l) {
        own_fd_close(&x->fd);
        if (l->state != LINK_DIALING) {
            give(l, x);
            return;
        }
    } else {
        l = new_link(x);
    }
    x->link = l;
    for (at = &l->line; *at; at = &(*at)->next_in_line)
        ;
    *at = x;
}

/* ---- the client ---- */

/* fn may end the link, but not at once: links are freed in their connections' last events. */
static void each_link(struct http_client *c, void (*fn)(struct http_link *l))
{
    for (size_t i = 0; i < HTTP_CLIENT_BUCKETS; i++) {
        for (struct http_site *s = c->buckets[i]; s; s = s->next) {
            for (struct http_link *l = s->links; l; l = l->next)
                fn(l);
        }
    }
}

static void forget(struct http_link *l)
{
    if (l->state == LINK_IDLE)
        http_link_close(l);
    else if (l->state == LINK_MANY)
        http_link_h2_retire(l);
}

static void close_unless_leaving(struct http_link *l)
{
    if (l->state != LINK_LEAVING)
        http_link_close(l);
}

void http_client_forget_idle(struct http_client *c)
{
    each_link(c, forget);
}

size_t http_client_connections(const struct http_client *c)
{
    return c->link_count;
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    c->is_closing = true;
    for (struct http_call *x = c->calls; x; x = x->next)
        http_call_cancel(x);
    each_link(c, close_unless_leaving);
    http_client_let_go(c);
}
