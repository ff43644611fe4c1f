#include "runtime/files/path.h"
#include "runtime/files/path_walk.h"
#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

/* The tree of every test: a root `app`, a sibling whose name it is a prefix of, and something outside. */
static struct scratch tree;

static int setup(void **state)
{
    scratch_make(&tree);
    scratch_dir(&tree, "app");
    scratch_dir(&tree, "app2");
    scratch_dir(&tree, "out");
    scratch_file(&tree, "out/secret", "secret");
    scratch_dir(&tree, "out/sub");
    scratch_link(&tree, "root_link", "app");
    scratch_dir(&tree, "app/dir");
    scratch_dir(&tree, "app/dir/deep");
    scratch_file(&tree, "app/f.txt", "f");
    scratch_file(&tree, "app/dir/g.txt", "g");
    scratch_link(&tree, "app/in", "dir");
    scratch_link(&tree, "app/in_abs", scratch_path(&tree, "app/dir"));
    scratch_link(&tree, "app/in_file", "dir/g.txt");
    scratch_link(&tree, "app/link", scratch_path(&tree, "out"));
    scratch_link(&tree, "app/up", "..");
    scratch_link(&tree, "app/dir/up2", "../..");
    scratch_link(&tree, "app/dangling", "dir/nothing");
    scratch_link(&tree, "app/dangling_deep", "nothing/at/all");
    scratch_link(&tree, "app/dangling_out", scratch_path(&tree, "out/nothing"));
    scratch_link(&tree, "app/loop", "loop2");
    scratch_link(&tree, "app/loop2", "loop");
    scratch_link(&tree, "app/self", "self/x");
    scratch_link(&tree, "app/back", "../app/dir/../f.txt");
    scratch_link(&tree, "app/via_file", "f.txt/../dir");
    return 0;
}

static int teardown(void **state)
{
    scratch_remove(&tree);
    return 0;
}

static void open_root(struct path_root *root, const char *rest)
{
    struct err e = { 0 };

    if (path_root_open(root, scratch_path(&tree, rest), &e) < 0)
        fail_msg("%s", e.msg);
}

struct row {
    const char *name;
    struct span in;  /* "%" at the start stands for the root's absolute path */
    const char *rel; /* where it ends, or NULL for a refusal */
    int sys;         /* at->sys, or e->sys of a refusal: 0 is an escape */
    bool exists;
};

static void check_row(const struct path_root *root, enum path_rules rules, const struct row *r)
{
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN(buf_done) struct buf in = BUF_INIT(65536);
    struct err e = { 0 };
    int rc;

    if (r->in.n && r->in.p[0] == '%')
        (void)buf_add(&in, span_cstr(root->real), &e);
    (void)buf_add(&in, span_skip(r->in, in.n > 0), &e);
    rc = path_resolve(root, rules, buf_span(&in), 0, &at, &e);
    if (!r->rel) {
        if (rc == 0 || path_is_escape(&e) != (r->sys == 0) || e.sys != r->sys)
            fail_msg("%s: rc %d rel '%s' err %s, want sys %d", r->name, rc, rc == 0 ? at.rel : "",
                     e.msg, r->sys);
        return;
    }
    if (rc < 0)
        fail_msg("%s: %s", r->name, e.msg);
    if (strcmp(at.rel, r->rel) != 0 || at.exists != r->exists || at.sys != r->sys)
        fail_msg("%s: rel '%s' exists %d sys %d, want '%s' %d %d", r->name, at.rel, at.exists,
                 at.sys, r->rel, r->exists, r->sys);
    assert_true(at.exists || at.sys != 0);
    assert_string_equal(at.name, at.is_root ? "." : strrchr(at.abs, '/') + 1);
}

static const char *long_name(void)
{
    static char text[NAME_MAX + 2];

    memset(text, 'n', NAME_MAX + 1);
    return text;
}

static const char *long_path(void)
{
    static char text[PATH_TEXT_MAX_BYTES + 2];

    for (size_t i = 0; i < PATH_TEXT_MAX_BYTES + 1; i++)
        text[i] = i % 2 ? '/' : 'a';
    return text;
}

static void python_rules(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    const struct row rows[] = {
        { "empty", BYTES(""), "", 0, true },
        { "dot", BYTES("."), "", 0, true },
        { "slash", BYTES("/"), "", 0, true },
        { "leading slashes", BYTES("///f.txt"), "f.txt", 0, true },
        { "missing", BYTES("foo.txt"), "foo.txt", ENOENT, false },
        { "missing parents", BYTES("a/b/c"), "a/b/c", ENOENT, false },
        { "leaves and comes back by name", BYTES("foo/../../app/q"), "q", ENOENT, false },
        { "leaves and comes back, existing", BYTES("dir/../../app/f.txt"), "f.txt", 0, true },
        { "comes back through a link outside", BYTES("../root_link/f.txt"), "f.txt", 0, true },
        { "leaves by name", BYTES("foo/../../bar"), NULL, 0, false },
        { "up", BYTES(".."), NULL, 0, false },
        { "up and down", BYTES("../x"), NULL, 0, false },
        { "absolute up", BYTES("/../etc/passwd"), NULL, 0, false },
        { "sibling prefix", BYTES("../app2"), NULL, 0, false },
        { "sibling prefix below", BYTES("../app2/x"), NULL, 0, false },
        { "many ups", BYTES("../../../../../../../../../../.."), NULL, 0, false },
        { "link inside", BYTES("in/g.txt"), "dir/g.txt", 0, true },
        { "absolute link inside", BYTES("in_abs/g.txt"), "dir/g.txt", 0, true },
        { "link to a file", BYTES("in_file"), "dir/g.txt", 0, true },
        { "link outside", BYTES("link"), NULL, 0, false },
        { "below a link outside", BYTES("link/secret"), NULL, 0, false },
        { "new below a link outside", BYTES("link/new"), NULL, 0, false },
        { "deep new below a link outside", BYTES("link/sub/new"), NULL, 0, false },
        { "up behind a link is physical", BYTES("link/../app/f.txt"), "f.txt", 0, true },
        { "up behind a link, outside", BYTES("in/../../out"), NULL, 0, false },
        { "link to the parent", BYTES("up"), NULL, 0, false },
        { "link to the parent and back", BYTES("up/app/dir"), "dir", 0, true },
        { "link up two and back", BYTES("dir/up2/app/f.txt"), "f.txt", 0, true },
        { "dangling inside", BYTES("dangling"), "dir/nothing", ENOENT, false },
        { "dangling deep", BYTES("dangling_deep"), "nothing/at/all", ENOENT, false },
        { "below dangling", BYTES("dangling/x"), "dir/nothing/x", ENOENT, false },
        { "dangling outside", BYTES("dangling_out"), NULL, 0, false },
        { "loop", BYTES("loop"), "loop", ELOOP, false },
        { "loop then out", BYTES("loop/../../out/secret"), NULL, 0, false },
        { "link through dots", BYTES("back"), "f.txt", 0, true },
        { "link through a file", BYTES("via_file"), "dir", 0, true },
        { "file as directory", BYTES("f.txt/x"), "f.txt/x", ENOTDIR, false },
        { "file as directory, up", BYTES("f.txt/.."), "", 0, true },
        { "missing, up", BYTES("nope/../f.txt"), "f.txt", 0, true },
        { "missing below, up twice", BYTES("dir/a/b/../../g.txt"), "dir/g.txt", 0, true },
        { "trailing slash", BYTES("dir/"), "dir", 0, true },
        { "trailing slash on a file", BYTES("f.txt/"), "f.txt", 0, true },
        { "double slash and dots", BYTES("dir//./deep/."), "dir/deep", 0, true },
        { "tilde", BYTES("~"), "~", ENOENT, false },
        { "backslashes", BYTES("a\\..\\b"), "a\\..\\b", ENOENT, false },
        { "blanks", BYTES(" x "), " x ", ENOENT, false },
        { "three dots", BYTES("..."), "...", ENOENT, false },
        { "NUL", BYTES("f.txt\0x"), NULL, 0, false },
        { "absolute path is not the root's", BYTES("/etc/passwd"), "etc/passwd", ENOENT, false },
        { "name too long",
          { (const uint8_t *)long_name(), NAME_MAX + 1 },
          long_name(),
          ENAMETOOLONG,
          false },
        { "text too long",
          { (const uint8_t *)long_path(), PATH_TEXT_MAX_BYTES + 1 },
          NULL,
          ENAMETOOLONG,
          false },
    };

    open_root(&root, "app");
    EACH(r, rows)
        check_row(&root, PATH_PYTHON, r);
}

static void sandboxd_rules(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    const struct row rows[] = {
        { "relative", BYTES("f.txt"), "f.txt", 0, true },
        { "absolute is re-rooted", BYTES("/f.txt"), "f.txt", 0, true },
        { "absolute with the root", BYTES("%/f.txt"), "f.txt", 0, true },
        { "the root itself", BYTES("%"), "", 0, true },
        { "the root with a slash", BYTES("%/"), "", 0, true },
        { "empty", BYTES(""), "", 0, true },
        { "slash", BYTES("/"), "", 0, true },
        { "the root's name, relative", BYTES("app/f.txt"), "app/f.txt", ENOENT, false },
        { "a sibling, absolute", BYTES("%-evil/f"), NULL, -1, false },
        { "up", BYTES(".."), NULL, 0, false },
        { "up and down", BYTES("../etc/passwd"), NULL, 0, false },
        { "down, up twice", BYTES("a/../../etc"), NULL, 0, false },
        { "sibling by name", BYTES("../app2/f"), NULL, 0, false },
        { "out and in by name", BYTES("../app/f.txt"), "f.txt", 0, true },
        { "absolute up is confined", BYTES("/../etc/passwd"), "etc/passwd", ENOENT, false },
        { "link outside", BYTES("link"), NULL, 0, false },
        { "below a link outside", BYTES("link/secret"), NULL, 0, false },
        { "new below a link outside", BYTES("link/new"), NULL, 0, false },
        { "deep new below a link outside", BYTES("link/sub/new"), NULL, 0, false },
        { "deeper new below a link outside", BYTES("link/none/new"), NULL, 0, false },
        { "file as directory, outside", BYTES("link/secret/x"), NULL, 0, false },
        { "up is textual", BYTES("link/../f.txt"), "f.txt", 0, true },
        { "missing with parents", BYTES("sub/dir/new.txt"), "sub/dir/new.txt", ENOENT, false },
        { "missing below existing", BYTES("dir/new/x"), "dir/new/x", ENOENT, false },
        { "missing below a link", BYTES("in/new/x"), "dir/new/x", ENOENT, false },
        { "link to a file", BYTES("in_file"), "dir/g.txt", 0, true },
        { "absolute link inside", BYTES("in_abs/g.txt"), "dir/g.txt", 0, true },
        { "dangling last", BYTES("dangling"), "dangling", ENOENT, false },
        { "dangling last, deep", BYTES("dangling_deep"), "dangling_deep", ENOENT, false },
        { "dangling to the outside", BYTES("dangling_out"), "dangling_out", ENOENT, false },
        { "below dangling", BYTES("dangling_out/x"), "dangling_out/x", ENOENT, false },
        { "file as directory", BYTES("f.txt/x"), NULL, ENOTDIR, false },
        { "link through a file", BYTES("via_file"), NULL, ENOTDIR, false },
        { "link through dots", BYTES("back"), "f.txt", 0, true },
        { "loop", BYTES("loop"), NULL, ELOOP, false },
        { "loop of text", BYTES("self"), NULL, ELOOP, false },
        { "NUL", BYTES("a\0b"), NULL, EINVAL, false },
        { "trailing slash", BYTES("f.txt/"), "f.txt", 0, true },
        { "name too long",
          { (const uint8_t *)long_name(), NAME_MAX + 1 },
          NULL,
          ENAMETOOLONG,
          false },
        { "text too long",
          { (const uint8_t *)long_path(), PATH_TEXT_MAX_BYTES + 1 },
          NULL,
          ENAMETOOLONG,
          false },
    };

    open_root(&root, "app");
    EACH(r, rows)
        if (r->sys >= 0)
            check_row(&root, PATH_SANDBOXD, r);
    EACH(r, rows)
        if (r->sys >= 0)
            check_row(&root, PATH_PYDANTIC, r);
}

/* `/ws-evil/f` with the root `/ws` is a name below the root, not a sibling. */
static void absolute_sibling_is_rerooted(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    char text[128], want[128];
    struct err e = { 0 };

    open_root(&root, "app");
    snprintf(text, sizeof text, "%s-evil/f", root.real);
    snprintf(want, sizeof want, "%s%s", root.real, text);
    assert_int_equal(path_resolve(&root, PATH_SANDBOXD, span_cstr(text), 0, &at, &e), 0);
    assert_string_equal(at.abs, want);
}

/* Only the pydantic rules know the root by the name it was configured with. */
static void root_behind_a_link(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN(path_at_done) struct path_at other = PATH_AT_NONE;
    const char *text = scratch_path(&tree, "root_link/f.txt");
    struct err e = { 0 };

    open_root(&root, "root_link");
    assert_string_equal(root.real, scratch_path(&tree, "app"));
    assert_string_equal(root.configured, scratch_path(&tree, "root_link"));
    assert_int_equal(path_resolve(&root, PATH_PYDANTIC, span_cstr(text), 0, &at, &e), 0);
    assert_string_equal(at.rel, "f.txt");
    assert_true(at.exists);
    assert_int_equal(path_resolve(&root, PATH_SANDBOXD, span_cstr(text), 0, &other, &e), 0);
    assert_false(other.exists);
}

static void root_is_slash(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct err e = { 0 };
    char file[128], rel[128];

    assert_int_equal(path_root_open(&root, "/", &e), 0);
    assert_string_equal(root.real, "");
    snprintf(file, sizeof file, "%s", scratch_path(&tree, "app/f.txt"));
    snprintf(rel, sizeof rel, "%s/up2/out/secret", scratch_path(&tree, "app/dir"));
    for (enum path_rules rules = PATH_PYTHON; rules <= PATH_PYDANTIC; rules++) {
        const struct row rows[] = {
            { "absolute", span_cstr(file), file + 1, 0, true },
            { "relative", span_cstr(file + 1), file + 1, 0, true },
            { "nothing leaves", span_cstr(rel), scratch_path(&tree, "out/secret") + 1, 0, true },
            { "the root", BYTES("/"), "", 0, true },
            { "empty", BYTES(""), "", 0, true },
            { "above the top is the top", BYTES("../../.."), "", 0, true },
            { "missing", BYTES("/no/such/thing"), "no/such/thing", ENOENT, false },
        };

        EACH(r, rows)
            check_row(&root, rules, r);
    }
}

static void root_missing_made_replaced(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_root_close) struct path_root again = PATH_ROOT_NONE;
    char text[128];
    struct err e = { 0 };

    snprintf(text, sizeof text, "%s", scratch_path(&tree, "new/root"));
    assert_int_equal(path_root_open(&root, text, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(path_root_make(text, 0755, &e), 0);
    assert_int_equal(path_root_make(text, 0755, &e), 0);
    assert_int_equal(path_root_open(&root, text, &e), 0);
    assert_int_equal(renameat(tree.fd, "new/root", tree.fd, "new/moved"), 0);
    assert_int_equal(path_root_open(&again, text, &e), -1);
    assert_int_equal(path_root_open(&again, scratch_path(&tree, "app/f.txt"), &e), -1);
    assert_int_equal(e.sys, ENOTDIR);
    assert_int_equal(path_root_make(scratch_path(&tree, "app/f.txt"), 0755, &e), -1);
    assert_int_equal(e.sys, ENOTDIR);
    assert_int_equal(path_root_open(&again, "", &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
}

static void parents_are_made(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN(path_at_done) struct path_at bad = PATH_AT_NONE;
    OWN(path_at_done) struct path_at link = PATH_AT_NONE;
    struct err e = { 0 };

    open_root(&root, "app");
    assert_int_equal(path_resolve(&root, PATH_PYTHON, SPAN("m/n/o"), 0, &at, &e), 0);
    assert_false(at.has_parent);
    assert_int_equal(path_make_parents(&at, 0750, &e), 0);
    assert_true(at.has_parent && scratch_has(&tree, "app/m/n") && !scratch_has(&tree, "app/m/n/o"));
    assert_int_equal(scratch_mode(&tree, "app/m/n") & 07, 0);
    assert_int_equal(path_resolve(&root, PATH_PYTHON, SPAN("f.txt/n/o"), 0, &bad, &e), 0);
    assert_int_equal(path_make_parents(&bad, 0777, &e), -1);
    assert_int_equal(e.sys, ENOTDIR);
    assert_int_equal(path_resolve(&root, PATH_SANDBOXD, SPAN("dangling_out/x"), 0, &link, &e), 0);
    assert_int_equal(path_make_parents(&link, 0777, &e), -1);
    assert_false(scratch_has(&tree, "out/nothing"));
}

static void last_link_can_be_kept(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN(path_at_done) struct path_at through = PATH_AT_NONE;
    struct err e = { 0 };

    open_root(&root, "app");
    assert_int_equal(
        path_resolve(&root, PATH_SANDBOXD, SPAN("link/"), PATH_KEEP_LAST_LINK, &at, &e), 0);
    assert_string_equal(at.rel, "link");
    assert_true(at.is_link && S_ISLNK(at.st.st_mode) && !at.exists && at.has_parent);
    assert_int_equal(
        path_resolve(&root, PATH_SANDBOXD, SPAN("in/g.txt"), PATH_KEEP_LAST_LINK, &through, &e), 0);
    assert_string_equal(through.rel, "dir/g.txt");
}

static void opening(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN_FD int fd = -1;
    OWN_FD int dir = -1;
    struct err e = { 0 };
    char c;

    open_root(&root, "app");
    assert_int_equal(path_open(&root, PATH_PYTHON, SPAN("in_file"), O_RDONLY, NULL, &fd, &e), 0);
    assert_int_equal(read(fd, &c, 1), 1);
    assert_int_equal(c, 'g');
    assert_int_equal(
        path_open(&root, PATH_SANDBOXD, SPAN(""), O_PATH | O_DIRECTORY, NULL, &dir, &e), 0);
    assert_int_equal(
        path_open(&root, PATH_SANDBOXD, SPAN("f.txt"), O_RDONLY | O_DIRECTORY, NULL, &dir, &e), -1);
    assert_int_equal(e.sys, ENOTDIR);
    assert_int_equal(path_open(&root, PATH_SANDBOXD, SPAN("dangling"), O_RDONLY, NULL, &dir, &e),
                     -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void cleaning(void **state)
{
    static const struct {
        const char *in, *want;
    } rows[] = {
        { "", "." },
        { ".", "." },
        { "/", "/" },
        { "//", "/" },
        { "a//b/./c/", "a/b/c" },
        { "a/..", "." },
        { "a/../..", ".." },
        { "../../a", "../../a" },
        { "../a/..", ".." },
        { "/..", "/" },
        { "/../../a/b/..", "/a" },
        { "a/b/../../../c", "../c" },
        { "/a/../b", "/b" },
        { "...", "..." },
        { "a/.../..", "a" },
        { "./..a", "..a" },
    };

    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(100);
        struct err e;

        assert_int_equal(path_clean(span_cstr(r->in), &out, &e), 0);
        assert_string_equal(buf_cstr(&out), r->want);
    }
}

/* --- as a user who may not look everywhere: in a child --- */

#define CHECK(ok)                                                                                  \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                               \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int behind_closed_doors(void)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN(path_at_done) struct path_at up = PATH_AT_NONE;
    struct err e = { 0 };

    CHECK(mkdirat(tree.fd, "app/closed", 0700) == 0);
    CHECK(chmod(tree.path, 0755) == 0);
    CHECK(fchmodat(tree.fd, "app/closed", geteuid() == 0 ? 0700 : 0, 0) == 0);
    if (geteuid() == 0)
        CHECK(setresuid(65534, 65534, 65534) == 0);
    CHECK(path_root_open(&root, scratch_path(&tree, "app"), &e) == 0);
    CHECK(path_resolve(&root, PATH_PYTHON, SPAN("closed/x/y"), 0, &at, &e) == 0);
    CHECK(!at.exists && at.sys == EACCES && strcmp(at.rel, "closed/x/y") == 0);
    CHECK(path_resolve(&root, PATH_SANDBOXD, SPAN("closed/x/y"), 0, &up, &e) < 0);
    CHECK(e.sys == EACCES && !path_is_escape(&e));
    /* Its parent cannot be reached from it, only by name. */
    CHECK(path_resolve(&root, PATH_PYTHON, SPAN("closed/../f.txt"), 0, &up, &e) == 0);
    CHECK(up.exists && strcmp(up.rel, "f.txt") == 0);
    CHECK(path_resolve(&root, PATH_PYTHON, SPAN("closed/../../out"), 0, &up, &e) < 0);
    CHECK(path_is_escape(&e));
    return 0;
}

static void unreadable_directories(void **state)
{
    pid_t pid = fork();
    int status = 1;

    if (pid == 0)
        _exit(behind_closed_doors());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* --- races --- */

struct swapper {
    const char *dir, *link; /* both exist; they change places */
    bool stop;
    unsigned long swaps;
};

static void *swap_until_told(void *ctx)
{
    struct swapper *s = ctx;

    while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
        if (renameat2(tree.fd, s->dir, tree.fd, s->link, 2 /* RENAME_EXCHANGE */) < 0)
            abort();
        s->swaps++;
    }
    return NULL;
}

/* A directory and a link to the outside change places all the time: whatever resolves must be inside. */
static void race(const char *user, enum path_rules rules)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct swapper s = { "app/swap", "app/swap_link", false, 0 };
    static unsigned serial;
    unsigned inside = 0, refused = 0, lost = 0;
    pthread_t thread;

    open_root(&root, "app");
    pthread_create(&thread, NULL, swap_until_told, &s);
    for (int i = 0; i < 4000; i++) {
        OWN(path_at_done) struct path_at at = PATH_AT_NONE;
        OWN_FD int fd = -1;
        struct err e = { 0 };
        char name[32];

        if (path_resolve(&root, rules, span_cstr(user), 0, &at, &e) < 0) {
            lost += !path_is_escape(&e) && e.code != ERR_BUSY;
            refused++;
            continue;
        }
        if (path_make_parents(&at, 0777, &e) < 0)
            continue;
        snprintf(name, sizeof name, "made-%u", serial++);
        fd = openat(at.dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        lost += fd < 0;
        inside += fd >= 0;
    }
    __atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_true(s.swaps > 0 && inside > 0 && refused > 0);
    assert_int_equal(lost, 0);
    print_message("%s: %u inside, %u refused, %lu swaps\n", user, inside, refused, s.swaps);
    assert_int_equal(scratch_count(&tree, "out/prey"), 0);
}

static void swapped_directories_never_lead_out(void **state)
{
    scratch_dir(&tree, "out/prey");
    scratch_dir(&tree, "app/swap");
    scratch_link(&tree, "app/swap_link", scratch_path(&tree, "out/prey"));
    race("swap/x", PATH_PYTHON);
    race("swap/x", PATH_SANDBOXD);
    race("swap/../swap/x", PATH_PYTHON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(python_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(sandboxd_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(absolute_sibling_is_rerooted, setup, teardown),
        cmocka_unit_test_setup_teardown(root_behind_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(root_is_slash, setup, teardown),
        cmocka_unit_test_setup_teardown(root_missing_made_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(parents_are_made, setup, teardown),
        cmocka_unit_test_setup_teardown(last_link_can_be_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(opening, setup, teardown),
        cmocka_unit_test(cleaning),
        cmocka_unit_test_setup_teardown(unreadable_directories, setup, teardown),
        cmocka_unit_test_setup_teardown(swapped_directories_never_lead_out, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
