#include "runtime/files/file_remove.h"
#include "base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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
    scratch_dir(&tree, "out/sub");
    scratch_file(&tree, "out/secret", "secret");
    scratch_file(&tree, "app/f", "f");
    scratch_dir(&tree, "app/empty");
    scratch_dir(&tree, "app/full");
    scratch_dir(&tree, "app/full/a");
    scratch_file(&tree, "app/full/a/b", "b");
    scratch_file(&tree, "app/full/c", "c");
    scratch_link(&tree, "app/full/out", scratch_path(&tree, "out"));
    scratch_link(&tree, "app/full/a/up", "../..");
    scratch_link(&tree, "app/to_f", "f");
    scratch_link(&tree, "app/to_full", "full");
    scratch_link(&tree, "app/dangling", "nothing");
    scratch_link(&tree, "app/leaves", scratch_path(&tree, "out"));
    return path_root_open(&root, scratch_path(&tree, "app"), &e);
}

static int teardown(void **state)
{
    path_root_close(&root);
    scratch_remove(&tree);
    return 0;
}

static enum err_code rm(const char *path, bool recursive)
{
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct err e = { 0 };

    if (file_remove_find(&root, span_cstr(path), &at, &e) == 0)
        (void)file_remove(&at, recursive, &e);
    return e.code;
}

static void cases(void **state)
{
    static const struct {
        const char *name, *path;
        bool recursive;
        enum err_code code;
        const char *gone, *stays;
    } rows[] = {
        { "missing", "nope", false, ERR_NOT_FOUND, NULL, "app/f" },
        { "missing below missing", "nope/x", true, ERR_NOT_FOUND, NULL, "app/f" },
        { "up", "..", true, ERR_DENIED, NULL, "out/secret" },
        { "below a link outside", "leaves/secret", true, ERR_DENIED, NULL, "out/secret" },
        { "link that leaves", "leaves", true, ERR_DENIED, NULL, "app/leaves" },
        { "link to a file", "to_f", false, ERR_NONE, "app/to_f", "app/f" },
        { "link to a directory", "to_full/", true, ERR_NONE, "app/to_full", "app/full/c" },
        { "dangling link", "dangling", false, ERR_NONE, "app/dangling", "app/f" },
        { "file", "f", false, ERR_NONE, "app/f", "app/full" },
        { "file again", "f", false, ERR_NOT_FOUND, NULL, "app/full" },
        { "empty directory", "empty", false, ERR_NONE, "app/empty", "app/full" },
        { "full directory", "full", false, ERR_CONFLICT, NULL, "app/full/a/b" },
        { "root, not recursive", "", false, ERR_CONFLICT, NULL, "app/full/a/b" },
        { "full directory, recursive", "full", true, ERR_NONE, "app/full", "out/secret" },
        { "root, recursive", "/", true, ERR_NONE, "app/leaves", "app" },
    };

    EACH(r, rows) {
        enum err_code code = rm(r->path, r->recursive);

        if (code != r->code || (r->gone && scratch_has(&tree, r->gone)) ||
            !scratch_has(&tree, r->stays))
            fail_msg("%s: code %d, want %d", r->name, code, r->code);
    }
    assert_int_equal(scratch_count(&tree, "app"), 0);
    assert_int_equal(scratch_count(&tree, "out"), 2);
}

static unsigned open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Deeper than descriptors and than PATH_MAX, with something to come back to on every level. */
static void deep_trees(void **state)
{
    unsigned before = open_fds();
    int fd = openat(tree.fd, "app/full", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < 3000; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "directory", 0700), 0);
        assert_int_equal(mkdirat(fd, "a sibling that is empty", 0700), 0);
        assert_int_equal(symlinkat("..", fd, "zz"), 0);
        next = openat(fd, "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_int_equal(rm("full", true), ERR_NONE);
    assert_false(scratch_has(&tree, "app/full"));
    assert_int_equal(open_fds(), before);
}

static void wide_trees(void **state)
{
    char name[64];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "app/full/d%d", i);
        scratch_dir(&tree, name);
        snprintf(name, sizeof name, "app/full/d%d/f", i);
        scratch_file(&tree, name, "");
        snprintf(name, sizeof name, "app/full/f%d", i);
        scratch_file(&tree, name, "");
    }
    assert_int_equal(rm("/", true), ERR_NONE);
    assert_int_equal(scratch_count(&tree, "app"), 0);
}

static bool stop;

static void *swap_until_told(void *ctx)
{
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        (void)renameat2(tree.fd, "app/full/swap", tree.fd, "app/swap_link",
                        2 /* RENAME_EXCHANGE */);
    return NULL;
}

/* The directory being emptied and a link to the outside change places. */
static void nothing_outside_is_removed(void **state)
{
    pthread_t thread;

    scratch_link(&tree, "app/swap_link", scratch_path(&tree, "out"));
    stop = false;
    scratch_dir(&tree, "app/full/swap");
    scratch_file(&tree, "app/full/swap/x", "");
    pthread_create(&thread, NULL, swap_until_told, NULL);
    for (int i = 0; i < 2000; i++) {
        (void)rm("full/swap", true);
        (void)rm("full/swap/x", true);
        (void)mkdirat(tree.fd, "app/full/swap", 0700);
        (void)mkdirat(tree.fd, "app/swap_link", 0700);
        (void)symlinkat(scratch_path(&tree, "out"), tree.fd, "app/swap_link");
        (void)symlinkat(scratch_path(&tree, "out"), tree.fd, "app/full/swap");
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(scratch_count(&tree, "out"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cases, setup, teardown),
        cmocka_unit_test_setup_teardown(deep_trees, setup, teardown),
        cmocka_unit_test_setup_teardown(wide_trees, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_outside_is_removed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
