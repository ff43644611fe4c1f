#include "runtime/exec/exec_rig.h"

#include "base/str.h"

static void test_a_deadline_ends_the_whole_tree(void **state)
{
    static const char *const scripts[] = {
        "sleep 60",
        "sleep 60 & sleep 60 & wait",
        "setsid -f sleep 60; (setsid sh -c 'sleep 60 & sleep 60' &); trap '' TERM; sleep 60; :",
        "sleep 60 & echo hi", /* the shell is gone, what it left holds the pipe */
        "setsid -f sleep 60; sleep 0.02",
    };

    (void)state;
    EACH(script, scripts) {
        uint64_t began = time_mono_ms();
        struct exec_spec s = spec_of(EXEC_CAPTURE, SH(*script));
        struct run run = { 0 };

        s.deadline_ms = 100;
        s.drain_ms = EXEC_FOREVER;
        begin(&run, &s);
        turn_loop();
        assert_true(run.r.is_timed_out);
        assert_false(run.r.has_open_pipes);
        assert_true(time_mono_ms() - began >= 100 && time_mono_ms() - began < 1500);
        assert_no_child();
        done(&run);
    }
}

/* Commands whose program does not open, as on a file system that hangs (a lease does it): they hold up nobody, and
 * their deadline ends them. */
static void test_a_program_that_cannot_be_read_holds_up_nobody(void **state)
{
    enum { STUCK = 3 }; /* one more than there are spawn threads */
    char path[] = "/tmp/silica-exec-XXXXXX", *argv[] = { path, NULL };
    struct run stuck[STUCK] = { 0 }, quick;
    struct exec_spec s = spec_of(EXEC_CAPTURE, argv);
    unsigned left = STUCK;
    int fd = mkstemp(path), lease;

    (void)state;
    assert_true(fd >= 0 && fchmod(fd, 0755) == 0);
    (void)close(fd);
    lease = open(path, O_RDONLY | O_CLOEXEC);
    (void)signal(SIGIO, SIG_IGN);
    if (lease < 0 || fcntl(lease, F_SETLEASE, F_WRLCK) < 0) {
        print_message("no leases on this file system\n");
        (void)unlink(path);
        skip();
    }
    s.deadline_ms = 1000;
    EACH(run, stuck) {
        run->countdown = &left;
        begin(run, &s);
    }
    quick = run_sh(EXEC_CAPTURE, "echo hi", 0);
    assert_string_equal(buf_cstr(&quick.r.out), "hi\n");
    done(&quick);
    assert_int_equal(left, STUCK);
    turn_loop();
    EACH(run, stuck) {
        assert_true(run->r.is_timed_out && run->r.signal == SIGKILL);
        done(run);
    }
    assert_no_child();
    (void)close(lease);
    (void)unlink(path);
    (void)signal(SIGIO, SIG_DFL);
}

static void test_a_background_process_is_waited_for_so_long(void **state)
{
    struct exec_spec s = spec_of(EXEC_CAPTURE, SH("sleep 0.3 & echo hi; exit 5"));
    struct run run = { 0 };

    (void)state;
    s.drain_ms = EXEC_FOREVER;
    begin(&run, &s);
    turn_loop(); /* to the end of the sleep */
    assert_true(run.r.code == 5 && !run.r.has_open_pipes);
    assert_string_equal(buf_cstr(&run.r.out), "hi\n");
    done(&run);

    s.drain_ms = 50;
    run = (struct run){ 0 };
    begin(&run, &s);
    turn_loop();
    assert_true(run.r.code == 5 && run.r.has_open_pipes && !run.r.is_timed_out);
    assert_string_equal(buf_cstr(&run.r.out), "hi\n");
    done(&run);
    assert_no_child(); /* it was left alone and ended by itself */
}

/* The command's own output is there, whole and first; a flood behind it has no end, and is not waited for. */
static void test_a_background_process_is_not_waited_for(void **state)
{
    static const char *const scripts[] = {
        "sleep 60 & echo $! >&2; head -c 60000 /dev/zero | tr '\\0' x; exit 5",
        "(sleep 0.1; exec yes) & echo $! >&2; head -c 60000 /dev/zero | tr '\\0' x; sleep 0.3; exit 5",
    };

    (void)state;
    EACH(script, scripts) {
        struct exec_spec s = spec_of(EXEC_STREAM, SH(*script));
        struct run run = { 0 };
        uint64_t left;

        s.drain_ms = EXEC_SO_FAR;
        s.chunk_max = 100; /* many turns for what is there */
        begin(&run, &s);
        turn_loop();
        assert_int_equal(run.r.code, 5);
        assert_true(run.seen[0].n >= 60000);
        assert_int_equal(strspn(buf_cstr(&run.seen[0]), "x"), 60000);
        assert_true(
            str_u64(span_slice(buf_span(&run.seen[1]), 0, run.seen[1].n - 1), INT32_MAX, &left));
        (void)kill((pid_t)left, SIGKILL); /* the flood has ended by itself: nobody reads it */
        assert_no_child();
        done(&run);
    }
}

static void test_signals_and_cancel(void **state)
{
    struct exec_spec s = spec_of(
        EXEC_STREAM, SH("trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.02; done"));
    struct run run = { .until = "ready" };

    (void)state;
    begin(&run, &s);
    turn_loop();
    run.until = NULL;
    exec_signal(run.x, SIGTERM);
    turn_loop();
    assert_int_equal(run.r.code, 7);
    assert_string_equal(buf_cstr(&run.seen[0]), "ready\nterm\n");
    done(&run);

    s.argv = SH("setsid -f sleep 60; trap '' TERM; echo ready; sleep 60; :");
    run = (struct run){ .until = "ready" };
    begin(&run, &s);
    turn_loop();
    run.until = NULL;
    exec_cancel(run.x);
    exec_cancel(run.x);
    assert_int_equal(run.ended, 0);
    turn_loop();
    assert_true(run.r.is_canceled && run.r.signal == SIGKILL);
    assert_no_child();
    done(&run);

    run = (struct run){ 0 };
    begin(&run, &s); /* called off before its spawn is known */
    exec_cancel(run.x);
    turn_loop();
    assert_true(run.r.is_canceled);
    assert_no_child();
    done(&run);
}

static void test_a_detached_command_goes_on(void **state)
{
    char path[] = "/tmp/silica-exec-XXXXXX", script[128];
    int fd = mkstemp(path);
    struct exec_spec s;
    struct run run = { 0 };
    char text[8] = "";

    (void)state;
    assert_true(fd >= 0);
    (void)snprintf(script, sizeof script, "head -c 1000000 /dev/zero; echo went on >%s", path);
    s = spec_of(EXEC_CAPTURE, SH(script));
    begin(&run, &s);
    exec_detach(run.x);
    for (int i = 0; i < 400 && exec_running(pool); i++) {
        ev_loop_turn(loop);
        (void)usleep(5000);
    }
    assert_int_equal(exec_running(pool), 0);
    assert_int_equal(run.ended, 0);
    assert_int_equal(read(fd, text, 7), 7);
    assert_string_equal(text, "went on");
    (void)close(fd);
    (void)unlink(path);
}

static void test_more_than_fit_wait_in_order(void **state)
{
    enum { COUNT = 9 }; /* the pool takes four at once */
    struct run runs[COUNT] = { 0 };
    struct exec_spec s = spec_of(EXEC_CAPTURE, SH("printf $$; sleep 0.05"));
    unsigned left = COUNT, descents = 0;
    uint64_t pid, before = 0;

    (void)state;
    s.deadline_ms = 2000; /* from the spawn: waiting does not count */
    EACH(run, runs) {
        run->countdown = &left;
        begin(run, &s);
    }
    assert_int_equal(exec_running(pool), 4);
    assert_int_equal(exec_queued(pool), COUNT - 4);
    exec_cancel(runs[COUNT - 1].x);
    turn_loop();
    for (int i = 0; i < COUNT - 1; i++) {
        assert_int_equal(runs[i].r.code, 0);
        assert_true(str_u64(buf_span(&runs[i].r.out), INT32_MAX, &pid));
        descents += pid < before;
        before = pid;
    }
    assert_true(descents <= 1); /* the system's numbers rise, and may start again once */
    assert_true(runs[COUNT - 1].r.is_canceled && runs[COUNT - 1].started == 0);
    assert_int_equal(runs[COUNT - 1].r.fail.sys, ECANCELED);
    EACH(run, runs)
        done(run);
    assert_int_equal(exec_running(pool) + exec_queued(pool), 0);
}

static void on_stopped(void *ctx)
{
    *(bool *)ctx = true;
    ev_loop_stop(loop);
}

static void test_shutdown_asks_then_kills(void **state)
{
    struct exec_spec s =
        spec_of(EXEC_STREAM, SH("trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done"));
    struct run polite = { .until = "ready" }, stubborn = { .until = "ready" }, queued[3] = { 0 };
    bool is_stopped = false;
    uint64_t began;
    struct err e;

    (void)state;
    begin(&polite, &s);
    turn_loop();
    s.argv = SH("trap '' TERM; (setsid sleep 60 &) ; echo ready; sleep 60; sleep 60");
    begin(&stubborn, &s);
    turn_loop();
    polite.until = stubborn.until = NULL;
    s.argv = SH("sleep 60");
    EACH(run, queued)
        begin(run, &s);
    assert_int_equal(exec_queued(pool), 1);
    began = time_mono_ms();
    exec_kill_all(pool, 200, on_stopped, &is_stopped);
    assert_int_equal(exec_start(pool, &s, &ops, NULL, &polite.x, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    for (int i = 0; i < 10 && !is_stopped; i++)
        turn_loop(); /* each end stops it once */
    assert_true(is_stopped);
    assert_int_equal(polite.r.code, 9);
    assert_int_equal(stubborn.r.signal, SIGKILL);
    assert_true(queued[2].r.is_canceled && queued[2].started == 0);
    assert_true(time_mono_ms() - began >= 200 && time_mono_ms() - began < 2500);
    assert_no_child();
    done(&polite);
    done(&stubborn);
    EACH(run, queued)
        done(run);
}

static void test_shutdown_without_grace_asks_nobody(void **state)
{
    struct exec_spec s =
        spec_of(EXEC_STREAM, SH("trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done"));
    struct run polite = { .until = "ready" }, plain = { .until = "ready" };
    bool is_stopped = false;

    (void)state;
    begin(&polite, &s);
    turn_loop();
    s.argv = SH("echo ready; exec sleep 60");
    begin(&plain, &s);
    turn_loop();
    polite.until = plain.until = NULL;
    exec_kill_all(pool, 0, on_stopped, &is_stopped);
    for (int i = 0; i < 10 && !is_stopped; i++)
        turn_loop();
    assert_true(is_stopped);
    assert_int_equal(polite.r.signal, SIGKILL);
    assert_int_equal(plain.r.signal, SIGKILL);
    assert_no_child();
    done(&polite);
    done(&plain);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_a_deadline_ends_the_whole_tree),
        cmocka_unit_test(test_a_program_that_cannot_be_read_holds_up_nobody),
        cmocka_unit_test(test_a_background_process_is_waited_for_so_long),
        cmocka_unit_test(test_a_background_process_is_not_waited_for),
        cmocka_unit_test(test_signals_and_cancel),
        cmocka_unit_test(test_a_detached_command_goes_on),
        cmocka_unit_test(test_more_than_fit_wait_in_order),
        cmocka_unit_test(test_shutdown_asks_then_kills), /* last: nothing starts after it */
    };
    const struct CMUnitTest at_once[] = {
        cmocka_unit_test(test_shutdown_without_grace_asks_nobody), /* with a pool of its own */
    };

    return cmocka_run_group_tests(all, open_all, close_all) +
           cmocka_run_group_tests(at_once, open_all, close_all);
}
