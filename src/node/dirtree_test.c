#include "node/dirtree.h"

#include "base/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS   5000
#define EXCHANGE 2 /* RENAME_EXCHANGE: of linux/fs.h, which has other names that cmocka uses */

static struct scratch top;

static int setup(void **state)
{
    (void)state;
    scratch_make(&top);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(&top);
    return 0;
}

/* ---- somebody changes the tree meanwhile ---- */

static atomic_bool is_over;

/* A directory and a link that leads out of the tree change places. */
static void *swap(void *ctx)
{
    (void)ctx;
    while (!is_over)
        (void)syscall(SYS_renameat2, top.fd, "tree/d", top.fd, "link", EXCHANGE);
    return NULL;
}

static void a_swapped_directory_never_leads_out(void **state)
{
    pthread_t thread;

    (void)state;
    scratch_dir(&top, "out");
    scratch_dir(&top, "out/prey");
    scratch_file(&top, "out/prey/file", "theirs");
    assert_int_equal(fchmodat(top.fd, "out/prey", 0751, 0), 0);
    is_over = false;
    assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct err e;

        /* A round that was disturbed leaves either in either place; without the link nothing changes any more. */
        while (dirtree_remove(top.fd, "link", &e) < 0 || dirtree_remove(top.fd, "tree", &e) < 0)
            continue;
        scratch_link(&top, "link", scratch_path(&top, "out/prey"));
        scratch_dir(&top, "tree");
        /* No way in for its owner; not empty, else it is removed without being opened. */
        (void)mkdirat(top.fd, "tree/d", 0700);
        (void)mkdirat(top.fd, "tree/d/below", 0700);
        (void)fchmodat(top.fd, "tree/d", 0, AT_SYMLINK_NOFOLLOW);
        (void)dirtree_remove(top.fd, "tree", &e);
        assert_int_equal(scratch_mode(&top, "out/prey"), 0751);
    }
    is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(scratch_read(&top, "out/prey/file"), "theirs");
}

static void directories_without_a_mode(void **state)
{
    struct err e;

    (void)state;
    scratch_dir(&top, "tree");
    scratch_dir(&top, "tree/a");
    scratch_dir(&top, "tree/a/b");
    scratch_dir(&top, "tree/a/b/c");
    scratch_file(&top, "tree/a/b/file", "x");
    assert_int_equal(fchmodat(top.fd, "tree/a/b", 0, 0), 0);
    assert_int_equal(fchmodat(top.fd, "tree/a", 0100, 0), 0);
    assert_int_equal(fchmodat(top.fd, "tree", 0400, 0), 0);
    assert_int_equal(dirtree_remove(top.fd, "tree", &e), 0);
    assert_false(scratch_has(&top, "tree"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_swapped_directory_never_leads_out, setup, teardown),
        cmocka_unit_test_setup_teardown(directories_without_a_mode, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
