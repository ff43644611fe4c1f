/* Any bytes as what a peer sends, to a server and to a client with streams under way, with windows and without. Cut
 * anywhere, the events and what we answer stay the same, and each stream closes exactly once. */
#include "http/spdy.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (256 * 1024)

struct peer {
    struct spdy *h;
    struct buf log; /* events; data as sums, as its pieces are the transport's */
    struct buf out;
    uint64_t sum;
    size_t open;
};

static void note(struct peer *p, const char *what, uint32_t id, uint64_t n)
{
    struct err e;

    if (buf_addf(&p->log, &e, "%s %u %llu %llu\n", what, id, (unsigned long long)n,
                 (unsigned long long)p->sum) < 0)
        abort();
}

/* Some streams are answered and echo, some are ended at once, some reset, others stay as they are. */
static void on_stream(void *ctx, struct spdy_stream *s, const struct http_head *head)
{
    struct peer *p = ctx;
    struct err e;

    p->open++;
    spdy_set_user(s, p);
    note(p, "stream", spdy_id(s), head->text.n);
    switch (spdy_id(s) / 2 % 4) {
    case 0:
        if (spdy_reply(s, NULL, false, &e) < 0)
            abort();
        break;
    case 1:
        if (spdy_reply(s, head, true, &e) < 0)
            assert(e.code == ERR_INVALID || e.code == ERR_LIMIT); /* ":path" is not ours to say */
        break;
    case 2:
        spdy_reset(s, SPDY_CANCEL);
        break;
    default:
        break;
    }
}

static void on_reply(void *ctx, struct spdy_stream *s, const struct http_head *head)
{
    note(ctx, "reply", spdy_id(s), head->text.n);
}

static void on_data(void *ctx, struct spdy_stream *s, struct span bytes)
{
    struct peer *p = ctx;

    assert(bytes.n > 0 && spdy_user(s) == p);
    for (size_t i = 0; i < bytes.n; i++)
        p->sum = (p->sum ^ bytes.p[i]) * 1099511628211u + spdy_id(s);
}

static void on_end(void *ctx, struct spdy_stream *s)
{
    note(ctx, "end", spdy_id(s), 0);
    spdy_send(s, SPAN("last words"));
    spdy_finish(s);
}

static void on_close(void *ctx, struct spdy_stream *s, uint32_t status)
{
    struct peer *p = ctx;

    assert(spdy_user(s) == p && p->open > 0);
    spdy_set_user(s, NULL);
    p->open--;
    (void)status;
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t status)
{
    note(ctx, "goaway", last_id, status);
}

static void on_pong(void *ctx, uint32_t id)
{
    note(ctx, "pong", id, 0);
}

static const struct spdy_events events = { on_stream, on_reply, on_data,   on_end,
                                           NULL,      on_close, on_goaway, on_pong };

static void open_some(struct peer *p)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 1024, 8);
    if (http_head_add(&head, SPAN("streamtype"), SPAN("data"), &e) < 0)
        abort();
    for (int i = 0; i < 3; i++) {
        struct spdy_stream *s;

        if (spdy_open(p->h, &head, i == 0, p, &s, &e) < 0)
            abort();
        p->open++;
        spdy_send(s, SPAN("hello"));
    }
    (void)spdy_ping(p->h);
}

static void pull(struct peer *p)
{
    OWN(buf_done) struct buf out = BUF_INIT(1);
    struct err e;

    spdy_pull(p->h, &out);
    if (buf_add(&p->out, buf_span(&out), &e) < 0)
        abort();
}

static void run(struct peer *p, const struct spdy_config *config, struct span in, size_t step,
                bool is_pulled)
{
    struct err e = { 0 };
    bool is_lost = false;

    *p = (struct peer){ .log = BUF_INIT(64 << 20), .out = BUF_INIT(64 << 20) };
    p->h = spdy_new(config, &events, p);
    if (config->role == SPDY_CLIENT)
        open_some(p);
    for (; in.n && !is_lost; in = span_skip(in, step)) {
        is_lost = spdy_feed(p->h, span_slice(in, 0, step), &e) < 0;
        if (is_pulled)
            pull(p);
    }
    if (is_lost)
        assert(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
    note(p, is_lost ? "lost" : "well", 0, is_lost ? (uint64_t)e.code : 0);
    pull(p);
    spdy_free(p->h);
    assert(p->open == 0);
}

static void done(struct peer *p)
{
    buf_done(&p->log);
    buf_done(&p->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spdy_config config;
    struct peer whole, cut, live;
    struct span in;
    size_t step;

    if (size < 2 || size > INPUT_MAX_BYTES)
        return 0;
    config = (struct spdy_config)SPDY_CONFIG_INIT(data[0] & 1 ? SPDY_CLIENT : SPDY_SERVER);
    config.has_windows = data[0] & 2;
    config.max_streams = 8;
    config.head_max_bytes = 2048;
    step = 1 + data[1];
    in = span_of(data + 2, size - 2);
    run(&whole, &config, in, SIZE_MAX, false);
    run(&cut, &config, in, step, false);
    assert(span_eq(buf_span(&whole.log), buf_span(&cut.log)));
    /* Credit is given by the piece, so with windows the frames that carry it depend on the cut. */
    if (!config.has_windows)
        assert(span_eq(buf_span(&whole.out), buf_span(&cut.out)));
    run(&live, &config, in, step, true);
    done(&whole);
    done(&cut);
    done(&live);
    return 0;
}
