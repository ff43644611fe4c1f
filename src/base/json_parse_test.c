#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char value[] = "Expecting value";
static const char name[] = "Expecting property name enclosed in double quotes";
static const char colon[] = "Expecting ':' delimiter";
static const char comma[] = "Expecting ',' delimiter";
static const char extra[] = "Extra data";
static const char open_string[] = "Unterminated string starting at";
static const char control[] = "Invalid control character at";
static const char escape[] = "Invalid \\escape";
static const char code[] = "Invalid \\uXXXX escape";
static const char object_comma[] = "Illegal trailing comma before end of object";
static const char array_comma[] = "Illegal trailing comma before end of array";

/* clang-format off */
static const struct fault_row {
    const char *name;
    struct span text;
    const char *what;
    size_t char_at, byte_at, line, column;
} faults[] = {
    { "empty",                       BYTES(""),                   value,        0, 0, 1, 1 },
    { "blanks only",                 BYTES(" \n "),               value,        3, 3, 2, 2 },
    { "a word",                      BYTES("hello"),              value,        0, 0, 1, 1 },
    { "NaN",                         BYTES("[NaN]"),              value,        1, 1, 1, 2 },
    { "minus alone",                 BYTES("[-]"),                value,        1, 1, 1, 2 },
    { "-Infinity",                   BYTES("-Infinity"),          value,        0, 0, 1, 1 },
    { "open array",                  BYTES("["),                  value,        1, 1, 1, 2 },
    { "open after comma",            BYTES("[1, "),               value,        4, 4, 1, 5 },
    { "no value after colon",        BYTES("{\"a\": }"),          value,        6, 6, 1, 7 },
    { "leading comma",               BYTES("[,1]"),               value,        1, 1, 1, 2 },
    { "open object",                 BYTES("{"),                  name,         1, 1, 1, 2 },
    { "bare name",                   BYTES("{a:1}"),              name,         1, 1, 1, 2 },
    { "bare second name",            BYTES("{\"a\":1, b:2}"),     name,         8, 8, 1, 9 },
    { "end after comma in object",   BYTES("{\"a\":1,"),          name,         7, 7, 1, 8 },
    { "no colon",                    BYTES("{\"a\" 1}"),          colon,        5, 5, 1, 6 },
    { "end after name",              BYTES("{\"a\""),             colon,        4, 4, 1, 5 },
    { "no comma in array",           BYTES("[1 2]"),              comma,        3, 3, 1, 4 },
    { "no comma in object",          BYTES("{\"a\":1 \"b\":2}"),  comma,        7, 7, 1, 8 },
    { "end in array",                BYTES("[1"),                 comma,        2, 2, 1, 3 },
    { "wrong bracket",               BYTES("[1}"),                comma,        2, 2, 1, 3 },
    { "point without digits",        BYTES("[1.]"),               comma,        2, 2, 1, 3 },
    { "two values",                  BYTES("1 2"),                extra,        2, 2, 1, 3 },
    { "leading zero",                BYTES("01"),                 extra,        1, 1, 1, 2 },
    { "exponent without digits",     BYTES("1e+"),                extra,        1, 1, 1, 2 },
    { "NUL behind",                  BYTES("[]\0"),               extra,        2, 2, 1, 3 },
    { "open string",                 BYTES("  \"abc"),            open_string,  2, 2, 1, 3 },
    { "open string, non-ASCII",      BYTES("\"\xc3\xa9"),         open_string,  0, 0, 1, 1 },
    { "string ends in backslash",    BYTES("[\"\\"),              open_string,  1, 1, 1, 2 },
    { "newline in a string",         BYTES("\"a\nb\""),           control,      2, 2, 1, 3 },
    { "NUL in a string",             BYTES("\"a\0b\""),           control,      2, 2, 1, 3 },
    { "control after non-ASCII",     BYTES("\"\xe2\x82\xac\t\""), control,      2, 4, 1, 3 },
    { "unknown escape",              BYTES("[\"ab\\x\"]"),        escape,       4, 4, 1, 5 },
    { "escaped NUL",                 BYTES("\"\\\0\""),           escape,       1, 1, 1, 2 },
    { "hex digit missing",           BYTES("\"\\u12G4\""),        code,         2, 2, 1, 3 },
    { "hex cut by the end",          BYTES("\"\\u12"),            code,         2, 2, 1, 3 },
    { "four digits, then the end",   BYTES("\"\\u1234"),          code,         2, 2, 1, 3 },
    { "lone high",                   BYTES("\"\\ud800\""),        code,         2, 2, 1, 3 },
    { "lone low",                    BYTES("\"a\\udc00\""),       code,         3, 3, 1, 4 },
    { "high, then no low",           BYTES("\"\\ud83d\\u0041\""), code,         2, 2, 1, 3 },
    { "high, then bad digits",       BYTES("\"\\ud83d\\uZZZZ\""), code,         8, 8, 1, 9 },
    { "pair, then the end",          BYTES("\"\\ud83d\\ude00"),   code,         8, 8, 1, 9 },
    { "comma before }",              BYTES("{\"a\":1 , }"),       object_comma, 7, 7, 1, 8 },
    { "comma before ]",              BYTES("[1,\n]"),             array_comma,  2, 2, 1, 3 },
    { "lines are counted",           BYTES("{\n\"\xc3\xa9\": 1,\n  x}"), name, 12, 13, 3, 3 },
    { "carriage return is no line",  BYTES("[\r\n\r x]"),         value,        5, 5, 2, 3 },
    { "after an unescaped string",   BYTES("[\"\\u00e9\\n\" 1]"), comma,       12, 12, 1, 13 },
    { "byte order mark",             BYTES("\xef\xbb\xbf{}"),     "Unexpected UTF-8 BOM", 0, 0, 1, 1 },
    { "byte order mark inside",      BYTES("[\xef\xbb\xbf]"),     value,        1, 1, 1, 2 },
};

static const struct utf8_row {
    const char *name;
    struct span text;
    size_t byte_at;
} ill_formed[] = {
    { "lone continuation",        BYTES("\"\x80\""),             1 },
    { "before another fault",     BYTES("{x \xff"),              3 },
    { "behind another fault",     BYTES("[1 2 \"\xc3\""),        6 },
    { "surrogate",                BYTES("[\"\xed\xa0\x80\"]"),   2 },
    { "overlong",                 BYTES("\"\xc0\x80\""),         1 },
    { "above the last character", BYTES("\"\xf4\x90\x80\x80\""), 1 },
    { "cut at the end",           BYTES("\"a\xe2\x82"),          2 },
    { "outside strings",          BYTES("[1]\xe5"),              3 },
};
/* clang-format on */

static void test_faults(void **state)
{
    EACH(r, faults) {
        struct json_doc *doc = NULL;
        struct json_error at = { 0 };
        struct err e = { 0 };

        if (json_parse_at(r->text, NULL, &at, &doc, &e) == 0)
            fail_msg("%s: accepted", r->name);
        if (e.code != ERR_INVALID || strcmp(at.what, r->what) != 0 || at.is_encoding)
            fail_msg("%s: '%s', want '%s'", r->name, e.msg, r->what);
        if (at.char_at != r->char_at || at.byte_at != r->byte_at || at.line != r->line ||
            at.column != r->column)
            fail_msg("%s: char %zu byte %zu line %zu column %zu", r->name, at.char_at, at.byte_at,
                     at.line, at.column);
        assert_null(doc);
    }
}

static void test_ill_formed(void **state)
{
    EACH(r, ill_formed) {
        struct json_doc *doc = NULL;
        struct json_error at = { 0 };
        struct err e = { 0 };

        if (json_parse_at(r->text, NULL, &at, &doc, &e) == 0)
            fail_msg("%s: accepted", r->name);
        if (!at.is_encoding || at.byte_at != r->byte_at || strcmp(at.what, "Invalid UTF-8") != 0)
            fail_msg("%s: '%s' at byte %zu", r->name, e.msg, at.byte_at);
    }
}

static void test_message(void **state)
{
    struct json_doc *doc = NULL;
    struct err e = { 0 };

    assert_int_equal(json_parse(SPAN("[1,\n x]"), NULL, &doc, &e), -1);
    assert_string_equal(e.msg, "not JSON: Expecting value: line 2 column 2 (char 5)");
    assert_int_equal(json_parse(SPAN_NONE, NULL, &doc, &e), -1);
    assert_string_equal(e.msg, "not JSON: Expecting value: line 1 column 1 (char 0)");
}

/* clang-format off */
static const struct limit_row {
    const char *name;
    struct json_limits limits;
    const char *text;
    const char *message; /* NULL: fits */
} limits[] = {
    { "bytes, just fits",     { .max_bytes = 5 },   "[1,2]",    NULL },
    { "bytes, one too many",  { .max_bytes = 4 },   "[1,2]",    "JSON text of 5 bytes; at most 4" },
    { "values, just fit",     { .max_nodes = 3 },   "[1,2]",    NULL },
    { "values, too many",     { .max_nodes = 2 },   "[1,2]",    "JSON text with more than 2 values" },
    { "names count",          { .max_nodes = 2 },   "{\"a\":1}", "JSON text with more than 2 values" },
    { "one value",            { .max_nodes = 1 },   "true",     NULL },
    { "one string too many",  { .max_nodes = 1 },   "[\"a\"]",  "JSON text with more than 1 values" },
    { "literal too many",     { .max_nodes = 1 },   "[null]",   "JSON text with more than 1 values" },
    { "container too many",   { .max_nodes = 1 },   "[[]]",     "JSON text with more than 1 values" },
    { "levels, just fit",     { .max_depth = 2 },   "[{\"a\":1}]", NULL },
    { "levels, too many",     { .max_depth = 2 },   "[{\"a\":[]}]", "JSON text with more than 2 levels" },
    { "siblings are no levels", { .max_depth = 2 }, "[[],[],[{}]]", "JSON text with more than 2 levels" },
    { "siblings, just fit",   { .max_depth = 3 },   "[[],[],[{}]]", NULL },
};
/* clang-format on */

static void test_limits(void **state)
{
    EACH(r, limits) {
        OWN(json_doc_done) struct json_doc *doc = NULL;
        struct err e = { 0 };
        int got = json_parse(span_cstr(r->text), &r->limits, &doc, &e);

        if (got != (r->message ? -1 : 0))
            fail_msg("%s: %d %s", r->name, got, e.msg);
        if (r->message && (e.code != ERR_LIMIT || strcmp(e.msg, r->message) != 0))
            fail_msg("%s: '%s'", r->name, e.msg);
    }
}

/* A depth above the constant cannot be asked for: the writer's stack has its size from it. */
static void test_depth_has_a_roof(void **state)
{
    const struct json_limits much = { .max_depth = 100000 };
    char text[2 * (JSON_DEPTH_MAX + 1)];
    struct json_doc *doc = NULL;
    struct err e = { 0 };

    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    assert_int_equal(json_parse(span_of(text, sizeof text), &much, &doc, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(json_parse(span_of(text + 1, sizeof text - 2), &much, &doc, &e), 0);
    assert_true(span_eq(json_doc_bytes(doc), span_of(text + 1, sizeof text - 2)));
    json_doc_unref(doc);
}

/* clang-format off */
static const struct duplicate_row {
    const char *name;
    const char *text;
    size_t char_at; /* SIZE_MAX: no name twice */
} duplicates[] = {
    { "none",                      "{\"a\":1,\"b\":2}",                    SIZE_MAX },
    { "same name, other objects",  "[{\"a\":1},{\"a\":{\"a\":2}}]",        SIZE_MAX },
    { "same length",               "{\"ab\":1,\"ba\":2,\"aa\":3}",         SIZE_MAX },
    { "prefix",                    "{\"a\":1,\"aa\":2,\"\":3}",            SIZE_MAX },
    { "next to each other",        "{\"a\":1,\"a\":1}",                    7 },
    { "far apart",                 "{\"a\":1,\"b\":[1,{}],\"a\":2}",       18 },
    { "by escape",                 "{\"\xc3\xa9\":1,\"\\u00e9\":2}",       7 },
    { "nested",                    "[{\"x\":{\"k\":1,\"l\":2,\"k\":3}}]",  19 },
    { "empty names",               "{\"\":1,\"\":2}",                      6 },
};
/* clang-format on */

static void test_duplicates(void **state)
{
    const struct json_limits refuse = { .flags = JSON_REFUSE_DUPLICATES };

    EACH(r, duplicates) {
        OWN(json_doc_done) struct json_doc *kept = NULL, *strict = NULL;
        struct json_error at = { 0 };
        struct err e = { 0 };
        int got = json_parse_at(span_cstr(r->text), &refuse, &at, &strict, &e);

        if (json_parse(span_cstr(r->text), NULL, &kept, &e) < 0)
            fail_msg("%s: refused without the flag", r->name);
        if (got != (r->char_at == SIZE_MAX ? 0 : -1))
            fail_msg("%s: %d %s", r->name, got, e.msg);
        if (got < 0 && (at.char_at != r->char_at || strcmp(at.what, "Duplicate property name")))
            fail_msg("%s: %s at %zu", r->name, at.what, at.char_at);
    }
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_faults),           cmocka_unit_test(test_ill_formed),
        cmocka_unit_test(test_message),          cmocka_unit_test(test_limits),
        cmocka_unit_test(test_depth_has_a_roof), cmocka_unit_test(test_duplicates),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
