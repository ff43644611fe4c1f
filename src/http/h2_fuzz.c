/* Any bytes as what a peer sends, to a server and to a client with requests under way. Cut
 * anywhere, the events and what we answer stay the same; fed and pulled in turn, each stream
 * closes exactly once. */
#include "http/h2.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STREAMS_MAX     4096
#define INPUT_MAX_BYTES (256 * 1024)

enum life { UNSEEN, OPEN, ENDED, CLOSED };

struct peer {
    struct h2 *h;
    struct buf log;             /* events, and the sums of bodies that came to their end */
    uint64_t sums[STREAMS_MAX]; /* of the body so far, by id */
    struct buf out;             /* what we sent */
    bool is_live;               /* consumes and answers at once */
    uint8_t lives[STREAMS_MAX]; /* enum life, by id */
    uint32_t open;
    /* Where nghttp2's answer depends on the cut: it counts CONTINUATION frames each time it
     * looks at one, and after a GOAWAY it ignores later calls but not what came with it. */
    bool is_cut_dependent;
};

static void note(struct peer *p, const char *what, uint32_t id, uint64_t n)
{
    struct err e;

    if (buf_addf(&p->log, &e, "%s %u %llu\n", what, id, (unsigned long long)n) < 0)
        abort();
}

static enum life life_of(const struct peer *p, struct h2_stream *s)
{
    return h2_id(s) < STREAMS_MAX ? (enum life)p->lives[h2_id(s)] : OPEN;
}

static void set_life(struct peer *p, struct h2_stream *s, enum life life)
{
    if (h2_id(s) < STREAMS_MAX)
        p->lives[h2_id(s)] = (uint8_t)life;
}

/* Every second stream is answered, every fourth is reset, others stay open. */
static void answer(struct h2_stream *s)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 1024, 8);
    http_head_set_status(&head, 200);
    if (http_head_add(&head, SPAN("x"), SPAN("y"), &e) < 0)
        abort();
    switch (h2_id(s) / 2 % 4) {
    case 0:
    case 2:
        if (h2_respond(s, &head, false, &e) < 0)
            abort();
        h2_send(s, SPAN("some body"));
        head.status = 0;
        (void)h2_finish(s, h2_id(s) & 8 ? &head : NULL, &e);
        break;
    case 1:
        h2_reset(s, H2_CANCEL);
        break;
    default:
        break;
    }
}

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct peer *p = ctx;

    if (head->status == 0) {
        assert(http_head_method(head).n > 0);
        set_life(p, s, OPEN);
        p->open++;
    }
    for (size_t i = 0; i < http_head_count(head); i++) {
        struct span name, value;

        http_head_field(head, i, &name, &value);
        assert(http_name_is_valid(name) && http_value_is_valid(value));
    }
    note(p, "head", h2_id(s), head->text.n);
    if (head->status == 0)
        answer(s);
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct peer *p = ctx;

    assert(life_of(p, s) == OPEN && bytes.n > 0);
    for (size_t i = 0; i < bytes.n && h2_id(s) < STREAMS_MAX; i++)
        p->sums[h2_id(s)] = p->sums[h2_id(s)] * 1099511628211u + bytes.p[i] + 1;
    if (p->is_live)
        h2_consume(s, bytes.n);
}

static void on_trailers(void *ctx, struct h2_stream *s, const struct http_head *trailers)
{
    assert(life_of(ctx, s) == OPEN);
    note(ctx, "trailers", h2_id(s), trailers->text.n);
}

/* A body that breaks its promise (content-length) is refused at the piece that does so, and
 * pieces are the transport's. So only bodies that came to their end can be compared. */
static void on_end(void *ctx, struct h2_stream *s)
{
    struct peer *p = ctx;

    assert(life_of(p, s) == OPEN);
    set_life(p, s, ENDED);
    note(p, "end", h2_id(s), h2_id(s) < STREAMS_MAX ? p->sums[h2_id(s)] : 0);
}

static void on_drain(void *ctx, struct h2_stream *s)
{
    assert(life_of(ctx, s) != CLOSED);
}

static void on_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct peer *p = ctx;

    assert(life_of(p, s) != CLOSED && p->open > 0);
    p->open--;
    set_life(p, s, CLOSED);
    note(p, "close", h2_id(s), code);
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t code)
{
    struct peer *p = ctx;

    p->is_cut_dependent = true;
    note(p, "goaway", last_id, code);
}

static void on_pong(void *ctx, uint64_t opaque)
{
    note(ctx, "pong", 0, opaque);
}

static uint64_t still(void)
{
    return 1;
}

static const struct h2_events events = { on_head,  on_data,  on_trailers, on_end,
                                         on_drain, on_close, on_goaway,   on_pong };

static void request(struct peer *p, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct h2_stream *s;
    struct err e;

    http_head_init(&head, 1024, 8);
    if (http_head_set_request(&head, SPAN("POST"), SPAN("/a"), &e) < 0 ||
        h2_request(p->h, &head, is_end, NULL, &s, &e) < 0)
        abort();
    set_life(p, s, OPEN);
    p->open++;
    if (!is_end)
        h2_send(s, SPAN("body"));
}

static void pull(struct peer *p)
{
    struct err e;

    while (h2_pull(p->h, &p->out, 1000, &e) == 1)
        continue;
}

static void run(struct peer *p, enum h2_role role, struct span in, size_t step, bool is_live)
{
    struct h2_config config = H2_CONFIG_INIT(role);
    bool is_lost = false;
    struct err e;

    *p = (struct peer){ .log = BUF_INIT(16 << 20), .out = BUF_INIT(64 << 20), .is_live = is_live };
    config.now_ms = still;
    config.head_max_bytes = 4096;
    config.reset_burst = 50;
    p->h = h2_new(&config, &events, p);
    if (role == H2_CLIENT) {
        for (int i = 0; i < 3; i++)
            request(p, i < 2);
        pull(p);
    }
    for (; in.n > 0 && !is_lost; in = span_skip(in, MIN(step, in.n))) {
        is_lost = h2_feed(p->h, span_slice(in, 0, step), &e) < 0;
        if (is_live)
            pull(p);
    }
    if (is_lost && strstr(e.msg, "CONTINUATION"))
        p->is_cut_dependent = true;
    if (is_lost)
        assert(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
    note(p, "lost", is_lost, 0);
    pull(p);
    h2_free(p->h);
    assert(p->open == 0);
}

static void done(struct peer *p)
{
    buf_done(&p->log);
    buf_done(&p->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct peer whole, cut, live;
    OWN(buf_done) struct buf in = BUF_INIT(INPUT_MAX_BYTES);
    enum h2_role role;
    struct err e;
    size_t step;

    if (size < 2 || size > INPUT_MAX_BYTES - 64)
        return 0;
    role = data[0] & 1 ? H2_CLIENT : H2_SERVER;
    step = 1 + data[1];
    /* Most of what follows a broken start is never looked at, so a good one is given for free. */
    if (data[0] & 2) {
        struct span start = SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0");

        if (buf_add(&in, role == H2_SERVER ? start : span_skip(start, 24), &e) < 0)
            abort();
    }
    if (buf_add(&in, span_of(data + 2, size - 2), &e) < 0)
        abort();
    run(&whole, role, buf_span(&in), SIZE_MAX, false);
    run(&cut, role, buf_span(&in), step, false);
    if (!whole.is_cut_dependent && !cut.is_cut_dependent) {
        assert(span_eq(buf_span(&whole.log), buf_span(&cut.log)));
        assert(span_eq(buf_span(&whole.out), buf_span(&cut.out)));
    }
    run(&live, role, buf_span(&in), step, true);
    done(&whole);
    done(&cut);
    done(&live);
    return 0;
}
