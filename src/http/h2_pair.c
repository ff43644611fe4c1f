#include "http/h2_pair.h"

uint64_t clock_ms;

static uint64_t test_now_ms(void)
{
    return clock_ms;
}

static void note(struct end *end, const char *fmt, ...) PRINTF(2, 3);
static void note(struct end *end, const char *fmt, ...)
{
    va_list ap;
    struct err e;

    va_start(ap, fmt);
    assert_int_equal(buf_vaddf(&end->log, &e, fmt, ap), 0);
    va_end(ap);
}

static void note_fields(struct end *end, const struct http_head *head)
{
    struct span name, value;

    for (size_t i = 0; i < http_head_count(head); i++) {
        http_head_field(head, i, &name, &value);
        note(end, " %.*s=%.*s", SPAN_ARG(name), SPAN_ARG(value));
    }
}

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct end *end = ctx;

    end->last = s;
    assert_ptr_equal(h2_head(s), head);
    if (head->status)
        note(end, "head %d", head->status);
    else
        note(end, "head %.*s %.*s %.*s", SPAN_ARG(http_head_method(head)),
             SPAN_ARG(http_head_target(head)), SPAN_ARG(http_head_authority(head)));
    note_fields(end, head);
    note(end, "%s\n", is_end ? " ." : "");
    if (end->serve)
        end->serve(end, s, head);
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct end *end = ctx;

    end->got += bytes.n;
    if (bytes.n < 32)
        note(end, "data %.*s\n", SPAN_ARG(bytes));
    if (end->is_greedy)
        h2_consume(s, bytes.n);
}

static void on_trailers(void *ctx, struct h2_stream *s, const struct http_head *trailers)
{
    note(ctx, "trailers");
    note_fields(ctx, trailers);
    note(ctx, "\n");
}

static void on_end(void *ctx, struct h2_stream *s)
{
    note(ctx, "end\n");
}

static void on_drain(void *ctx, struct h2_stream *s)
{
    struct end *end = ctx;

    note(end, "drain %zu\n", h2_queued(s));
}

static void on_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct end *end = ctx;

    note(end, "close %u\n", code);
    if (end->last == s)
        end->last = NULL;
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t code)
{
    note(ctx, "goaway %s %u\n", last_id == INT32_MAX ? "soon" : "now", code);
}

static void on_pong(void *ctx, uint64_t opaque)
{
    note(ctx, "pong %llu\n", (unsigned long long)opaque);
}

static const struct h2_events events = { on_head,  on_data,  on_trailers, on_end,
                                         on_drain, on_close, on_goaway,   on_pong };

void end_open(struct end *end, struct h2_config config)
{
    *end = (struct end){ .log = BUF_INIT(1 << 20), .wire = BUF_INIT(64 << 20), .is_greedy = true };
    config.now_ms = test_now_ms;
    end->h = h2_new(&config, &events, end);
}

void end_close(struct end *end)
{
    h2_free(end->h);
    buf_done(&end->log);
    buf_done(&end->wire);
}

void expect(struct end *end, const char *log)
{
    assert_string_equal(buf_cstr(&end->log), log);
    buf_clear(&end->log);
}

bool carry(struct end *from, struct end *to, size_t step)
{
    struct span rest;
    bool has_moved;

    while (h2_pull(from->h, &from->wire, step, &from->e) == 1)
        continue;
    has_moved = from->wire.n > 0;
    for (rest = buf_span(&from->wire); rest.n > 0; rest = span_skip(rest, MIN(step, rest.n)))
        to->is_failed |= h2_feed(to->h, span_slice(rest, 0, step), &to->e) < 0;
    buf_clear(&from->wire);
    return has_moved;
}

void talk(struct end *a, struct end *b, size_t step)
{
    for (bool is_moving = true; is_moving;) {
        is_moving = carry(a, b, step);
        is_moving |= carry(b, a, step);
    }
}

void head_of(struct http_head *head, const char *method, const char *path, const char *field,
             const char *value)
{
    struct err e;

    http_head_init(head, 128 * 1024, 512);
    assert_int_equal(http_head_set_request(head, span_cstr(method), span_cstr(path), &e), 0);
    assert_int_equal(http_head_set_authority(head, SPAN("box:80"), &e), 0);
    if (field)
        assert_int_equal(http_head_add(head, span_cstr(field), span_cstr(value), &e), 0);
}

struct h2_stream *request(struct end *end, const char *method, const char *path, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct h2_stream *s = NULL;
    struct err e;

    head_of(&head, method, path, NULL, NULL);
    assert_int_equal(h2_request(end->h, &head, is_end, end, &s, &e), 0);
    end->last = s;
    return s;
}

void respond(struct h2_stream *s, int status, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 4096, 16);
    http_head_set_status(&head, status);
    assert_int_equal(h2_respond(s, &head, is_end, &e), 0);
}

void finish_with(struct h2_stream *s, const char *name, const char *value)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 4096, 16);
    assert_int_equal(http_head_add(&head, span_cstr(name), span_cstr(value), &e), 0);
    assert_int_equal(h2_finish(s, &head, &e), 0);
}

void raw_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t id, struct span body)
{
    uint8_t head[9] = {
        (uint8_t)(body.n >> 16), (uint8_t)(body.n >> 8), (uint8_t)body.n,    type,       flags,
        (uint8_t)(id >> 24),     (uint8_t)(id >> 16),    (uint8_t)(id >> 8), (uint8_t)id
    };
    struct err e;

    assert_int_equal(buf_add(out, span_of(head, sizeof head), &e), 0);
    assert_int_equal(buf_add(out, body, &e), 0);
}

/* "name: value" lines as literals that no table remembers. */
void raw_head(struct buf *out, uint32_t id, uint8_t flags, const char *lines)
{
    OWN(buf_done) struct buf block = BUF_INIT(4096);
    struct span rest = span_cstr(lines), line;
    struct err e;

    while (span_cut(&rest, '\n', &line)) {
        size_t colon = span_find(span_skip(line, 1), ':') + 1;

        assert_int_equal(buf_addc(&block, 0, &e), 0);
        assert_int_equal(buf_addc(&block, (uint8_t)colon, &e), 0);
        assert_int_equal(buf_add(&block, span_slice(line, 0, colon), &e), 0);
        assert_int_equal(buf_addc(&block, (uint8_t)(line.n - colon - 2), &e), 0);
        assert_int_equal(buf_add(&block, span_skip(line, colon + 2), &e), 0);
    }
    raw_frame(out, 1, (uint8_t)(flags | 4), id, buf_span(&block));
}

void raw_open(struct buf *out)
{
    struct err e;

    assert_int_equal(buf_add(out, SPAN(PREFACE), &e), 0);
    raw_frame(out, 4, 0, 0, SPAN_NONE);
}
