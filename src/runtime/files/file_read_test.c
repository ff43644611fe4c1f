#include "runtime/files/file_list.h"
#include "runtime/files/file_read.h"
#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

static struct scratch tree;
static struct path_root root;

static int setup(void **state)
{
    struct err e = { 0 };

    scratch_make(&tree);
    scratch_dir(&tree, "app");
    scratch_dir(&tree, "out");
    scratch_file(&tree, "out/secret", "a secret");
    return path_root_open(&root, scratch_path(&tree, "app"), &e);
}

static int teardown(void **state)
{
    path_root_close(&root);
    scratch_remove(&tree);
    return 0;
}

static void opening(void **state)
{
    struct file_read f = FILE_READ_NONE, g = FILE_READ_NONE;
    struct err e = { 0 };

    scratch_file(&tree, "app/f", "12345");
    assert_int_equal(file_read_open(&f, &root, PATH_PYTHON, SPAN("f"), &e), 0);
    assert_int_equal(f.st.st_size, 5);
    assert_false(f.is_dir);
    assert_true(f.etag[0] == '"' && f.etag[strlen(f.etag) - 1] == '"');
    assert_int_equal(unlinkat(tree.fd, "app/f", 0), 0);
    scratch_file(&tree, "app/f", "123456");
    assert_int_equal(file_read_open(&g, &root, PATH_SANDBOXD, SPAN("f"), &e), 0);
    assert_string_not_equal(f.etag, g.etag);
    file_read_done(&f);
    file_read_done(&g);
    assert_int_equal(file_read_open(&f, &root, PATH_SANDBOXD, SPAN("/"), &e), 0);
    assert_true(f.is_dir);
    file_read_done(&f);
}

static void refusing(void **state)
{
    static const struct {
        const char *name, *path;
        enum err_code code;
    } rows[] = {
        { "missing", "nope", ERR_NOT_FOUND },
        { "fifo", "fifo", ERR_UNSUPPORTED },
        { "socket", "socket", ERR_UNSUPPORTED },
        { "link to a fifo", "fifo_link", ERR_UNSUPPORTED },
        { "link outside", "out", ERR_DENIED },
        { "dangling", "dangling", ERR_NOT_FOUND },
        { "file as directory", "f/x", ERR_CONFLICT },
    };
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    OWN_FD int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", scratch_path(&tree, "app/socket"));
    assert_int_equal(bind(sock, (struct sockaddr *)&sun, sizeof sun), 0);
    assert_int_equal(mkfifoat(tree.fd, "app/fifo", 0666), 0);
    scratch_link(&tree, "app/fifo_link", "fifo");
    scratch_link(&tree, "app/out", scratch_path(&tree, "out/secret"));
    scratch_link(&tree, "app/dangling", "nope");
    scratch_file(&tree, "app/f", "");
    EACH(r, rows) {
        OWN(file_read_done) struct file_read f = FILE_READ_NONE;
        struct err e = { 0 };

        if (file_read_open(&f, &root, PATH_PYTHON, span_cstr(r->path), &e) == 0 ||
            e.code != r->code)
            fail_msg("%s: code %d: %s", r->name, e.code, e.msg);
    }
}

static void lines(void **state)
{
    static const struct {
        const char *name, *text;
        uint64_t offset, limit;
        const char *want;
    } rows[] = {
        { "all", "a\nb\r\nc", 0, 1000000000, "a\nb\r\nc" },
        { "all, newline at the end", "a\nb\n", 0, 1000000000, "a\nb\n" },
        { "first", "a\nb\nc", 0, 1, "a\n" },
        { "second", "a\nb\nc", 1, 1, "b\n" },
        { "last without newline", "a\nb\nc", 2, 5, "c" },
        { "beyond", "a\nb\nc", 3, 5, "" },
        { "none", "a\nb\nc", 1, 0, "" },
        { "empty file", "", 0, 10, "" },
        { "empty lines", "\n\n\n", 1, 1, "\n" },
        { "not UTF-8", "a\xff\nb", 0, 10, "a\xef\xbf\xbd\nb" },
        { "largest numbers", "a\nb", UINT64_MAX, UINT64_MAX, "" },
    };

    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(1000);
        OWN_FD int fd = -1;
        struct err e = { 0 };

        scratch_file(&tree, "app/t", r->text);
        fd = openat(tree.fd, "app/t", O_RDONLY | O_CLOEXEC);
        if (file_read_lines(fd, r->offset, r->limit, &out, &e) < 0)
            fail_msg("%s: %s", r->name, e.msg);
        if (strcmp(buf_cstr(&out), r->want) != 0)
            fail_msg("%s: '%s', want '%s'", r->name, buf_cstr(&out), r->want);
    }
}

/* A line longer than one read, and a ceiling that holds. */
static void long_lines(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(400000);
    OWN(buf_done) struct buf out = BUF_INIT(300000);
    OWN(buf_done) struct buf small = BUF_INIT(1000);
    OWN_FD int fd = -1;
    struct err e = { 0 };

    for (int i = 0; i < 200000; i++)
        (void)buf_addc(&text, 'x', &e);
    (void)buf_add(&text, SPAN("\nsecond\n"), &e);
    scratch_file(&tree, "app/t", buf_cstr(&text));
    fd = openat(tree.fd, "app/t", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_read_lines(fd, 1, 1, &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "second\n");
    buf_clear(&out);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(file_read_lines(fd, 0, 1, &out, &e), 0);
    assert_int_equal(out.n, 200001);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(file_read_lines(fd, 0, 1, &small, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void editing(void **state)
{
    static const struct {
        const char *name, *text, *old_text, *new_text;
        bool all;
        const char *want; /* the new text, or the message */
        uint64_t count;   /* 0 for a refusal */
    } rows[] = {
        { "once", "a b c", "b", "BB", false, "a BB c", 1 },
        { "all", "b b b", "b", "", true, "  ", 3 },
        { "all of one", "a", "a", "b", true, "b", 1 },
        { "does not overlap", "aaaa", "aa", "b", true, "bb", 2 },
        { "absent", "abc", "x", "y", false, "String 'x' not found in file", 0 },
        { "twice", "x x", "x", "y", false,
          "String 'x' found 2 times. Use replace_all=True to replace all, or provide more context.",
          0 },
        { "empty", "x", "", "y", true, "the string to replace is empty", 0 },
    };
    struct file_edit missing = { SPAN("nope"), SPAN("a"), SPAN("b"), false };
    struct err e = { 0 };
    uint64_t count;

    EACH(r, rows) {
        struct file_edit edit = { SPAN("t"), span_cstr(r->old_text), span_cstr(r->new_text),
                                  r->all };

        count = 0;
        scratch_file(&tree, "app/t", r->text);
        if ((file_edit(&root, &edit, &count, &e) == 0) != (r->count > 0) || count != r->count)
            fail_msg("%s: %lu: %s", r->name, (unsigned long)count, e.msg);
        assert_string_equal(r->count ? scratch_read(&tree, "app/t") : e.msg, r->want);
    }
    assert_int_equal(file_edit(&root, &missing, &count, &e), -1);
    assert_string_equal(e.msg, "File 'nope' not found");
    missing.path = SPAN("");
    assert_int_equal(file_edit(&root, &missing, &count, &e), -1);
    assert_int_equal(e.sys, EISDIR);
}

/* --- listing --- */

static int add_row(void *ctx, const struct file_entry *entry, struct err *e)
{
    struct buf *out = ctx;

    return buf_addf(out, e, "%s%s %lu %03o\n", entry->name, entry->is_dir ? "/" : "",
                    entry->is_dir ? 0 : (unsigned long)entry->size, entry->mode);
}

static void make_entries(void)
{
    scratch_file(&tree, "app/b", "12");
    scratch_dir(&tree, "app/z");
    scratch_file(&tree, "app/z/x", "123");
    scratch_file(&tree, "app/B", "");
    scratch_file(&tree, "app/\xff", "bytes");
    scratch_link(&tree, "app/to_dir", "z");
    scratch_link(&tree, "app/to_file", "z/x");
    scratch_link(&tree, "app/dangling", "no");
    scratch_link(&tree, "app/leaves", scratch_path(&tree, "out/secret"));
    scratch_link(&tree, "app/loop", "loop");
    (void)fchmodat(tree.fd, "app/b", 04640, 0);
    (void)fchmodat(tree.fd, "app/B", 0600, 0);
    (void)fchmodat(tree.fd, "app/\xff", 0644, 0);
    (void)fchmodat(tree.fd, "app/z", 0750, 0);
    (void)fchmodat(tree.fd, "app/z/x", 0604, 0);
}

static void listing(void **state)
{
    OWN(buf_done) struct buf b = BUF_INIT(10000);
    OWN(buf_done) struct buf p = BUF_INIT(10000);
    OWN(buf_done) struct buf a = BUF_INIT(10000);
    struct err e = { 0 };
    char link_row[100];

    make_entries();
    assert_int_equal(file_list_path(&root, SPAN(""), &file_list_sandboxd, add_row, &b, &e), 0);
    assert_string_equal(buf_cstr(&b),
                        "B 0 600\nb 2 640\nto_dir/ 0 750\nto_file 3 604\nz/ 0 750\n\xff 5 644\n");
    assert_int_equal(file_list_path(&root, SPAN("/"), &file_list_pydantic, add_row, &p, &e), 0);
    snprintf(link_row, sizeof link_row, "leaves %zu 777\n",
             strlen(scratch_path(&tree, "out/secret")));
    assert_true(
        span_starts(buf_span(&p), "to_dir/ 0 750\nz/ 0 750\nB 0 600\nb 2 640\ndangling 2 777\n"));
    assert_non_null(strstr(buf_cstr(&p), link_row));
    assert_int_equal(file_list_path(&root, SPAN("."), &file_list_python, add_row, &a, &e), 0);
    assert_int_equal(a.n, p.n);
    assert_non_null(strstr(buf_cstr(&a), "to_dir/ 0"));
}

static void listing_below_a_link(void **state)
{
    OWN(buf_done) struct buf b = BUF_INIT(10000);
    struct err e = { 0 };

    make_entries();
    scratch_link(&tree, "app/z/up", "../b");
    assert_int_equal(file_list_path(&root, SPAN("to_dir"), &file_list_sandboxd, add_row, &b, &e),
                     0);
    assert_string_equal(buf_cstr(&b), "up 2 640\nx 3 604\n");
}

static int stop_at_two(void *ctx, const struct file_entry *entry, struct err *e)
{
    return ++*(int *)ctx == 2 ? err_set(e, ERR_CANCELED, "enough") : 0;
}

static void listing_fails(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(1000);
    struct err e = { 0 };
    int count = 0;

    make_entries();
    assert_int_equal(file_list_path(&root, SPAN("b"), &file_list_python, add_row, &out, &e), -1);
    assert_int_equal(e.sys, ENOTDIR);
    assert_int_equal(file_list_path(&root, SPAN("nope"), &file_list_python, add_row, &out, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(file_list_path(&root, SPAN(".."), &file_list_sandboxd, add_row, &out, &e), -1);
    assert_true(path_is_escape(&e));
    assert_int_equal(file_list_path(&root, SPAN(""), &file_list_sandboxd, stop_at_two, &count, &e),
                     -1);
    assert_int_equal(e.code, ERR_CANCELED);
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening, setup, teardown),
        cmocka_unit_test_setup_teardown(refusing, setup, teardown),
        cmocka_unit_test_setup_teardown(lines, setup, teardown),
        cmocka_unit_test_setup_teardown(long_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(editing, setup, teardown),
        cmocka_unit_test_setup_teardown(listing, setup, teardown),
        cmocka_unit_test_setup_teardown(listing_below_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(listing_fails, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
