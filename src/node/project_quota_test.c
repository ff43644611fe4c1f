#include "node/project_quota.h"

#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A file system with room for four ids; `fails` is the call that does. */
#define IDS 4

static struct fs {
    bool is_enforced;
    uint32_t dir_id; /* of the directory */
    uint64_t files[IDS], limits[IDS];
    char fails;
} fs;

static int look_id(int fd, uint32_t *ret)
{
    *ret = fs.dir_id;
    return 0;
}

static int give_id(int fd, uint32_t id)
{
    if (fs.fails == 'i') {
        errno = EPERM;
        return -1;
    }
    fs.dir_id = id;
    fs.files[(id - PROJECT_FIRST) % IDS]++;
    return 0;
}

/* All ids beyond are taken. */
static int look_files(int fd, uint32_t id, uint64_t *ret)
{
    *ret = id - PROJECT_FIRST < IDS ? fs.files[id - PROJECT_FIRST] : 1;
    return 0;
}

static int give_limit(int fd, uint32_t id, uint64_t bytes)
{
    assert_true(id - PROJECT_FIRST < IDS);
    fs.limits[id - PROJECT_FIRST] = bytes;
    return 0;
}

static bool look_enforced(int fd)
{
    return fs.is_enforced;
}

static const struct project_ops ops = { look_id, give_id, look_files, give_limit, look_enforced };
static struct scratch top;

static int setup(void **state)
{
    (void)state;
    scratch_make(&top);
    fs = (struct fs){ .is_enforced = true };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(&top);
    return 0;
}

static void test_ids_are_taken(void **state)
{
    struct err e;
    uint32_t first;

    (void)state;
    if (geteuid() != 0)
        skip(); /* the lock is root's */
    fs.files[0] = fs.files[2] = 7;
    assert_int_equal(project_quota_set_by(&ops, top.fd, 4096, &e), 0);
    first = fs.dir_id - PROJECT_FIRST;
    assert_true(first == 1 || first == 3);
    assert_int_equal(fs.limits[first], 4096);
    /* The same directory keeps its own, with another size; also with files in it. */
    scratch_file(&top, "file", "x");
    assert_int_equal(project_quota_set_by(&ops, top.fd, 8192, &e), 0);
    assert_int_equal(fs.dir_id - PROJECT_FIRST, first);
    assert_int_equal(fs.limits[first], 8192);
}

/* Killed between the limit and the id: the next one takes it, as it counts nothing. */
static void test_cut_short(void **state)
{
    struct err e;

    (void)state;
    if (geteuid() != 0)
        skip();
    fs.files[0] = fs.files[1] = fs.files[2] = 1;
    fs.fails = 'i';
    assert_int_equal(project_quota_set_by(&ops, top.fd, 4096, &e), -1);
    assert_int_equal(fs.dir_id, 0);
    assert_int_equal(fs.limits[3], 4096);
    fs.fails = 0;
    assert_int_equal(project_quota_set_by(&ops, top.fd, 1024, &e), 0);
    assert_int_equal(fs.dir_id, PROJECT_FIRST + 3);
    assert_int_equal(fs.limits[3], 1024);
}

static void test_where_there_is_none(void **state)
{
    struct err e;

    (void)state;
    fs.is_enforced = false;
    assert_int_equal(project_quota_set_by(&ops, top.fd, 4096, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    fs.is_enforced = true;
    fs.dir_id = 77; /* somebody else's */
    assert_int_equal(project_quota_set_by(&ops, top.fd, 4096, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    fs.dir_id = 0;
    scratch_file(&top, "file", "x");
    assert_int_equal(project_quota_set_by(&ops, top.fd, 4096, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_false(project_quota_is_there(top.fd)); /* a memory file system has none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids_are_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_short, setup, teardown),
        cmocka_unit_test_setup_teardown(test_where_there_is_none, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
