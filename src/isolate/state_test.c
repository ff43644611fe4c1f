/* The data directory: its names, files, lock and log, without any sandbox. */
#include "isolate/state.h"

#include "base/scratch.h"
#include "isolate/dir.h"
#include "isolate/lock.h"
#include "isolate/logfile.h"
#include "isolate/sweep.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct scratch scratch;
static struct dir dir = DIR_INIT;

static int set_up(void **state)
{
    struct err e;

    (void)state;
    scratch_make(&scratch);
    if (dir_open(&dir, scratch_path(&scratch, "deep/data"), true, &e) < 0)
        fail_msg("%s", e.msg);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dir_done(&dir);
    scratch_remove(&scratch);
    return 0;
}

static void names(void **state)
{
    static const struct row {
        const char *name;
        bool is_good;
    } rows[] = {
        { "a", true },
        { "A.b_c-1", true },
        { "9", true },
        { "", false },
        { ".", false },
        { "..", false },
        { ".a", false },
        { "-a", false },
        { "a/b", false },
        { "a b", false },
        { "a\n", false },
        { "ä", false },
        { "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
          "xxxxxxxxxxxxxxxxxxxxxxxxxxxx1",
          false },
    };
    struct err e;

    (void)state;
    EACH(r, rows)
        if ((dir_check_name(r->name, &e) == 0) != r->is_good)
            fail_msg("'%s'", r->name);
    assert_int_equal(dir_check_name(NULL, &e), -1);
}

static void directories_of_others_are_refused(void **state)
{
    struct dir other = DIR_INIT;
    struct err e;

    (void)state;
    scratch_dir(&scratch, "open"); /* 0755 */
    assert_int_equal(dir_open(&other, scratch_path(&scratch, "open"), true, &e), -1);
    assert_int_equal(e.code, ERR_DENIED);
    assert_int_equal(dir_open(&other, scratch_path(&scratch, "none"), false, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(scratch_mode(&scratch, "deep/data"), 0700);
}

static void a_box_is_made_once_and_removed(void **state)
{
    OWN_FD int fd = -1;
    OWN_FD int again = -1;
    struct err e;

    (void)state;
    assert_int_equal(dir_make_box(&dir, "one", &fd, &e), 0);
    assert_int_equal(dir_make_box(&dir, "one", &again, &e), -1);
    assert_int_equal(e.code, ERR_EXISTS);
    assert_int_equal(dir_write(fd, DIR_SPEC, SPAN("{}"), &e), 0);
    assert_string_equal(scratch_read(&scratch, "deep/data/sandboxes/one/spec.json"), "{}");
    assert_int_equal(dir_remove_box(&dir, "one", &e), 0);
    assert_int_equal(dir_remove_box(&dir, "one", &e), 0);
    assert_int_equal(dir_open_box(&dir, "one", &again, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void a_link_is_no_box(void **state)
{
    OWN_FD int fd = -1;
    struct err e;

    (void)state;
    scratch_dir(&scratch, "elsewhere");
    scratch_link(&scratch, "deep/data/sandboxes/link", scratch_path(&scratch, "elsewhere"));
    assert_int_equal(dir_open_box(&dir, "link", &fd, &e), -1);
}

static struct state_run some_run(void)
{
    return (struct state_run){
        .box = { .name = "one",
                 .pid = 4711,
                 .start_ticks = UINT64_MAX,
                 .cgroup = { .dirs = { "/sys/fs/cgroup/silica-5-1-one",
                                       "/sys/fs/cgroup/memory/silica-5-1-one" },
                             .is_v2 = { [CGROUP_CPU] = true } } },
        .created_ms = 1794822600123,
        .unenforced = "cpu",
    };
}

static void states_come_back(void **state)
{
    struct state_run run = some_run(), run_back;
    struct state_exit x = { STATE_LOST, 137, 5 }, x_back;
    OWN_FD int fd = -1;
    struct err e;

    (void)state;
    assert_int_equal(dir_make_box(&dir, "one", &fd, &e), 0);
    assert_int_equal(state_get_run(fd, "one", &run_back, &e), -1);
    assert_int_equal(state_put_run(fd, &run, &e), 0);
    assert_int_equal(state_get_run(fd, "one", &run_back, &e), 0);
    assert_string_equal(run_back.box.name, "one");
    assert_true(run_back.box.pid == 4711 && run_back.box.start_ticks == UINT64_MAX &&
                run_back.created_ms == run.created_ms);
    assert_string_equal(run_back.unenforced, "cpu");
    assert_memory_equal(&run_back.box.cgroup, &run.box.cgroup, sizeof run.box.cgroup);
    assert_int_equal(state_put_exit(fd, &x, &e), 0);
    assert_int_equal(state_get_exit(fd, &x_back, &e), 0);
    assert_true(x_back.end == STATE_LOST && x_back.code == 137 && x_back.ended_ms == 5);
}

static void states_that_are_none(void **state)
{
    static const char *const rows[] = {
        "",
        "{",
        "{}",
        "[]",
        "{\"pid\":1}",
        "{\"pid\":0,\"start_ticks\":1,\"created_ms\":1,\"unenforced\":\"\"}",
        "{\"pid\":99999999999,\"start_ticks\":1,\"created_ms\":1,\"unenforced\":\"\"}",
        /* a cgroup that is not ours would be removed */
        "{\"pid\":1,\"start_ticks\":1,\"created_ms\":1,\"unenforced\":\"\",\"cgroups\":{\"v2\":\"/etc\"}}",
        "{\"pid\":1,\"start_ticks\":1,\"created_ms\":1,\"unenforced\":\"\",\"cgroups\":{\"v2\":5}}",
    };
    struct state_run run;
    struct state_exit x;
    struct err e;

    (void)state;
    EACH(r, rows) {
        if (state_parse_run(span_cstr(*r), "x", &run, &e) == 0)
            fail_msg("taken: %s", *r);
        if (state_parse_exit(span_cstr(*r), &x, &e) == 0)
            fail_msg("taken as an exit: %s", *r);
    }
    assert_int_equal(
        state_parse_exit(SPAN("{\"end\":\"ended\",\"code\":256,\"ended_ms\":0}"), &x, &e), -1);
}

static void one_keeper(void **state)
{
    OWN_FD int fd = -1;
    OWN_FD int second = -1;
    struct err e;

    (void)state;
    assert_false(lock_is_taken(&dir));
    assert_int_equal(lock_take(&dir, &fd, &e), 0);
    assert_true(lock_is_taken(&dir));
    assert_int_equal(lock_take(&dir, &second, &e), -1);
    assert_int_equal(e.code, ERR_EXISTS);
    own_fd_close(&fd);
    assert_false(lock_is_taken(&dir));
}

static void a_sweep_keeps_only_what_is_kept(void **state)
{
    struct sweep_count count;
    struct state_run run = some_run();
    struct state_exit x;
    OWN_FD int a = -1;
    OWN_FD int b = -1;
    OWN_FD int c = -1;
    struct err e;

    (void)state;
    run.box.cgroup = (struct cgroup){ 0 };
    run.box.pid = getpid(); /* the number is somebody else's by now: its beginning says so */
    assert_int_equal(dir_make_box(&dir, "half-made", &a, &e), 0);
    assert_int_equal(dir_make_box(&dir, "gone", &b, &e), 0);
    assert_int_equal(dir_write(b, DIR_SPEC, SPAN("{\"name\":\"gone\"}"), &e), 0);
    assert_int_equal(state_put_run(b, &run, &e), 0);
    assert_int_equal(dir_make_box(&dir, "kept", &c, &e), 0);
    assert_int_equal(dir_write(c, DIR_SPEC, SPAN("{\"name\":\"kept\",\"kept\":true}"), &e), 0);
    assert_int_equal(state_put_run(c, &run, &e), 0);
    sweep(&dir, &count);
    assert_true(count.killed == 0 && count.lost == 1 && count.removed == 2);
    assert_int_equal(scratch_count(&scratch, "deep/data/sandboxes"), 1);
    assert_int_equal(state_get_exit(c, &x, &e), 0);
    assert_int_equal(x.end, STATE_LOST);
}

static void lines_of_the_log(void **state)
{
    static const struct row {
        const char *name;
        struct span piece;
        const char *want; /* T for the time */
    } rows[] = {
        { "nothing", BYTES(""), "" },
        { "a line", BYTES("a\n"), "T s F a\n" },
        { "no end", BYTES("a"), "T s P a\n" },
        { "lines", BYTES("a\n\nb"), "T s F a\nT s F \nT s P b\n" },
        { "any bytes", BYTES("\x1b\xff\n"), "T s F \x1b\xff\n" },
    };
    const struct timespec now = { 0, 5 };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(4096);
        OWN(buf_done) struct buf want = BUF_INIT(4096);
        struct err e;

        for (const char *c = r->want; *c; c++)
            (void)buf_addf(&want, &e, *c == 'T' ? "1970-01-01T00:00:00.000000005Z" : "%c", *c);
        assert_int_equal(logfile_format("s", now, r->piece, &out, &e), 0);
        if (!span_eq(buf_span(&out), buf_span(&want)))
            fail_msg("%s: '%s', want '%s'", r->name, buf_cstr(&out), buf_cstr(&want));
    }
}

static void a_log_has_a_ceiling(void **state)
{
    OWN_MEM uint8_t *line = own_new(LOG_LINE_MAX_BYTES * 2);
    OWN_FD int fd = -1;
    struct stat st;
    struct err e;

    (void)state;
    memset(line, 'x', LOG_LINE_MAX_BYTES * 2);
    assert_int_equal(dir_make_box(&dir, "one", &fd, &e), 0);
    for (int i = 0; i < 3 * LOG_MAX_BYTES / (LOG_LINE_MAX_BYTES * 2); i++)
        assert_int_equal(
            logfile_add(fd, "stdout", span_of(line, (size_t)LOG_LINE_MAX_BYTES * 2), &e), 0);
    assert_int_equal(fstatat(fd, DIR_LOG, &st, 0), 0);
    assert_true(st.st_size <= LOG_MAX_BYTES);
    assert_int_equal(fstatat(fd, DIR_OLD_LOG, &st, 0), 0);
    assert_true(st.st_size <= LOG_MAX_BYTES && st.st_size > LOG_MAX_BYTES / 2);
    assert_int_equal(dir_remove_box(&dir, "one", &e), 0);
}

static void sockets_in_a_deep_directory(void **state)
{
    char deep[200];
    OWN_FD int fd = -1;
    OWN_FD int listener = -1;
    OWN_FD int caller = -1;
    struct dir d = DIR_INIT;
    struct err e;

    (void)state;
    memset(deep, 'd', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(dir_open(&d, scratch_path(&scratch, deep), true, &e), 0);
    assert_int_equal(dir_make_box(&d, "one", &fd, &e), 0);
    assert_int_equal(dir_connect(fd, DIR_CONTROL, SOCK_STREAM, &caller, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(dir_listen(fd, DIR_CONTROL, SOCK_STREAM, &listener, &e), 0);
    assert_int_equal(dir_connect(fd, DIR_CONTROL, SOCK_STREAM, &caller, &e), 0);
    own_fd_close(&listener);
    own_fd_close(&caller);
    assert_int_equal(dir_connect(fd, DIR_CONTROL, SOCK_STREAM, &caller, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    dir_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(directories_of_others_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_box_is_made_once_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_is_no_box, set_up, tear_down),
        cmocka_unit_test_setup_teardown(states_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(states_that_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_keeper, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sweep_keeps_only_what_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_of_the_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_log_has_a_ceiling, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sockets_in_a_deep_directory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
