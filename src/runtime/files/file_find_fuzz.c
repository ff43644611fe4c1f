/* Glob patterns and regular expressions on hostile input, each against a slow and plain matcher. The input is a
 * letter (G or R), the pattern, a newline, the text. */
#include "runtime/files/file_ere.h"
#include "runtime/files/file_pattern.h"

#include <regex.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(ok)                                                                                  \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Only stars and plain bytes: by trying everything. */
static bool slow_glob(struct span p, struct span s)
{
    if (!p.n)
        return !s.n;
    if (p.p[0] == '*')
        return slow_glob(span_skip(p, 1), s) || (s.n && slow_glob(p, span_skip(s, 1)));
    return s.n && p.p[0] == s.p[0] && slow_glob(span_skip(p, 1), span_skip(s, 1));
}

static void check_glob(struct span pattern, struct span text)
{
    struct file_pattern p;
    struct err e;
    bool is_plain = pattern.n <= 12 && text.n <= 12, name = file_pattern_name(pattern, text);

    for (size_t i = 0; i < pattern.n; i++)
        is_plain &= pattern.p[i] != '[' && pattern.p[i] != '?' && pattern.p[i] < 0x80;
    for (size_t i = 0; i < text.n; i++)
        is_plain &= text.p[i] < 0x80;
    if (is_plain)
        CHECK(name == slow_glob(pattern, text));
    if (file_pattern_init(&p, pattern, &e) < 0)
        return;
    (void)file_pattern_matches(&p, text);
    /* A path that matches is below directories that lead there. */
    if (file_pattern_matches(&p, text))
        for (size_t i = 0; i < text.n; i++)
            if (text.p[i] == '/' && i + 1 < text.n && text.p[i + 1] != '/' &&
                span_find(span_skip(text, i + 1), '/') == SIZE_MAX)
                CHECK(file_pattern_leads_below(&p, span_slice(text, 0, i)));
}

/* Where both dialects mean the same: small, ASCII, and without what glibc reads differently. */
static bool is_shared(struct span pattern, struct span text)
{
    if (pattern.n > 24 || text.n > 64)
        return false;
    for (size_t i = 0; i < pattern.n; i++)
        if (!strchr("abcxyz0189 |()*+?.^$", pattern.p[i]) || !pattern.p[i])
            return false;
    for (size_t i = 0; i + 1 < pattern.n;
         i++) /* repeated repeats, anchors and nothings are left to taste */
        if (strchr("*+?|(^$", pattern.p[i]) && strchr("*+?|)", pattern.p[i + 1]))
            return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] >= 0x80 || text.p[i] == 0 || text.p[i] == '\n')
            return false;
    return pattern.n > 0 && pattern.p[0] != '|' && pattern.p[pattern.n - 1] != '|';
}

static void check_expression(struct span pattern, struct span text)
{
    OWN_MEM char *pattern_text = span_dup(pattern);
    OWN_MEM char *line = span_dup(text);
    struct file_ere *r;
    struct err e = { 0 };
    regex_t theirs;
    bool got;

    if (file_ere_new(pattern, false, &r, &e) < 0) {
        CHECK(e.code == ERR_INVALID || e.code == ERR_LIMIT || e.code == ERR_UNSUPPORTED);
        return;
    }
    got = file_ere_matches(r, text);
    CHECK(got == file_ere_matches(r, text));
    if (is_shared(pattern, text) && regcomp(&theirs, pattern_text, REG_EXTENDED | REG_NOSUB) == 0) {
        CHECK(got == (regexec(&theirs, line, 0, NULL, 0) == 0));
        regfree(&theirs);
    }
    file_ere_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span in = span_of(data, size), pattern = SPAN_NONE;

    if (!size || size > 4096)
        return 0;
    in = span_skip(in, 1);
    (void)span_cut(&in, '\n', &pattern);
    if (data[0] == 'G')
        check_glob(pattern, in);
    else
        check_expression(pattern, span_slice(in, 0, 1024));
    return 0;
}
