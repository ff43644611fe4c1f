#include "http/testdesk.h"

#include "base/str.h"

#include <sys/mman.h>

static struct span param(struct http_exchange *x, const char *name, const char *otherwise)
{
    struct span value = http_query_get(x, name);

    return value.p ? value : span_cstr(otherwise);
}

static uint64_t number(struct http_exchange *x, const char *name, const char *otherwise)
{
    uint64_t n = 0;

    assert_true(str_u64(param(x, name, otherwise), UINT64_MAX, &n));
    return n;
}

struct http_exchange *desk_take(struct desk_call *c)
{
    assert_false(c->is_over);
    c->is_over = true;
    return take_ptr(&c->x);
}

void desk_answer(struct desk_call *c, int status, const char *text)
{
    VERB(c->desk, http_answer(desk_take(c), status, "text/plain", span_cstr(text)));
}

static void check_event(const struct desk_call *c)
{
    assert_false(c->desk->is_in_verb);
    assert_false(c->is_over);
}

static void on_gone(void *ctx)
{
    struct desk_call *c = ctx;

    check_event(c);
    c->gones++;
    (void)desk_take(c);
}

static void on_data(void *ctx, struct span bytes)
{
    struct desk_call *c = ctx;
    struct err e;

    check_event(c);
    assert_int_equal(c->ends, 0);
    assert_true(bytes.n > 0);
    c->chunks++;
    assert_int_equal(buf_add(&c->body, bytes, &e), 0);
    if (c->is_paused_by_data) {
        c->is_paused_by_data = false;
        VERB(c->desk, http_body_pause(c->x, true));
    }
    if (strcmp(c->path, "/echo") == 0)
        VERB(c->desk, http_answer_write(c->x, bytes));
}

static void on_end(void *ctx, const struct err *e)
{
    struct desk_call *c = ctx;

    check_event(c);
    assert_int_equal(++c->ends, 1);
    if (e)
        c->err = *e;
    if (strcmp(c->path, "/echo") != 0)
        return;
    if (e)
        VERB(c->desk, http_answer_abort(desk_take(c)));
    else
        VERB(c->desk, http_answer_end(desk_take(c), NULL));
}

static void on_body(void *ctx, struct span body, const struct err *e)
{
    struct desk_call *c = ctx;
    char text[32];

    check_event(c);
    assert_int_equal(++c->ends, 1);
    (void)snprintf(text, sizeof text, "%zu", body.n);
    desk_answer(c, e ? err_map(e->code)->http : 200, e ? e->msg : text);
}

static void flow(void *ctx)
{
    struct desk_call *c = ctx;
    static const uint8_t piece[10000] = { 'x' };

    check_event(c);
    while (c->left > 0 && !http_answer_is_full(c->x)) {
        size_t n = (size_t)MIN(c->left, (uint64_t)sizeof piece);

        VERB(c->desk, http_answer_write(c->x, span_of(piece, n)));
        c->left -= n;
    }
    if (c->left == 0)
        VERB(c->desk, http_answer_end(desk_take(c), NULL));
}

static void on_drain(void *ctx)
{
    struct desk_call *c = ctx;

    check_event(c);
    c->drains++;
    if (strcmp(c->path, "/flow") == 0)
        flow(c);
}

static void answer_big(struct desk_call *c)
{
    OWN(buf_done) struct buf body = BUF_INIT(SIDE_MAX_BYTES);

    side_fill(&body, (size_t)number(c->x, "n", "1000"));
    VERB(c->desk, http_answer(desk_take(c), 200, NULL, buf_span(&body)));
}

static void make_file(struct desk *d)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);

    d->file_fd = memfd_create("silica-test", MFD_CLOEXEC);
    side_fill(&content, DESK_FILE_BYTES);
    assert_int_equal(write(d->file_fd, content.p, content.n), content.n);
}

static void answer_file(struct desk_call *c)
{
    struct http_exchange *x = c->x;
    uint64_t n = number(x, "n", "1000"), at = number(x, "at", "0");

    if (c->desk->file_fd < 0)
        make_file(c->desk);
    VERB(c->desk, http_answer_begin(x, 200, n));
    VERB(c->desk, http_answer_file(x, dup(c->desk->file_fd), at, n));
    VERB(c->desk, http_answer_end(desk_take(c), NULL));
}

static void on_request(void *ctx, struct http_exchange *x)
{
    static const struct http_body_events events = { on_data, on_end };
    struct desk *d = ctx;
    struct desk_call *c;

    assert_false(d->is_in_verb);
    if (d->serve) {
        d->serve(d, x);
        return;
    }
    c = NEW(struct desk_call);
    assert_true(d->n < DESK_CALLS_MAX);
    *c = (struct desk_call){ .desk = d, .x = x, .body = BUF_INIT(SIDE_MAX_BYTES) };
    (void)snprintf(c->method, sizeof c->method, "%.*s", SPAN_ARG(http_method(x)));
    (void)snprintf(c->path, sizeof c->path, "%.*s", SPAN_ARG(http_path(x)));
    c->is_paused_by_data = d->pauses;
    d->calls[d->n++] = c;
    http_on_gone(x, on_gone, c);
    http_on_drain(x, on_drain, c);
    if (strcmp(c->path, "/hello") == 0) {
        desk_answer(c, 200, "hello\n");
    } else if (strcmp(c->path, "/collect") == 0) {
        VERB(d, http_body_collect(x, (size_t)number(x, "max", "1000"), on_body, c));
    } else if (strcmp(c->path, "/read") == 0) {
        VERB(d, http_body_read(x, &events, c));
    } else if (strcmp(c->path, "/echo") == 0) {
        VERB(d, http_answer_begin(x, 200, UINT64_MAX));
        VERB(d, http_body_read(x, &events, c));
    } else if (strcmp(c->path, "/big") == 0) {
        answer_big(c);
    } else if (strcmp(c->path, "/flow") == 0) {
        c->left = number(x, "n", "1000");
        VERB(d, http_answer_begin(x, 200, UINT64_MAX));
        flow(c);
    } else if (strcmp(c->path, "/file") == 0) {
        answer_file(c);
    }
}

void desk_open(struct desk *d, const struct http_server_config *config)
{
    struct http_server_config mine = config ? *config : (struct http_server_config){ 0 };
    struct err e;

    *d = (struct desk){ .file_fd = -1 };
    assert_int_equal(ev_loop_new(&d->loop, &e), 0);
    assert_int_equal(ev_pool_new(d->loop, "files", 2, &d->pool, &e), 0);
    mine.on_request = on_request;
    mine.ctx = d;
    mine.file_pool = d->pool;
    d->server = http_server_new(d->loop, &mine);
}

void desk_close(struct desk *d)
{
    http_server_free(d->server);
    for (size_t i = 0; i < d->n; i++) {
        assert_true(d->calls[i]->is_over);
        assert_true(d->calls[i]->gones <= 1);
        buf_done(&d->calls[i]->body);
        free(d->calls[i]);
    }
    own_fd_close(&d->file_fd);
    ev_pool_free(d->pool);
    ev_loop_free(d->loop);
}

void desk_connect(struct desk *d, struct side *client)
{
    struct net_addr peer = { .len = sizeof peer.sa };
    int fds[2];

    side_socket_pair(fds);
    assert_int_equal(getpeername(fds[1], (struct sockaddr *)&peer.sa, &peer.len), 0);
    http_server_accept(d->server, fds[1], &peer);
    side_open(client, d->loop, fds[0], NULL);
}

bool desk_wait(struct desk *d, side_fn is_over, void *ctx)
{
    return side_wait(d->loop, is_over, ctx);
}

struct call_wait {
    struct desk *d;
    size_t i;
};

static bool has_call(void *ctx)
{
    struct call_wait *w = ctx;

    return w->d->n > w->i;
}

struct desk_call *desk_wait_call(struct desk *d, size_t i)
{
    struct call_wait w = { d, i };

    assert_true(side_wait(d->loop, has_call, &w));
    return d->calls[i];
}

void desk_say(struct side *client, const char *text)
{
    conn_write(client->conn, span_cstr(text));
}

const char *desk_heard(const struct side *client)
{
    static struct buf text = BUF_INIT(SIDE_MAX_BYTES);
    struct span rest = buf_span(&client->in);
    struct err e;

    buf_clear(&text);
    while (rest.n > 0) {
        size_t end = span_find(rest, '\n');
        struct span line = span_slice(rest, 0, end == SIZE_MAX ? SIZE_MAX : end + 1);

        if (!span_starts(line, "date: "))
            assert_int_equal(buf_add(&text, line, &e), 0);
        rest = span_skip(rest, line.n);
    }
    return buf_cstr(&text);
}

struct heard {
    struct side *client;
    const char *text;
};

static bool has_heard(void *ctx)
{
    struct heard *h = ctx;

    return strcmp(desk_heard(h->client), h->text) == 0;
}

static bool has_heard_part(void *ctx)
{
    struct heard *h = ctx;

    return strstr(desk_heard(h->client), h->text) != NULL;
}

void desk_expect(struct side *client, const char *text)
{
    struct heard h = { client, text };

    (void)side_wait(client->loop, has_heard, &h);
    side_idle(client->loop, 3);
    assert_string_equal(desk_heard(client), text);
    buf_clear(&client->in);
}

void desk_expect_part(struct side *client, const char *part)
{
    struct heard h = { client, part };

    if (!side_wait(client->loop, has_heard_part, &h))
        fail_msg("no '%s' in '%s'", part, desk_heard(client));
}

static bool has_ended(void *ctx)
{
    struct side *client = ctx;

    return client->is_eof || client->is_closed;
}

void desk_expect_end(struct side *client)
{
    assert_true(side_wait(client->loop, has_ended, client));
}
