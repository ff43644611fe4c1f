/* Archives written and read, on a tree of our own: what comes back, what is refused, and links planted meanwhile. */
#include "archive/limits.h"
#include "archive/pack.h"
#include "archive/tar.h"
#include "archive/unpack.h"
#include "base/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ARCHIVE_MAX_BYTES (8 * 1024 * 1024)
#define NO_LIMIT          UINT64_MAX

static struct scratch tree;

static int setup(void **state)
{
    (void)state;
    scratch_make(&tree);
    scratch_dir(&tree, "in");
    scratch_dir(&tree, "out");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(&tree);
    return 0;
}

/* ---- whole copies ---- */

static int pack_all(const char *path, struct buf *out, struct archive_counts *counts, struct err *e)
{
    struct pack *p;
    int more = 1;

    if (pack_open(path, &p, e) < 0)
        return -1;
    while (more > 0)
        more = pack_read(p, out, e);
    if (counts)
        *counts = *pack_counts(p);
    pack_free(p);
    return more;
}

/* In pieces of `piece` bytes. */
static int unpack_all(const struct unpack_spec *spec, struct span archive, size_t piece,
                      struct archive_counts *counts, struct err *e)
{
    struct unpack *u;
    int done = 0;

    if (unpack_open(spec, &u, e) < 0)
        return -1;
    while (archive.n && done == 0) {
        done = unpack_feed(u, span_slice(archive, 0, piece), e);
        archive = span_skip(archive, piece);
    }
    if (done == 0)
        done = unpack_finish(u, e);
    if (counts)
        *counts = *unpack_counts(u);
    unpack_free(u);
    return done;
}

static struct unpack_spec to(const char *path, struct span top)
{
    return (struct unpack_spec){ scratch_path(&tree, path), top, NO_LIMIT, NO_LIMIT };
}

static int copy(const char *from, const char *where, size_t piece, struct err *e)
{
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    OWN_MEM char *source = own_strdup(scratch_path(&tree, from));
    struct unpack_spec spec = to(where, pack_top(source));

    if (pack_all(source, &archive, NULL, e) < 0)
        return -1;
    return unpack_all(&spec, buf_span(&archive), piece, NULL, e);
}

static void make_sample(void)
{
    char deep[300];

    scratch_dir(&tree, "in/t");
    scratch_file(&tree, "in/t/empty", "");
    scratch_file(&tree, "in/t/run", "#!/bin/sh\n");
    assert_int_equal(fchmodat(tree.fd, "in/t/run", 0751, 0), 0);
    scratch_dir(&tree, "in/t/sub");
    scratch_file(&tree, "in/t/sub/secret", "shh");
    assert_int_equal(fchmodat(tree.fd, "in/t/sub/secret", 04600, 0), 0);
    scratch_link(&tree, "in/t/up", "../../../etc/passwd");
    scratch_link(&tree, "in/t/sub/dangling", "nowhere");
    memset(deep, 'n', 250);
    memcpy(deep, "in/t/", 5);
    deep[250] = '\0';
    scratch_file(&tree, deep, "long"); /* more than a head holds */
    assert_int_equal(fchmodat(tree.fd, "in/t/sub", 0500, 0), 0);
}

static void test_round_trip(void **state)
{
    static const size_t pieces[] = { 1, 511, 70000, SIZE_MAX };
    char target[64] = "";
    struct stat was, is;
    struct err e;

    (void)state;
    make_sample();
    for (size_t i = 0; i < LEN(pieces); i++) {
        char where[32], name[64];

        (void)snprintf(where, sizeof where, "out/%zu", i);
        if (copy("in/t", where, pieces[i], &e) < 0)
            fail_msg("%s", e.msg);
#define AT(rest) ((void)snprintf(name, sizeof name, "%s/" rest, where), name)
        assert_string_equal(scratch_read(&tree, AT("empty")), "");
        assert_string_equal(scratch_read(&tree, AT("run")), "#!/bin/sh\n");
        assert_int_equal(scratch_mode(&tree, AT("run")), 0751);
        assert_int_equal(scratch_mode(&tree, AT("sub/secret")), 0600); /* not set-user-ID */
        assert_int_equal(scratch_mode(&tree, AT("sub")), 0500);
        assert_true(readlinkat(tree.fd, AT("up"), target, sizeof target - 1) > 0);
        assert_string_equal(target, "../../../etc/passwd");
        assert_int_equal(scratch_count(&tree, where), 5);
        assert_int_equal(fstatat(tree.fd, "in/t/run", &was, 0), 0);
        assert_int_equal(fstatat(tree.fd, AT("run"), &is, 0), 0);
        assert_int_equal(was.st_mtime, is.st_mtime);
    }
}

static void test_large_file(void **state)
{
    OWN_MEM char *text = own_new(1000001);
    struct err e;

    (void)state;
    memset(text, 'x', 1000000);
    text[77777] = 'y';
    scratch_file(&tree, "in/big", text);
    assert_int_equal(copy("in/big", "out/big2", 4096, &e), 0);
    assert_string_equal(scratch_read(&tree, "out/big2"), text);
}

/* ---- where things land ---- */

static void test_destinations(void **state)
{
    static const struct row {
        const char *name, *from, *where, *lands;
        int sys;
    } rows[] = {
        { "a file into a directory", "in/t/run", "out", "out/run", 0 },
        { "a file under a new name", "in/t/run", "out/ran", "out/ran", 0 },
        { "a file over a file", "in/t/run", "out/old", "out/old", 0 },
        { "a file into no directory", "in/t/run", "out/none/", NULL, ENOENT },
        { "a file below no directory", "in/t/run", "out/none/x", NULL, ENOENT },
        { "a file below a file", "in/t/run", "out/old/x", NULL, ENOTDIR },
        { "a file over a file with a slash", "in/t/run", "out/old/", NULL, ENOTDIR },
        { "a directory into a directory", "in/t", "out", "out/t/run", 0 },
        { "a directory under a new name", "in/t", "out/u", "out/u/run", 0 },
        { "a directory with a slash", "in/t/", "out/v/", "out/v/run", 0 },
        { "a directory over a file", "in/t", "out/old", NULL, ENOTDIR },
        { "the content of a directory", "in/t/.", "out", "out/run", 0 },
        { "the content under a new name", "in/t/.", "out/w", "out/w/run", 0 },
        { "a file over a directory", "in/t/run", "out/full", "out/full/run", 0 },
        { "a link as a link", "in/t/up", "out/up2", "out/up2", 0 },
        { "nothing", "in/none", "out", NULL, ENOENT },
        { "nowhere", "in/t/run", "", NULL, 0 },
    };

    (void)state;
    make_sample();
    scratch_file(&tree, "out/old", "old");
    scratch_dir(&tree, "out/full");
    EACH(r, rows) {
        struct err e = { 0 };
        int done = copy(r->from, r->where, 4096, &e);

        if ((done == 0) != (r->lands != NULL || !r->sys) || (r->sys && e.sys != r->sys))
            fail_msg("%s: %d, %s", r->name, done, done < 0 ? e.msg : "");
        if (r->lands && !scratch_has(&tree, r->lands))
            fail_msg("%s: not at %s", r->name, r->lands);
    }
    assert_string_equal(scratch_read(&tree, "out/old"), "#!/bin/sh\n");
    assert_true(scratch_has(&tree, "run")); /* "" is the scratch directory itself */
}

static void test_merges(void **state)
{
    struct err e;

    (void)state;
    make_sample();
    scratch_dir(&tree, "out/t");
    scratch_file(&tree, "out/t/mine", "stays");
    scratch_file(&tree, "out/t/run", "goes");
    assert_int_equal(fchmodat(tree.fd, "out/t", 0711, 0), 0);
    assert_int_equal(copy("in/t", "out", 4096, &e), 0);
    assert_string_equal(scratch_read(&tree, "out/t/mine"), "stays");
    assert_string_equal(scratch_read(&tree, "out/t/run"), "#!/bin/sh\n");
    assert_int_equal(scratch_mode(&tree, "out/t"), 0711); /* it was there */
}

static void test_other_kinds(void **state)
{
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    struct archive_counts counts;
    struct err e;

    (void)state;
    scratch_dir(&tree, "in/k");
    assert_int_equal(mkfifoat(tree.fd, "in/k/pipe", 0600), 0);
    assert_int_equal(pack_all(scratch_path(&tree, "in/k"), &archive, &counts, &e), 0);
    assert_int_equal(counts.entries, 1);
    assert_int_equal(counts.passed_over, 1);
    assert_int_equal(pack_all(scratch_path(&tree, "in/k/pipe"), &archive, &counts, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
}

static void test_too_deep(void **state)
{
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    OWN(buf_done) struct buf path = BUF_INIT(4096);
    struct err e;

    (void)state;
    assert_int_equal(buf_add(&path, SPAN("in"), &e), 0);
    for (int i = 0; i < ARCHIVE_DEPTH_MAX; i++) {
        assert_int_equal(buf_add(&path, SPAN("/d"), &e), 0);
        scratch_dir(&tree, buf_cstr(&path));
    }
    assert_int_equal(pack_all(scratch_path(&tree, "in"), &archive, NULL, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    buf_clear(&archive);
    assert_int_equal(pack_all(scratch_path(&tree, "in/d"), &archive, NULL, &e), 0);
}

/* ---- archives that lie ---- */

struct said {
    enum tar_kind kind;
    const char *path, *target, *content;
};

static void say(struct buf *out, const struct said *list, size_t n)
{
    struct err e;

    for (size_t i = 0; i < n && list[i].path; i++) {
        struct span content = span_cstr(list[i].content);
        struct tar_entry entry = { list[i].kind, list[i].path, list[i].target ? list[i].target : "",
                                   0755,         content.n,    0 };

        assert_int_equal(tar_add_head(out, &entry, &e), 0);
        assert_int_equal(buf_add(out, content, &e), 0);
        assert_int_equal(tar_add_pad(out, content.n, &e), 0);
    }
    assert_int_equal(tar_add_end(out, &e), 0);
}

static void test_lies(void **state)
{
    static const struct row {
        const char *name, *top;
        struct said says[4];
        enum err_code code;
        int sys;
    } rows[] = {
        { "what was asked for", "t", { { TAR_FILE, "t", NULL, "x" } }, ERR_NONE, 0 },
        { "an absolute name", "t", { { TAR_FILE, "/t", NULL, "x" } }, ERR_PROTOCOL, 0 },
        { "dots at the start", "t", { { TAR_FILE, "../t", NULL, "x" } }, ERR_PROTOCOL, 0 },
        { "dots inside", "t", { { TAR_FILE, "t/../../x", NULL, "x" } }, ERR_PROTOCOL, 0 },
        { "dots at the end", "t", { { TAR_DIR, "t/..", NULL, NULL } }, ERR_PROTOCOL, 0 },
        { "another name", "t", { { TAR_FILE, ".bashrc", NULL, "x" } }, ERR_PROTOCOL, 0 },
        { "another name behind the right one",
          "t",
          { { TAR_FILE, "t", NULL, "x" }, { TAR_FILE, "t2", NULL, "x" } },
          ERR_PROTOCOL,
          0 },
        { "no name", "t", { { TAR_FILE, "./.", NULL, "x" } }, ERR_PROTOCOL, 0 },
        { "through its own link",
          "u",
          { { TAR_DIR, "u", NULL, NULL },
            { TAR_LINK, "u/l", "/etc", NULL },
            { TAR_FILE, "u/l/x", NULL, "x" } },
          ERR_INVALID,
          ELOOP },
        { "a directory where its own link is",
          "v",
          { { TAR_DIR, "v", NULL, NULL },
            { TAR_LINK, "v/l", "/tmp", NULL },
            { TAR_DIR, "v/l", NULL, NULL } },
          ERR_INVALID,
          ELOOP },
        { "nothing", "t", { { TAR_FILE, NULL, NULL, NULL } }, ERR_INVALID, 0 },
        { "content may have any name",
          ".",
          { { TAR_DIR, ".", NULL, NULL }, { TAR_FILE, "./a", NULL, "x" } },
          ERR_NONE,
          0 },
        { "content may not leave", ".", { { TAR_FILE, "./../a", NULL, "x" } }, ERR_PROTOCOL, 0 },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
        struct unpack_spec spec = to("out", span_cstr(r->top));
        struct err e = { 0 };

        say(&archive, r->says, LEN(r->says));
        (void)unpack_all(&spec, buf_span(&archive), 100, NULL, &e);
        if (e.code != r->code || (r->sys && e.sys != r->sys))
            fail_msg("%s: %d %s", r->name, e.code, e.msg);
    }
    assert_false(scratch_has(&tree, "x"));
    assert_false(scratch_has(&tree, "a"));
    assert_false(scratch_has(&tree, "t"));
}

static void test_limits(void **state)
{
    static const struct said says[] = { { TAR_DIR, "t", NULL, NULL },
                                        { TAR_FILE, "t/a", NULL, "12345" },
                                        { TAR_FILE, "t/b", NULL, "12345" } };
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    struct unpack_spec spec = to("out", SPAN("t"));
    struct archive_counts counts;
    struct err e;

    (void)state;
    say(&archive, says, LEN(says));
    spec.max_bytes = 10;
    spec.max_entries = 3;
    assert_int_equal(unpack_all(&spec, buf_span(&archive), 7, &counts, &e), 0);
    assert_int_equal(counts.bytes, 10);
    assert_int_equal(counts.entries, 3);
    spec.max_bytes = 9;
    assert_int_equal(unpack_all(&spec, buf_span(&archive), 7, NULL, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    spec.max_bytes = 10;
    spec.max_entries = 2;
    assert_int_equal(unpack_all(&spec, buf_span(&archive), 7, NULL, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

/* A stream that stops anywhere leaves whole files or none, and no temporary one. */
static void test_cut_off(void **state)
{
    static const struct said says[] = { { TAR_FILE, "t", NULL, "123456789" } };
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    struct unpack_spec spec = to("out", SPAN("t"));

    (void)state;
    say(&archive, says, LEN(says));
    for (size_t n = 0; n < 1536; n += n >= 510 && n < 525 ? 1 : 170) {
        struct err e;

        (void)unlinkat(tree.fd, "out/t", 0);
        if (unpack_all(&spec, span_slice(buf_span(&archive), 0, n), 7, NULL, &e) == 0)
            fail_msg("cut after %zu bytes, and nobody noticed", n);
        assert_int_equal(e.code, ERR_CLOSED);
        assert_int_equal(scratch_count(&tree, "out"), n >= 521);
    }
}

/* Between two pieces of the stream somebody changes what is there. */
static void test_swapped_meanwhile(void **state)
{
    static const struct said first[] = { { TAR_DIR, "t", NULL, NULL },
                                         { TAR_DIR, "t/d", NULL, NULL },
                                         { TAR_FILE, "t/d/a", NULL, "a" } };
    static const struct said second[] = { { TAR_FILE, "t/d/b", NULL, "b" },
                                          { TAR_DIR, "t/e", NULL, NULL },
                                          { TAR_FILE, "t/e/c", NULL, "c" } };
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    struct unpack_spec spec = to("out", SPAN("t"));
    struct unpack *u;
    struct err e;

    (void)state;
    scratch_dir(&tree, "away");
    assert_int_equal(unpack_open(&spec, &u, &e), 0);
    say(&archive, first, LEN(first));
    archive.n -= 1024; /* its end mark */
    assert_int_equal(unpack_feed(u, buf_span(&archive), &e), 0);
    assert_int_equal(renameat(tree.fd, "out/t/d", tree.fd, "out/t/was"), 0);
    scratch_link(&tree, "out/t/d", "../../away");
    scratch_link(&tree, "out/t/e", "../../away");
    buf_clear(&archive);
    say(&archive, second, LEN(second));
    assert_int_equal(unpack_feed(u, buf_span(&archive), &e), -1);
    assert_int_equal(e.sys, ELOOP);
    unpack_free(u);
    assert_string_equal(scratch_read(&tree, "out/t/was/b"), "b"); /* the directory it held */
    assert_int_equal(scratch_count(&tree, "away"), 0);
}

static void test_packed_while_swapped(void **state)
{
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    OWN_MEM char *big = own_new(3 * ARCHIVE_PIECE_BYTES + 1);
    struct pack *p;
    struct err e;
    int more;

    (void)state;
    memset(big, 'b', 3 * ARCHIVE_PIECE_BYTES);
    scratch_dir(&tree, "in/t");
    scratch_file(&tree, "in/t/big", big);
    scratch_dir(&tree, "secret");
    scratch_file(&tree, "secret/key", "hidden key");
    assert_int_equal(pack_open(scratch_path(&tree, "in/t"), &p, &e), 0);
    assert_int_equal(pack_read(p, &archive, &e), 1);
    assert_int_equal(renameat(tree.fd, "in/t", tree.fd, "in/was"), 0);
    scratch_link(&tree, "in/t", "../secret");
    scratch_link(&tree, "in/was/sub", "../../secret");
    do
        more = pack_read(p, &archive, &e);
    while (more > 0);
    pack_free(p);
    assert_int_equal(more, 0);
    assert_int_equal(span_find_str(buf_span(&archive), SPAN("hidden key")), SIZE_MAX);
}

static void test_shrinks(void **state)
{
    OWN(buf_done) struct buf archive = BUF_INIT(ARCHIVE_MAX_BYTES);
    OWN_MEM char *big = own_new(3 * ARCHIVE_PIECE_BYTES + 1);
    struct pack *p;
    struct err e;
    int more;

    (void)state;
    memset(big, 'b', 3 * ARCHIVE_PIECE_BYTES);
    scratch_file(&tree, "in/big", big);
    assert_int_equal(pack_open(scratch_path(&tree, "in/big"), &p, &e), 0);
    assert_int_equal(pack_read(p, &archive, &e), 1);
    scratch_file(&tree, "in/big", "short");
    do
        more = pack_read(p, &archive, &e);
    while (more > 0);
    pack_free(p);
    assert_int_equal(more, -1);
    assert_int_equal(e.code, ERR_CONFLICT);
}

static void test_tops(void **state)
{
    static const struct row {
        const char *path, *top;
    } rows[] = { { "a", "a" },  { "/a/b", "b" }, { "a/", "a" },     { "a//", "a" },
                 { "/", "." },  { "a/.", "." },  { ".", "." },      { "a/..", "." },
                 { "..", "." }, { "", "." },     { "a/..b", "..b" } };

    (void)state;
    EACH(r, rows) {
        if (!span_is(pack_top(r->path), r->top))
            fail_msg("'%s': '%.*s'", r->path, SPAN_ARG(pack_top(r->path)));
    }
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest list[] = {
        IN_TREE(test_round_trip),
        IN_TREE(test_large_file),
        IN_TREE(test_destinations),
        IN_TREE(test_merges),
        IN_TREE(test_other_kinds),
        IN_TREE(test_too_deep),
        IN_TREE(test_lies),
        IN_TREE(test_limits),
        IN_TREE(test_cut_off),
        IN_TREE(test_swapped_meanwhile),
        IN_TREE(test_packed_while_swapped),
        IN_TREE(test_shrinks),
        cmocka_unit_test(test_tops),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
