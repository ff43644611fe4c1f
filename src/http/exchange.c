#include "http/serve_conn.h"

#include "base/json.h"
#include "base/log.h"
#include "http/limits.h"

#include <stdarg.h>

/* The head of an answer: ours, or one that is passed on with what we add. More is a bug. */
#define ANSWER_MAX_BYTES  (HTTP_HEAD_MAX_BYTES + 4096)
#define ANSWER_MAX_FIELDS (HTTP_HEAD_MAX_FIELDS + 16)

static uint64_t last_id;

struct http_exchange *http_exchange_new(struct http_conn *hc, const struct http_carrier_ops *ops,
                                        const struct http_head *req)
{
    struct ev_loop *loop = http_server_loop(hc->server);
    struct http_exchange *x = ev_block_new(loop, sizeof *x);
    struct span target =
        http_head_path(req); /* a client may name the server in it (RFC 9112 3.2.2) */
    size_t mark = span_find(target, '?');

    x->ops = ops;
    x->loop = loop;
    x->hc = hc;
    x->req = req;
    x->id = ++last_id;
    x->path = span_slice(target, 0, mark);
    x->query = mark == SIZE_MAX ? SPAN_NONE : span_skip(target, mark + 1);
    x->is_head_method = span_is(http_head_method(req), "HEAD");
    x->stash.max = H2_STREAM_WINDOW_BYTES;
    x->keep_alive = true;
    x->length = UINT64_MAX;
    x->moved = UINT64_MAX;
    http_head_init(&x->answer, ANSWER_MAX_BYTES, ANSWER_MAX_FIELDS);
    return x;
}

void http_exchange_free(void *obj)
{
    struct http_exchange *x = obj;

    buf_done(&x->stash);
    buf_done(&x->collected);
    free(x->body_err);
    http_head_done(&x->answer);
    ev_block_free(x->loop, x, sizeof *x);
}

void http_exchange_start(struct http_exchange *x)
{
    const struct http_server_config *config = http_server_config(x->hc->server);

    config->on_request(config->ctx, x);
}

/* ---- body ---- */

bool http_exchange_takes_body(const struct http_exchange *x)
{
    return x->is_over || (x->reader && !x->is_paused && x->stash.n == 0);
}

static void give(struct http_exchange *x, struct span bytes)
{
    x->reader->on_data(x->reader_ctx, bytes);
    x->ops->body_used(x, bytes.n);
}

static void tell_end(struct http_exchange *x)
{
    if (x->is_over || x->is_end_told || !x->reader || x->is_paused || x->stash.n ||
        x->body == HTTP_BODY_COMING)
        return;
    x->is_end_told = true;
    x->reader->on_end(x->reader_ctx, x->body_err);
}

void http_exchange_body(struct http_exchange *x, struct span bytes)
{
    struct err e;

    x->in_bytes += bytes.n;
    if (x->is_over ||
        x->body != HTTP_BODY_COMING) { /* nobody waits for it, or its end was told already */
        x->discarded += bytes.n;
        x->ops->body_used(x, bytes.n);
    } else if (http_exchange_takes_body(x)) {
        give(x, bytes);
    } else if (buf_add(&x->stash, bytes, &e) < 0) {
        x->ops->abort(x); /* the peer passed its window */
        http_exchange_gone(x);
    }
}

void http_exchange_body_end(struct http_exchange *x, const struct err *e)
{
    if (x->body != HTTP_BODY_COMING)
        return;
    x->body = e ? HTTP_BODY_FAILED : HTTP_BODY_ENDED;
    if (e) {
        x->body_err = NEW(struct err);
        *x->body_err = *e;
    }
    tell_end(x);
}

/* What waited for a reader, outside the verb that brought one. */
static void deliver(void *ctx)
{
    struct http_exchange *x = ctx;
    struct err e;

    if (x->is_too_large && !x->is_over) {
        x->is_too_large = false;
        (void)err_set(&e, ERR_LIMIT, "the body is larger than %zu bytes", x->collected.max);
        x->collect(x->collect_ctx, SPAN_NONE, &e);
        return;
    }
    if (!x->is_over && x->reader && !x->is_paused && x->stash.n) {
        OWN(buf_done) struct buf all = BUF_INIT(x->stash.max);

        buf_move(&all, &x->stash);
        give(x, buf_span(&all));
    }
    tell_end(x);
}

static void deliver_soon(struct http_exchange *x)
{
    bool has_end = x->body != HTTP_BODY_COMING && !x->is_end_told;

    if ((x->stash.n || has_end) && !x->deliver.is_queued)
        ev_post(http_loop(x), &x->deliver, deliver, x);
}

void http_body_read(struct http_exchange *x, const struct http_body_events *events, void *ctx)
{
    assert(!x->reader);
    x->reader = events;
    x->reader_ctx = ctx;
    if (x->body == HTTP_BODY_COMING)
        x->ops->continue_100(x);
    deliver_soon(x);
    x->ops->body_paused(x);
}

void http_body_may_rest(struct http_exchange *x)
{
    x->may_rest = true;
}

void http_body_pause(struct http_exchange *x, bool is_paused)
{
    if (x->is_paused == is_paused)
        return;
    x->is_paused = is_paused;
    if (!is_paused)
        deliver_soon(x);
    x->ops->body_paused(x);
}

static void collect_data(void *ctx, struct span bytes)
{
    struct http_exchange *x = ctx;
    struct err e;

    if (buf_add(&x->collected, bytes, &e) == 0 || x->is_end_told)
        return;
    (void)err_set(&e, ERR_LIMIT, "the body is larger than %zu bytes", x->collected.max);
    x->is_end_told = true;
    x->collect(x->collect_ctx, SPAN_NONE, &e);
}

static void collect_end(void *ctx, const struct err *e)
{
    struct http_exchange *x = ctx;

    x->collect(x->collect_ctx, e ? SPAN_NONE : buf_span(&x->collected), e);
}

void http_body_collect(struct http_exchange *x, size_t max, http_collect_fn done, void *ctx)
{
    static const struct http_body_events events = { collect_data, collect_end };

    x->collected.max = max;
    x->collect = done;
    x->collect_ctx = ctx;
    if (x->body_length != UINT64_MAX && x->body_length > max) { /* no byte of it is asked for */
        x->is_too_large = true;
        ev_post(http_loop(x), &x->deliver, deliver, x);
        return;
    }
    http_body_read(x, &events, x);
}

/* ---- the request ---- */

const struct http_head *http_req(const struct http_exchange *x)
{
    return x->req;
}

struct span http_method(const struct http_exchange *x)
{
    return http_head_method(x->req);
}

bool http_method_is(const struct http_exchange *x, const char *method)
{
    return span_is(http_head_method(x->req), method);
}

struct span http_path(const struct http_exchange *x)
{
    return x->path;
}

struct span http_query(const struct http_exchange *x)
{
    return x->query;
}

struct span http_query_get(const struct http_exchange *x, const char *name)
{
    struct span rest = x->query, pair;

    while (span_cut(&rest, '&', &pair)) {
        size_t eq = span_find(pair, '=');

        if (span_is(span_slice(pair, 0, eq), name))
            return eq == SIZE_MAX ? SPAN("") : span_skip(pair, eq + 1);
    }
    return SPAN_NONE;
}

struct span http_field(const struct http_exchange *x, const char *name)
{
    return http_head_get(x->req, name);
}

bool http_is_h2(const struct http_exchange *x)
{
    return x->stream != NULL;
}

const struct conn_filter *http_filter(const struct http_exchange *x)
{
    return conn_filter(x->hc->conn);
}

const struct net_addr *http_peer(const struct http_exchange *x)
{
    return &x->hc->peer;
}

struct http_owner *http_owner(const struct http_exchange *x)
{
    return x->hc->owner;
}

uint64_t http_id(const struct http_exchange *x)
{
    return x->id;
}

struct ev_loop *http_loop(const struct http_exchange *x)
{
    return http_server_loop(x->hc->server);
}

uint64_t http_body_length(const struct http_exchange *x)
{
    return x->body_length;
}

/* ---- the answer ---- */

/* From here on the handler has no exchange. */
static void over(struct http_exchange *x)
{
    x->is_over = true;
    x->reader = NULL;
    ev_post_cancel(&x->deliver);
}

void http_on_gone(struct http_exchange *x, ev_fn fn, void *ctx)
{
    x->on_gone = fn;
    x->gone_ctx = ctx;
}

void http_eof_is_gone(struct http_exchange *x)
{
    x->is_eof_gone = true;
    x->ops->body_paused(x); /* it may have ended already */
}

void http_on_drain(struct http_exchange *x, ev_fn fn, void *ctx)
{
    x->on_drain = fn;
    x->drain_ctx = ctx;
}

void http_exchange_gone(struct http_exchange *x)
{
    if (x->is_over)
        return;
    over(x);
    if (x->on_gone)
        x->on_gone(x->gone_ctx);
}

void http_answer_pass(struct http_exchange *x, struct span name, struct span value)
{
    struct err e;

    if (!http_value_is_valid(value)) {
        log_warn("http.field", KV("name", name), KV("value", value));
        return;
    }
    if (http_head_add(&x->answer, name, value, &e) < 0)
        log_error("http.field", KV("name", name), KV("err", &e));
}

void http_answer_pass_from(struct http_exchange *x, const struct http_head *from, size_t i)
{
    struct span name, value;
    struct err e;

    http_head_field(from, i, &name, &value);
    if (!x->answer.text.p) { /* most goes on: one allocation for it */
        http_server_lend_head(x->hc->server, &x->answer);
        http_head_reserve(&x->answer, from->text.n);
    }
    if (i >= from->sound)
        http_answer_pass(x, name, value);
    else if (http_head_add_from(&x->answer, from, i, &e) < 0)
        log_error("http.field", KV("name", name), KV("err", &e));
}

void http_answer_field(struct http_exchange *x, const char *name, struct span value)
{
    http_answer_pass(x, span_cstr(name), value);
}

void http_answer_fieldf(struct http_exchange *x, const char *name, const char *fmt, ...)
{
    OWN(buf_done) struct buf value = BUF_INIT(8192);
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    if (buf_vaddf(&value, &e, fmt, ap) == 0)
        http_answer_field(x, name, buf_span(&value));
    va_end(ap);
}

static bool status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

int http_exchange_stamp(struct http_exchange *x, http_stamp_fn add, void *ctx, struct err *e)
{
    const char *server = http_server_config(x->hc->server)->server_name;
    char digits[24];
    size_t at = sizeof digits;
    uint64_t n = x->length;

    if (!http_head_get(&x->answer, "date").p &&
        add(ctx, SPAN("date"), http_server_date(x->hc->server), e) < 0)
        return -1;
    if (server && !http_head_get(&x->answer, "server").p &&
        add(ctx, SPAN("server"), span_cstr(server), e) < 0)
        return -1;
    if (n == UINT64_MAX)
        return 0;
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return add(ctx, SPAN("content-length"), span_of(digits + at, sizeof digits - at), e);
}

static void begin(struct http_exchange *x, int status, uint64_t length)
{
    assert(!x->has_begun && !x->is_over);
    x->has_begun = true;
    http_head_set_status(&x->answer, status);
    x->left = length;
    if (status_has_body(status))
        x->length = length;
    if (x->is_head_method || !status_has_body(status))
        x->left = 0;
}

void http_answer(struct http_exchange *x, int status, const char *content_type, struct span body)
{
    if (content_type)
        http_answer_field(x, "content-type", span_cstr(content_type));
    begin(x, status, body.n);
    over(x);
    x->ops->whole(x, x->left ? body : SPAN_NONE);
}

void http_write_detail(struct buf *body, const char *text)
{
    struct json_out o;
    struct err e;

    json_out_init(&o, body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "detail");
    json_out_cstr(&o, text); /* which may quote the peer */
    json_out_object_end(&o);
    (void)json_out_end(&o, &e);
}

void http_answer_detail(struct http_exchange *x, int status, const char *text)
{
    OWN(buf_done) struct buf body = BUF_INIT(8 * 1024);

    http_write_detail(&body, text);
    http_answer(x, status, "application/json", buf_span(&body));
}

void http_answer_head(struct http_exchange *x, int status)
{
    begin(x, status, x->stream ? UINT64_MAX : 0);
    over(x);
    x->ops->whole(x, SPAN_NONE);
}

void http_answer_begin(struct http_exchange *x, int status, uint64_t length)
{
    begin(x, status, length);
    x->ops->head(x);
}

void http_answer_write(struct http_exchange *x, struct span bytes)
{
    assert(x->has_begun && !x->is_over);
    if (x->left != UINT64_MAX) {
        bytes = span_slice(
            bytes, 0,
            (size_t)MIN(
                x->left,
                (uint64_t)
                    SIZE_MAX)); /* a HEAD answer, or a file that grew: never more than was announced */
        x->left -= bytes.n;
    }
    if (bytes.n)
        x->ops->write(x, bytes);
}

void http_answer_file(struct http_exchange *x, int file_fd, uint64_t offset, uint64_t n)
{
    assert(x->has_begun && !x->is_over && x->left != UINT64_MAX);
    n = MIN(n, x->left);
    x->left -= n;
    if (n)
        x->ops->file(x, file_fd, offset, n);
    else
        (void)close(file_fd);
}

bool http_answer_is_full(const struct http_exchange *x)
{
    return x->ops->is_full(x);
}

bool http_answer_has_begun(const struct http_exchange *x)
{
    return x->has_begun;
}

void http_answer_end(struct http_exchange *x, const struct http_head *trailers)
{
    assert(x->has_begun && !x->is_over);
    if (x->left != UINT64_MAX &&
        x->left > 0) { /* less than announced: the peer must not take it for whole */
        http_answer_abort(x);
        return;
    }
    over(x);
    x->ops->end(x, trailers);
}

void http_answer_abort(struct http_exchange *x)
{
    assert(!x->is_over);
    over(x);
    x->ops->abort(x);
}

/* ---- another protocol ---- */

struct span http_upgrade(const struct http_exchange *x)
{
    if (!x->ops->switch_to || x->body_length)
        return SPAN_NONE;
    return http1_upgrade(&x->hc->h1);
}

void http_answer_switch(struct http_exchange *x, const char *protocol, http_switch_fn done,
                        void *ctx)
{
    assert(http_upgrade(x).p);
    http_answer_field(x, "connection", SPAN("Upgrade"));
    http_answer_field(x, "upgrade", span_cstr(protocol));
    begin(x, 101, 0);
    over(x);
    x->ops->switch_to(x, done, ctx);
}
