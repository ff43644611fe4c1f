#include "base/opt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct options {
    bool is_fast;
    uint64_t count, wait_ms, size;
    const char *root;
    struct opt_list listen;
};

/* clang-format off */
static const struct opt opts[] = {
    { "--listen", "T_LISTEN", OPT_LIST,  offsetof(struct options, listen),  "127.0.0.1:0", 0, 0, "HOST:PORT", "serve here; may be given again" },
    { "--addr",   "T_ADDR",   OPT_LIST,  offsetof(struct options, listen),  NULL, 0, 0, "HOST:PORT", NULL },
    { "--root",   "T_ROOT",   OPT_STR,   offsetof(struct options, root),    NULL, 0, 0, "DIR", "what clients see" },
    { "--fast",   "T_FAST",   OPT_BOOL,  offsetof(struct options, is_fast), "false", 0, 0, NULL, "skip the checks" },
    { "--count",  "T_COUNT",  OPT_U64,   offsetof(struct options, count),   "3", 1, 10, NULL, "how many" },
    { "--wait",   "T_WAIT",   OPT_MS,    offsetof(struct options, wait_ms), "1500ms", 50, 60000, "TIME", "how long" },
    { "--size",   NULL,       OPT_BYTES, offsetof(struct options, size),    "64KiB", 0, 0, "SIZE", "a ceiling" },
};
static const struct opt_program program = { "tool", "[options] FILE", "tool --fast x", opts, LEN(opts), "See tool(1)." };

#define ARGS_MAX 8
static const struct row {
    const char *name;
    const char *args[ARGS_MAX], *env[ARGS_MAX];
    const char *error; /* NULL: accepted, and the rest is: */
    int rest;
    bool is_fast;
    uint64_t count, wait_ms, size;
    const char *root, *listen;
} rows[] = {
    { "defaults",            { NULL }, { NULL }, NULL, 1, false, 3, 1500, 65536, "", "127.0.0.1:0" },
    { "every kind",          { "--fast", "--count", "7", "--wait=2s", "--size", "1M", "--root", "/r" }, { NULL },
      NULL, 9, true, 7, 2000, 1048576, "/r", "127.0.0.1:0" },
    { "one dash",            { "-fast", "-count=4" }, { NULL }, NULL, 3, true, 4, 1500, 65536, "", "127.0.0.1:0" },
    { "bare seconds",        { "--wait", "1.25" }, { NULL }, NULL, 3, false, 3, 1250, 65536, "", "127.0.0.1:0" },
    { "boolean forms",       { "--fast", "--fast=false", "--no-fast", "--fast=1" }, { NULL }, NULL, 5, true, 3, 1500, 65536, "", "127.0.0.1:0" },
    { "--no-",               { "--fast", "--no-fast" }, { NULL }, NULL, 3, false, 3, 1500, 65536, "", "127.0.0.1:0" },
    { "stops at a word",     { "--count", "4", "file", "--count", "5" }, { NULL }, NULL, 3, false, 4, 1500, 65536, "", "127.0.0.1:0" },
    { "stops at --",         { "--count", "4", "--", "--count" }, { NULL }, NULL, 4, false, 4, 1500, 65536, "", "127.0.0.1:0" },
    { "stops at -",          { "-", "--fast" }, { NULL }, NULL, 1, false, 3, 1500, 65536, "", "127.0.0.1:0" },
    { "value with dash",     { "--root", "--fast" }, { NULL }, NULL, 3, false, 3, 1500, 65536, "--fast", "127.0.0.1:0" },
    { "empty value",         { "--root=" }, { NULL }, NULL, 2, false, 3, 1500, 65536, "", "127.0.0.1:0" },
    { "value with equals",   { "--root=a=b" }, { NULL }, NULL, 2, false, 3, 1500, 65536, "a=b", "127.0.0.1:0" },
    { "environment",         { NULL }, { "T_COUNT", "9", "T_FAST", "yes", "T_LISTEN", "e:1" }, NULL, 1, true, 9, 1500, 65536, "", "e:1" },
    { "empty variable",      { NULL }, { "T_COUNT", "" }, NULL, 1, false, 3, 1500, 65536, "", "127.0.0.1:0" },
    { "flag over variable",  { "--count", "2", "--listen", "f:1" }, { "T_COUNT", "9", "T_LISTEN", "e:1" }, NULL, 5, false, 2, 1500, 65536, "", "f:1" },
    { "both variables",      { NULL }, { "T_LISTEN", "e:1", "T_ADDR", "e:2" }, NULL, 1, false, 3, 1500, 65536, "", "e:1 e:2" },
    { "list",                { "--listen", "a:1", "--listen=b:2" }, { NULL }, NULL, 4, false, 3, 1500, 65536, "", "a:1 b:2" },
    { "list and its alias",  { "--listen", "a:1", "--addr", "b:2", "-listen", "c:3" }, { NULL }, NULL, 7, false, 3, 1500, 65536, "", "a:1 b:2 c:3" },
    { "unknown",             { "--bogus" }, { NULL }, "unknown option '--bogus'" },
    { "unknown with value",  { "--bogus=1" }, { NULL }, "unknown option '--bogus=1'" },
    { "single letter",       { "-f" }, { NULL }, "unknown option '-f'" },
    { "no value",            { "--root" }, { NULL }, "--root needs a value (DIR)" },
    { "no value, no name",   { "--count" }, { NULL }, "--count needs a value (VALUE)" },
    { "--no- of a number",   { "--no-count" }, { NULL }, "unknown option '--no-count'" },
    { "--no- with a value",  { "--no-fast=true" }, { NULL }, "'--no-fast=true' takes no value" },
    { "not a number",        { "--count", "x" }, { NULL }, "--count: 'x' is not a whole number" },
    { "not a duration",      { "--wait", "5x" }, { NULL }, "--wait: '5x' is not a duration such as 500ms, 2m or 1.5 (seconds)" },
    { "not a size",          { "--size", "5x" }, { NULL }, "--size: '5x' is not a size such as 4096, 64KiB or 10M" },
    { "not a boolean",       { "--fast=maybe" }, { NULL }, "--fast: 'maybe' is not true or false" },
    { "too small",           { "--count", "0" }, { NULL }, "--count: '0' is out of range: 1 to 10" },
    { "too large",           { "--wait", "2m" }, { NULL }, "--wait: '2m' is out of range: 50 to 60000 ms" },
    { "variable is named",   { NULL }, { "T_COUNT", "99" }, "T_COUNT: '99' is out of range: 1 to 10" },
};
/* clang-format on */

static int fill_argv(const struct row *r, char **argv)
{
    int argc = 0;

    argv[argc++] = (char *)"tool";
    for (size_t i = 0; i < ARGS_MAX && r->args[i]; i++)
        argv[argc++] = (char *)r->args[i];
    argv[argc] = NULL;
    return argc;
}

static void set_env(const struct row *r)
{
    for (size_t i = 0; i < LEN(opts); i++)
        if (opts[i].env)
            unsetenv(opts[i].env);
    for (size_t i = 0; i + 1 < ARGS_MAX && r->env[i]; i += 2)
        setenv(r->env[i], r->env[i + 1], 1);
}

static void check(const struct row *r, const struct options *got, int rest)
{
    OWN(buf_done) struct buf listen = BUF_INIT(256);
    struct err e;

    for (size_t i = 0; i < got->listen.n; i++)
        assert_int_equal(buf_addf(&listen, &e, "%s%s", i ? " " : "", got->listen.v[i]), 0);
    if (rest != r->rest || got->is_fast != r->is_fast || got->count != r->count ||
        got->wait_ms != r->wait_ms || got->size != r->size)
        fail_msg("%s: rest %d fast %d count %llu wait %llu size %llu", r->name, rest, got->is_fast,
                 (unsigned long long)got->count, (unsigned long long)got->wait_ms,
                 (unsigned long long)got->size);
    assert_string_equal(got->root ? got->root : "", r->root);
    assert_string_equal(buf_cstr(&listen), r->listen);
}

static void test_rows(void **state)
{
    EACH(r, rows) {
        struct options got = { 0 };
        char *argv[ARGS_MAX + 2];
        int argc = fill_argv(r, argv), rest = -1, ret;
        struct err e = { 0 };

        set_env(r);
        ret = opt_parse(&program, argc, argv, &got, &rest, &e);
        if (ret != (r->error ? -1 : 0))
            fail_msg("%s: %d %s", r->name, ret, e.msg);
        if (r->error && (e.code != ERR_USAGE || strcmp(e.msg, r->error) != 0))
            fail_msg("%s: '%s', want '%s'", r->name, e.msg, r->error);
        if (!r->error)
            check(r, &got, rest);
    }
    set_env(&rows[0]);
}

static void test_list_is_bounded(void **state)
{
    char *argv[2 * OPT_LIST_MAX + 4] = { (char *)"tool" };
    struct options got = { 0 };
    struct err e;
    int rest;

    for (int i = 0; i < OPT_LIST_MAX + 1; i++) {
        argv[1 + 2 * i] = (char *)"--listen";
        argv[2 + 2 * i] = (char *)"a:1";
    }
    assert_int_equal(opt_parse(&program, 2 * OPT_LIST_MAX + 1, argv, &got, &rest, &e), 0);
    assert_int_equal(got.listen.n, OPT_LIST_MAX);
    assert_int_equal(opt_parse(&program, 2 * OPT_LIST_MAX + 3, argv, &got, &rest, &e), -1);
    assert_string_equal(e.msg, "--listen: given more than 64 times");
}

static void test_was_given(void **state)
{
    char *argv[] = { (char *)"tool",
                     (char *)"--root",
                     (char *)"--count",
                     (char *)"-addr=x:1",
                     (char *)"-",
                     (char *)"--fast",
                     NULL };

    set_env(&rows[0]);
    assert_true(opt_was_given(&program, 6, argv, "--root"));
    assert_true(opt_was_given(&program, 6, argv, "--listen")); /* by its alias */
    assert_false(opt_was_given(&program, 6, argv, "--count")); /* a value, not a flag */
    assert_false(opt_was_given(&program, 6, argv, "--fast"));  /* behind the first word */
    assert_false(opt_was_given(&program, 6, argv, "--bogus"));
    setenv("T_ADDR", "x:2", 1);
    assert_true(opt_was_given(&program, 1, argv, "--listen"));
    unsetenv("T_ADDR");
    assert_false(opt_was_given(&program, 1, argv, "--listen"));
}

static void test_help(void **state)
{
    OWN(buf_done) struct buf help = BUF_INIT(8192), roff = BUF_INIT(8192);

    opt_help(&program, &help);
    assert_memory_equal(help.p, "tool --fast x\n\nUsage: tool [options] FILE\n\nOptions:\n", 50);
    assert_non_null(
        strstr(buf_cstr(&help), "\n  --wait TIME                     how long (1500ms)\n"));
    assert_non_null(
        strstr(buf_cstr(&help), "\n  --fast                          skip the checks\n"));
    assert_non_null(strstr(buf_cstr(&help), "\nSee tool(1).\n"));
    assert_null(strstr(buf_cstr(&help), "--addr"));
    opt_roff(&program, &roff);
    assert_non_null(strstr(buf_cstr(&roff),
                           ".TP\n\\fB\\-\\-wait\\fR \\fITIME\\fR\nHow long.\nDefault: 1500ms.\n"
                           "Environment: \\fBT_WAIT\\fR.\n"));
    assert_null(strstr(buf_cstr(&roff), "addr"));
}

static void test_groups(void **state)
{
    /* clang-format off */
    static const struct opt rows_in_groups[] = {
        { "--root", NULL, OPT_STR, offsetof(struct options, root), NULL, 0, 0, "DIR", "a\\b of --wait", "Files" },
        { "--fast", NULL, OPT_BOOL, offsetof(struct options, is_fast), NULL, 0, 0, NULL, ".fast", "Speed" },
    };
    /* clang-format on */
    const struct opt_program in_groups = { "tool", "", "tool", rows_in_groups,
                                           LEN(rows_in_groups) };
    OWN(buf_done) struct buf help = BUF_INIT(8192), roff = BUF_INIT(8192);

    opt_help(&in_groups, &help);
    assert_string_equal(buf_cstr(&help),
                        "tool\n\nUsage: tool \n"
                        "\nFiles:\n  --root DIR                      a\\b of --wait\n"
                        "\nSpeed:\n  --fast                          .fast\n");
    opt_roff(&in_groups, &roff);
    assert_string_equal(buf_cstr(&roff),
                        ".SS Files\n.TP\n\\fB\\-\\-root\\fR \\fIDIR\\fR\nA\\eb of \\-\\-wait.\n"
                        ".SS Speed\n.TP\n\\fB\\-\\-fast\\fR\n\\&.fast.\n");
}

static void test_letters(void **state)
{
    /* clang-format off */
    static const struct opt with_letters[] = {
        { "--root", NULL, OPT_STR, offsetof(struct options, root), NULL, 0, 0, "DIR", "the root", .letter = 'r' },
        { "--fast", NULL, OPT_BOOL, offsetof(struct options, is_fast), NULL, 0, 0, NULL, "fast", .letter = 'f' },
        { "--count", NULL, OPT_U64, offsetof(struct options, count), NULL, 0, 0, NULL, "how many" },
    };
    static const struct { const char *name, *args[3], *error; const char *root; bool is_fast; } cases[] = {
        { "a value follows",  { "-r", "/x" }, NULL, "/x", false },
        { "a value behind =", { "-r=/x" }, NULL, "/x", false },
        { "alone",            { "-f" }, NULL, "", true },
        { "booleans at once", { "-ff" }, NULL, "", true },
        { "one takes a value", { "-fr", "/x" }, "unknown option '-fr'" },
        { "unknown letter",   { "-c", "1" }, "unknown option '-c'" },
    };
    /* clang-format on */
    const struct opt_program tool = { "tool", "", "tool", with_letters, LEN(with_letters) };
    OWN(buf_done) struct buf help = BUF_INIT(8192);

    EACH(c, cases) {
        char *argv[] = { (char *)"tool", (char *)c->args[0], (char *)c->args[1], NULL };
        struct options got = { 0 };
        struct err e = { 0 };
        int rest, ret = opt_parse(&tool, c->args[1] ? 3 : 2, argv, &got, &rest, &e);

        if (ret != (c->error ? -1 : 0) || strcmp(e.msg, c->error ? c->error : "") != 0)
            fail_msg("%s: %d '%s'", c->name, ret, e.msg);
        if (!c->error && (got.is_fast != c->is_fast || strcmp(got.root ? got.root : "", c->root)))
            fail_msg("%s: fast %d root '%s'", c->name, got.is_fast, got.root);
    }
    opt_help(&tool, &help);
    assert_non_null(strstr(buf_cstr(&help), "  -r, --root DIR                  the root\n"));
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_list_is_bounded),
        cmocka_unit_test(test_was_given), cmocka_unit_test(test_help),
        cmocka_unit_test(test_groups),    cmocka_unit_test(test_letters)
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
