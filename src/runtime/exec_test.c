#include "runtime/exec.h"

#include "base/time.h"
#include "ev/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MIB            (1024 * 1024)
#define GUARD_MS       8000 /* a test that hangs ends here, and fails */
#define SEEN_MAX_BYTES (64 * MIB)

static struct ev_loop *loop;
static struct ev_children *children;
static struct exec_pool *pool;
static struct ev_timer guard;

/* One command under test, and all that was told about it. */
struct run {
    struct exec *x;
    struct exec_result r;
    int started, ended;
    struct buf seen[2];   /* streamed */
    size_t largest;       /* piece */
    const char *until;    /* stop the loop once this was seen on stdout */
    bool is_pausing;      /* pause at each piece */
    int written, refused; /* writes that came back */
    unsigned *countdown;  /* the loop stops when it reaches zero; NULL: at the end of this one */
};

static void on_guard(void *ctx)
{
    ev_loop_stop(ctx);
}

static void turn_loop(void)
{
    ev_timer_start(loop, &guard, GUARD_MS, on_guard, loop);
    ev_loop_run(loop);
    assert_true(ev_timer_is_running(&guard)); /* else we waited for nothing */
    ev_timer_stop(loop, &guard);
}

static void on_started(void *ctx, pid_t pid)
{
    struct run *run = ctx;

    assert_true(pid > 0);
    run->started++;
}

static void on_output(void *ctx, enum exec_stream which, struct span piece)
{
    struct run *run = ctx;
    struct err e;

    assert_int_equal(buf_add(&run->seen[which], piece, &e), 0);
    run->largest = MAX(run->largest, piece.n);
    if (run->is_pausing)
        exec_pause(run->x);
    if (run->is_pausing ||
        (run->until && span_find_str(buf_span(&run->seen[0]), span_cstr(run->until)) != SIZE_MAX))
        ev_loop_stop(loop);
}

static void on_exit_of(void *ctx, struct exec_result *r)
{
    struct run *run = ctx;

    run->ended++;
    run->r = *r;
    run->r.out = (struct buf)BUF_INIT(SEEN_MAX_BYTES);
    run->r.err = (struct buf)BUF_INIT(SEEN_MAX_BYTES);
    buf_move(&run->r.out, &r->out);
    buf_move(&run->r.err, &r->err);
    if (!run->countdown || --*run->countdown == 0)
        ev_loop_stop(loop);
}

static const struct exec_ops ops = { on_started, on_output, on_exit_of };

static struct exec_spec spec_of(enum exec_mode mode, char *const *argv)
{
    return (struct exec_spec){
        .mode = mode, .argv = argv, .out_max = MIB, .err_max = MIB, .drain_ms = 2000
    };
}

static void begin(struct run *run, const struct exec_spec *s)
{
    struct err e = { 0 };

    run->seen[0] = run->seen[1] = (struct buf)BUF_INIT(SEEN_MAX_BYTES);
    if (exec_start(pool, s, &ops, run, &run->x, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(run->started + run->ended, 0); /* never inside the call */
}

static void done(struct run *run)
{
    assert_int_equal(run->ended, 1);
    for (size_t i = 0; i < 2; i++)
        buf_done(&run->seen[i]);
    buf_done(&run->r.out);
    buf_done(&run->r.err);
}

#define SH(script) ((char *[]){ "sh", "-c", (char *)(uintptr_t)(script), NULL })

/* sh -c script, captured, from start to end. */
static struct run run_sh(enum exec_mode mode, const char *script, uint64_t deadline_ms)
{
    struct exec_spec s = spec_of(mode, SH(script));
    struct run run = { 0 };

    s.deadline_ms = deadline_ms;
    begin(&run, &s);
    turn_loop();
    return run;
}

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
    EACH(r, rows)
    {
        struct run run = run_sh(r->mode, r->script, 0);

        print_message("%s\n", r->name);
        assert_int_equal(run.started, 1);
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
    EACH(r, rows)
    {
        EACH(mode, modes)
        {
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
    struct exec_spec s = spec_of(EXEC_CAPTURE, SH("head -c 1073741824 /dev/zero; echo done >&2"));
    struct run run = { 0 };

    (void)state;
    s.out_max = 100000;
    begin(&run, &s);
    turn_loop();
    assert_int_equal(run.r.out.n, 100000);
    assert_true(run.r.out.cap <= 2 * 100000);
    assert_int_equal(run.r.out_bytes, 1073741824);
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

/* Nobody of that tree lives: we are the subreaper, so an orphan would be our child. */
static void assert_no_child(void)
{
    for (int i = 0; i < 200; i++) {
        (void)usleep(5000);
        ev_loop_turn(loop);
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
    }
    fail_msg("a process is left");
}

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
    EACH(script, scripts)
    {
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
    struct exec_spec s = spec_of(EXEC_CAPTURE, SH("date +%s%N; sleep 0.05"));
    unsigned left = COUNT;
    uint64_t before = 0, now;

    (void)state;
    s.deadline_ms = 2000; /* from the spawn: waiting does not count */
    EACH(run, runs)
    {
        run->countdown = &left;
        begin(run, &s);
    }
    assert_int_equal(exec_running(pool), 4);
    assert_int_equal(exec_queued(pool), COUNT - 4);
    exec_cancel(runs[COUNT - 1].x);
    turn_loop();
    for (int i = 0; i < COUNT - 1; i++) {
        now = strtoull(buf_cstr(&runs[i].r.out), NULL, 10);
        assert_true(now + 40000000 > before); /* in order, give or take who shared a turn */
        before = now;
        assert_int_equal(runs[i].r.code, 0);
    }
    assert_true(runs[COUNT - 1].r.is_canceled && runs[COUNT - 1].started == 0);
    assert_int_equal(runs[COUNT - 1].r.fail.sys, ECANCELED);
    EACH(run, runs)
    done(run);
    assert_int_equal(exec_running(pool) + exec_queued(pool), 0);
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
    EACH(run, runs)
    {
        *run = (struct run){ .countdown = &left };
        begin(run, &s);
    }
    turn_loop();
    EACH(run, runs)
    {
        assert_true(run->started == 1 && run->r.code == 0 && run->r.signal == 0 &&
                    run->r.fail.step == 0);
        done(run);
    }
    (void)close(fd);
    again = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(again, fd); /* no descriptor was left open below it */
    (void)close(again);
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

static int open_all(void **state)
{
    static char *env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "KEPT=kept", "SECRET=s3", "A=base",
                           NULL };
    static const char *const hidden[] = { "SECRET", NULL };
    struct exec_pool_spec spec = { .running_max = 4, .environ = env, .hidden = hidden };
    struct err e;

    (void)state;
    if (ev_loop_new(&loop, &e) < 0 || ev_children_open(loop, NULL, NULL, NULL, &children, &e) < 0)
        return -1;
    return exec_pool_new(loop, children, &spec, &pool, &e);
}

static int close_all(void **state)
{
    (void)state;
    exec_pool_free(pool);
    ev_children_close(children);
    ev_loop_free(loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_what_a_command_gives),
        cmocka_unit_test(test_what_cannot_start),
        cmocka_unit_test(test_directory_and_variables),
        cmocka_unit_test(test_output_past_its_ceiling_is_read_and_dropped),
        cmocka_unit_test(test_a_deadline_ends_the_whole_tree),
        cmocka_unit_test(test_a_background_process_is_waited_for_so_long),
        cmocka_unit_test(test_input_comes_back_from_cat),
        cmocka_unit_test(test_input_nobody_reads),
        cmocka_unit_test(test_a_slow_reader_stops_the_command),
        cmocka_unit_test(test_a_terminal),
        cmocka_unit_test(test_signals_and_cancel),
        cmocka_unit_test(test_a_detached_command_goes_on),
        cmocka_unit_test(test_more_than_fit_wait_in_order),
        cmocka_unit_test(test_hundreds_of_short_ones),
        cmocka_unit_test(test_shutdown_asks_then_kills), /* last: nothing starts after it */
    };

    return cmocka_run_group_tests(all, open_all, close_all);
}
