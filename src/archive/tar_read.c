#include "archive/tar.h"

#include "archive/limits.h"
#include "base/str.h"

/* Where the fields of a head are, and how long. */
enum {
    NAME_AT = 0,
    NAME_N = 100,
    MODE_AT = 100,
    SIZE_AT = 124,
    MTIME_AT = 136,
    SUM_AT = 148,
    TYPE_AT = 156,
    TARGET_AT = 157,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_N = 155,
};

#define SIZE_MAX_BYTES ((uint64_t)1 << 62) /* what a file can be, with room to add two of them */

void tar_in_init(struct tar_in *t)
{
    *t = (struct tar_in){ 0 };
    t->extra.max = ARCHIVE_EXTRA_MAX_BYTES;
    t->path.max = ARCHIVE_PATH_MAX_BYTES;
    t->target.max = ARCHIVE_PATH_MAX_BYTES;
}

void tar_in_done(struct tar_in *t)
{
    buf_done(&t->extra);
    buf_done(&t->path);
    buf_done(&t->target);
}

/* ---- fields ---- */

/* Octal digits among blanks and NULs; or, with the first bit set, the number itself, as GNU tar writes large ones. */
static bool read_number(const uint8_t *p, size_t n, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;

    if (p[0] & 0x80) {
        if (p[0] != 0x80) /* negative, or beyond anything */
            return false;
        for (i = 1; i < n; i++) {
            if (value >> 55)
                return false;
            value = value << 8 | p[i];
        }
        *ret = value;
        return value <= SIZE_MAX_BYTES;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(p[i] - '0'); /* at most 12 digits: 36 bits */
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != '\0')
            return false;
    *ret = value;
    return true;
}

static bool is_sum_right(const uint8_t *block)
{
    uint64_t said, sum = 0;

    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += i >= SUM_AT && i < SUM_AT + 8 ? ' ' : block[i];
    return read_number(block + SUM_AT, 8, &said) && said == sum;
}

static bool is_zero(const uint8_t *block)
{
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        if (block[i])
            return false;
    return true;
}

static struct span text_at(const uint8_t *p, size_t max)
{
    return span_of(p, strnlen((const char *)p, max));
}

/* ---- extra heads: what does not fit a head's fields ---- */

static int take_text(struct buf *into, bool *has, struct span text, const char *what, struct err *e)
{
    if (!text.n || memchr(text.p, '\0', text.n))
        return err_set(e, ERR_PROTOCOL, "the archive has an entry with no proper %s", what);
    buf_clear(into);
    *has = true;
    if (buf_add(into, text, e) < 0)
        return err_set(e, ERR_LIMIT, "the archive has a %s of %zu bytes; at most %d", what, text.n,
                       ARCHIVE_PATH_MAX_BYTES);
    return 0;
}

/* "1700000000.25": the seconds. */
static bool read_time(struct span text, int64_t *ret)
{
    size_t dot = span_find(text, '.');

    return str_i64(dot == SIZE_MAX ? text : span_slice(text, 0, dot), INT64_MIN / 2, INT64_MAX / 2,
                   ret);
}

static int take_record(struct tar_in *t, struct span key, struct span value, struct err *e)
{
    if (span_is(key, "path"))
        return take_text(&t->path, &t->has_path, value, "name", e);
    if (span_is(key, "linkpath"))
        return take_text(&t->target, &t->has_target, value, "target", e);
    if (span_is(key, "size")) {
        t->has_size = true;
        if (!str_u64(value, SIZE_MAX_BYTES, &t->next_size))
            return err_set(e, ERR_PROTOCOL, "the archive has an entry with no proper size");
    } else if (span_is(key, "mtime")) {
        t->has_mtime = read_time(value, &t->next_mtime);
    }
    return 0;
}

/* "27 path=some/name\n", one after the other; the number counts all of it. */
static int take_records(struct tar_in *t, struct span rest, struct err *e)
{
    while (rest.n) {
        size_t blank = span_find(rest, ' '), equals;
        struct span record;
        uint64_t n;

        if (blank == SIZE_MAX || !str_u64(span_slice(rest, 0, blank), rest.n, &n) || n <= blank + 1)
            return err_set(e, ERR_PROTOCOL, "the archive has a malformed pax header");
        record = span_slice(rest, blank + 1, n);
        equals = span_find(record, '=');
        if (equals == SIZE_MAX || record.p[record.n - 1] != '\n')
            return err_set(e, ERR_PROTOCOL, "the archive has a malformed pax header");
        if (take_record(t, span_slice(record, 0, equals),
                        span_slice(record, equals + 1, record.n - 1), e) < 0)
            return -1;
        rest = span_skip(rest, n);
    }
    return 0;
}

static int take_extra(struct tar_in *t, struct err *e)
{
    struct span all = buf_span(&t->extra);

    if (t->extra_type == 'x')
        return take_records(t, all, e);
    all.n = strnlen((const char *)all.p, all.n); /* GNU's ends with a NUL */
    if (t->extra_type == 'L')
        return take_text(&t->path, &t->has_path, all, "name", e);
    return take_text(&t->target, &t->has_target, all, "target", e);
}

/* ---- heads ---- */

static int take_names(struct tar_in *t, struct err *e)
{
    const uint8_t *b = t->block;
    struct span prefix = text_at(b + PREFIX_AT, PREFIX_N), name = text_at(b + NAME_AT, NAME_N);
    OWN(buf_done) struct buf joined = BUF_INIT(PREFIX_N + NAME_N + 1);

    /* Only POSIX has a prefix there; "ustar  " is GNU's, with times in the same place. */
    if (memcmp(b + MAGIC_AT, "ustar\0", 6) == 0 && prefix.n &&
        (buf_add(&joined, prefix, e) < 0 || buf_addc(&joined, '/', e) < 0))
        return -1;
    if (buf_add(&joined, name, e) < 0)
        return -1;
    if (!t->has_path && take_text(&t->path, &t->has_path, buf_span(&joined), "name", e) < 0)
        return -1;
    if (!t->has_target) {
        buf_clear(&t->target);
        if (buf_add(&t->target, text_at(b + TARGET_AT, NAME_N), e) < 0)
            return -1;
    }
    return 0;
}

static enum tar_kind kind_of(const struct tar_in *t, char type)
{
    switch (type) {
    case '0':
    case '7':
    case '\0': /* before there were types a slash at the end meant a directory */
        return span_ends(buf_span(&t->path), "/") ? TAR_DIR : TAR_FILE;
    case '5':
        return TAR_DIR;
    case '2':
        return TAR_LINK;
    default:
        return TAR_OTHER;
    }
}

static void expect_content(struct tar_in *t, enum tar_state state, uint64_t size)
{
    t->left = size;
    t->pad = tar_pad(size);
    t->state = size ? state : TAR_AT_HEAD;
}

/* A head that says something about the next one. */
static int take_extra_head(struct tar_in *t, char type, uint64_t size, struct err *e)
{
    if (size > ARCHIVE_EXTRA_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "the archive has a header of %llu bytes; at most %d",
                       (unsigned long long)size, ARCHIVE_EXTRA_MAX_BYTES);
    t->extra_type = type;
    buf_clear(&t->extra);
    expect_content(t, TAR_AT_EXTRA, size);
    return 0;
}

/* 1: an entry; 0: there is more to read before it is one. */
static int take_head(struct tar_in *t, struct err *e)
{
    char type = (char)t->block[TYPE_AT];
    uint64_t size, mode, mtime;

    if (is_zero(t->block)) {
        t->state = TAR_AT_END;
        return 0;
    }
    if (!is_sum_right(t->block) || !read_number(t->block + SIZE_AT, 12, &size) ||
        !read_number(t->block + MODE_AT, 8, &mode))
        return err_set(e, ERR_PROTOCOL, "this is no archive, or it is damaged");
    if (type == 'x' || type == 'L' || type == 'K')
        return take_extra_head(t, type, size, e);
    if (take_names(t, e) < 0)
        return -1;
    if (!read_number(t->block + MTIME_AT, 12, &mtime))
        mtime = 0;
    if (t->has_size)
        size = t->next_size;
    t->entry = (struct tar_entry){
        .kind = type == 'g' ? TAR_OTHER : kind_of(t, type),
        .path = buf_cstr(&t->path),
        .target = "",
        .mode = (mode_t)(mode & 07777),
        .mtime = t->has_mtime ? t->next_mtime : (int64_t)mtime,
    };
    if (t->entry.kind == TAR_FILE)
        t->entry.size = size;
    if (t->entry.kind == TAR_LINK)
        t->entry.target = buf_cstr(&t->target);
    if (t->entry.kind == TAR_LINK && !t->target.n)
        return err_set(e, ERR_PROTOCOL, "the archive has a link that leads nowhere");
    if (t->entry.kind == TAR_LINK || t->entry.kind == TAR_DIR || type == '1')
        size = 0; /* some writers give them the size of what they mean; no content follows */
    t->is_passed_over = t->entry.kind != TAR_FILE;
    t->has_path = t->has_target = t->has_size = t->has_mtime = false;
    expect_content(t, TAR_AT_DATA, size);
    return type != 'g'; /* settings for all of the archive: none that we read */
}

/* ---- the stream ---- */

static enum tar_step fault(struct tar_in *t)
{
    t->state = TAR_AT_FAULT;
    return TAR_BAD;
}

static enum tar_step feed_head(struct tar_in *t, struct span in, size_t *ret_used, struct err *e)
{
    size_t n = MIN(in.n, sizeof t->block - t->have);
    int taken;

    memcpy(t->block + t->have, in.p, n);
    t->have += n;
    *ret_used = n;
    if (t->have < sizeof t->block)
        return TAR_MORE;
    t->have = 0;
    taken = take_head(t, e);
    if (taken < 0)
        return fault(t);
    return taken ? TAR_ENTRY : t->state == TAR_AT_END ? TAR_END : TAR_MORE;
}

static enum tar_step feed_content(struct tar_in *t, struct span in, size_t *ret_used,
                                  struct span *ret_data, struct err *e)
{
    size_t n = (size_t)MIN((uint64_t)in.n, t->left);
    bool is_extra = t->state == TAR_AT_EXTRA;
    struct span piece = span_slice(in, 0, n);

    *ret_used = n;
    t->left -= n;
    if (is_extra && buf_add(&t->extra, piece, e) < 0)
        return fault(t);
    if (!t->left) {
        t->state = t->pad ? TAR_AT_PAD : TAR_AT_HEAD;
        if (is_extra && take_extra(t, e) < 0)
            return fault(t);
    }
    if (is_extra || t->is_passed_over)
        return TAR_MORE;
    *ret_data = piece;
    return TAR_DATA;
}

static size_t feed_pad(struct tar_in *t, struct span in)
{
    size_t n = MIN(in.n, t->pad);

    t->pad -= n;
    if (!t->pad)
        t->state = TAR_AT_HEAD;
    return n;
}

enum tar_step tar_in_feed(struct tar_in *t, struct span in, size_t *ret_used, struct span *ret_data,
                          struct err *e)
{
    enum tar_step step = TAR_MORE;
    size_t used = 0, n;

    while (used < in.n && step == TAR_MORE) {
        n = 0;
        switch (t->state) {
        case TAR_AT_HEAD:
            step = feed_head(t, span_skip(in, used), &n, e);
            break;
        case TAR_AT_EXTRA:
        case TAR_AT_DATA:
            step = feed_content(t, span_skip(in, used), &n, ret_data, e);
            break;
        case TAR_AT_PAD:
            n = feed_pad(t, span_skip(in, used));
            break;
        case TAR_AT_END:
            n = in.n - used;
            step = TAR_END;
            break;
        case TAR_AT_FAULT:
            (void)err_set(e, ERR_PROTOCOL, "the archive is damaged");
            step = TAR_BAD;
            break;
        }
        used += n;
    }
    *ret_used = used;
    return step;
}

int tar_in_finish(const struct tar_in *t, struct err *e)
{
    if (t->state == TAR_AT_END)
        return 0;
    return err_set(e, ERR_CLOSED, "the archive is cut off before its end");
}
