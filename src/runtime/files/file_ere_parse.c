#include "runtime/files/file_ere_program.h"
#include "base/str.h"

struct parse {
    struct file_ere *r;
    struct span text;
    size_t at;
    int depth;
    struct err *e;
};

static int bad(struct parse *p, const char *what)
{
    return err_set(p->e, ERR_INVALID, "%s at byte %zu of the pattern", what, p->at);
}

static bool is_at(const struct parse *p, char c)
{
    return p->at < p->text.n && p->text.p[p->at] == (uint8_t)c;
}

static uint32_t take_char(struct parse *p)
{
    size_t n;
    uint32_t c = file_ere_decode(span_skip(p->text, p->at), &n);

    p->at += n;
    return c;
}

static int emit(struct parse *p, enum op op, uint32_t arg)
{
    if (p->r->n == FILE_ERE_MAX_STEPS)
        return err_set(p->e, ERR_LIMIT, "the pattern needs more than %d steps", FILE_ERE_MAX_STEPS);
    p->r->steps[p->r->n++] = (struct step){ op, arg, 0 };
    return 0;
}

/* Makes room for one step at `at` and puts it there. */
static int insert(struct parse *p, size_t at, enum op op, int to)
{
    if (emit(p, op, 0) < 0)
        return -1;
    memmove(&p->r->steps[at + 1], &p->r->steps[at], (p->r->n - 1 - at) * sizeof *p->r->steps);
    p->r->steps[at] = (struct step){ op, 0, to };
    return 0;
}

static int copy_steps(struct parse *p, size_t from, size_t n)
{
    if (n > FILE_ERE_MAX_STEPS - p->r->n)
        return err_set(p->e, ERR_LIMIT, "the pattern needs more than %d steps", FILE_ERE_MAX_STEPS);
    memmove(&p->r->steps[p->r->n], &p->r->steps[from], n * sizeof *p->r->steps);
    p->r->n += n;
    return 0;
}

static struct set *new_set(struct file_ere *r)
{
    if (r->set_n == r->set_cap) {
        r->set_cap = r->set_cap ? 2 * r->set_cap : 4;
        r->sets = own_resize(r->sets, r->set_cap, sizeof *r->sets);
    }
    r->sets[r->set_n] = (struct set){ .n = 0 };
    return &r->sets[r->set_n++];
}

static int add_range(struct parse *p, struct set *s, uint32_t low, uint32_t high)
{
    if (low > high)
        return bad(p, "a range that goes backwards");
    if (s->n == CLASS_MAX_RANGES)
        return err_set(p->e, ERR_LIMIT, "a set of more than %d ranges", CLASS_MAX_RANGES);
    s->ranges[s->n].low = low;
    s->ranges[s->n++].high = high;
    return 0;
}

/* clang-format off */
static const struct named {
    const char *name;
    char escape; /* \d and the like, or 0 */
    const char *ranges; /* pairs of characters */
} named_sets[] = {
    { "digit", 'd', "09" },         { "alnum", 0, "09AZaz" },     { "alpha", 0, "AZaz" },
    { "space", 's', "\t\r  " },     { "blank", 0, "\t\t  " },     { "upper", 0, "AZ" },
    { "lower", 0, "az" },           { "punct", 0, "!/:@[`{~" },   { "xdigit", 0, "09AFaf" },
    { "word", 'w', "09AZaz__" },    { "print", 0, " ~" },         { "graph", 0, "!~" },
    { "cntrl", 0, "\1\x1f\x7f\x7f" },
};
/* clang-format on */

static int add_named(struct parse *p, struct set *s, const struct named *named)
{
    for (const char *r = named->ranges; *r; r += 2)
        if (add_range(p, s, (uint8_t)r[0], (uint8_t)r[1]) < 0)
            return -1;
    return 0;
}

/* `[:alpha:]` inside a set; p->at is behind "[:". */
static int parse_class(struct parse *p, struct set *s)
{
    struct span left = span_skip(p->text, p->at);
    size_t n = span_find_str(left, SPAN(":]"));

    EACH(named, named_sets) {
        if (n != SIZE_MAX && span_is(span_slice(left, 0, n), named->name)) {
            p->at += n + 2;
            return add_named(p, s, named);
        }
    }
    return bad(p, "an unknown character class");
}

static const struct named *escape_named(uint8_t c)
{
    EACH(named, named_sets)
        if (named->escape && named->escape == (c | 0x20))
            return named;
    return NULL;
}

/* A character of a set, or of the pattern behind a backslash. */
static uint32_t take_escaped(struct parse *p)
{
    uint32_t c = take_char(p);

    return c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
}

static int parse_set_member(struct parse *p, struct set *s)
{
    uint32_t low, high;

    if (is_at(p, '[') && p->at + 1 < p->text.n && p->text.p[p->at + 1] == ':') {
        p->at += 2;
        return parse_class(p, s);
    }
    if (is_at(p, '\\') && p->at + 1 < p->text.n) {
        const struct named *named = escape_named(p->text.p[++p->at]);

        if (named && p->text.p[p->at] < 'a')
            return err_set(p->e, ERR_UNSUPPORTED,
                           "sets with a negated class in them are not supported");
        if (named) {
            p->at++;
            return add_named(p, s, named);
        }
        low = take_escaped(p);
    } else {
        low = take_char(p);
    }
    high = low;
    if (is_at(p, '-') && p->at + 1 < p->text.n && p->text.p[p->at + 1] != ']') {
        p->at++;
        if (is_at(p, '\\') && p->at + 1 < p->text.n)
            p->at++;
        high = take_char(p);
    }
    return add_range(p, s, low, high);
}

/* p->at is behind the '['. */
static int parse_set(struct parse *p)
{
    struct set *s = new_set(p->r);
    bool is_first = true;

    s->is_negated = is_at(p, '^');
    p->at += s->is_negated;
    for (; p->at < p->text.n; is_first = false) {
        if (is_at(p, ']') && !is_first) {
            p->at++;
            return emit(p, OP_SET, (uint32_t)(p->r->set_n - 1));
        }
        if (parse_set_member(p, s) < 0)
            return -1;
    }
    return bad(p, "a set without its ']'");
}

static int parse_escape(struct parse *p)
{
    const struct named *named;
    uint8_t c;

    if (p->at == p->text.n)
        return bad(p, "a backslash with nothing behind it");
    c = p->text.p[p->at];
    if (c >= '1' && c <= '9')
        return err_set(p->e, ERR_UNSUPPORTED, "back references are not supported");
    if (c == 'b' || c == 'B') {
        p->at++;
        return emit(p, c == 'b' ? OP_WORD_EDGE : OP_NOT_WORD_EDGE, 0);
    }
    named = escape_named(c);
    if (named) {
        struct set *s = new_set(p->r);

        p->at++;
        s->is_negated = c < 'a';
        if (add_named(p, s, named) < 0)
            return -1;
        return emit(p, OP_SET, (uint32_t)(p->r->set_n - 1));
    }
    return emit(p, OP_CHAR, file_ere_fold(p->r, take_escaped(p)));
}

static int parse_choice(struct parse *p);

static int parse_group(struct parse *p)
{
    if (is_at(p, '?')) {
        if (p->at + 1 >= p->text.n || p->text.p[p->at + 1] != ':')
            return err_set(p->e, ERR_UNSUPPORTED,
                           "groups with '(?' other than '(?:' are not supported");
        p->at += 2;
    }
    if (++p->depth > FILE_ERE_MAX_NEST)
        return err_set(p->e, ERR_LIMIT, "more than %d parentheses inside each other",
                       FILE_ERE_MAX_NEST);
    if (parse_choice(p) < 0)
        return -1;
    p->depth--;
    if (!is_at(p, ')'))
        return bad(p, "a '(' without its ')'");
    p->at++;
    return 0;
}

static int parse_atom(struct parse *p)
{
    switch (p->text.p[p->at]) {
    case '(':
        p->at++;
        return parse_group(p);
    case '[':
        p->at++;
        return parse_set(p);
    case '\\':
        p->at++;
        return parse_escape(p);
    case '.':
        p->at++;
        return emit(p, OP_ANY, 0);
    case '^':
        p->at++;
        return emit(p, OP_START, 0);
    case '$':
        p->at++;
        return emit(p, OP_END, 0);
    case '*':
    case '+':
    case '?':
        return bad(p, "nothing to repeat");
    default:
        return emit(p, OP_CHAR, file_ere_fold(p->r, take_char(p)));
    }
}

/* Reads "{m}", "{m,}" or "{m,n}"; a brace that is none of these is itself. */
static bool read_counts(struct parse *p, uint64_t *ret_min, uint64_t *ret_max)
{
    struct span left = span_skip(p->text, p->at + 1);
    size_t end = span_find(left, '}');
    struct span inside = span_slice(left, 0, end);
    size_t comma = span_find(inside, ',');
    struct span high = comma == SIZE_MAX ? SPAN_NONE : span_skip(inside, comma + 1);

    if (end == SIZE_MAX || !str_u64(span_slice(inside, 0, comma), UINT32_MAX, ret_min))
        return false;
    *ret_max = comma == SIZE_MAX ? *ret_min : UINT64_MAX;
    if (high.n && !str_u64(high, UINT32_MAX, ret_max))
        return false;
    p->at += end + 2;
    return true;
}

/* The steps from `from` on are one atom: make it come `min` to `max` times. */
static int repeat(struct parse *p, size_t from, uint64_t min, uint64_t max)
{
    size_t n = p->r->n - from;

    if (max != UINT64_MAX && (max < min || max > FILE_ERE_MAX_REPEAT))
        return bad(p, "a count that is too large or goes backwards");
    if (min > FILE_ERE_MAX_REPEAT)
        return bad(p, "a count that is too large");
    if (max == 0) {
        p->r->n = from;
        return 0;
    }
    for (uint64_t i = 1; i < MAX(min, (uint64_t)1); i++)
        if (copy_steps(p, from, n) < 0)
            return -1;
    if (max == UINT64_MAX && min) { /* the last copy again and again */
        if (emit(p, OP_SPLIT, 0) < 0)
            return -1;
        p->r->steps[p->r->n - 1].to = -(int)n;
        return 0;
    }
    if (max == UINT64_MAX) {
        if (insert(p, from, OP_SPLIT, (int)n + 2) < 0 || emit(p, OP_JUMP, 0) < 0)
            return -1;
        p->r->steps[p->r->n - 1].to = -(int)(n + 1);
        return 0;
    }
    if (!min) { /* the one copy there is becomes the first that may be left out */
        if (insert(p, from, OP_SPLIT, (int)n + 1) < 0)
            return -1;
        from++;
        min = 1;
    }
    for (uint64_t i = min; i < max; i++) {
        if (emit(p, OP_SPLIT, 0) < 0 || copy_steps(p, from, n) < 0)
            return -1;
        p->r->steps[p->r->n - n - 1].to = (int)n + 1;
    }
    return 0;
}

/* An atom and what repeats it. */
static int parse_piece(struct parse *p)
{
    size_t from = p->r->n;

    if (parse_atom(p) < 0)
        return -1;
    for (;;) {
        uint64_t min = 0, max = UINT64_MAX;

        if (is_at(p, '*') || is_at(p, '+') || is_at(p, '?')) {
            min = is_at(p, '+');
            max = is_at(p, '?') ? 1 : UINT64_MAX;
            p->at++;
        } else if (!is_at(p, '{') || !read_counts(p, &min, &max)) {
            return 0;
        }
        if (is_at(p, '?'))
            p->at++; /* lazy */
        if (repeat(p, from, min, max) < 0)
            return -1;
    }
}

static int parse_choice(struct parse *p)
{
    size_t from = p->r->n;

    while (p->at < p->text.n && !is_at(p, '|') && !is_at(p, ')'))
        if (parse_piece(p) < 0)
            return -1;
    while (is_at(p, '|')) {
        size_t left_n = p->r->n - from, jump_at;

        p->at++;
        if (insert(p, from, OP_SPLIT, (int)left_n + 2) < 0 || emit(p, OP_JUMP, 0) < 0)
            return -1;
        jump_at = p->r->n - 1;
        while (p->at < p->text.n && !is_at(p, '|') && !is_at(p, ')'))
            if (parse_piece(p) < 0)
                return -1;
        p->r->steps[jump_at].to = (int)(p->r->n - jump_at);
    }
    return 0;
}

int file_ere_parse(struct file_ere *r, struct span pattern, struct err *e)
{
    struct parse p = { r, pattern, 0, 0, e };

    if (parse_choice(&p) < 0)
        return -1;
    return p.at < pattern.n ? bad(&p, "a ')' without its '('") : 0;
}
