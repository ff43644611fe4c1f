#include "up/part.h"

#include "base/scratch.h"
#include "ev/timer.h"
#include "isolate/dir.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* This program is the part, too: what it is told to be is its first argument. */
static int be(const char *what)
{
    if (strcmp(what, "fails") == 0) {
        fprintf(stderr, "silica: it cannot be\nhint: be another\n");
        return 7;
    }
    if (strcmp(what, "stubborn") == 0)
        (void)signal(SIGTERM, SIG_IGN);
    fprintf(stderr, "here I am\n");
    printf("ready\nmore\n");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

struct watch {
    struct ev_loop *loop;
    struct ev_children *kids;
    struct part *part;
    struct buf lines, states;
    enum part_state until;
    struct ev_timer deadline;
    struct scratch dir;
};

static void on_line(void *ctx, struct part *p, struct span line)
{
    struct watch *w = ctx;
    struct err e;

    (void)p;
    assert_int_equal(buf_add(&w->lines, line, &e), 0);
    assert_int_equal(buf_addc(&w->lines, ' ', &e), 0);
}

static void on_change(void *ctx, struct part *p)
{
    struct watch *w = ctx;
    struct err e;

    assert_int_equal(buf_addf(&w->states, &e, "%s ", part_state_name(part_state(p))), 0);
    if (part_state(p) == w->until)
        ev_loop_stop(w->loop);
}

static void on_late(void *ctx)
{
    (void)ctx;
    fail_msg("it took too long");
}

static void begin(struct watch *w, const char *what)
{
    const char *const argv[] = { what, NULL };
    struct part_spec spec = { .name = "thing",
                              .argv = argv,
                              .listen_fd = -1,
                              .on_line = on_line,
                              .on_change = on_change,
                              .ctx = w };
    struct err e;

    *w = (struct watch){ .lines = BUF_INIT(4096), .states = BUF_INIT(4096) };
    scratch_make(&w->dir);
    spec.log_fd = open(w->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(spec.log_fd >= 0);
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    assert_int_equal(ev_children_open(w->loop, NULL, NULL, NULL, &w->kids, &e), 0);
    ev_timer_start(w->loop, &w->deadline, 50000, on_late, w);
    w->part = part_new(w->loop, w->kids, &spec);
}

static void run_until(struct watch *w, enum part_state state)
{
    w->until = state;
    ev_loop_run(w->loop);
}

static void end(struct watch *w)
{
    part_free(w->part);
    ev_timer_stop(w->loop, &w->deadline);
    ev_children_close(w->kids);
    ev_loop_free(w->loop);
    buf_done(&w->lines);
    buf_done(&w->states);
    scratch_remove(&w->dir);
}

static void test_serves_comes_back_and_ends(void **state)
{
    struct watch w;

    (void)state;
    begin(&w, "serves");
    part_start(w.part);
    run_until(&w, PART_SERVING);
    assert_true(part_pid(w.part) > 0 && part_has_served(w.part));
    assert_int_equal(kill(part_pid(w.part), SIGKILL), 0);
    run_until(&w, PART_WAITING);
    assert_true(WIFSIGNALED(part_wait_status(w.part)));
    assert_int_equal(part_pid(w.part), 0);
    run_until(&w, PART_SERVING);
    assert_int_equal(part_restarts(w.part), 1);
    part_stop(w.part, 30000);
    run_until(&w, PART_ENDED);
    assert_string_equal(buf_cstr(&w.states),
                        "starting serving waiting starting serving ending ended ");
    assert_non_null(strstr(buf_cstr(&w.lines), "ready more "));
    assert_non_null(strstr(scratch_read(&w.dir, DIR_LOG), " stderr F here I am\n"));
    end(&w);
}

static void test_last_words(void **state)
{
    struct watch w;

    (void)state;
    begin(&w, "fails");
    part_start(w.part);
    run_until(&w, PART_WAITING);
    assert_true(WIFEXITED(part_wait_status(w.part)));
    assert_int_equal(WEXITSTATUS(part_wait_status(w.part)), 7);
    assert_false(part_has_served(w.part));
    assert_true(span_is(part_last_words(w.part), "silica: it cannot be\nhint: be another\n"));
    part_stop(w.part, 1000);
    assert_int_equal(part_state(w.part), PART_ENDED);
    end(&w);
}

static void test_one_that_does_not_end_is_killed(void **state)
{
    struct watch w;

    (void)state;
    begin(&w, "stubborn");
    part_start(w.part);
    run_until(&w, PART_SERVING);
    part_stop(w.part, 10);
    run_until(&w, PART_ENDED);
    assert_int_equal(WTERMSIG(part_wait_status(w.part)), SIGKILL);
    end(&w);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_serves_comes_back_and_ends),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_one_that_does_not_end_is_killed),
    };

    if (argc > 1)
        return be(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
