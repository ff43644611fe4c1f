/* First byte: bit 0 response, bit 1 answers HEAD, bit 2 answers CONNECT, bit 3 tight limits. Second byte:
 * seeds the cuts. The rest is the stream. Fed whole and cut, the events and what they carry must be the same;
 * whatever was parsed must survive being written and parsed again. */
#include "http/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LOG_MAX_BYTES (16 * 1024 * 1024)

static const struct http1_limits tight = { 200, 6, 80, 40, 3, 10, 64 };

static void add(struct buf *log, struct span s)
{
    struct err e;

    if (buf_add(log, s, &e) < 0)
        abort();
}

static void add_number(struct buf *log, uint64_t n)
{
    add(log, span_of(&n, sizeof n));
}

static void log_fields(struct buf *log, const struct http_head *h)
{
    for (size_t i = 0; i < http_head_count(h); i++) {
        struct span name, value;

        http_head_field(h, i, &name, &value);
        if (!http_name_is_valid(name) || !http_value_is_valid(value))
            abort();
        add(log, name);
        add(log, SPAN("="));
        add(log, value);
        add(log, SPAN("\n"));
    }
}

static void log_head(struct buf *log, const struct http1 *p)
{
    add(log, http_head_method(&p->head));
    add(log, SPAN(" "));
    add(log, http_head_target(&p->head));
    add(log, http_head_path(&p->head));
    add(log, http_head_authority(&p->head));
    add(log, http_head_scheme(&p->head));
    add(log, http1_upgrade(p));
    add_number(log, p->head.status);
    add_number(log, p->content_length);
    add_number(log,
               p->is_chunked | p->keep_alive << 1 | p->expects_continue << 2 | p->is_switched << 3);
    log_fields(log, &p->head);
}

/* A head that was accepted can be sent on, and reads the same at the next hop. */
static void check_round_trip(const struct http1 *p)
{
    OWN(buf_done)
    struct buf wire = BUF_INIT(1024 * 1024), was = BUF_INIT(1024 * 1024),
               is = BUF_INIT(1024 * 1024);
    OWN(http1_done) struct http1 again = { 0 };
    struct span data;
    struct err e;
    size_t used;

    if (!p->head.minor)
        return; /* goes out as 1.1, where a missing Host is added */
    if ((p->kind == HTTP1_REQUEST ? http1_write_request : http1_write_response)(&wire, &p->head,
                                                                                &e) < 0)
        abort();
    http1_init(&again, p->kind, NULL);
    if (p->kind == HTTP1_RESPONSE && (p->answers_head || p->answers_connect))
        http1_set_method(&again, p->answers_head ? SPAN("HEAD") : SPAN("CONNECT"));
    if (http1_feed(&again, buf_span(&wire), &used, &data, &e) != HTTP1_HEAD || used != wire.n)
        abort();
    log_head(&was, p);
    log_head(&is, &again);
    if (!span_eq(buf_span(&was), buf_span(&is)))
        abort();
}

static void log_event(struct buf *log, struct http1 *p, enum http1_event ev, struct span body)
{
    switch (ev) {
    case HTTP1_MORE:
        break;
    case HTTP1_HEAD:
        add(log, SPAN("H"));
        log_head(log, p);
        break;
    case HTTP1_DATA:
        add(log, body);
        break;
    case HTTP1_END:
        add(log, SPAN("E"));
        if (p->trailers)
            log_fields(log, p->trailers);
        break;
    case HTTP1_BAD:
        if (p->bad_status < 400 || p->bad_status > 505)
            abort();
        add(log, SPAN("B"));
        add_number(log, p->bad_status);
        break;
    }
}

/* Seed 0 feeds the stream whole. */
static void run(struct buf *log, uint8_t mode, uint32_t seed, struct span in)
{
    OWN(http1_done) struct http1 p;
    enum http1_event ev = HTTP1_MORE;
    size_t at = 0, have = 0;
    struct err e = { 0 };

    http1_init(&p, mode & 1 ? HTTP1_RESPONSE : HTTP1_REQUEST, mode & 8 ? &tight : NULL);
    if ((mode & 1) && (mode & 6))
        http1_set_method(&p, mode & 2 ? SPAN("HEAD") : SPAN("CONNECT"));
    while (ev != HTTP1_BAD && !p.is_switched) {
        struct span body = SPAN_NONE;
        uint8_t before = p.state;
        size_t used = 0;

        ev = http1_feed(&p, span_slice(in, at, at + have), &used, &body, &e);
        if (used > have || (ev == HTTP1_MORE && used != have) || (ev == HTTP1_DATA && !body.n))
            abort();
        if (used == 0 && have && p.state == before && ev != HTTP1_BAD)
            abort(); /* no progress */
        at += used;
        have -= used;
        log_event(log, &p, ev, body);
        if (ev == HTTP1_HEAD && !seed)
            check_round_trip(&p);
        if (ev == HTTP1_END)
            http1_next(&p), http1_release(&p);
        if (ev != HTTP1_MORE)
            continue;
        if (at == in.n)
            break;
        if (seed) {
            seed = seed * 1103515245 + 12345;
            have = MIN(in.n - at, (size_t)(seed >> 16 & 31) + 1);
        } else {
            have = in.n;
        }
    }
    add_number(log, ev == HTTP1_BAD ? 0 : 1 + (uint64_t)http1_eof(&p, &e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf whole = BUF_INIT(LOG_MAX_BYTES), cut = BUF_INIT(LOG_MAX_BYTES);
    struct span in;

    if (size < 2)
        return 0;
    in = span_of(data + 2, size - 2);
    run(&whole, data[0], 0, in);
    run(&cut, data[0], data[1] + 1u, in);
    if (!span_eq(buf_span(&whole), buf_span(&cut)))
        abort();
    return 0;
}
