#include "http/client_impl.h"

#include "http/limits.h"

#define CONNECT_MS        10000     /* when the caller has no opinion */
#define PENDING_MAX_BYTES (4 << 20) /* written by a caller that does not ask http_call_is_full() */

/* ---- the end of a call ---- */

static void call_free(void *obj)
{
    struct http_call *x = obj;

    http_head_done(&x->head);
    if (x->trailers)
        http_head_done(x->trailers);
    if (x->in_trailers)
        http_head_done(x->in_trailers);
    free(x->trailers);
    free(x->in_trailers);
    buf_done(&x->body);
    buf_done(&x->stash);
    own_fd_close(&x->fd);
    free(x->verdict);
    ev_block_free(x->loop, x, sizeof *x);
}

static void give_back(struct http_call *x)
{
    struct http_head *to = take_ptr(&x->lent);
    const struct http_head lent = *to;

    *to = x->head;
    to->text.max = lent.text.max;
    to->field_max = lent.field_max;
    http_head_clear(to);
    http_head_init(&x->head, 0, 0);
}

void http_call_forget(struct http_call *x)
{
    struct http_client *c = x->client;

    x->state = CALL_DONE;
    x->link = NULL;
    ev_timer_stop(c->loop, &x->wait);
    ev_timer_stop(c->loop, &x->total);
    ev_post_cancel(&x->task);
    if (x->lent)
        give_back(x);
    *x->at = x->next;
    if (x->next)
        x->next->at = x->at;
    c->call_count--;
    http_site_unref(x->site);
    ev_free_later(c->loop, x, call_free);
    http_client_let_go(c);
}

/* The only way to on_done. */
static void finish(struct http_call *x, const struct http_head *trailers, const struct err *e)
{
    assert(x->state != CALL_DONE);
    http_call_forget(x);
    x->events->on_done(x->ctx, trailers, e);
}

static void finish_later(void *ctx)
{
    struct http_call *x = ctx;

    finish(x, NULL, x->verdict);
}

/* Takes the call off its link, wherever it stands. */
static void detach(struct http_call *x)
{
    struct http_link *l = take_ptr(&x->link);
    struct http_call **at;

    if (!l)
        return;
    if (x->state == CALL_OPEN) {
        x->link = l;
        l->ops->drop(x);
        x->link = NULL;
        return;
    }
    for (at = &l->line; *at && *at != x; at = &(*at)->next_in_line)
        ;
    if (*at)
        *at = x->next_in_line;
    if (!l->line)
        http_link_close(l); /* nobody waits for the dial any more */
}

void http_call_end_soon(struct http_call *x, const struct err *e)
{
    if (x->state >= CALL_ENDING)
        return;
    x->verdict = NEW(struct err);
    *x->verdict = *e;
    detach(x);
    x->state = CALL_ENDING;
    ev_timer_stop(x->client->loop, &x->wait);
    ev_timer_stop(x->client->loop, &x->total);
    ev_post_cancel(&x->task);
    ev_post(x->client->loop, &x->task, finish_later, x);
}

void http_call_succeed(struct http_call *x, const struct http_head *trailers)
{
    finish(x, trailers, NULL);
}

void http_call_fail(struct http_call *x, const struct err *e)
{
    struct err copy = *e;

    detach(x);
    finish(x, NULL, &copy);
}

void http_call_lost(struct http_call *x, bool is_unheard, const struct err *e)
{
    struct err copy = *e;

    x->link = NULL;
    if (is_unheard && !x->has_bytes && !x->is_retried && !x->is_streamed && !x->had_fd &&
        !x->client->is_closing) {
        x->is_retried = x->is_fresh_only = true;
        x->state = CALL_WAITING;
        ev_timer_stop(x->client->loop, &x->wait);
        http_call_connect(x);
        return;
    }
    finish(x, NULL, &copy);
}

void http_call_cancel(struct http_call *x)
{
    struct err e;

    if (x->state >= CALL_ENDING)
        return;
    (void)err_set(&e, ERR_CANCELED, "the call to '%s' was called off", x->site->label);
    http_call_end_soon(x, &e);
}

bool http_call_has_left(const struct http_call *x)
{
    return x->has_left;
}

/* ---- deadlines ---- */

static uint64_t patience(const struct http_call *x)
{
    return x->has_head || !x->is_ended ? x->idle_ms : x->head_ms;
}

static void on_wait(void *ctx)
{
    struct http_call *x = ctx;
    uint64_t now_ms = ev_now_ms(x->client->loop), now, ms = patience(x);
    bool is_ours = !x->is_ended && !x->has_head &&
                   !x->link->ops->is_sending(x); /* the caller has nothing to send */
    struct err e;

    if (x->wait_ms > now_ms) {
        ev_timer_start(x->client->loop, &x->wait, x->wait_ms - now_ms, on_wait, x);
        return;
    }
    now = x->link->ops->progress(x);
    if (now != x->seen || is_ours) {
        http_call_watch(x);
        return;
    }
    (void)err_set(&e, ERR_TIMEOUT,
                  x->has_head ? "'%s' sent nothing for %llu ms"
                              : "no answer from '%s' within %llu ms",
                  x->site->label, (unsigned long long)ms);
    http_call_end_soon(x, &e);
}

void http_call_watch(struct http_call *x)
{
    struct ev_loop *loop = x->client->loop;
    uint64_t ms = patience(x);

    x->seen = x->link->ops->progress(x);
    x->wait_ms = ev_now_ms(loop) + ms;
    if (!ms || x->is_paused)
        ev_timer_stop(loop, &x->wait);
    else if (!ev_timer_is_running(&x->wait) || x->wait.due_ms > x->wait_ms)
        ev_timer_start(loop, &x->wait, ms, on_wait, x);
}

static void total_over(void *ctx)
{
    struct http_call *x = ctx;
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, "the call to '%s' took too long", x->site->label);
    http_call_end_soon(x, &e);
}

/* ---- the beginning of a call ---- */

static void set_target(struct http_call *x, const struct http_target *to)
{
    x->site = http_site_ref(x->client, to);
    x->fd = to->fd > 0 ? to->fd : -1;
    x->had_fd = x->fd >= 0;
    x->plug = to->plug;
}

static int set_authority(struct http_call *x, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(2048);
    struct span host = http_head_get(&x->head, "host");

    if (http_head_authority(&x->head).n)
        return 0;
    if (!host.n)
        return http_head_set_authority(&x->head, span_cstr(x->site->authority), e);
    /* Not as it stands: it is a piece of the text that grows. */
    return buf_add(&text, host, e) < 0 ? -1 : http_head_set_authority(&x->head, buf_span(&text), e);
}

/* Framing is ours: two opinions on where a message ends are how requests are smuggled. */
static int set_framing(struct http_call *x, struct err *e)
{
    struct span method = http_head_method(&x->head);
    bool wants_length =
        span_is(method, "POST") || span_is(method, "PUT") || span_is(method, "PATCH");
    uint64_t n = x->is_streamed ? x->stream_left : x->body.n;

    (void)http_head_remove(&x->head, "content-length");
    (void)http_head_remove(&x->head, "transfer-encoding");
    if (n == HTTP_BODY_CHUNKED)
        return http_head_add(&x->head, SPAN("transfer-encoding"), SPAN("chunked"),
                             e); /* HTTP/2 leaves it out */
    if (n || wants_length)
        return http_head_addf(&x->head, "content-length", e, "%llu", (unsigned long long)n);
    return 0;
}

/* Within our ceilings, which leave room for what is added. */
static int borrow(struct http_call *x, struct http_head *lent, struct err *e)
{
    const struct http_head own = x->head;

    if (lent->text.n > own.text.max)
        return err_set(e, ERR_LIMIT, "more than %zu bytes", own.text.max);
    if (lent->field_count > own.field_max)
        return err_set(e, ERR_LIMIT, "more than %u header fields", own.field_max);
    x->lent = lent;
    x->head = *lent;
    x->head.text.max = own.text.max;
    x->head.field_max = own.field_max;
    return 0;
}

static int set_request(struct http_call *x, const struct http_call_spec *spec, struct err *e)
{
    struct span method;

    http_head_init(&x->head, x->client->config.request_max_bytes, HTTP_HEAD_MAX_FIELDS);
    x->body.max = spec->is_streamed ? PENDING_MAX_BYTES : SIZE_MAX / 2;
    x->is_streamed = spec->is_streamed;
    x->stream_left = spec->stream_length;
    x->is_ended = !spec->is_streamed;
    if (spec->lent_head ? borrow(x, spec->lent_head, e) < 0
                        : http_head_copy(&x->head, spec->head, e) < 0)
        return err_wrap(e, "cannot call '%s'", x->site->label);
    method = http_head_method(&x->head);
    x->is_idempotent = spec->is_idempotent || span_is(method, "GET") || span_is(method, "HEAD") ||
                       span_is(method, "OPTIONS");
    if (!spec->is_streamed && buf_add(&x->body, spec->body, e) < 0)
        return -1;
    if (set_authority(x, e) < 0 ||
        http_head_set_scheme(&x->head, x->site->maker ? SPAN("https") : SPAN("http"), e) < 0 ||
        set_framing(x, e) < 0)
        return err_wrap(e, "cannot call '%s'", x->site->label);
    return 0;
}

static void begin(void *ctx)
{
    http_call_connect(ctx);
}

/* A request that is whole, and a connection that waits for one: nothing there calls back before a later turn. */
static bool can_go_now(const struct http_call *x)
{
    return x->is_ended && !x->had_fd && x->site->version == HTTP_V1 && x->site->idle;
}

struct http_call *http_call_start(struct http_client *c, const struct http_call_spec *spec)
{
    struct http_call *x = ev_block_new(c->loop, sizeof *x);
    struct err e;

    x->loop = c->loop;
    x->client = c;
    x->events = spec->events;
    x->ctx = spec->ctx;
    x->connect_ms = spec->connect_ms ? spec->connect_ms : CONNECT_MS;
    x->head_ms = spec->head_ms;
    x->idle_ms = spec->idle_ms;
    x->at = &c->calls;
    x->next = c->calls;
    if (x->next)
        x->next->at = &x->next;
    c->calls = x;
    c->call_count++;
    set_target(x, &spec->to);
    if (set_request(x, spec, &e) < 0) {
        http_call_end_soon(x, &e);
        return x;
    }
    if (spec->total_ms)
        ev_timer_start(c->loop, &x->total, spec->total_ms, total_over, x);
    if (can_go_now(x))
        http_call_connect(x);
    else
        ev_post(c->loop, &x->task, begin, x);
    return x;
}

/* ---- verbs ---- */

void http_call_write(struct http_call *x, struct span bytes)
{
    bool is_counted = x->stream_left != HTTP_BODY_CHUNKED;
    struct err e;

    if (x->state > CALL_OPEN || x->is_ended || bytes.n == 0)
        return;
    if (is_counted && bytes.n > x->stream_left) {
        (void)err_set(&e, ERR_INVALID, "the body for '%s' is longer than was announced",
                      x->site->label);
        http_call_end_soon(x, &e);
        return;
    }
    if (is_counted)
        x->stream_left -= bytes.n;
    if (x->state == CALL_OPEN)
        x->link->ops->write(x, bytes);
    else if (buf_add(&x->body, bytes, &e) < 0)
        http_call_end_soon(x, &e);
}

bool http_call_is_full(const struct http_call *x)
{
    return x->state == CALL_WAITING || (x->state == CALL_OPEN && x->link->ops->is_full(x));
}

void http_call_end(struct http_call *x, const struct http_head *trailers)
{
    struct err e;

    if (x->state > CALL_OPEN || x->is_ended)
        return;
    if (x->stream_left != HTTP_BODY_CHUNKED && x->stream_left) {
        (void)err_set(&e, ERR_INVALID, "the body for '%s' is shorter than was announced",
                      x->site->label);
        http_call_end_soon(x, &e);
        return;
    }
    x->is_ended = true;
    if (trailers && x->stream_left == HTTP_BODY_CHUNKED) {
        x->trailers = NEW(struct http_head);
        http_head_init(x->trailers, HTTP_TRAILER_MAX_BYTES, HTTP_TRAILER_MAX_FIELDS);
        if (http_head_copy(x->trailers, trailers, &e) < 0) {
            http_call_end_soon(x, &e);
            return;
        }
    }
    if (x->state == CALL_OPEN) {
        x->link->ops->end(x);
        http_call_watch(x);
    }
}

void http_call_pause(struct http_call *x, bool is_paused)
{
    if (x->state >= CALL_ENDING || x->is_paused == is_paused)
        return;
    x->is_paused = is_paused;
    if (x->state == CALL_ANSWERED && !is_paused && !x->task.is_queued)
        ev_post(x->client->loop, &x->task, http_call_h2_go_on, x);
    if (x->state != CALL_OPEN)
        return;
    http_call_watch(x);
    x->link->ops->pause(x, is_paused);
}
