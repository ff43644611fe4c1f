/* Copies through a real silica-runtime on its control socket: it has no sandbox around it, so both sides are our own
 * scratch directory. */
#include "sandbox/copy.h"

#include "base/scratch.h"
#include "ev/timer.h"
#include "sandbox/testruntime.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

#define GUARD_MS 20000 /* a test that hangs ends here, and fails */
#define BIG_N    (3 * 1024 * 1024)

static struct scratch tree;
static struct ev_loop *loop;
static struct ev_timer guard;
static struct sandbox *box;
static pid_t pid1;

struct copied {
    int ended;
    bool has_error;
    struct err e;
    char note[200];
};

static int setup(void **state)
{
    struct err e;

    (void)state;
    scratch_make(&tree);
    scratch_dir(&tree, "here");
    scratch_dir(&tree, "there");
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    assert_int_equal(sandbox_open(loop, testruntime_start(&pid1), &box, &e), 0);
    return 0;
}

static int teardown(void **state)
{
    int status;

    (void)state;
    sandbox_close(box);
    for (int i = 0; i < 4; i++)
        ev_loop_turn(loop);
    ev_loop_free(loop);
    assert_int_equal(waitpid(pid1, &status, 0), pid1);
    scratch_remove(&tree);
    return 0;
}

static void on_guard(void *ctx)
{
    ev_loop_stop(ctx);
}

static void turn(void)
{
    ev_timer_start(loop, &guard, GUARD_MS, on_guard, loop);
    ev_loop_run(loop);
    assert_true(ev_timer_is_running(&guard));
    ev_timer_stop(loop, &guard);
}

static void on_done(void *ctx, const char *note, const struct err *e)
{
    struct copied *c = ctx;

    c->ended++;
    c->has_error = e != NULL;
    if (e)
        c->e = *e;
    (void)snprintf(c->note, sizeof c->note, "%s", note);
    ev_loop_stop(loop);
}

static int begin(bool is_out, const char *inside, const char *outside, struct copied *c,
                 struct sandbox_copy **ret, struct err *e)
{
    struct sandbox_copy_spec spec = { .is_out = is_out,
                                      .inside = scratch_path(&tree, inside),
                                      .outside = scratch_path(&tree, outside),
                                      .max_bytes = 2 * BIG_N,
                                      .max_entries = 1000,
                                      .on_done = on_done,
                                      .ctx = c };

    *c = (struct copied){ 0 };
    return sandbox_copy(box, &spec, ret, e);
}

/* To its end; a failure at the start counts like one later. */
static void copy(bool is_out, const char *inside, const char *outside, struct copied *c)
{
    struct sandbox_copy *x;

    if (begin(is_out, inside, outside, c, &x, &c->e) < 0) {
        c->has_error = true;
        return;
    }
    assert_int_equal(c->ended, 0); /* never inside a verb */
    turn();
    assert_int_equal(c->ended, 1);
}

static void make_big(const char *path)
{
    OWN_MEM char *text = own_new(BIG_N + 1);

    for (size_t i = 0; i < BIG_N; i++)
        text[i] = (char)('a' + i * 7 % 23 + i / 4096 % 3);
    scratch_file(&tree, path, text);
}

static bool is_same(const char *a, const char *b)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execlp("diff", "diff", "-r", "--no-dereference", scratch_path(&tree, a),
                     scratch_path(&tree, b), NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_there_and_back(void **state)
{
    struct copied c;

    (void)state;
    scratch_dir(&tree, "here/t");
    scratch_dir(&tree, "here/t/sub");
    make_big("here/t/sub/big");
    scratch_file(&tree, "here/t/run", "#!/bin/sh\n");
    assert_int_equal(fchmodat(tree.fd, "here/t/run", 0750, 0), 0);
    scratch_link(&tree, "here/t/link", "/etc/shadow");
    copy(false, "there", "here/t", &c);
    if (c.has_error)
        fail_msg("%s", c.e.msg);
    assert_string_equal(c.note, "");
    assert_true(is_same("here/t", "there/t"));
    assert_int_equal(scratch_mode(&tree, "there/t/run"), 0750);
    copy(true, "there/t", "here/back", &c);
    if (c.has_error)
        fail_msg("%s", c.e.msg);
    assert_true(is_same("here/t", "here/back"));
}

static void test_failures(void **state)
{
    static const struct row {
        const char *name;
        bool is_out;
        const char *inside, *outside, *says;
    } rows[] = {
        { "nothing inside", true, "there/none", "here", "in the sandbox: cannot read '" },
        { "nothing here", false, "there", "here/none", "cannot read '" },
        { "no place inside", false, "there/a/b", "here/f", "in the sandbox: cannot write to '" },
        { "no place here", true, "there/f", "here/a/b", "cannot write to '" },
        { "a file inside is in the way", false, "there/f", "here/d",
          "in the sandbox: cannot write 'f'" },
        { "a file here is in the way", true, "there/d", "here/f", "cannot write 'f'" },
    };

    (void)state;
    scratch_file(&tree, "here/f", "f");
    scratch_file(&tree, "there/f", "f");
    scratch_dir(&tree, "here/d");
    scratch_dir(&tree, "there/d");
    EACH(r, rows) {
        struct copied c;

        copy(r->is_out, r->inside, r->outside, &c);
        if (!c.has_error || strncmp(c.e.msg, r->says, strlen(r->says)) != 0)
            fail_msg("%s: %s", r->name, c.has_error ? c.e.msg : "it worked");
    }
}

static void test_note(void **state)
{
    struct copied c;

    (void)state;
    scratch_dir(&tree, "there/k");
    assert_int_equal(mkfifoat(tree.fd, "there/k/pipe", 0600), 0);
    copy(true, "there/k", "here", &c);
    assert_false(c.has_error);
    assert_string_equal(c.note, "passed over 1 that is no file, directory or link");
}

static void test_limits(void **state)
{
    struct copied c;

    (void)state;
    make_big("there/a");
    scratch_dir(&tree, "there/d");
    make_big("there/d/1");
    make_big("there/d/2");
    make_big("there/d/3");
    copy(true, "there/a", "here", &c);
    assert_false(c.has_error);
    copy(true, "there/d", "here", &c);
    assert_true(c.has_error);
    assert_int_equal(c.e.code, ERR_LIMIT);
    assert_true(scratch_count(&tree, "here/d") <= 2);
}

static void test_canceled(void **state)
{
    struct sandbox_copy *x;
    struct copied c;
    struct err e;

    (void)state;
    make_big("here/big");
    assert_int_equal(begin(false, "there/big", "here/big", &c, &x, &e), 0);
    sandbox_copy_cancel(x);
    assert_int_equal(c.ended, 0);
    turn();
    assert_int_equal(c.ended, 1);
    assert_int_equal(c.e.code, ERR_CANCELED);
    assert_int_equal(scratch_count(&tree, "there"), 0); /* nothing temporary either */
    make_big("there/big");
    assert_int_equal(begin(true, "there/big", "here/out", &c, &x, &e), 0);
    sandbox_copy_cancel(x);
    turn();
    assert_int_equal(c.e.code, ERR_CANCELED);
    assert_int_equal(scratch_count(&tree, "here"), 1);
}

static void kill_now(void *ctx)
{
    (void)ctx;
    assert_int_equal(kill(pid1, SIGKILL), 0);
}

/* The sandbox dies in the middle: an endless file is being read, so it cannot have been over. */
static void test_pid1_dies(void **state)
{
    struct ev_timer later = { 0 };
    struct copied c;

    (void)state;
    scratch_file(&tree, "there/endless", "");
    assert_int_equal(truncate(scratch_path(&tree, "there/endless"), 1ll << 40), 0);
    for (int i = 0; i < 2; i++) {
        struct sandbox_copy_spec spec = {
            .is_out = i == 0,
            .inside = scratch_path(&tree, i == 0 ? "there/endless" : "there/in"),
            .outside = scratch_path(&tree, i == 0 ? "here/out" : "there/endless"),
            .max_bytes = UINT64_MAX,
            .max_entries = UINT64_MAX,
            .on_done = on_done,
            .ctx = &c,
        };
        struct sandbox_copy *x;
        struct err e;
        int status;

        c = (struct copied){ 0 };
        assert_int_equal(sandbox_copy(box, &spec, &x, &e), 0);
        ev_timer_start(loop, &later, 30, kill_now, NULL);
        turn();
        assert_int_equal(c.e.code, ERR_CLOSED);
        assert_false(scratch_has(&tree, "here/out"));
        assert_false(scratch_has(&tree, "there/in"));
        sandbox_close(box);
        ev_loop_turn(loop);
        assert_int_equal(scratch_count(&tree, "here"), 0); /* ours cleans up behind itself */
        assert_int_equal(waitpid(pid1, &status, 0), pid1);
        assert_int_equal(sandbox_open(loop, testruntime_start(&pid1), &box, &e), 0);
    }
}

int main(void)
{
#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest list[] = {
        WITH_RUNTIME(test_there_and_back), WITH_RUNTIME(test_failures),
        WITH_RUNTIME(test_note),           WITH_RUNTIME(test_limits),
        WITH_RUNTIME(test_canceled),       WITH_RUNTIME(test_pid1_dies),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
