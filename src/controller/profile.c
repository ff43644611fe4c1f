#include "controller/profile.h"

#include <zlib.h>

#define PLACES_MAX    16384 /* beyond it a frame is left out: its callers are still there */
#define FRAMES_MAX    64
#define SUB_MAX_BYTES 2048
#define GZIP_WINDOW   (15 + 16) /* zlib's way to say gzip */

/* Fields of the messages, by their names in profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
};

struct profile {
    struct buf text, strings; /* messages; the table, which is written last */
    uint64_t string_count, place_count;
    struct {
        uint64_t address;
        const char *name;
        uint64_t id;
    } places[PLACES_MAX];
    bool is_mapped, is_full;
    struct err e;
};

/* ---- protobuf ---- */

static void add_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    (void)buf_add_capped(b, span_of(bytes, n));
}

static void add_number(struct buf *b, unsigned field, uint64_t v)
{
    add_varint(b, field << 3);
    add_varint(b, v);
}

static void add_bytes(struct profile *p, struct buf *b, unsigned field, struct span s)
{
    if (b->max - b->n < s.n + 20) {
        p->is_full = true;
        return;
    }
    add_varint(b, field << 3 | 2);
    add_varint(b, s.n);
    (void)buf_add_capped(b, s);
}

static uint64_t string(struct profile *p, const char *s)
{
    add_bytes(p, &p->strings, PROFILE_STRING, span_cstr(s));
    return p->string_count++;
}

static void add_type(struct profile *p, unsigned field, const char *type, const char *unit)
{
    OWN(buf_done) struct buf m = BUF_INIT(SUB_MAX_BYTES);

    add_number(&m, 1, string(p, type));
    add_number(&m, 2, string(p, unit));
    add_bytes(p, &p->text, field, buf_span(&m));
}

/* ---- what is in it ---- */

struct profile *profile_new(const struct profile_kind *kind)
{
    struct profile *p = NEW(struct profile);

    p->text.max = p->strings.max = PROFILE_MAX_BYTES;
    (void)string(p, ""); /* the first one is this, by the format */
    add_type(p, PROFILE_SAMPLE_TYPE, kind->first, kind->first_unit);
    add_type(p, PROFILE_SAMPLE_TYPE, kind->second, kind->second_unit);
    if (kind->period) {
        add_type(p, PROFILE_PERIOD_TYPE, kind->second, kind->second_unit);
        add_number(&p->text, PROFILE_PERIOD, (uint64_t)kind->period);
    }
    return p;
}

void profile_times(struct profile *p, int64_t from_ns, int64_t lasted_ns)
{
    add_number(&p->text, PROFILE_TIME, (uint64_t)from_ns);
    add_number(&p->text, PROFILE_DURATION, (uint64_t)lasted_ns);
}

void profile_map(struct profile *p, const struct symbols_mapping *m, bool has_names)
{
    OWN(buf_done) struct buf b = BUF_INIT(SUB_MAX_BYTES);

    add_number(&b, 1, 1);
    add_number(&b, 2, m->start);
    add_number(&b, 3, m->limit);
    add_number(&b, 4, m->offset);
    add_number(&b, 5, string(p, m->file));
    if (has_names)
        add_number(&b, 7, 1);
    add_bytes(p, &p->text, PROFILE_MAPPING, buf_span(&b));
    p->is_mapped = true;
}

static void write_place(struct profile *p, const struct profile_frame *f, uint64_t id)
{
    OWN(buf_done) struct buf place = BUF_INIT(SUB_MAX_BYTES), m = BUF_INIT(SUB_MAX_BYTES);

    add_number(&place, 1, id);
    if (f->address && p->is_mapped)
        add_number(&place, 2, 1);
    if (f->address)
        add_number(&place, 3, f->address);
    if (f->name) {
        uint64_t name = string(p, f->name);

        add_number(&m, 1, id);
        add_number(&m, 2, name);
        add_number(&m, 3, name);
        add_bytes(p, &p->text, PROFILE_FUNCTION, buf_span(&m));
        buf_clear(&m);
        add_number(&m, 1, id);
        add_bytes(p, &place, 4, buf_span(&m));
    }
    add_bytes(p, &p->text, PROFILE_LOCATION, buf_span(&place));
}

static bool is_same(const struct profile_frame *f, uint64_t address, const char *name)
{
    return f->address == address && (address || strcmp(f->name, name) == 0);
}

/* 0: there is no room for it. */
static uint64_t place_of(struct profile *p, const struct profile_frame *f)
{
    uint64_t at = f->address;

    for (const char *c = f->address ? "" : f->name; *c; c++)
        at = at * 31 + (uint8_t)*c;
    for (size_t i = 0; i < PLACES_MAX; i++) {
        size_t slot = (at * 11400714819323198485ull + i) % PLACES_MAX;

        if (p->places[slot].id && is_same(f, p->places[slot].address, p->places[slot].name))
            return p->places[slot].id;
        if (p->places[slot].id)
            continue;
        p->places[slot].address = f->address;
        p->places[slot].name = f->name;
        p->places[slot].id = ++p->place_count;
        write_place(p, f, p->place_count);
        return p->place_count;
    }
    return 0;
}

void profile_add(struct profile *p, const struct profile_frame *frames, size_t n, int64_t first,
                 int64_t second)
{
    OWN(buf_done) struct buf m = BUF_INIT(SUB_MAX_BYTES);

    for (size_t i = 0; i < n && i < FRAMES_MAX; i++) {
        uint64_t id = place_of(p, &frames[i]);

        if (id)
            add_number(&m, 1, id);
    }
    add_number(&m, 2, (uint64_t)first);
    add_number(&m, 2, (uint64_t)second);
    add_bytes(p, &p->text, PROFILE_SAMPLE, buf_span(&m));
}

/* ---- written ---- */

int profile_write(const struct profile *p, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf all = BUF_INIT(2 * PROFILE_MAX_BYTES);
    z_stream z = { 0 };
    int rc;

    if (p->is_full)
        return err_set(e, ERR_LIMIT, "the profile has more than %u bytes", PROFILE_MAX_BYTES);
    if (buf_add(&all, buf_span(&p->text), e) < 0 || buf_add(&all, buf_span(&p->strings), e) < 0)
        return -1;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return err_set(e, ERR_INTERNAL, "cannot compress the profile");
    if (buf_reserve(out, deflateBound(&z, all.n), e) < 0) {
        (void)deflateEnd(&z);
        return -1;
    }
    z.next_in = all.p;
    z.avail_in = (unsigned)all.n;
    z.next_out = out->p + out->n;
    z.avail_out = (unsigned)deflateBound(&z, all.n);
    rc = deflate(&z, Z_FINISH);
    buf_grown(out, z.total_out);
    (void)deflateEnd(&z);
    return rc == Z_STREAM_END ? 0 : err_set(e, ERR_INTERNAL, "cannot compress the profile");
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    buf_done(&p->text);
    buf_done(&p->strings);
    free(p);
}
