#include "http/multipart.h"

#include "base/str.h"
#include "http/field.h"
#include "http/param.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const struct multipart_limits multipart_limits_default = {
    .files = HTTP_FORM_MAX_FILES,
    .fields = HTTP_FORM_MAX_FIELDS,
    .head_bytes = HTTP_PART_HEAD_MAX_BYTES,
    .head_fields = HTTP_PART_HEAD_MAX_FIELDS,
};

static int fail(struct multipart *m, enum multipart_fault fault)
{
    m->fault = fault;
    m->state = MULTIPART_AT_BROKEN;
    return -1;
}

static bool is_boundary(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e)
            return false;
    return s.n <= HTTP_BOUNDARY_MAX_BYTES;
}

/* The request's parameters: the boundary is needed, a charset says how names are coded. */
static int read_params(struct multipart *m, struct span rest, struct buf *boundary, struct err *e)
{
    struct span name, raw;

    while (http_param_next(&rest, &name, &raw)) {
        bool is_charset = span_is_nocase(name, "charset");

        if (span_is_nocase(name, "boundary")) {
            buf_clear(boundary);
            if (http_param_unquote(raw, boundary, e) < 0)
                return -1;
        }
        m->is_latin1 |=
            is_charset && (span_is_nocase(raw, "iso-8859-1") || span_is_nocase(raw, "latin-1"));
    }
    return 0;
}

int multipart_init(struct multipart *m, struct span content_type,
                   const struct multipart_limits *limits, struct err *e)
{
    OWN(buf_done) struct buf boundary = BUF_INIT(HTTP_BOUNDARY_MAX_BYTES);
    struct span rest, type = http_param_value(content_type, &rest);

    *m = (struct multipart){ .limits = limits ? limits : &multipart_limits_default };
    http_head_init(&m->head, m->limits->head_bytes, m->limits->head_fields);
    m->text.max =
        4 * m->limits->head_bytes; /* two names, each twice as long when Latin-1 becomes UTF-8 */
    if (!span_is_nocase(type, "multipart/form-data")) {
        err_set(e, ERR_INVALID, "content type '%.*s' is not multipart/form-data", SPAN_ARG(type));
        return fail(m, MULTIPART_NOT_FORM);
    }
    if (read_params(m, rest, &boundary, e) < 0 || !is_boundary(buf_span(&boundary))) {
        err_set(e, ERR_INVALID, "malformed boundary in the content type");
        return fail(m, MULTIPART_MALFORMED);
    }
    if (!boundary.n) {
        err_set(e, ERR_INVALID, "no boundary in the content type");
        return fail(m, MULTIPART_NO_BOUNDARY);
    }
    memcpy(m->delim, "\r\n--", 4);
    memcpy(m->delim + 4, boundary.p, boundary.n);
    m->delim_n = (uint16_t)(4 + boundary.n);
    m->held = m->unreal = 2; /* the first boundary needs no CRLF before it */
    return 0;
}

void multipart_done(struct multipart *m)
{
    if (!m)
        return;
    http_head_done(&m->head);
    buf_done(&m->text);
}

static size_t common_prefix(struct span a, const uint8_t *b, size_t n)
{
    size_t i = 0;

    while (i < a.n && i < n && a.p[i] == b[i])
        i++;
    return i;
}

/* Where the delimiter stands in `in`, or where its beginning is cut by the end of `in`; else in.n. */
static size_t find_delimiter(const struct multipart *m, struct span in)
{
    size_t i = 0, n = m->delim_n;

#ifdef __SSE2__
    /* Sixteen places at a time, looking at the delimiter's first and last byte only. */
    const __m128i first = _mm_set1_epi8((char)m->delim[0]),
                  last = _mm_set1_epi8((char)m->delim[n - 1]);

    for (; i + n + 15 <= in.n; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(in.p + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(in.p + i + n - 1));
        __m128i both = _mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last));

        for (unsigned hits = (unsigned)_mm_movemask_epi8(both); hits; hits &= hits - 1) {
            size_t at = i + (unsigned)__builtin_ctz(hits);

            if (memcmp(in.p + at, m->delim, n) == 0)
                return at;
        }
    }
#endif
    for (; i < in.n; i++) {
        size_t cr = span_find(span_skip(in, i), '\r');

        if (cr == SIZE_MAX)
            return in.n;
        i += cr;
        if (memcmp(in.p + i, m->delim, MIN(in.n - i, n)) == 0)
            return i;
    }
    return in.n;
}

/* Bytes that could have been a delimiter were not: they are data (or preamble, and then nobody's). */
static enum multipart_event give_back(struct multipart *m, size_t n, struct span *ret_data)
{
    struct span data = span_of(m->delim + m->unreal, n - m->unreal);

    m->held = m->unreal = 0;
    m->state = m->in_part ? MULTIPART_AT_DATA : MULTIPART_AT_PREAMBLE;
    if (!m->in_part || data.n == 0)
        return MULTIPART_MORE;
    *ret_data = data;
    return MULTIPART_PART_DATA;
}

static enum multipart_event scan(struct multipart *m, struct span in, size_t *used,
                                 struct span *ret_data)
{
    size_t n;

    if (m->held == 0) {
        n = find_delimiter(m, in);
        *used = n;
        if (n && m->in_part)
            *ret_data = span_of(in.p, n);
        if (n)
            return m->in_part ? MULTIPART_PART_DATA : MULTIPART_MORE;
    }
    n = common_prefix(in, m->delim + m->held, m->delim_n - m->held);
    m->held = (uint16_t)(m->held + n);
    *used = n;
    if (m->held == m->delim_n)
        m->state = MULTIPART_AT_TAIL;
    else if (n <
             in.n) /* the boundary has no CR inside, so nothing held can begin another delimiter */
        return give_back(m, m->held, ret_data);
    return MULTIPART_MORE;
}

/* A delimiter and what makes it one: CRLF before a part, or the "--" of the last. */
static enum multipart_event boundary(struct multipart *m, bool is_last)
{
    bool was_in_part = m->in_part;

    m->held = m->unreal = 0;
    m->in_part = false;
    http_head_clear(&m->head);
    m->state = is_last ? MULTIPART_AT_CLOSE : MULTIPART_AT_HEAD_START;
    return was_in_part ? MULTIPART_PART_END : MULTIPART_MORE;
}

static enum multipart_event tail(struct multipart *m, uint8_t c, size_t *used,
                                 struct span *ret_data)
{
    if (c != '\r' && c != '-')
        return give_back(m, m->delim_n, ret_data); /* "--boundary2" in a file */
    *used = 1;
    m->state = c == '-' ? MULTIPART_AT_TAIL_DASH : MULTIPART_AT_TAIL_CR;
    return MULTIPART_MORE;
}

static enum multipart_event tail_second(struct multipart *m, uint8_t c, size_t *used,
                                        struct span *ret_data)
{
    bool is_dash = m->state == MULTIPART_AT_TAIL_DASH;

    if (c == (is_dash ? '-' : '\n')) {
        *used = 1;
        return boundary(m, is_dash);
    }
    m->delim[m->delim_n] = is_dash ? '-' : '\r';
    return give_back(m, m->delim_n + 1u, ret_data);
}

/* Adds a name to m->text as UTF-8: what is not valid in the form's charset is read as Latin-1, as browsers
 * of old sent it. */
static int add_name(struct multipart *m, struct span bytes, struct err *e)
{
    if (!m->is_latin1 && str_utf8_valid(bytes))
        return buf_add(&m->text, bytes, e);
    for (size_t i = 0; i < bytes.n; i++) {
        uint8_t c = bytes.p[i],
                wide[2] = { (uint8_t)(0xc0 | c >> 6), (uint8_t)(0x80 | (c & 0x3f)) };

        if (buf_add(&m->text, c < 0x80 ? span_of(&c, 1) : span_of(wide, 2), e) < 0)
            return -1;
    }
    return 0;
}

/* Old Windows browsers send the whole path. */
static struct span cut_drive(struct span name)
{
    if (!(name.n >= 3 && name.p[1] == ':' && name.p[2] == '\\') && !span_starts(name, "\\\\"))
        return name;
    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '\\')
            return span_skip(name, i);
    return name;
}

/* What a Content-Disposition says, still as bytes; `filename*` wins over `filename` wherever it stands. */
struct disposition {
    struct buf name, filename;
    bool has_name, has_filename, is_extended;
};

static void disposition_done(struct disposition *d)
{
    buf_done(&d->name);
    buf_done(&d->filename);
}

static int read_disposition(struct disposition *d, struct span header, struct err *e)
{
    struct span rest, name, raw;

    (void)http_param_value(header, &rest);
    while (http_param_next(&rest, &name, &raw)) {
        bool is_extended = span_is_nocase(name, "filename*");

        if (span_is_nocase(name, "name")) {
            d->has_name = true;
            buf_clear(&d->name);
            if (http_param_unquote(raw, &d->name, e) < 0)
                return -1;
        } else if (is_extended || (span_is_nocase(name, "filename") && !d->is_extended)) {
            d->has_filename = true;
            d->is_extended = is_extended;
            buf_clear(&d->filename);
            if ((is_extended ? http_param_extended : http_param_unquote)(raw, &d->filename, e) < 0)
                return -1;
        }
    }
    return 0;
}

static int count_part(struct multipart *m, struct err *e)
{
    size_t *count = m->has_filename ? &m->file_count : &m->field_count;
    size_t max = m->has_filename ? m->limits->files : m->limits->fields;

    if (++*count <= max)
        return 0;
    err_set(e, ERR_LIMIT, "more than %zu %s in the form", max,
            m->has_filename ? "files" : "fields");
    return fail(m, m->has_filename ? MULTIPART_TOO_MANY_FILES : MULTIPART_TOO_MANY_FIELDS);
}

static int finish_head(struct multipart *m, struct err *e)
{
    OWN(disposition_done)
    struct disposition d = { .name = BUF_INIT(m->limits->head_bytes),
                             .filename = BUF_INIT(m->limits->head_bytes) };
    struct span filename;
    size_t name_n;

    if (read_disposition(&d, http_head_get(&m->head, "content-disposition"), e) < 0)
        return fail(m, MULTIPART_MALFORMED);
    if (!d.has_name) {
        err_set(e, ERR_PROTOCOL, "a part of the form has no name");
        return fail(m, MULTIPART_NO_NAME);
    }
    filename = cut_drive(buf_span(&d.filename));
    if (span_find(filename, '\0') != SIZE_MAX) { /* only an escape can bring one here */
        err_set(e, ERR_PROTOCOL, "NUL in the file name of a part");
        return fail(m, MULTIPART_MALFORMED);
    }
    m->has_filename = d.has_filename;
    buf_clear(&m->text);
    if (add_name(m, buf_span(&d.name), e) < 0)
        return fail(m, MULTIPART_MALFORMED);
    name_n = m->text.n;
    if (add_name(m, filename, e) < 0)
        return fail(m, MULTIPART_MALFORMED);
    m->name = span_slice(buf_span(&m->text), 0, name_n);
    m->filename = span_skip(buf_span(&m->text), name_n);
    return count_part(m, e);
}

static int head_line(struct multipart *m, struct span in, size_t *used, struct err *e)
{
    struct http_piece line;

    switch (http_line_take(&m->head, m->line_at, SIZE_MAX, in, used)) {
    case HTTP_LINE_MORE:
        return 0;
    case HTTP_LINE_DONE:
        break;
    case HTTP_LINE_LONG:
    case HTTP_LINE_FULL:
        err_set(e, ERR_LIMIT, "the head of a part is larger than %zu bytes", m->head.text.max);
        return fail(m, MULTIPART_HEAD_TOO_LARGE);
    }
    if (http_line_end(&m->head, m->line_at, &line, e) < 0)
        return fail(m, MULTIPART_MALFORMED);
    if (http_field_parse(&m->head, line, HTTP_FIELD_MIME, e) < 0)
        return fail(m, e->code == ERR_LIMIT ? MULTIPART_HEAD_TOO_LARGE : MULTIPART_MALFORMED);
    m->state = MULTIPART_AT_HEAD_START;
    return 0;
}

static void head_start(struct multipart *m, uint8_t c, size_t *used)
{
    m->line_at = (uint32_t)m->head.text.n;
    m->state = c == '\r' ? MULTIPART_AT_HEAD_LF : MULTIPART_AT_HEAD;
    *used = c == '\r';
}

static enum multipart_event head_lf(struct multipart *m, uint8_t c, size_t *used, struct err *e)
{
    if (c != '\n') {
        err_set(e, ERR_PROTOCOL, "bare CR in the head of a part");
        fail(m, MULTIPART_MALFORMED);
        return MULTIPART_BAD;
    }
    *used = 1;
    if (finish_head(m, e) < 0)
        return MULTIPART_BAD;
    m->in_part = true;
    m->held = m->unreal =
        2; /* an empty part may end with the blank line's own CRLF (RFC 2046 5.1.1) */
    m->state = MULTIPART_AT_DATA;
    return MULTIPART_PART_HEAD;
}

/* One step on at least one byte, except in CLOSE and BROKEN. */
static enum multipart_event step(struct multipart *m, struct span in, size_t *used,
                                 struct span *ret_data, struct err *e)
{
    switch ((enum multipart_state)m->state) {
    case MULTIPART_AT_PREAMBLE:
    case MULTIPART_AT_DATA:
        return scan(m, in, used, ret_data);
    case MULTIPART_AT_TAIL:
        return tail(m, in.p[0], used, ret_data);
    case MULTIPART_AT_TAIL_CR:
    case MULTIPART_AT_TAIL_DASH:
        return tail_second(m, in.p[0], used, ret_data);
    case MULTIPART_AT_HEAD_START:
        head_start(m, in.p[0], used);
        return MULTIPART_MORE;
    case MULTIPART_AT_HEAD:
        return head_line(m, in, used, e) < 0 ? MULTIPART_BAD : MULTIPART_MORE;
    case MULTIPART_AT_HEAD_LF:
        return head_lf(m, in.p[0], used, e);
    case MULTIPART_AT_CLOSE:
        m->state = MULTIPART_AT_EPILOGUE;
        return MULTIPART_END;
    case MULTIPART_AT_EPILOGUE:
        *used = in.n;
        return MULTIPART_MORE;
    case MULTIPART_AT_BROKEN:
        err_set(e, ERR_PROTOCOL, "the form is broken already");
        return MULTIPART_BAD;
    }
    return MULTIPART_BAD;
}

enum multipart_event multipart_feed(struct multipart *m, struct span in, size_t *ret_used,
                                    struct span *ret_data, struct err *e)
{
    enum multipart_event ev = MULTIPART_MORE;
    size_t used = 0;

    while (ev == MULTIPART_MORE &&
           (used < in.n || m->state == MULTIPART_AT_CLOSE || m->state == MULTIPART_AT_BROKEN)) {
        size_t n = 0;

        ev = step(m, span_skip(in, used), &n, ret_data, e);
        used += n;
    }
    *ret_used = used;
    return ev;
}

int multipart_finish(struct multipart *m, struct err *e)
{
    if (m->state == MULTIPART_AT_EPILOGUE || m->state == MULTIPART_AT_CLOSE)
        return 0;
    err_set(e, ERR_PROTOCOL, "the form ended before its closing boundary");
    return m->fault ? -1 : fail(m, MULTIPART_MALFORMED);
}
