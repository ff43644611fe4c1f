#include "http/head.h"

#define FIRST_FIELDS 16 /* what most requests need, in one allocation */
/* Of each byte of a word */
#define ONES  0x0101010101010101u
#define HIGHS (ONES * 0x80)

void http_head_init(struct http_head *h, size_t max_bytes, size_t max_fields)
{
    assert(max_bytes <= UINT32_MAX / 2 && max_fields <= UINT32_MAX / 2);
    *h = (struct http_head){ .text = BUF_INIT(max_bytes),
                             .field_max = (uint32_t)max_fields,
                             .minor = 1 };
}

void http_head_done(struct http_head *h)
{
    if (!h)
        return;
    http_head_clear(h);
    buf_done(&h->text);
    free(h->fields);
    h->fields = NULL;
    h->field_cap = 0;
}

void http_head_clear(struct http_head *h)
{
    static const struct http_piece none;

    buf_clear(&h->text);
    h->field_count = h->sound = h->lengths = 0;
    h->method = h->target = h->authority = h->scheme = h->protocol = none;
    h->status = 0;
    h->minor = 1;
}

void http_head_pass_memory(struct http_head *from, struct http_head *to)
{
    assert(!to->text.p && !to->fields);
    http_head_clear(from);
    buf_pass_block(&to->text, &from->text);
    to->fields = take_ptr(&from->fields);
    to->field_cap = MIN(from->field_cap, to->field_max);
    from->field_cap = 0;
}

static int check_fits(const struct http_head *to, const struct http_head *from, struct err *e)
{
    if (from->field_count > to->field_max)
        return err_set(e, ERR_LIMIT, "more than %u header fields", to->field_max);
    if (from->text.n > to->text.max)
        return err_set(e, ERR_LIMIT, "more than %zu bytes", to->text.max);
    return 0;
}

void http_head_reserve(struct http_head *h, size_t bytes)
{
    struct err unused;

    /* Fits: no more than the ceiling leaves. */
    (void)buf_reserve(&h->text, MIN(bytes, h->text.max - h->text.n), &unused);
}

int http_head_copy(struct http_head *to, const struct http_head *from, struct err *e)
{
    if (check_fits(to, from, e) < 0)
        return -1;
    http_head_clear(to);
    if (buf_add(&to->text, buf_span(&from->text), e) < 0)
        return -1;
    if (to->field_cap < from->field_count) {
        to->fields = own_resize(to->fields, from->field_count, sizeof to->fields[0]);
        to->field_cap = from->field_count;
    }
    if (from->field_count)
        memcpy(to->fields, from->fields, from->field_count * sizeof to->fields[0]);
    to->field_count = from->field_count;
    to->sound = from->sound;
    to->lengths = from->lengths;
    to->method = from->method;
    to->target = from->target;
    to->authority = from->authority;
    to->scheme = from->scheme;
    to->protocol = from->protocol;
    to->status = from->status;
    to->minor = from->minor;
    return 0;
}

static int add_text(struct http_head *h, struct span s, struct http_piece *ret, struct err *e)
{
    struct http_piece piece = { (uint32_t)h->text.n, (uint32_t)s.n };

    if (buf_add(&h->text, s, e) < 0)
        return -1;
    *ret = piece;
    return 0;
}

static struct span piece_span(const struct http_head *h, struct http_piece piece)
{
    return h->text.p ? (struct span){ h->text.p + piece.at, piece.n } : SPAN_NONE;
}

/* The parts of a first line: an absent one has no bytes. */
static struct span part_span(const struct http_head *h, struct http_piece piece)
{
    return piece.n ? piece_span(h, piece) : SPAN_NONE;
}

int http_head_set_request(struct http_head *h, struct span method, struct span target,
                          struct err *e)
{
    if (buf_reserve(&h->text, method.n + target.n, e) < 0)
        return -1;
    (void)add_text(h, method, &h->method, e); /* both fit now */
    (void)add_text(h, target, &h->target, e);
    h->status = 0;
    return 0;
}

int http_head_set_authority(struct http_head *h, struct span authority, struct err *e)
{
    return add_text(h, authority, &h->authority, e);
}

int http_head_set_scheme(struct http_head *h, struct span scheme, struct err *e)
{
    return add_text(h, scheme, &h->scheme, e);
}

int http_head_set_protocol(struct http_head *h, struct span protocol, struct err *e)
{
    return add_text(h, protocol, &h->protocol, e);
}

void http_head_set_status(struct http_head *h, int status)
{
    assert(status >= 100 && status <= 999);
    h->status = (uint16_t)status;
}

struct span http_head_method(const struct http_head *h)
{
    return part_span(h, h->method);
}

struct span http_head_target(const struct http_head *h)
{
    return part_span(h, h->target);
}

struct span http_head_authority(const struct http_head *h)
{
    return part_span(h, h->authority);
}

struct span http_head_scheme(const struct http_head *h)
{
    return part_span(h, h->scheme);
}

struct span http_head_protocol(const struct http_head *h)
{
    return part_span(h, h->protocol);
}

struct span http_head_path(const struct http_head *h)
{
    struct span target = http_head_target(h);
    size_t skip;

    if (!target.n || target.p[0] == '/' || !h->scheme.n)
        return target;
    skip = h->scheme.n + strlen("://") + h->authority.n;
    return skip < target.n ? span_skip(target, skip) : SPAN("/");
}

int http_head_add_more(struct http_head *h, struct http_piece name, struct http_piece value,
                       struct err *e)
{
    if (h->field_count == h->field_max)
        return err_set(e, ERR_LIMIT, "more than %u header fields", h->field_max);
    h->field_cap = MIN(h->field_cap ? h->field_cap * 2 : FIRST_FIELDS, h->field_max);
    h->fields = own_resize(h->fields, h->field_cap, sizeof h->fields[0]);
    return http_head_add_piece(h, name, value, e);
}

/* Eight bytes at a time, of the last eight some twice: once folded they stay. */
static void fold_case(uint8_t *p, size_t n)
{
    uint64_t w, low, from_a, past_z;

    for (size_t i = 0; i < n && n >= 8; i += 8) {
        memcpy(&w, p + MIN(i, n - 8), 8);
        low = w & ~HIGHS;
        from_a = low + ONES * (0x80 - 'A');
        past_z = low + ONES * (0x7f - 'Z');
        w |= (from_a & ~past_z & ~w & HIGHS) >> 2;
        memcpy(p + MIN(i, n - 8), &w, 8);
    }
    for (size_t i = 0; i < n && n < 8; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] |= 0x20;
}

static int add_copy(struct http_head *h, struct span name, struct span value, struct err *e)
{
    uint32_t at = (uint32_t)h->text.n;

    if (buf_reserve(&h->text, name.n + value.n, e) < 0 ||
        http_head_add_piece(h, (struct http_piece){ at, (uint32_t)name.n },
                            (struct http_piece){ at + (uint32_t)name.n, (uint32_t)value.n }, e) < 0)
        return -1;
    if (name.n)
        memcpy(h->text.p + at, name.p, name.n);
    if (value.n)
        memcpy(h->text.p + at + name.n, value.p, value.n);
    buf_grown(&h->text, name.n + value.n);
    return 0;
}

/* The last field is; that counts when all before it are. */
static void note_sound(struct http_head *h)
{
    h->sound += h->sound == h->field_count - 1;
}

int http_head_add_from(struct http_head *h, const struct http_head *from, size_t i, struct err *e)
{
    struct span name, value;

    http_head_field(from, i, &name, &value);
    if (add_copy(h, name, value, e) < 0)
        return -1;
    if (i < from->sound)
        note_sound(h);
    return 0;
}

int http_head_add_ours(struct http_head *h, struct span name, struct span value, struct err *e)
{
    if (add_copy(h, name, value, e) < 0)
        return -1;
    if (http_value_is_valid(value))
        note_sound(h);
    return 0;
}

int http_head_add(struct http_head *h, struct span name, struct span value, struct err *e)
{
    struct http_piece added;

    if (add_copy(h, name, value, e) < 0)
        return -1;
    added = h->fields[h->field_count - 1].name;
    fold_case(h->text.p + added.at, added.n);
    return 0;
}

int http_head_addf(struct http_head *h, const char *name, struct err *e, const char *fmt, ...)
{
    struct http_piece name_piece, value_piece;
    size_t before = h->text.n;
    va_list ap;
    int r;

    if (add_text(h, span_cstr(name), &name_piece, e) < 0)
        return -1;
    value_piece.at = (uint32_t)h->text.n;
    va_start(ap, fmt);
    r = buf_vaddf(&h->text, e, fmt, ap);
    va_end(ap);
    value_piece.n = (uint32_t)h->text.n - value_piece.at;
    if (r == 0)
        fold_case(h->text.p + name_piece.at, name_piece.n);
    if (r == 0)
        r = http_head_add_piece(h, name_piece, value_piece, e);
    if (r < 0 && h->text.p) {
        h->text.n = before;
        h->text.p[before] = '\0';
    }
    return r;
}

int http_head_set(struct http_head *h, struct span name, struct span value, struct err *e)
{
    OWN_MEM char *key = span_dup(name);

    fold_case((uint8_t *)key, name.n);
    (void)http_head_remove(h, key);
    return http_head_add(h, name, value, e);
}

static bool name_is(const struct http_head *h, const struct http_field *f, struct span name)
{
    return f->name.n == name.n && memcmp(h->text.p + f->name.at, name.p, name.n) == 0;
}

size_t http_head_remove(struct http_head *h, const char *name)
{
    struct span key = span_cstr(name);
    uint32_t kept = 0, before = h->field_count, sound = 0;

    if (!(h->lengths & http_head_length_bit(key.n)))
        return 0;
    for (uint32_t i = 0; i < before; i++) {
        if (name_is(h, &h->fields[i], key))
            continue;
        sound += i < h->sound;
        h->fields[kept++] = h->fields[i];
    }
    h->field_count = kept;
    h->sound = sound;
    return before - kept;
}

struct span http_head_walk(const struct http_head *h, struct span name, size_t *iter)
{
    for (size_t i = *iter; i < h->field_count; i++) {
        const struct http_field *f = &h->fields[i];

        if (!name_is(h, f, name))
            continue;
        *iter = i + 1;
        return piece_span(h, f->value);
    }
    *iter = h->field_count;
    return SPAN_NONE;
}

static bool has_piece(const struct http_head *h, const char *name, const char *want,
                      bool (*is)(struct span a, const char *s))
{
    struct span list, piece;
    size_t iter = 0;

    for (list = http_head_next(h, name, &iter); list.p; list = http_head_next(h, name, &iter))
        while (span_cut(&list, ',', &piece))
            if (is(span_trim(piece), want))
                return true;
    return false;
}

bool http_head_has_token(const struct http_head *h, const char *name, const char *token)
{
    return has_piece(h, name, token, span_is_nocase);
}

bool http_head_has_item(const struct http_head *h, const char *name, const char *item)
{
    return has_piece(h, name, item, span_is);
}

/* clang-format off */
#define LETTER(upper, lower) [upper] = lower, [lower] = lower
const uint8_t http_token_fold[256] = {
    ['!'] = '!', ['#'] = '#', ['$'] = '$', ['%'] = '%', ['&'] = '&', ['\''] = '\'', ['*'] = '*', ['+'] = '+',
    ['-'] = '-', ['.'] = '.', ['^'] = '^', ['_'] = '_', ['`'] = '`', ['|'] = '|', ['~'] = '~',
    ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4',
    ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9',
    LETTER('A', 'a'), LETTER('B', 'b'), LETTER('C', 'c'), LETTER('D', 'd'), LETTER('E', 'e'), LETTER('F', 'f'),
    LETTER('G', 'g'), LETTER('H', 'h'), LETTER('I', 'i'), LETTER('J', 'j'), LETTER('K', 'k'), LETTER('L', 'l'),
    LETTER('M', 'm'), LETTER('N', 'n'), LETTER('O', 'o'), LETTER('P', 'p'), LETTER('Q', 'q'), LETTER('R', 'r'),
    LETTER('S', 's'), LETTER('T', 't'), LETTER('U', 'u'), LETTER('V', 'v'), LETTER('W', 'w'), LETTER('X', 'x'),
    LETTER('Y', 'y'), LETTER('Z', 'z'),
};
/* clang-format on */

bool http_name_is_valid(struct span name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!http_token_fold[name.p[i]])
            return false;
    return name.n != 0;
}

static bool is_control(uint8_t c)
{
    return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* A borrow into the top bit marks a byte below 0x20, or one equal to 0x7f. True also for a tab, which is allowed. */
static bool may_have_control(uint64_t w)
{
    uint64_t del = w ^ (ONES * 0x7f);

    return (((w - ONES * 0x20) & ~w) | ((del - ONES) & ~del)) & HIGHS;
}

/* All bytes of a short text, some twice, and blanks. */
static uint64_t short_word(const uint8_t *p, size_t n)
{
    uint32_t first, last;

    if (n < 4)
        return ONES * 0x20 << 24 | p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    memcpy(&first, p, 4);
    memcpy(&last, p + n - 4, 4);
    return first | (uint64_t)last << 32;
}

bool http_value_is_valid(struct span value)
{
    uint64_t w;
    size_t i = 0;

    if (value.n && value.n < 8 && !may_have_control(short_word(value.p, value.n)))
        return true;
    /* Eight bytes at a time, of the last eight some twice. */
    for (; i < value.n && value.n >= 8; i += 8) {
        memcpy(&w, value.p + MIN(i, value.n - 8), 8);
        if (may_have_control(w))
            break;
    }
    for (; i < value.n; i++) /* look closer */
        if (is_control(value.p[i]))
            return false;
    return true;
}
