#include "runtime/exec/exec_rig.h"

static void test_what_a_command_gives(void **state)
{
    /* clang-format off */
    static const struct { const char *name; enum exec_mode mode; const char *script, *out, *err; int code, signal; } rows[] = {
        { "nothing",           EXEC_CAPTURE, ":",                                "",            "",    0,  0 },
        { "both outputs",      EXEC_CAPTURE, "echo out; echo err >&2; exit 3",   "out\n",       "err\n", 3, 0 },
        { "in one, in order",  EXEC_MERGED,  "echo a; echo b >&2; echo c",       "a\nb\nc\n",   "",    0,  0 },
        { "a signal",          EXEC_CAPTURE, "kill -9 $$",                       "",            "",    0,  9 },
        { "no input",          EXEC_CAPTURE, "cat; echo end",                    "end\n",       "",    0,  0 },
        { "bytes as they are", EXEC_CAPTURE, "printf 'a\\377\\r\\nb'",           "a\377\r\nb",  "",    0,  0 },
        { "slower than a look", EXEC_CAPTURE, "echo a; sleep 0.05; echo b",      "a\nb\n",      "",    0,  0 },
        { "the largest status", EXEC_CAPTURE, "exit 255",                         "",            "",  255,  0 },
    };
    /* clang-format on */

    (void)state;
    EACH(r, rows) {
        struct run run = run_sh(r->mode, r->script, 0);

        print_message("%s\n", r->name);
        assert_int_equal(run.r.fail.step, SPAWN_STEP_NONE);
        assert_string_equal(buf_cstr(&run.r.out), r->out);
        assert_string_equal(buf_cstr(&run.r.err), r->err);
        assert_int_equal(run.r.code, r->code);
        assert_int_equal(run.r.signal, r->signal);
        assert_int_equal(run.r.out_bytes, strlen(r->out));
        assert_false(run.r.is_timed_out || run.r.is_canceled || run.r.is_out_cut ||
                     run.r.has_open_pipes);
        done(&run);
    }
}

static void test_what_cannot_start(void **state)
{
    static const struct {
        const char *program, *cwd;
        enum spawn_step step;
        int sys;
    } rows[] = {
        { "nope-at-all", NULL, SPAWN_STEP_EXEC, ENOENT },
        { "/tmp", NULL, SPAWN_STEP_EXEC, EACCES },
        { "true", "/nope", SPAWN_STEP_CHDIR, ENOENT },
    };
    static const enum exec_mode modes[] = { EXEC_CAPTURE, EXEC_STREAM, EXEC_PTY };

    (void)state;
    EACH(r, rows) {
        EACH(mode, modes) {
            char *argv[] = { (char *)(uintptr_t)r->program, NULL };
            struct exec_spec s = spec_of(*mode, argv);
            struct run run = { 0 };

            s.cwd = r->cwd;
            begin(&run, &s);
            turn_loop();
            assert_int_equal(run.started, 0);
            assert_int_equal(run.r.fail.step, r->step);
            assert_int_equal(run.r.fail.sys, r->sys);
            done(&run);
        }
    }
}

static void test_directory_and_variables(void **state)
{
    static const struct exec_var vars[] = {
        { BYTES("A"), BYTES("first") },
        { BYTES("B"), BYTES("") },
        { BYTES("A"), BYTES("last=one") },
        { BYTES("KEPT2"), BYTES("x") },
    };
    struct exec_spec s = spec_of(
        EXEC_CAPTURE, SH("pwd; echo \"$A|$B|${B-unset}|$KEPT|$SECRET|$KEPT2\"; env | grep -c ^A="));
    struct run run = { 0 };
    struct err e;

    (void)state;
    s.vars = vars;
    s.var_count = LEN(vars);
    s.cwd = "/usr";
    begin(&run, &s);
    turn_loop();
    assert_string_equal(buf_cstr(&run.r.out), "/usr\nlast=one|||kept||x\n1\n");
    done(&run);

    s.vars = (const struct exec_var[]){ { BYTES("a=b"), BYTES("c") } };
    s.var_count = 1;
    assert_int_equal(exec_start(pool, &s, &ops, NULL, &run.x, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    s.vars = (const struct exec_var[]){ { BYTES("a"), BYTES("c\0d") } };
    assert_int_equal(exec_start(pool, &s, &ops, NULL, &run.x, &e), -1);
    assert_string_equal(e.msg, "the value of 'a' holds a NUL");
}

static void test_output_past_its_ceiling_is_read_and_dropped(void **state)
{
    struct exec_spec s = spec_of(EXEC_CAPTURE, SH("head -c 268435456 /dev/zero; echo done >&2"));
    struct run run = { 0 };

    (void)state;
    s.out_max = 100000;
    begin(&run, &s);
    turn_loop();
    assert_int_equal(run.r.out.n, 100000);
    assert_true(run.r.out.cap <= 2 * 100000);
    assert_int_equal(run.r.out_bytes, 268435456);
    assert_true(run.r.is_out_cut && !run.r.is_err_cut);
    assert_string_equal(buf_cstr(&run.r.err), "done\n");
    done(&run);

    s = spec_of(EXEC_CAPTURE, SH("head -c 600 /dev/zero; head -c 700 /dev/zero >&2"));
    s.both_max = 1000;
    run = (struct run){ 0 };
    begin(&run, &s);
    turn_loop();
    assert_int_equal(run.r.out.n + run.r.err.n, 1000);
    assert_true(run.r.is_out_cut || run.r.is_err_cut);
    done(&run);

    s = spec_of(EXEC_MERGED, SH("head -c 1000 /dev/zero"));
    s.out_max = 1000;
    run = (struct run){ 0 };
    begin(&run, &s);
    turn_loop();
    assert_true(run.r.out.n == 1000 && !run.r.is_out_cut); /* exactly full is not cut */
    done(&run);
}

static void on_written(void *ctx, const struct err *e)
{
    struct run *run = ctx;

    if (e)
        assert_int_equal(e->code, ERR_CLOSED);
    *(e ? &run->refused : &run->written) += 1;
}

static void test_input_comes_back_from_cat(void **state)
{
    static char *argv[] = { "cat", NULL };
    struct exec_spec s = spec_of(EXEC_STREAM, argv);
    struct run run = { 0 };
    struct buf big = BUF_INIT(MIB);
    struct err e;

    (void)state;
    for (int i = 0; i < 300000; i++)
        assert_int_equal(buf_addc(&big, (uint8_t)(i * 7 + i / 251), &e), 0);
    begin(&run, &s);
    assert_int_equal(exec_write(run.x, SPAN("early "), on_written, &run, &e),
                     0); /* before it runs */
    run.until = "early ";
    turn_loop();
    run.until = NULL;
    assert_int_equal(exec_write(run.x, buf_span(&big), on_written, &run, &e),
                     0); /* more than a pipe holds */
    assert_int_equal(exec_write(run.x, SPAN_NONE, on_written, &run, &e), 0);
    assert_int_equal(exec_close_stdin(run.x, &e), 0);
    assert_int_equal(exec_close_stdin(run.x, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
    assert_int_equal(exec_write(run.x, SPAN("x"), on_written, &run, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
    turn_loop();
    assert_int_equal(run.started, 1);
    assert_int_equal(run.written, 3);
    assert_int_equal(run.seen[0].n, 6 + big.n);
    assert_memory_equal(run.seen[0].p + 6, big.p, big.n);
    assert_true(run.largest <= EXEC_CHUNK_BYTES);
    assert_int_equal(run.r.code, 0);
    done(&run);
    buf_done(&big);
}

static void test_input_nobody_reads(void **state)
{
    struct exec_spec s = spec_of(EXEC_STREAM, SH("exec <&-; echo closed; sleep 0.1"));
    struct run run = { 0 };
    uint8_t *big = own_new(EXEC_STDIN_MAX_BYTES);
    struct err e;

    (void)state;
    begin(&run, &s);
    run.until = "closed";
    turn_loop();
    run.until = NULL;
    assert_int_equal(exec_write(run.x, SPAN("x"), on_written, &run, &e), 0);
    turn_loop();
    assert_int_equal(run.refused, 1);
    done(&run);

    s.argv = SH("sleep 0.1");
    run = (struct run){ 0 };
    begin(&run, &s);
    assert_int_equal(exec_write(run.x, span_of(big, EXEC_STDIN_MAX_BYTES), on_written, &run, &e),
                     0);
    assert_int_equal(exec_write(run.x, SPAN("x"), on_written, &run, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    turn_loop();
    assert_int_equal(run.refused, 1); /* when the command ended */
    done(&run);

    run = (struct run){ 0 };
    begin(&run, &s);
    assert_int_equal(exec_write(run.x, span_of(big, MIB), on_written, &run, &e), 0);
    ev_loop_turn(loop);
    exec_write_forget(run.x, &run);
    turn_loop();
    assert_int_equal(run.refused + run.written, 0);
    done(&run);

    s = spec_of(EXEC_CAPTURE, SH("sleep 0.01"));
    run = (struct run){ 0 };
    begin(&run, &s);
    assert_int_equal(exec_write(run.x, SPAN("x"), on_written, &run, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    turn_loop();
    done(&run);
    free(big);
}

static void test_a_slow_reader_stops_the_command(void **state)
{
    struct exec_spec s = spec_of(EXEC_STREAM, SH("head -c 10000000 /dev/zero; echo end >&2"));
    struct run run = { 0 };
    struct ev_timer wait = { 0 };
    size_t seen;

    (void)state;
    s.drain_ms = 50; /* the reader's pauses do not count */
    begin(&run, &s);
    run.is_pausing = true;
    turn_loop();
    seen = run.seen[0].n;
    ev_timer_start(loop, &wait, 100, on_guard, loop);
    turn_loop();
    assert_int_equal(run.seen[0].n, seen); /* paused means paused */
    assert_int_equal(run.ended, 0);
    for (int i = 0; i < 20; i++) {
        exec_resume(run.x);
        turn_loop();
    }
    assert_true(run.seen[0].n > seen && run.seen[0].n <= 21 * EXEC_CHUNK_BYTES);
    run.is_pausing = false;
    exec_resume(run.x);
    turn_loop();
    assert_int_equal(run.seen[0].n, 10000000);
    assert_string_equal(buf_cstr(&run.seen[1]), "end\n");
    done(&run);
}

static void test_a_terminal(void **state)
{
    struct exec_spec s = spec_of(
        EXEC_PTY,
        SH("stty size; tty >/dev/null && echo yes; read -r line; echo \"got $line\"; stty size"));
    struct run run = { 0 };
    struct err e;

    (void)state;
    s.cols = 132;
    s.rows = 43;
    begin(&run, &s);
    run.until = "yes";
    turn_loop();
    assert_int_equal(exec_resize(run.x, 80, 24, &e), 0);
    run.until = NULL;
    assert_int_equal(exec_write(run.x, SPAN("hello\n"), on_written, &run, &e), 0);
    turn_loop();
    assert_string_equal(buf_cstr(&run.seen[0]), "43 132\r\nyes\r\nhello\r\ngot hello\r\n24 80\r\n");
    assert_int_equal(run.written, 1);
    assert_int_equal(run.r.code, 0);
    done(&run);

    s.argv = SH("echo ready; sleep 60"); /* closing its input hangs the terminal up */
    run = (struct run){ .until = "ready" };
    begin(&run, &s);
    turn_loop();
    run.until = NULL;
    assert_int_equal(exec_close_stdin(run.x, &e), 0);
    assert_int_equal(exec_resize(run.x, 80, 24, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    turn_loop();
    assert_int_equal(run.r.signal, SIGHUP);
    done(&run);
}

static void test_hundreds_of_short_ones(void **state)
{
    enum { COUNT = 300 };
    static char *argv[] = { "true", NULL };
    static struct run runs[COUNT];
    struct exec_spec s = spec_of(EXEC_CAPTURE, argv);
    unsigned left = COUNT;
    int fd, again;

    (void)state;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EACH(run, runs) {
        *run = (struct run){ .countdown = &left };
        begin(run, &s);
    }
    turn_loop();
    EACH(run, runs) {
        assert_true(run->r.code == 0 && run->r.signal == 0 && run->r.fail.step == 0);
        done(run);
    }
    (void)close(fd);
    again = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(again, fd); /* no descriptor was left open below it */
    (void)close(again);
}

static int lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

static void test_descriptors_are_closed_behind_the_answer(void **state)
{
    static const enum exec_mode modes[] = { EXEC_CAPTURE, EXEC_MERGED, EXEC_STREAM, EXEC_PTY };

    (void)state;
    EACH(mode, modes) {
        int before = lowest_free();
        struct run run = run_sh(*mode, "echo x", 0);

        ev_loop_turn(loop); /* the one in which a handler's answer goes out */
        assert_int_equal(lowest_free(), before);
        done(&run);
    }
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_what_a_command_gives),
        cmocka_unit_test(test_what_cannot_start),
        cmocka_unit_test(test_directory_and_variables),
        cmocka_unit_test(test_output_past_its_ceiling_is_read_and_dropped),
        cmocka_unit_test(test_input_comes_back_from_cat),
        cmocka_unit_test(test_input_nobody_reads),
        cmocka_unit_test(test_a_slow_reader_stops_the_command),
        cmocka_unit_test(test_a_terminal),
        cmocka_unit_test(test_hundreds_of_short_ones),
        cmocka_unit_test(test_descriptors_are_closed_behind_the_answer),
    };

    return cmocka_run_group_tests(all, open_all, close_all);
}
