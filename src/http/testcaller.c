#include "http/testcaller.h"

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct reply *r = h2_user(s);
    struct err e;

    (void)ctx;
    assert_false(r->has_head);
    r->has_head = true;
    r->ends_with_head = is_end;
    assert_int_equal(http_head_copy(&r->head, head, &e), 0);
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct reply *r = h2_user(s);
    struct err e;

    (void)ctx;
    assert_int_equal(buf_add(&r->body, bytes, &e), 0);
    if (!r->holds)
        h2_consume(s, bytes.n);
}

static void on_trailers(void *ctx, struct h2_stream *s, const struct http_head *trailers)
{
    struct reply *r = h2_user(s);
    struct err e;

    (void)ctx;
    assert_int_equal(http_head_copy(&r->trailers, trailers, &e), 0);
}

static void on_end(void *ctx, struct h2_stream *s)
{
    (void)ctx;
    ((struct reply *)h2_user(s))->is_ended = true;
}

static void on_stream_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct reply *r = h2_user(s);

    (void)ctx;
    r->is_closed = true;
    r->code = code;
    r->stream = NULL;
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t code)
{
    struct caller *c = ctx;

    c->has_goaway = true;
    c->goaway_last = last_id;
    c->goaway_code = code;
}

static const struct h2_events h2_events = {
    .on_head = on_head,
    .on_data = on_data,
    .on_trailers = on_trailers,
    .on_end = on_end,
    .on_close = on_stream_close,
    .on_goaway = on_goaway,
};

void caller_flush(struct caller *c)
{
    struct err e;

    while (c->conn && h2_wants_write(c->h2)) {
        OWN(buf_done) struct buf out = BUF_INIT(1 << 20);

        if (h2_pull(c->h2, &out, 65536, &e) < 0 || out.n == 0)
            return;
        conn_write_buf(c->conn, &out);
    }
}

static void on_read(void *ctx, struct span in)
{
    struct caller *c = ctx;
    struct err e;

    (void)h2_feed(c->h2, in, &e);
    caller_flush(c);
}

static void on_eof(void *ctx)
{
    struct caller *c = ctx;

    c->is_eof = true;
    conn_close(c->conn);
}

static void on_close(void *ctx, const struct err *e)
{
    (void)e;
    ((struct caller *)ctx)->conn = NULL;
}

static const struct conn_events conn_events = { on_read, on_eof, NULL, on_close };

void caller_open(struct caller *c, struct desk *d)
{
    struct h2_config config = H2_CONFIG_INIT(H2_CLIENT);
    struct net_addr peer = { .len = sizeof peer.sa };
    struct err e;
    int fds[2];

    *c = (struct caller){ .desk = d };
    side_socket_pair(fds);
    assert_int_equal(getpeername(fds[1], (struct sockaddr *)&peer.sa, &peer.len), 0);
    http_server_accept(d->server, fds[1], &peer);
    assert_int_equal(conn_new(d->loop, fds[0], NULL, &conn_events, c, &c->conn, &e), 0);
    c->h2 = h2_new(&config, &h2_events, c);
    caller_flush(c);
}

bool caller_is_closed(void *caller)
{
    return ((struct caller *)caller)->conn == NULL;
}

void caller_close(struct caller *c)
{
    if (c->conn)
        conn_close(c->conn);
    assert_true(side_wait(c->desk->loop, caller_is_closed, c));
    h2_free(c->h2);
    for (size_t i = 0; i < c->n; i++) {
        struct reply *r = c->replies[i];

        assert_true(r->is_closed);
        http_head_done(&r->head);
        http_head_done(&r->trailers);
        buf_done(&r->body);
        free(r);
    }
}

struct reply *caller_start(struct caller *c, const char *method, const char *path,
                           const char *fields, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct reply *r = NEW(struct reply);
    struct span rest = span_cstr(fields), line;
    struct err e;

    http_head_init(&head, 100000, 64);
    http_head_init(&r->head, 100000, 64);
    http_head_init(&r->trailers, 100000, 64);
    r->body.max = SIDE_MAX_BYTES;
    r->caller = c;
    assert_true(c->n < CALLER_REPLIES_MAX);
    c->replies[c->n++] = r;
    assert_int_equal(http_head_set_request(&head, span_cstr(method), span_cstr(path), &e), 0);
    assert_int_equal(http_head_set_authority(&head, SPAN("desk"), &e), 0);
    while (span_cut(&rest, '\n', &line)) {
        size_t colon = span_find(line, ':');

        assert_int_equal(http_head_add(&head, span_slice(line, 0, colon),
                                       span_trim(span_skip(line, colon + 1)), &e),
                         0);
    }
    assert_int_equal(h2_request(c->h2, &head, is_end, r, &r->stream, &e), 0);
    return r;
}

struct reply *caller_ask(struct caller *c, const char *method, const char *path, const char *fields,
                         bool is_end)
{
    struct reply *r = caller_start(c, method, path, fields, is_end);

    caller_flush(c);
    return r;
}

void caller_send(struct reply *r, struct span bytes, bool is_end)
{
    struct err e;

    (void)h2_send(r->stream, bytes);
    if (is_end)
        assert_int_equal(h2_finish(r->stream, NULL, &e), 0);
    caller_flush(r->caller);
}

void caller_reset(struct reply *r)
{
    h2_reset(r->stream, H2_CANCEL);
    caller_flush(r->caller);
}

bool reply_is_closed(void *reply)
{
    return ((struct reply *)reply)->is_closed;
}

bool reply_has_head(void *reply)
{
    return ((struct reply *)reply)->has_head;
}

static bool is_ended(void *reply)
{
    struct reply *r = reply;

    return r->is_ended || r->is_closed;
}

void reply_expect(struct reply *r, int status, const char *body)
{
    assert_true(side_wait(r->caller->desk->loop, is_ended, r));
    assert_true(r->is_ended);
    assert_int_equal(r->head.status, status);
    if (body)
        assert_string_equal(buf_cstr(&r->body), body);
}
