#include "kube/yaml_write.h"

#include "kube/yaml_scalar.h"

#include <stdlib.h>
#include <string.h>

#define STEP_COLUMNS 2
#define KEY_MAX_BYTES                                                                              \
    128 /* a longer name is written as "? name": readers look no further for its colon */

struct writer {
    struct buf *out;
    struct err *e;
};

/* ---- what a text can be written as ---- */

enum style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL };

/* Reads one code point; the text is well-formed UTF-8. */
static uint32_t take_rune(struct span s, size_t *at)
{
    uint8_t c = s.p[(*at)++];
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    uint32_t rune = more ? c & (0x3fu >> more) : c;

    for (; more && *at < s.n; more--)
        rune = rune << 6 | (s.p[(*at)++] & 0x3f);
    return rune;
}

/* A reader takes it as it stands, on one line. */
static bool is_printable(uint32_t rune)
{
    return (rune >= 0x20 && rune <= 0x7e) ||
           (rune >= 0xa0 && rune <= 0xfffd && rune != 0x2028 && rune != 0x2029 && rune != 0xfeff) ||
           rune >= 0x10000;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* "2026-01-02", with or without a time; "12:30:45", which is a number to the base of sixty. */
static bool is_time(struct span s)
{
    size_t i = 0;

    if (s.n > 5 && is_digit(s.p[0]) && is_digit(s.p[1]) && is_digit(s.p[2]) && is_digit(s.p[3]) &&
        s.p[4] == '-' && is_digit(s.p[5]))
        return true;
    while (i < s.n && (is_digit(s.p[i]) || strchr("+-_:.", s.p[i])) && s.p[i])
        i++;
    return i == s.n && span_find(s, ':') != SIZE_MAX;
}

/* Some reader would see a number, a boolean, null, a time, or one of the two texts that are directives. */
static bool is_ambiguous(struct span s)
{
    struct yaml_scalar scalar;

    yaml_scalar_resolve(s, &scalar);
    return scalar.type != JSON_STRING || span_is(s, "<<") || span_is(s, "=") || is_time(s);
}

/* Bytes that mean something where they stand. */
static bool has_indicator(struct span s)
{
    if (strchr("#,[]{}&*!|>'\"%@`", s.p[0]) || s.p[0] == ' ' || s.p[s.n - 1] == ' ')
        return true;
    if (strchr("-?:", s.p[0]) && (s.n == 1 || s.p[1] == ' '))
        return true;
    if (span_starts(s, "---") || span_starts(s, "..."))
        return true;
    for (size_t i = 1; i < s.n; i++)
        if ((s.p[i] == ':' && (i + 1 == s.n || s.p[i + 1] == ' ')) ||
            (s.p[i] == '#' && s.p[i - 1] == ' '))
            return true;
    return false;
}

/* Every line can stand as it is: none ends in a blank, and the first says where the text begins. */
static bool can_be_literal(struct span s)
{
    if (s.p[0] == ' ' || s.p[0] == '\n' || s.p[s.n - 1] == ' ')
        return false;
    return span_find_str(s, SPAN(" \n")) == SIZE_MAX;
}

static enum style style_of(struct span s, bool is_key)
{
    bool has_lines = false;

    if (!s.n)
        return STYLE_DOUBLE;
    for (size_t i = 0; i < s.n;) {
        uint32_t rune = take_rune(s, &i);

        if (rune == '\n')
            has_lines = true;
        else if (!is_printable(rune))
            return STYLE_DOUBLE;
    }
    if (has_lines)
        return !is_key && can_be_literal(s) ? STYLE_LITERAL : STYLE_DOUBLE;
    if (is_ambiguous(s))
        return STYLE_DOUBLE;
    return has_indicator(s) ? STYLE_SINGLE : STYLE_PLAIN;
}

/* ---- scalars ---- */

static int add(struct writer *w, struct span s)
{
    return buf_add(w->out, s, w->e);
}

static int pad(struct writer *w, unsigned columns)
{
    for (; columns; columns--)
        if (buf_addc(w->out, ' ', w->e) < 0)
            return -1;
    return 0;
}

static int write_single(struct writer *w, struct span s)
{
    if (add(w, SPAN("'")) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] == '\'' && add(w, SPAN("'")) < 0) || buf_addc(w->out, s.p[i], w->e) < 0)
            return -1;
    return add(w, SPAN("'"));
}

static int write_rune(struct writer *w, uint32_t rune, struct span as_is)
{
    switch (rune) {
    case '"':
        return add(w, SPAN("\\\""));
    case '\\':
        return add(w, SPAN("\\\\"));
    case '\n':
        return add(w, SPAN("\\n"));
    case '\t':
        return add(w, SPAN("\\t"));
    case '\r':
        return add(w, SPAN("\\r"));
    default:
        break;
    }
    if (is_printable(rune))
        return add(w, as_is);
    if (rune <= 0xff)
        return buf_addf(w->out, w->e, "\\x%02X", rune);
    return buf_addf(w->out, w->e, "\\u%04X", rune);
}

static int write_double(struct writer *w, struct span s)
{
    if (add(w, SPAN("\"")) < 0)
        return -1;
    for (size_t i = 0; i < s.n;) {
        size_t start = i;
        uint32_t rune = take_rune(s, &i);

        if (write_rune(w, rune, span_slice(s, start, i)) < 0)
            return -1;
    }
    return add(w, SPAN("\""));
}

/* The lines after "|", each at `column`; the mark behind it says which line ends belong to the text. */
static int write_literal(struct writer *w, struct span s, unsigned column)
{
    bool has_end = s.p[s.n - 1] == '\n', has_more = has_end && s.n > 1 && s.p[s.n - 2] == '\n';
    struct span line;

    if (add(w, !has_end ? SPAN("|-") : has_more ? SPAN("|+") : SPAN("|")) < 0)
        return -1;
    if (has_end)
        s.n--; /* the line end that comes after every value */
    while (s.n) {
        size_t end = span_find(s, '\n');

        line = end == SIZE_MAX ? s : span_slice(s, 0, end);
        if (add(w, SPAN("\n")) < 0 || (line.n && pad(w, column) < 0) || add(w, line) < 0)
            return -1;
        s = span_skip(s, end == SIZE_MAX ? s.n : end + 1);
        if (end != SIZE_MAX && !s.n && add(w, SPAN("\n")) < 0) /* an empty line is the last */
            return -1;
    }
    return 0;
}

static int write_text(struct writer *w, struct span s, unsigned column, bool is_key)
{
    switch (style_of(s, is_key)) {
    case STYLE_PLAIN:
        return add(w, s);
    case STYLE_SINGLE:
        return write_single(w, s);
    case STYLE_LITERAL:
        return write_literal(w, s, column);
    case STYLE_DOUBLE:
        break;
    }
    return write_double(w, s);
}

/* "1e5" is a text to some: it becomes "1.0e+5". */
static int write_number(struct writer *w, struct span s)
{
    size_t e = span_find(s, 'e');

    if (e == SIZE_MAX)
        e = span_find(s, 'E');
    if (e == SIZE_MAX)
        return add(w, s);
    if (add(w, span_slice(s, 0, e)) < 0 ||
        (span_find(span_slice(s, 0, e), '.') == SIZE_MAX && add(w, SPAN(".0")) < 0) ||
        add(w, SPAN("e")) < 0)
        return -1;
    if (s.p[e + 1] != '+' && s.p[e + 1] != '-' && add(w, SPAN("+")) < 0)
        return -1;
    return add(w, span_skip(s, e + 1));
}

static int write_scalar(struct writer *w, const struct json *v, unsigned column)
{
    bool is_true = false;

    switch (json_type(v)) {
    case JSON_STRING:
        return write_text(w, json_str(v), column, false);
    case JSON_NUMBER:
        return write_number(w, json_number(v));
    case JSON_BOOL:
        (void)json_bool(v, &is_true);
        return add(w, is_true ? SPAN("true") : SPAN("false"));
    case JSON_ARRAY:
        return add(w, SPAN("[]"));
    case JSON_OBJECT:
        return add(w, SPAN("{}"));
    case JSON_NONE:
    case JSON_NULL:
        break;
    }
    return add(w, SPAN("null"));
}

/* ---- containers ---- */

static int write_entries(struct writer *w, const struct json *v, unsigned column, bool is_begun);

/* What comes after "name:" or "-", whose container is at `column`. */
static int write_value(struct writer *w, const struct json *v, unsigned column, bool is_element)
{
    if (!json_count(v)) {
        if (add(w, SPAN(" ")) < 0 || write_scalar(w, v, column + STEP_COLUMNS) < 0)
            return -1;
        return add(w, SPAN("\n"));
    }
    if (is_element)
        return add(w, SPAN(" ")) < 0 ? -1 : write_entries(w, v, column + STEP_COLUMNS, true);
    if (add(w, SPAN("\n")) < 0)
        return -1;
    /* A list's dashes stand below its name, not further in. */
    return write_entries(w, v, json_type(v) == JSON_OBJECT ? column + STEP_COLUMNS : column, false);
}

static int by_name(const void *a, const void *b)
{
    struct span x = json_str(*(const struct json *const *)a),
                y = json_str(*(const struct json *const *)b);
    int order = memcmp(x.p, y.p, MIN(x.n, y.n));

    return order ? order : (x.n > y.n) - (x.n < y.n);
}

static int write_name(struct writer *w, struct span name, unsigned column)
{
    if (name.n <= KEY_MAX_BYTES)
        return write_text(w, name, column, true) < 0 ? -1 : add(w, SPAN(":"));
    if (add(w, SPAN("? ")) < 0 || write_text(w, name, column, true) < 0 || add(w, SPAN("\n")) < 0 ||
        pad(w, column) < 0)
        return -1;
    return add(w, SPAN(":"));
}

static int write_members(struct writer *w, const struct json *v, unsigned column, bool is_begun)
{
    OWN_MEM const struct json **names = own_array(json_count(v), sizeof(const struct json *));
    size_t n = 0;

    JSON_MEMBERS(name, value, v)
    {
        if (value)
            names[n++] = name;
    }
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        if ((i || !is_begun) && pad(w, column) < 0)
            return -1;
        if (write_name(w, json_str(names[i]), column) < 0 ||
            write_value(w, names[i] + 1, column, false) < 0)
            return -1;
    }
    return 0;
}

/* is_begun: the first entry goes on in the line that a dash began. */
static int write_entries(struct writer *w, const struct json *v, unsigned column, bool is_begun)
{
    if (json_type(v) == JSON_OBJECT)
        return write_members(w, v, column, is_begun);
    JSON_EACH(item, v)
    {
        if ((!is_begun && pad(w, column) < 0) || add(w, SPAN("-")) < 0 ||
            write_value(w, item, column, true) < 0)
            return -1;
        is_begun = false;
    }
    return 0;
}

static int finish(struct buf *out, size_t start, int rc)
{
    if (rc < 0)
        buf_truncate(out, start);
    return rc;
}

int kube_yaml_write(const struct json *v, struct buf *out, struct err *e)
{
    struct writer w = { out, e };
    size_t start = out->n;

    if (json_count(v))
        return finish(out, start, write_entries(&w, v, 0, false));
    /* No line has an indent here, so a text of several lines cannot be a literal block. */
    if (json_type(v) == JSON_STRING)
        return finish(out, start,
                      write_text(&w, json_str(v), 0, true) < 0 ? -1 : add(&w, SPAN("\n")));
    return finish(out, start, write_scalar(&w, v, 0) < 0 ? -1 : add(&w, SPAN("\n")));
}

int kube_yaml_write_item(const struct json *v, struct buf *out, struct err *e)
{
    struct writer w = { out, e };
    size_t start = out->n;

    return finish(out, start, add(&w, SPAN("-")) < 0 ? -1 : write_value(&w, v, 0, true));
}
