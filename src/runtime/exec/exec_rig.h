/* exec_rig: a loop, a pool and one command under test; for the tests of exec. Each test program includes it once. */
#ifndef SILICA_RUNTIME_EXEC_RIG_H
#define SILICA_RUNTIME_EXEC_RIG_H

#include "runtime/exec/exec.h"

#include "base/time.h"
#include "ev/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MIB            (1024 * 1024)
#define GUARD_MS       30000 /* a test that hangs ends here, and fails */
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
static inline struct run run_sh(enum exec_mode mode, const char *script, uint64_t deadline_ms)
{
    struct exec_spec s = spec_of(mode, SH(script));
    struct run run = { 0 };

    s.deadline_ms = deadline_ms;
    begin(&run, &s);
    turn_loop();
    return run;
}

/* Nobody of that tree lives: we are the subreaper, so an orphan would be our child. */
static inline void assert_no_child(void)
{
    for (int i = 0; i < 200; i++) {
        (void)usleep(5000);
        ev_loop_turn(loop);
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
    }
    fail_msg("a process is left");
}

static int open_all(void **state)
{
    static char *env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "KEPT=kept", "SECRET=s3", "A=base",
                           NULL };
    static const char *const hidden[] = { "SECRET", NULL };
    static const int sent[] = { SIGHUP, SIGINT, SIGQUIT };
    struct exec_pool_spec spec = { .running_max = 4, .environ = env, .hidden = hidden };
    struct err e;

    (void)state;
    EACH(sig, sent)
        (void)signal(*sig,
                     SIG_DFL); /* nohup and a shell's & ignore them, and commands inherit that */
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

#endif
