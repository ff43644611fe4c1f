#include "runtime/files/file_pattern.h"
#include "base/str.h"

/* The first character of s and its length in bytes; a byte that is not UTF-8 is one beyond Unicode. */
static uint32_t first_char(struct span s, size_t *ret_n)
{
    static const uint8_t lead_mask[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t need, n = str_utf8_len(s, &need);
    uint32_t c;

    *ret_n = n ? n : 1;
    if (!n)
        return 0x110000 + s.p[0];
    c = s.p[0] & lead_mask[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s.p[i] & 0x3f);
    return c;
}

static uint32_t take_char(struct span *s)
{
    size_t n;
    uint32_t c = first_char(*s, &n);

    *s = span_skip(*s, n);
    return c;
}

/* Where the set that starts at pattern[0] == '[' ends (after its ']'), or 0 when it never does. */
static size_t set_end(struct span pattern)
{
    size_t i = 1;

    if (i < pattern.n && (pattern.p[i] == '!' || pattern.p[i] == '^'))
        i++;
    if (i < pattern.n && pattern.p[i] == ']')
        i++; /* first, it is a member */
    while (i < pattern.n && pattern.p[i] != ']')
        i++;
    return i < pattern.n ? i + 1 : 0;
}

/* `set` is without its brackets. */
static bool set_has(struct span set, uint32_t c)
{
    bool is_negated = set.n && (set.p[0] == '!' || set.p[0] == '^');
    bool found = false;

    if (is_negated)
        set = span_skip(set, 1);
    while (set.n) {
        uint32_t low = take_char(&set), high = low;

        if (set.n >= 2 && set.p[0] == '-') {
            set = span_skip(set, 1);
            high = take_char(&set);
        }
        found |= low <= c && c <= high;
    }
    return found != is_negated;
}

/* Matches one character at the front of both and drops it from them. */
static bool match_one(struct span *pattern, struct span *name)
{
    size_t end = pattern->p[0] == '[' ? set_end(*pattern) : 0;
    uint32_t c = take_char(name);

    if (end) {
        struct span set = span_slice(*pattern, 1, end - 1);

        *pattern = span_skip(*pattern, end);
        return set_has(set, c);
    }
    if (pattern->p[0] == '?') {
        *pattern = span_skip(*pattern, 1);
        return true;
    }
    return take_char(pattern) == c;
}

bool file_pattern_name(struct span pattern, struct span name)
{
    /* Only the last star is ever widened: what stood before it has matched as early as it can, and that is as
     * good as any other way. So the work is the product of the lengths. */
    struct span star = SPAN_NONE, star_name = SPAN_NONE;
    bool has_star = false;

    while (name.n) {
        if (pattern.n && pattern.p[0] == '*') {
            pattern = span_skip(pattern, 1);
            star = pattern;
            star_name = name;
            has_star = true;
            continue;
        }
        if (pattern.n && match_one(&pattern, &name))
            continue;
        if (!has_star)
            return false;
        (void)take_char(&star_name);
        pattern = star;
        name = star_name;
    }
    while (pattern.n && pattern.p[0] == '*')
        pattern = span_skip(pattern, 1);
    return pattern.n == 0;
}

int file_pattern_init(struct file_pattern *p, struct span text, struct err *e)
{
    struct span part;

    p->n = 0;
    if (text.n > FILE_PATTERN_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "a pattern of %zu bytes; at most %d", text.n,
                       FILE_PATTERN_MAX_BYTES);
    while (span_cut(&text, '/', &part)) {
        if (!part.n || span_is(part, "."))
            continue;
        if (span_is(part, ".."))
            return err_set(e, ERR_INVALID, "a pattern cannot have '..' in it");
        if (p->n && span_is(part, "**") && span_is(p->parts[p->n - 1], "**"))
            continue;
        if (p->n == FILE_PATTERN_MAX_PARTS)
            return err_set(e, ERR_LIMIT, "a pattern of more than %d components",
                           FILE_PATTERN_MAX_PARTS);
        p->parts[p->n++] = part;
    }
    return p->n ? 0 : err_set(e, ERR_INVALID, "the pattern is empty");
}

/* A set of places: bit i means that the parts before i have been matched. `**` may be skipped at once. */
static uint64_t skip_stars(const struct file_pattern *p, uint64_t places)
{
    for (size_t i = 0; i < p->n; i++)
        if (places >> i & 1 && span_is(p->parts[i], "**"))
            places |= (uint64_t)1 << (i + 1);
    return places;
}

static uint64_t run(const struct file_pattern *p, struct span path)
{
    uint64_t places = skip_stars(p, 1);
    struct span name;

    while (places && span_cut(&path, '/', &name)) {
        uint64_t next = 0;

        if (!name.n)
            continue;
        for (size_t i = 0; i < p->n; i++) {
            if (!(places >> i & 1))
                continue;
            if (span_is(p->parts[i], "**"))
                next |= (uint64_t)1 << i;
            else if (file_pattern_name(p->parts[i], name))
                next |= (uint64_t)1 << (i + 1);
        }
        places = skip_stars(p, next);
    }
    return places;
}

bool file_pattern_matches(const struct file_pattern *p, struct span path)
{
    return run(p, path) >> p->n & 1;
}

bool file_pattern_leads_below(const struct file_pattern *p, struct span path)
{
    return run(p, path) & (((uint64_t)1 << p->n) - 1);
}
