#include "cli/serving.h"

#include "base/fd.h"
#include "cli/command.h"
#include "ev/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PATIENCE_MS 30000

/* ---- options ---- */

static void test_log(void **state)
{
    static const struct row {
        const char *name;
        struct serving_log in;
        const char *want; /* what is wrong with it */
        enum log_level level;
        enum log_format format;
    } rows[] = {
        { "as it is by itself", { "info", "text" }, NULL, LOG_INFO, LOG_TEXT },
        { "for programs", { "debug", "json" }, NULL, LOG_DEBUG, LOG_JSON },
        { "without a choice of format", { "warn", NULL }, NULL, LOG_WARN, LOG_TEXT },
        { "no level", { "loud", "text" }, "--log-level: 'loud' is not debug, info, warn or error" },
        { "no format", { "info", "xml" }, "--log-format: 'xml' is neither text nor json" },
    };

    (void)state;
    EACH(r, rows) {
        enum log_level level = LOG_OFF;
        enum log_format format = LOG_ZAP;
        struct err e = { 0 };

        assert_int_equal(serving_log_read(&r->in, &level, &format, &e), r->want ? -1 : 0);
        assert_string_equal(e.msg, r->want ? r->want : "");
        assert_int_equal(e.code, r->want ? ERR_USAGE : ERR_NONE);
        if (!r->want) {
            assert_int_equal(level, r->level);
            assert_int_equal(format, r->format);
        }
    }
}

struct some_options {
    uint64_t fd;
    bool is_help;
};

static const struct opt opts[] = {
    SERVING_READY_FD(offsetof(struct some_options, fd), "it serves"),
    COMMAND_HELP(offsetof(struct some_options, is_help), NULL),
};
static const struct opt_program program = {
    .name = "some", .usage = "", .example = "some", .opts = opts, .opt_count = LEN(opts)
};

static void test_parse(void **state)
{
    char *plain[] = { "some", NULL };
    char *more[] = { "some", "--ready-fd", "5", "word", NULL };
    char *wrong[] = { "some", "--fd", NULL };
    struct some_options o = { 0 };
    int rest;

    (void)state;
    assert_int_equal(command_parse(&program, 1, plain, &o, NULL), COMMAND_GOES_ON);
    assert_true(o.fd == SERVING_NO_FD);
    assert_int_equal(command_parse(&program, 4, more, &o, &rest), COMMAND_GOES_ON);
    assert_true(o.fd == 5 && rest == 3);
    assert_int_equal(command_parse(&program, 4, more, &o, NULL), EXIT_USAGE);
    assert_int_equal(command_parse(&program, 2, wrong, &o, &rest), EXIT_USAGE);
}

/* ---- the line ---- */

static void test_line(void **state)
{
    OWN(buf_done) struct buf got = BUF_INIT(4096);
    struct serving s;
    struct err e;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(serving_open(&s, &(struct serving_spec){ .ready_fd = (uint64_t)fds[1] }, &e),
                     0);
    assert_int_equal(fcntl(fds[1], F_GETFD), FD_CLOEXEC); /* what we start does not keep it open */
    json_out_key(serving_line(&s), "n"), json_out_u64(&s.out, 1);
    assert_int_equal(serving_say(&s, &e), 0);
    json_out_key(serving_line(&s), "n"), json_out_u64(&s.out, 2);
    assert_int_equal(serving_ready(&s, &e), 0);
    assert_int_equal(fcntl(fds[1], F_GETFD), -1);
    (void)serving_line(&s);
    assert_int_equal(serving_say(&s, &e), 0); /* nobody waits any more */
    assert_int_equal(fd_read_all(fds[0], &got, &e), 0);
    assert_string_equal(buf_cstr(&got), "{\"n\":1}\n{\"n\":2}\n");
    (void)close(fds[0]);
    serving_close(&s);
}

static void test_line_for_nobody(void **state)
{
    struct serving s;
    struct err e = { 0 };
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(serving_open(&s, &(struct serving_spec){ .ready_fd = (uint64_t)fds[1] }, &e),
                     0);
    (void)close(fds[0]);
    (void)serving_line(&s);
    assert_int_equal(serving_ready(&s, &e), -1); /* and not SIGPIPE */
    assert_int_equal(e.sys, EPIPE);
    assert_non_null(strstr(e.msg, "--ready-fd"));
    (void)close(fds[1]);
    serving_close(&s);
}

/* A standard stream is not given to the next that opens something. */
static void test_let_go(void **state)
{
    OWN_FD int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
    OWN_FD int moved = -1;
    int fds[2], next;
    struct err e;
    char byte;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(dup2(fds[0], 0), 0);
    assert_int_equal(command_take_fd(0, &moved, &e), 0);
    assert_true(moved > 2);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(read(moved, &byte, 1), 1);
    assert_int_equal(read(0, &byte, 1), 0); /* ours is empty */
    next = dup(fds[0]);
    assert_true(next > 2);
    (void)close(next);
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_int_equal(command_take_fd(1000, &next, &e), -1);
    assert_int_equal(e.sys, EBADF);
    assert_int_equal(dup2(saved, 0), 0);
}

/* ---- signals ---- */

struct stops {
    struct serving s;
    struct ev_timer deadline;
    int first, again;
};

static void too_late(void *ctx)
{
    (void)ctx;
    fail_msg("no signal came");
}

static void on_stop(void *ctx, bool is_again)
{
    struct stops *t = ctx;

    assert_true(t->s.is_stopping);
    if (is_again) {
        t->again++;
        ev_loop_stop(t->s.loop);
        return;
    }
    t->first++;
    assert_int_equal(raise(SIGINT), 0);
}

static void test_signals(void **state)
{
    struct stops t = { 0 };
    struct serving_spec spec = { .stop = on_stop, .ctx = &t, .ready_fd = SERVING_NO_FD };
    struct err e;

    (void)state;
    assert_int_equal(serving_open(&t.s, &spec, &e), 0);
    ev_timer_start(t.s.loop, &t.deadline, PATIENCE_MS, too_late, NULL);
    assert_int_equal(raise(SIGTERM), 0);
    ev_loop_run(t.s.loop);
    assert_true(t.first == 1 && t.again == 1);
    ev_timer_stop(t.s.loop, &t.deadline);
    serving_close(&t.s);
}

static void test_hangup(void **state)
{
    struct stops t = { 0 };
    struct serving_spec spec = { .ready_fd = SERVING_NO_FD, .ends_with_hangup = true };
    struct err e;

    (void)state;
    assert_int_equal(serving_open(&t.s, &spec, &e), 0);
    ev_timer_start(t.s.loop, &t.deadline, PATIENCE_MS, too_late, NULL);
    assert_int_equal(raise(SIGHUP), 0);
    ev_loop_run(t.s.loop); /* without a function of ours it stops */
    assert_true(t.s.is_stopping);
    ev_timer_stop(t.s.loop, &t.deadline);
    serving_close(&t.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),    cmocka_unit_test(test_parse),
        cmocka_unit_test(test_line),   cmocka_unit_test(test_line_for_nobody),
        cmocka_unit_test(test_let_go), cmocka_unit_test(test_signals),
        cmocka_unit_test(test_hangup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
