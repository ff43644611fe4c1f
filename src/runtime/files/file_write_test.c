#include "runtime/files/file_write.h"
#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct scratch tree;

static int setup(void **state)
{
    scratch_make(&tree);
    (void)chmod(tree.path, 0777);
    scratch_dir(&tree, "app");
    scratch_dir(&tree, "out");
    (void)fchmodat(tree.fd, "app", 0777, 0);
    return 0;
}

static int teardown(void **state)
{
    scratch_remove(&tree);
    return 0;
}

/* Writes in two pieces. Returns 0 or the errno; escapes are EXDEV here. */
static int put(const struct path_root *root, const char *path, const struct file_write_how *how,
               const char *text)
{
    OWN(file_write_done) struct file_write w = FILE_WRITE_NONE;
    struct span s = span_cstr(text);
    struct err e = { 0 };

    if (file_write_begin(&w, root, span_cstr(path), how, &e) == 0 &&
        file_write_add(&w, span_slice(s, 0, s.n / 2), &e) == 0 &&
        file_write_add(&w, span_skip(s, s.n / 2), &e) == 0 && file_write_commit(&w, &e) == 0)
        return 0;
    return path_is_escape(&e) ? EXDEV : e.sys ? e.sys : -1;
}

static int put_app(const char *path, const struct file_write_how *how, const char *text)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct err e = { 0 };

    if (path_root_open(&root, scratch_path(&tree, "app"), &e) < 0)
        fail_msg("%s", e.msg);
    return put(&root, path, how, text);
}

static void uploads(void **state)
{
    mode_t mask = umask(0);

    umask(mask);
    assert_int_equal(put_app("a/b/new.txt", &file_write_upload, "hello"), 0);
    assert_string_equal(scratch_read(&tree, "app/a/b/new.txt"), "hello");
    assert_int_equal(scratch_mode(&tree, "app/a/b/new.txt"), 0666 & ~mask);
    assert_int_equal(scratch_mode(&tree, "app/a/b"), 0777 & ~mask);
    assert_int_equal(scratch_count(&tree, "app/a/b"), 1);

    assert_int_equal(fchmodat(tree.fd, "app/a/b/new.txt", 04751, 0), 0);
    assert_int_equal(put_app("a/b/new.txt", &file_write_upload, "again"), 0);
    assert_string_equal(scratch_read(&tree, "app/a/b/new.txt"), "again");
    assert_int_equal(scratch_mode(&tree, "app/a/b/new.txt"), 0751);

    assert_int_equal(put_app("a/b/new.txt", &file_write_pydantic, ""), 0);
    assert_string_equal(scratch_read(&tree, "app/a/b/new.txt"), "");
    assert_int_equal(put_app("a", &file_write_upload, "x"), EISDIR);
    assert_int_equal(put_app("", &file_write_upload, "x"), EISDIR);
    assert_int_equal(put_app("../x", &file_write_upload, "x"), EXDEV);
    assert_int_equal(put_app("a/b/new.txt/c", &file_write_upload, "x"), ENOTDIR);
    assert_int_equal(scratch_count(&tree, "app/a/b"), 1);
}

static void puts_by_mode(void **state)
{
    struct file_write_how how = file_write_put(0640), def = file_write_put(0644);
    mode_t mask = umask(0);

    umask(mask);
    assert_int_equal(put_app("d/f", &how, "one"), 0);
    assert_int_equal(scratch_mode(&tree, "app/d/f"), 0640);
    assert_int_equal(scratch_mode(&tree, "app/d"), 0755 & ~mask);
    assert_int_equal(put_app("d/f", &def, "two"), 0);
    assert_int_equal(scratch_mode(&tree, "app/d/f"), 0644);
    how = file_write_put(0777);
    assert_int_equal(put_app("d/f/", &how, "three"), 0);
    assert_int_equal(scratch_mode(&tree, "app/d/f"), 0777);
    assert_string_equal(scratch_read(&tree, "app/d/f"), "three");
    assert_int_equal(put_app("/", &def, "x"), EISDIR);
    assert_int_equal(put_app("d/f/x", &def, "x"), ENOTDIR);
    assert_int_equal(scratch_count(&tree, "app/d"), 1);
}

static void links(void **state)
{
    struct file_write_how how = file_write_put(0644);

    scratch_file(&tree, "out/prey", "prey");
    scratch_file(&tree, "app/real", "old");
    scratch_link(&tree, "app/to_real", "real");
    scratch_link(&tree, "app/out", scratch_path(&tree, "out/prey"));
    scratch_link(&tree, "app/out_dangling", scratch_path(&tree, "out/new"));
    scratch_link(&tree, "app/in_dangling", "new");
    scratch_link(&tree, "app/loop", "loop");

    assert_int_equal(put_app("to_real", &how, "1"), 0);
    assert_string_equal(scratch_read(&tree, "app/real"), "1");
    assert_int_equal(scratch_mode(&tree, "app/to_real"), 0777);
    assert_int_equal(put_app("to_real", &file_write_upload, "2"), 0);
    assert_string_equal(scratch_read(&tree, "app/real"), "2");
    assert_int_equal(put_app("out", &how, "x"), EXDEV);
    assert_int_equal(put_app("out", &file_write_upload, "x"), EXDEV);
    assert_int_equal(put_app("out_dangling", &file_write_upload, "x"), EXDEV);
    assert_int_equal(put_app("loop", &file_write_upload, "x"), ELOOP);
    /* The one creates the target, the other replaces the link. */
    assert_int_equal(put_app("in_dangling", &file_write_upload, "made"), 0);
    assert_string_equal(scratch_read(&tree, "app/new"), "made");
    assert_int_equal(put_app("out_dangling", &how, "mine"), 0);
    assert_int_equal(scratch_mode(&tree, "app/out_dangling"), 0644);
    assert_string_equal(scratch_read(&tree, "out/prey"), "prey");
    assert_false(scratch_has(&tree, "out/new"));
}

static void abort_leaves_nothing(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct err e = { 0 };

    scratch_file(&tree, "app/f", "old");
    assert_int_equal(path_root_open(&root, scratch_path(&tree, "app"), &e), 0);
    for (int new = 0; new < 2; new ++) {
        struct file_write w = FILE_WRITE_NONE;

        assert_int_equal(
            file_write_begin(&w, &root, new ? SPAN("g") : SPAN("f"), &file_write_upload, &e), 0);
        assert_int_equal(file_write_add(&w, SPAN("half"), &e), 0);
        assert_int_equal(scratch_count(&tree, "app"), 2);
        file_write_done(&w);
        file_write_done(&w);
    }
    assert_string_equal(scratch_read(&tree, "app/f"), "old");
    assert_int_equal(scratch_count(&tree, "app"), 1);
}

static void special_targets(void **state)
{
    struct file_write_how how = file_write_put(0644);

    assert_int_equal(mkfifoat(tree.fd, "app/fifo", 0666), 0);
    assert_int_equal(put_app("fifo", &file_write_upload, "x"), ENXIO);
    assert_int_equal(put_app("fifo", &how, "x"), 0);
    assert_string_equal(scratch_read(&tree, "app/fifo"), "x");
}

static void errors_name_the_path(void **state)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(file_write_done) struct file_write w = FILE_WRITE_NONE;
    struct err e = { 0 };

    scratch_dir(&tree, "app/d");
    assert_int_equal(path_root_open(&root, scratch_path(&tree, "app"), &e), 0);
    assert_int_equal(file_write_begin(&w, &root, SPAN("x/../d"), &file_write_upload, &e), -1);
    assert_string_equal(file_write_path(&w), scratch_path(&tree, "app/d"));
}

/* --- what needs other privileges: in a child --- */

/* 0 passed, 77 skipped, else the line of the failure. */
static void check_child(int (*run)(void), const char *what)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: %s\n", what);
        skip();
    }
    if (status != 0)
        fail_msg("child failed: status %x (line %d modulo 256)", status, WEXITSTATUS(status));
}
#define CHECK(ok)                                                                                  \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                               \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int as_nobody(void)
{
    struct file_write_how how = file_write_put(0644);
    struct stat before, after;

    if (geteuid() != 0)
        return 77;
    scratch_file(&tree, "app/readonly", "ro");
    scratch_file(&tree, "app/theirs", "root's, but anyone may write");
    scratch_dir(&tree, "app/closed");
    scratch_file(&tree, "app/closed/open", "long old content");
    scratch_dir(&tree, "app/sticky");
    scratch_file(&tree, "app/sticky/open", "long old content");
    CHECK(fchmodat(tree.fd, "app/readonly", 0444, 0) == 0);
    CHECK(fchmodat(tree.fd, "app/theirs", 0666, 0) == 0);
    CHECK(fchmodat(tree.fd, "app/closed/open", 0666, 0) == 0);
    CHECK(fchmodat(tree.fd, "app/sticky/open", 0666, 0) == 0);
    CHECK(fchmodat(tree.fd, "app/sticky", 01777, 0) == 0);
    CHECK(fchmodat(tree.fd, "app/closed", 0755, 0) == 0);
    CHECK(fstatat(tree.fd, "app/closed/open", &before, 0) == 0);
    CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);

    CHECK(put_app("readonly", &file_write_upload, "x") == EACCES);
    CHECK(put_app("closed/new", &file_write_upload, "x") == EACCES);
    CHECK(put_app("closed/new/deeper", &how, "x") == EACCES);
    CHECK(put_app("closed/open", &how, "x") == EACCES);
    CHECK(put_app("closed/open", &file_write_upload, "in place") == 0);
    CHECK(strcmp(scratch_read(&tree, "app/closed/open"), "in place") == 0);
    CHECK(fstatat(tree.fd, "app/closed/open", &after, 0) == 0 && after.st_ino == before.st_ino);
    CHECK(put_app("sticky/open", &file_write_upload, "short") == 0);
    CHECK(strcmp(scratch_read(&tree, "app/sticky/open"), "short") == 0);
    CHECK(scratch_count(&tree, "app/sticky") == 1 && scratch_count(&tree, "app/closed") == 1);
    /* A file of ours would belong to us: the owner is kept by keeping the inode. */
    CHECK(put_app("theirs", &file_write_upload, "theirs") == 0);
    CHECK(fstatat(tree.fd, "app/theirs", &after, 0) == 0 && after.st_uid == 0);
    CHECK(strcmp(scratch_read(&tree, "app/theirs"), "theirs") == 0);
    CHECK(put_app("mine", &file_write_upload, "mine") == 0);
    return 0;
}

static void unprivileged(void **state)
{
    check_child(as_nobody, "not root, cannot become another user");
}

static int own_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        return -1;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int on_a_full_disk(void)
{
    struct file_write_how how = file_write_put(0644);
    static char big[100000];

    if (own_mounts() < 0 || mount("tmpfs", scratch_path(&tree, "app"), "tmpfs", 0, "size=64k") < 0)
        return 77;
    memset(big, 'b', sizeof big - 1);
    CHECK(put_app("f", &file_write_upload, "old") == 0);
    CHECK(put_app("f", &file_write_upload, big) == ENOSPC);
    CHECK(put_app("f", &how, big) == ENOSPC);
    CHECK(put_app("g", &how, big) == ENOSPC);
    CHECK(strcmp(scratch_read(&tree, scratch_path(&tree, "app/f")), "old") == 0);
    CHECK(scratch_count(&tree, "app") == 1);
    /* A mount point cannot be renamed over: in place, for those who may. */
    CHECK(put_app("m", &file_write_upload, "under") == 0);
    CHECK(mount(scratch_path(&tree, "app/f"), scratch_path(&tree, "app/m"), NULL, MS_BIND, NULL) ==
          0);
    CHECK(put_app("m", &how, "x") == EBUSY);
    CHECK(put_app("m", &file_write_upload, "through") == 0);
    CHECK(strcmp(scratch_read(&tree, scratch_path(&tree, "app/f")), "through") == 0);
    CHECK(put_app("fill", &file_write_upload, big + sizeof big - 1 - 44000) == 0);
    CHECK(put_app("m", &file_write_upload, big + sizeof big - 1 - 18000) == ENOSPC);
    /* In place with the bytes collected elsewhere: the full disk is found out before the old ones go. */
    CHECK(chmod(scratch_path(&tree, "app"), 0755) == 0 &&
          chmod(scratch_path(&tree, "app/f"), 0666) == 0);
    CHECK(setresuid(65534, 65534, 65534) == 0);
    CHECK(put_app("f", &file_write_upload, big + sizeof big - 1 - 18000) == ENOSPC);
    CHECK(strcmp(scratch_read(&tree, scratch_path(&tree, "app/f")), "through") == 0);
    CHECK(put_app("f", &file_write_upload, "fits") == 0);
    CHECK(strcmp(scratch_read(&tree, scratch_path(&tree, "app/f")), "fits") == 0);
    CHECK(scratch_count(&tree, "app") == 3);
    return 0;
}

static void full_disk(void **state)
{
    check_child(on_a_full_disk, "cannot mount a tmpfs here");
}

/* --- races --- */

static bool stop;

static void *swap_until_told(void *ctx)
{
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        (void)renameat2(tree.fd, "app/swap", tree.fd, "app/swap_link", 2 /* RENAME_EXCHANGE */);
    return NULL;
}

static void nothing_lands_outside(void **state)
{
    struct file_write_how how = file_write_put(0644);
    unsigned done = 0;
    pthread_t thread;

    scratch_dir(&tree, "app/swap");
    scratch_dir(&tree, "app/swap/sub");
    scratch_dir(&tree, "out/sub");
    scratch_link(&tree, "app/swap_link", scratch_path(&tree, "out"));
    stop = false;
    pthread_create(&thread, NULL, swap_until_told, NULL);
    for (int i = 0; i < 1500; i++) {
        done += put_app("swap/f", &file_write_upload, "x") == 0;
        done += put_app("swap/sub/g", &file_write_pydantic, "x") == 0;
        done += put_app("swap/new/h", &how, "x") == 0;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    print_message("%u of 4500 writes done\n", done);
    assert_true(done > 0);
    assert_int_equal(scratch_count(&tree, "out"), 1);
    assert_int_equal(scratch_count(&tree, "out/sub"), 0);
}

/* Readers see a whole old or a whole new file. */
static void *write_until_told(void *ctx)
{
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        (void)put_app("torn", &file_write_upload, "aaaaaaaa");
        (void)put_app("torn", &file_write_upload, "bbbb");
    }
    return NULL;
}

static void readers_see_no_half(void **state)
{
    unsigned torn = 0;
    pthread_t thread;

    scratch_file(&tree, "app/torn", "bbbb");
    stop = false;
    pthread_create(&thread, NULL, write_until_told, NULL);
    for (int i = 0; i < 3000; i++) {
        const char *text = scratch_read(&tree, "app/torn");

        torn += strcmp(text, "aaaaaaaa") != 0 && strcmp(text, "bbbb") != 0;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(torn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(uploads, setup, teardown),
        cmocka_unit_test_setup_teardown(puts_by_mode, setup, teardown),
        cmocka_unit_test_setup_teardown(links, setup, teardown),
        cmocka_unit_test_setup_teardown(abort_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(special_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_name_the_path, setup, teardown),
        cmocka_unit_test_setup_teardown(unprivileged, setup, teardown),
        cmocka_unit_test_setup_teardown(full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_lands_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(readers_see_no_half, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
