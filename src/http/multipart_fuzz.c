/* First byte: bit 0 tight limits, the rest seeds the cuts. Up to the first LF: the content type. Then the
 * body. Fed whole and cut, the events must be the same; the data of a part never holds the delimiter. */
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LOG_MAX_BYTES (16 * 1024 * 1024)

static const struct multipart_limits tight = { 2, 2, 100, 3 };

static void add(struct buf *log, struct span s)
{
    struct err e;

    if (buf_add(log, s, &e) < 0)
        abort();
}

static void log_event(struct buf *log, const struct multipart *m, enum multipart_event ev,
                      struct span data)
{
    static const char letters[] = "mHdPEB";

    if (ev != MULTIPART_MORE && ev != MULTIPART_PART_DATA)
        add(log, span_of(&letters[ev], 1));
    if (ev == MULTIPART_PART_HEAD) {
        add(log, m->name);
        add(log, SPAN("|"));
        add(log, m->filename);
        add(log, m->has_filename ? SPAN("f") : SPAN("-"));
        if (span_find(m->filename, '\0') != SIZE_MAX)
            abort();
    }
    if (ev == MULTIPART_PART_DATA)
        add(log, data);
    if (ev == MULTIPART_BAD)
        add(log, span_of(&m->fault, sizeof m->fault));
}

/* Seed 0 feeds the body whole. */
static void run(struct buf *log, const struct multipart_limits *limits, uint32_t seed,
                struct span type, struct span in)
{
    OWN(multipart_done) struct multipart m;
    enum multipart_event ev = MULTIPART_MORE;
    size_t at = 0, have = 0;
    struct err e = { 0 };

    if (multipart_init(&m, type, limits, &e) < 0)
        return;
    while (ev != MULTIPART_BAD) {
        struct span data = SPAN_NONE;
        size_t used = 0;

        ev = multipart_feed(&m, span_slice(in, at, at + have), &used, &data, &e);
        if (used > have || (ev == MULTIPART_MORE && used != have) ||
            (ev == MULTIPART_PART_DATA && !data.n))
            abort();
        if (ev == MULTIPART_PART_DATA &&
            span_find_str(data, span_of(m.delim, m.delim_n)) != SIZE_MAX && data.n > m.delim_n + 1u)
            abort(); /* only a false delimiter, given back alone, may hold it */
        at += used;
        have -= used;
        log_event(log, &m, ev, data);
        if (ev != MULTIPART_MORE)
            continue;
        if (at == in.n)
            break;
        seed = seed ? seed * 1103515245 + 12345 : 0;
        have = seed ? MIN(in.n - at, (size_t)(seed >> 16 & 31) + 1) : in.n;
    }
    add(log, multipart_finish(&m, &e) < 0 ? SPAN("cut") : SPAN("whole"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf whole = BUF_INIT(LOG_MAX_BYTES), cut = BUF_INIT(LOG_MAX_BYTES);
    const struct multipart_limits *limits;
    struct span type, body;

    if (size < 1)
        return 0;
    limits = data[0] & 1 ? &tight : NULL;
    body = span_of(data + 1, size - 1);
    if (!span_cut(&body, '\n', &type))
        return 0;
    run(&whole, limits, 0, type, body);
    run(&cut, limits, data[0] + 1u, type, body);
    if (!span_eq(buf_span(&whole), buf_span(&cut)))
        abort();
    return 0;
}
