/* /glob and /grep, and the two kinds of patterns below them. */
#include "runtime/files/file_ere.h"
#include "runtime/files/file_glob.h"
#include "runtime/files/file_grep.h"
#include "runtime/files/file_pattern.h"
#include "base/scratch.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct scratch tree;
static struct path_root root;

static int setup(void **state)
{
    struct err e = { 0 };

    scratch_make(&tree);
    scratch_dir(&tree, "app");
    scratch_dir(&tree, "out");
    scratch_file(&tree, "out/secret.py", "needle outside\n");
    scratch_file(&tree, "app/a.py", "import os\nneedle = 1\n# Needle\nlast needle");
    scratch_file(&tree, "app/b.txt", "no such thing\n");
    scratch_dir(&tree, "app/src");
    scratch_file(&tree, "app/src/c.py", "needle\r\n\n\nneedle 4\n");
    scratch_dir(&tree, "app/src/deep");
    scratch_file(&tree, "app/src/deep/d.py", "");
    scratch_file(&tree, "app/src/deep/.hidden.py", "needle\n");
    scratch_dir(&tree, "app/dir.py");
    scratch_link(&tree, "app/in.py", "src/c.py");
    scratch_link(&tree, "app/out.py", scratch_path(&tree, "out/secret.py"));
    scratch_link(&tree, "app/dangling.py", "none");
    scratch_link(&tree, "app/loop", ".");
    scratch_link(&tree, "app/outdir", scratch_path(&tree, "out"));
    assert_int_equal(mkfifoat(tree.fd, "app/fifo.py", 0666), 0);
    return path_root_open(&root, scratch_path(&tree, "app"), &e);
}

static int teardown(void **state)
{
    path_root_close(&root);
    scratch_remove(&tree);
    return 0;
}

static void names(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool want;
    } rows[] = {
        { "a", "a", true },
        { "a", "b", false },
        { "", "", true },
        { "*", "", true },
        { "*", "abc", true },
        { "*.py", "x.py", true },
        { "*.py", "x.pyc", false },
        { "*.py", ".py", true },
        { "?", "a", true },
        { "?", "", false },
        { "?", "ab", false },
        { "?", "\xc3\xa4", true },
        { "?", "\xff", true },
        { "a*b*c", "aXbYc", true },
        { "a*b*c", "aXbY", false },
        { "[abc]", "b", true },
        { "[abc]", "d", false },
        { "[a-c]x", "bx", true },
        { "[!a-c]", "d", true },
        { "[^a-c]", "b", false },
        { "[]]", "]", true },
        { "[!]]", "]", false },
        { "[", "[", true },
        { "[a", "[a", true },
        { "[a-]", "-", true },
        { "[*]", "*", true },
        { "[*]", "a", false },
        { "*[0-9]", "file7", true },
        { "[\xc3\xa4-\xc3\xbc]", "\xc3\xb6", true },
        { "\\*", "\\x", true },
        { "**", "abc", true },
        { "a**b", "ab", true },
        { "*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
    };

    EACH(r, rows)
        if (file_pattern_name(span_cstr(r->pattern), span_cstr(r->name)) != r->want)
            fail_msg("'%s' on '%s'", r->pattern, r->name);
}

static void paths(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool want, below; /* matches; leads below it as a directory */
    } rows[] = {
        { "*.py", "a.py", true, false },
        { "*.py", "d/a.py", false, false },
        { "**/*.py", "a.py", true, true },
        { "**/*.py", "d/e/a.py", true, true },
        { "**", "d/e/a.py", true, true },
        { "d/**", "d", true, true },
        { "d/**/f", "d/f", true, true },
        { "d/**/f", "d/x/y/f", true, true },
        { "d/**/f", "e/f", false, false },
        { "d/*/f", "d", false, true },
        { "d/*/f", "d/x", false, true },
        { "d/*/f", "d/x/y", false, false },
        { "./d//f/", "d/f", true, false },
        { "**/a/**/a/**/a/**/b", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", false,
          true },
    };
    struct file_pattern p;
    struct err e;

    EACH(r, rows) {
        assert_int_equal(file_pattern_init(&p, span_cstr(r->pattern), &e), 0);
        if (file_pattern_matches(&p, span_cstr(r->path)) != r->want ||
            file_pattern_leads_below(&p, span_cstr(r->path)) != r->below)
            fail_msg("'%s' on '%s'", r->pattern, r->path);
    }
    assert_int_equal(file_pattern_init(&p, SPAN(""), &e), -1);
    assert_int_equal(file_pattern_init(&p, SPAN("/"), &e), -1);
    assert_int_equal(file_pattern_init(&p, SPAN("a/../b"), &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
}

static void globbing(void **state)
{
    static const struct {
        const char *name, *path, *pattern, *want;
    } rows[] = {
        { "top", "/", "*.py", "a.py in.py " },
        { "all", "/", "**/*.py", "a.py in.py src/c.py src/deep/.hidden.py src/deep/d.py " },
        { "below", "src", "**/*.py", "src/c.py src/deep/.hidden.py src/deep/d.py " },
        { "below, one level", "src", "*.py", "src/c.py " },
        { "through a named directory", "", "src/*.py", "src/c.py " },
        { "no files outside", "", "outdir/*", "" },
        { "no loops", "", "loop/a.py", "" },
        { "pattern from the root", "src", "/*.txt", "b.txt " },
        { "directories do not match", "", "s?c", "" },
        { "nothing", "", "*.rs", "" },
    };

    EACH(r, rows) {
        OWN(file_glob_done) struct file_glob g = FILE_GLOB_NONE;
        OWN(buf_done) struct buf got = BUF_INIT(10000);
        struct err e = { 0 };

        if (file_glob(&g, &root, span_cstr(r->path), span_cstr(r->pattern), 0, &e) < 0)
            fail_msg("%s: %s", r->name, e.msg);
        for (size_t i = 0; i < g.n; i++)
            (void)buf_addf(&got, &e, "%s ", g.rows[i].rel);
        if (strcmp(buf_cstr(&got), r->want) != 0 || g.is_cut)
            fail_msg("%s: '%s', want '%s'", r->name, buf_cstr(&got), r->want);
    }
}

static void globbing_by_the_roots_path(void **state)
{
    OWN(file_glob_done) struct file_glob g = FILE_GLOB_NONE;
    OWN(file_glob_done) struct file_glob late = FILE_GLOB_NONE;
    struct err e = { 0 };

    assert_int_equal(
        file_glob(&g, &root, SPAN("/"), span_cstr(scratch_path(&tree, "app/src/**/d.py")), 0, &e),
        0);
    assert_int_equal(g.n, 1);
    assert_string_equal(g.rows[0].rel, "src/deep/d.py");
    assert_string_equal(g.rows[0].name, "d.py");
    assert_int_equal(file_glob(&g, &root, SPAN("b.txt"), SPAN("*"), 0, &e), -1);
    assert_int_equal(e.sys, ENOTDIR);
    assert_int_equal(file_glob(&g, &root, SPAN("../out"), SPAN("*"), 0, &e), -1);
    assert_true(path_is_escape(&e));
    assert_int_equal(file_glob(&late, &root, SPAN("/"), SPAN("**"), 1, &e), 0);
    assert_true(late.is_cut);
    assert_int_equal(late.n, 0);
}

static void expressions(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool want;
    } rows[] = {
        { "", "", true },
        { "abc", "xabcx", true },
        { "abc", "ab", false },
        { "^abc", "xabc", false },
        { "^abc$", "abc", true },
        { "abc$", "abcx", false },
        { "a.c", "abc", true },
        { "a.c", "ac", false },
        { "a.c",
          "a\xc3\xa4"
          "c",
          true },
        { "a.c",
          "a\xff"
          "c",
          true },
        { "ab*c", "ac", true },
        { "ab*c", "abbbc", true },
        { "ab+c", "ac", false },
        { "ab+c", "abbc", true },
        { "ab?c", "abbc", false },
        { "^ab{2}c", "abbc", true },
        { "^ab{2}c", "abc", false },
        { "^ab{2,}$", "abbbb", true },
        { "^ab{2,}$", "ab", false },
        { "^ab{1,3}$", "abbb", true },
        { "^ab{1,3}$", "abbbb", false },
        { "^ab{0,2}$", "a", true },
        { "^ab{0,2}$", "abb", true },
        { "^ab{0,2}$", "abbb", false },
        { "^(ab){0,1}$", "", true },
        { "^a{0}b$", "b", true },
        { "^a{0}b$", "ab", false },
        { "^(a|bc|d)$", "bc", true },
        { "^(a|bc|d)$", "b", false },
        { "^(a|bc|d)+$", "abcd", true },
        { "a|b|", "", true },
        { "^(|x)y$", "y", true },
        { "^(a*)*$", "aaa", true },
        { "^(a*)*b$", "aaac", false },
        { "^(a?)*?b$", "aab", true },
        { "^()+$", "", true },
        { "[a-c]+$", "xyzabc", true },
        { "^[^a-c]+$", "xyz", true },
        { "^[^a-c]+$", "xaz", false },
        { "[]x]", "]", true },
        { "[a\\]]", "]", true },
        { "[[:digit:]]+", "x7", true },
        { "^[[:alpha:]_]+$", "a_B", true },
        { "\\d+", "x7", true },
        { "^\\D+$", "x7", false },
        { "\\bfoo\\b", "a foo b", true },
        { "\\bfoo\\b", "afoo", false },
        { "\\Boo", "foo", true },
        { "\\.", ".", true },
        { "\\.", "x", false },
        { "a\\|b", "a|b", true },
        { "a{", "a{", true },
        { "a{x}", "a{x}", true },
        { "x\\ty", "x\ty", true },
        { "(?:ab)+c", "ababc", true },
        { "[\xc3\xa4-\xc3\xbc]", "\xc3\xb6", true },
        { "^[\\w.]+@[\\w.]+$", "a.b@c_d.e", true },
        { "^(a|ab)(c|bcd)$", "abcd", true },
        { "(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false },
        { "^((a{1,7}){1,7}){1,7}$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false },
    };
    static const struct {
        const char *pattern;
        enum err_code code;
    } bad[] = {
        { "(", ERR_INVALID },
        { ")", ERR_INVALID },
        { "a)", ERR_INVALID },
        { "[a", ERR_INVALID },
        { "[", ERR_INVALID },
        { "*", ERR_INVALID },
        { "a|*", ERR_INVALID },
        { "\\", ERR_INVALID },
        { "[z-a]", ERR_INVALID },
        { "[[:no:]]", ERR_INVALID },
        { "a{3,2}", ERR_INVALID },
        { "a{999}", ERR_INVALID },
        { "(a)\\1", ERR_UNSUPPORTED },
        { "(?=a)", ERR_UNSUPPORTED },
        { "((((a{1,200}){1,200}){1,200}){1,200})", ERR_LIMIT },
        { "((((((((((((((((((((((((((((((((((((((((((((((((((((a", ERR_LIMIT },
    };
    struct file_ere *r;
    struct err e = { 0 };

    EACH(row, rows) {
        if (file_ere_new(span_cstr(row->pattern), false, &r, &e) < 0)
            fail_msg("'%s': %s", row->pattern, e.msg);
        for (int again = 0; again < 2; again++)
            if (file_ere_matches(r, span_cstr(row->text)) != row->want)
                fail_msg("'%s' on '%s', time %d", row->pattern, row->text, again);
        file_ere_free(r);
    }
    EACH(b, bad)
        if (file_ere_new(span_cstr(b->pattern), false, &r, &e) == 0 || e.code != b->code)
            fail_msg("'%s': %d %s", b->pattern, e.code, e.msg);
    assert_int_equal(file_ere_new(SPAN("[a-c]X"), true, &r, &e), 0);
    assert_true(file_ere_matches(r, SPAN("Bx")));
    file_ere_free(r);
}

static int add_row(void *ctx, const struct file_grep_row *row, struct err *e)
{
    return buf_addf(ctx, e, "%s:%lu:%.*s|", row->rel, (unsigned long)row->line,
                    SPAN_ARG(row->text));
}

static void grepping(void **state)
{
    static const struct {
        const char *name, *path, *pattern, *glob;
        bool is_literal, ignore_case;
        const char *want;
    } rows[] = {
        { "one file", "a.py", "needle", "", false, false, "a.py:2:needle = 1|a.py:4:last needle|" },
        { "any case", "a.py", "^# needle", "", false, true, "a.py:3:# Needle|" },
        { "literal", "/a.py", "= 1", "", true, false, "a.py:2:needle = 1|" },
        { "carriage returns stay", "src", "needle", "c.*", false, false,
          "src/c.py:1:needle\r|src/c.py:4:needle 4|" },
        { "by name", "/", "needle", ".h*", false, false, "src/deep/.hidden.py:1:needle|" },
        { "by path", "src", "needle", "**/deep/*", false, false, "src/deep/.hidden.py:1:needle|" },
        { "through a link", "in.py", "4", "", false, false, "src/c.py:4:needle 4|" },
        { "links below are passed", "", "outside", "", false, false, "" },
        { "empty lines", "src", "^$", "", false, false, "src/c.py:2:|src/c.py:3:|" },
    };

    EACH(r, rows) {
        struct file_grep_how how = { span_cstr(r->path), span_cstr(r->pattern), span_cstr(r->glob),
                                     r->is_literal,      r->ignore_case,        0 };
        OWN(buf_done) struct buf got = BUF_INIT(10000);
        struct err e = { 0 };
        bool is_cut = true;

        if (file_grep(&root, &how, add_row, &got, &is_cut, &e) < 0)
            fail_msg("%s: %s", r->name, e.msg);
        if (strcmp(buf_cstr(&got), r->want) != 0 || is_cut)
            fail_msg("%s: '%s', want '%s'", r->name, buf_cstr(&got), r->want);
    }
}

static void grepping_at_the_limits(void **state)
{
    struct file_grep_how how = { .path = SPAN("big"), .pattern = SPAN("x") };
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    OWN(buf_done) struct buf got = BUF_INIT(1 << 20);
    struct err e = { 0 };
    bool is_cut = false;

    /* A line longer than two pieces, then one whose end is in the third. */
    for (int i = 0; i < 140000; i++)
        (void)buf_addc(&text, 'y', &e);
    (void)buf_add(&text, SPAN("x\nx after\n"), &e);
    scratch_file(&tree, "app/big", buf_cstr(&text));
    assert_int_equal(file_grep(&root, &how, add_row, &got, &is_cut, &e), 0);
    assert_string_equal(buf_cstr(&got), "big:2:x after|");

    buf_clear(&text);
    for (int i = 0; i < FILE_GREP_MAX_ROWS + 5; i++)
        (void)buf_add(&text, SPAN("x\n"), &e);
    scratch_file(&tree, "app/big", buf_cstr(&text));
    assert_int_equal(file_grep(&root, &how, add_row, &got, &is_cut, &e), 0);
    assert_true(is_cut);
    how.deadline_ms = 1;
    buf_clear(&got);
    assert_int_equal(file_grep(&root, &how, add_row, &got, &is_cut, &e), 0);
    assert_true(is_cut && got.n == 0);
    how = (struct file_grep_how){ .path = SPAN("fifo.py"), .pattern = SPAN("x") };
    assert_int_equal(file_grep(&root, &how, add_row, &got, &is_cut, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    how = (struct file_grep_how){ .path = SPAN("../out"), .pattern = SPAN("x") };
    assert_int_equal(file_grep(&root, &how, add_row, &got, &is_cut, &e), -1);
    assert_true(path_is_escape(&e));
}

static void binary_files_are_passed(void **state)
{
    struct file_grep_how how = { .path = SPAN(""), .pattern = SPAN("needle"), .glob = SPAN("bin") };
    OWN(buf_done) struct buf got = BUF_INIT(1000);
    OWN_FD int fd = openat(tree.fd, "app/bin", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct err e = { 0 };
    bool is_cut = true;

    assert_int_equal(write(fd, "\0needle\n", 8), 8);
    assert_int_equal(file_grep(&root, &how, add_row, &got, &is_cut, &e), 0);
    assert_true(got.n == 0 && !is_cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(paths),
        cmocka_unit_test_setup_teardown(globbing, setup, teardown),
        cmocka_unit_test_setup_teardown(globbing_by_the_roots_path, setup, teardown),
        cmocka_unit_test(expressions),
        cmocka_unit_test_setup_teardown(grepping, setup, teardown),
        cmocka_unit_test_setup_teardown(grepping_at_the_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(binary_files_are_passed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
