/* Commands through a real silica-runtime on its control socket, and what a lying PID 1 can do. */
#include "sandbox/sandbox.h"

#include "base/fd.h"
#include "ev/timer.h"
#include "sandbox/limits.h"
#include "sandbox/line.h"
#include "sandbox/testruntime.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#define GUARD_MS 20000 /* a test that hangs ends here, and fails */
#define MIB      (1024 * 1024)

static struct ev_loop *loop;
static struct ev_timer guard;
static struct sandbox *box;
static pid_t pid1;

/* One command, and all that was told about it. */
struct run {
    struct sandbox_exec *x;
    struct buf seen[2];
    int started, ended, code, closed_input;
    struct err e;
    bool has_error;
    const char *until; /* stop the loop once this was seen on stdout */
    struct span feed;  /* input still to be given */
    size_t piece;      /* at a time */
    bool is_fed;       /* end of file follows it */
};

static void on_guard(void *ctx)
{
    ev_loop_stop(ctx);
}

static void turn(void)
{
    ev_timer_start(loop, &guard, GUARD_MS, on_guard, loop);
    ev_loop_run(loop);
    assert_true(ev_timer_is_running(&guard)); /* else we waited for nothing */
    ev_timer_stop(loop, &guard);
}

static void give(struct run *r)
{
    while (r->feed.n && !sandbox_exec_is_full(r->x)) {
        size_t took = sandbox_exec_write(r->x, span_slice(r->feed, 0, r->piece));

        if (r->piece <= SANDBOX_STDIN_HIGH_BYTES)
            assert_int_equal(took, MIN(r->piece, r->feed.n));
        r->feed = span_skip(r->feed, took);
    }
    if (!r->feed.n && r->is_fed) {
        r->is_fed = false;
        sandbox_exec_close_stdin(r->x);
    }
}

static void on_started(void *ctx)
{
    struct run *r = ctx;

    assert_int_equal(r->ended, 0);
    r->started++;
}

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct run *r = ctx;
    struct err e;

    assert_int_equal(r->started, 1);
    assert_int_equal(buf_add(&r->seen[which], piece, &e), 0);
    if (r->until && span_find_str(buf_span(&r->seen[0]), span_cstr(r->until)) != SIZE_MAX)
        ev_loop_stop(loop);
}

static void on_drain(void *ctx, bool is_open)
{
    struct run *r = ctx;

    if (is_open)
        give(r);
    else
        r->closed_input++;
}

static void on_exit_of(void *ctx, int code, const struct err *e)
{
    struct run *r = ctx;

    r->ended++;
    r->code = code;
    r->has_error = e;
    if (e)
        r->e = *e;
    r->x = NULL;
    ev_loop_stop(loop);
}

static const struct sandbox_exec_events events = { on_started, on_output, on_drain, on_exit_of };

static void begin(struct run *r, struct sandbox_exec_spec *spec)
{
    struct err e;

    *r = (struct run){ .seen = { BUF_INIT(8 * MIB), BUF_INIT(8 * MIB) }, .piece = 50000 };
    spec->events = &events;
    spec->ctx = r;
    if (sandbox_exec(box, spec, &r->x, &e) < 0)
        fail_msg("%s", e.msg);
}

static void done(struct run *r)
{
    assert_int_equal(r->ended, 1);
    buf_done(&r->seen[0]);
    buf_done(&r->seen[1]);
}

/* ---- a runtime of our own ---- */

static int setup(void **state)
{
    struct err e;

    (void)state;
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
    /* Closing the stream is the end of the runtime: nobody else can reach it. */
    assert_int_equal(waitpid(pid1, &status, 0), pid1);
    assert_true(WIFEXITED(status));
    return 0;
}

/* ---- commands ---- */

static void test_rows(void **state)
{
    static const struct row {
        const char *name;
        const char *argv[4], *env[3], *cwd;
        const char *out, *err;
        int code;
        enum err_code error;
    } rows[] = {
        { "output", { "sh", "-c", "echo out; echo err >&2" }, { NULL }, NULL, "out\n", "err\n", 0 },
        { "exit code", { "sh", "-c", "exit 7" }, { NULL }, NULL, "", "", 7 },
        { "largest exit code", { "sh", "-c", "exit 255" }, { NULL }, NULL, "", "", 255 },
        { "killed", { "sh", "-c", "kill -9 $$" }, { NULL }, NULL, "", "", 137 },
        { "directory", { "pwd" }, { NULL }, "/usr", "/usr\n", "", 0 },
        { "variables", { "sh", "-c", "echo $A-$B" }, { "A=1", "B=x=y" }, NULL, "1-x=y\n", "", 0 },
        { "no such program", { "no-such-program" }, { NULL }, NULL, "", "", 0, ERR_NOT_FOUND },
        { "not to be run", { "/etc/passwd" }, { NULL }, NULL, "", "", 0, ERR_DENIED },
        { "no such directory", { "true" }, { NULL }, "/nowhere", "", "", 0, ERR_NOT_FOUND },
    };

    (void)state;
    EACH(row, rows) {
        struct sandbox_exec_spec spec = { .argv = (char **)(uintptr_t)row->argv,
                                          .env = (char **)(uintptr_t)row->env,
                                          .cwd = row->cwd };
        struct run r;

        begin(&r, &spec);
        turn();
        if (r.has_error != (row->error != ERR_NONE) || (r.has_error && r.e.code != row->error))
            fail_msg("%s: error %d %s", row->name, r.has_error, r.has_error ? r.e.msg : "");
        if (r.code != row->code || r.started != !r.has_error)
            fail_msg("%s: code %d, started %d", row->name, r.code, r.started);
        assert_string_equal(buf_cstr(&r.seen[0]), row->out);
        assert_string_equal(buf_cstr(&r.seen[1]), row->err);
        done(&r);
    }
}

static void test_input_and_back_pressure(void **state)
{
    OWN(buf_done) struct buf big = BUF_INIT(4 * MIB);
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"cat", NULL } };
    struct run r;
    struct err e;

    (void)state;
    for (uint32_t i = 0; big.n < 3 * MIB; i++)
        assert_int_equal(buf_addf(&big, &e, "%u ", i * 2654435761u), 0);
    for (int is_at_once = 0; is_at_once < 2; is_at_once++) {
        begin(&r, &spec);
        r.feed = buf_span(&big);
        r.is_fed = true;
        if (is_at_once)
            r.piece = SIZE_MAX; /* more than the queue holds: what it does not take is not lost */
        give(&r);
        assert_true(sandbox_exec_is_full(r.x));
        turn();
        assert_int_equal(r.code, 0);
        assert_true(span_eq(buf_span(&r.seen[0]), buf_span(&big)));
        done(&r);
    }
}

static void test_nobody_reads(void **state)
{
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"sh", (char *)"-c",
                                                          (char *)"exec <&-; echo gone; sleep 0.3",
                                                          NULL } };
    static const uint8_t zeroes[MIB];
    struct run r;

    (void)state;
    begin(&r, &spec);
    r.until = "gone";
    turn();
    r.until = NULL;
    r.feed = span_of(zeroes, sizeof zeroes);
    give(&r);
    turn();
    assert_int_equal(r.code, 0);
    assert_int_equal(r.closed_input, 1);
    done(&r);
}

static void on_resume(void *ctx)
{
    struct run *r = ctx;

    assert_int_equal(r->ended, 0);
    assert_true(r->seen[0].n <= SANDBOX_WINDOW_BYTES);
    sandbox_exec_pause(r->x, false);
}

static void test_paused_output(void **state)
{
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"head", (char *)"-c",
                                                          (char *)"2000000", (char *)"/dev/zero",
                                                          NULL } };
    struct ev_timer later = { 0 };
    struct run r;

    (void)state;
    begin(&r, &spec);
    sandbox_exec_pause(r.x, true);
    ev_timer_start(loop, &later, 300, on_resume, &r);
    turn();
    assert_int_equal(r.seen[0].n, 2000000);
    done(&r);
}

static void test_signals(void **state)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"sleep", (char *)"60", NULL } };

    (void)state;
    for (size_t i = 0; i < LEN(numbers); i++) {
        struct run r;

        begin(&r, &spec);
        sandbox_exec_signal(r.x, numbers[i]); /* kept until it runs */
        turn();
        assert_int_equal(r.code, 128 + numbers[i]);
        done(&r);
    }
}

static void test_terminal(void **state)
{
    struct sandbox_exec_spec spec = {
        .argv = (char *[]){ (char *)"sh", (char *)"-c",
                            (char *)"tty; stty size; read x; stty size; echo got $x", NULL },
        .has_tty = true,
        .cols = 91,
        .rows = 23,
    };
    struct run r;

    (void)state;
    begin(&r, &spec);
    r.until = "23 91\r\n";
    turn();
    assert_true(span_starts(buf_span(&r.seen[0]), "/dev/pts/"));
    r.until = NULL;
    sandbox_exec_resize(r.x, 132, 50);
    assert_int_equal(sandbox_exec_write(r.x, SPAN("word\r")), 5);
    turn();
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(buf_cstr(&r.seen[0]), "50 132\r\n"));
    assert_non_null(strstr(buf_cstr(&r.seen[0]), "got word\r\n"));
    done(&r);
}

static void test_cancel_and_close(void **state)
{
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"sh", (char *)"-c",
                                                          (char *)"echo up; sleep 60", NULL } };
    struct run r, late;

    (void)state;
    begin(&r, &spec);
    r.until = "up";
    turn();
    sandbox_exec_cancel(r.x);
    assert_int_equal(r.ended, 0); /* never inside a verb */
    turn();
    assert_int_equal(r.e.code, ERR_CANCELED);
    done(&r);

    begin(&late, &spec);
    sandbox_close(take_ptr(&box));
    assert_int_equal(late.ended, 0);
    turn();
    assert_int_equal(late.e.code, ERR_CANCELED);
    done(&late);
}

static void test_pid1_dies(void **state)
{
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"sh", (char *)"-c",
                                                          (char *)"echo up; sleep 60", NULL } };
    struct sandbox_exec *x;
    struct run r;
    struct err e;
    int status;

    (void)state;
    begin(&r, &spec);
    r.until = "up";
    turn();
    r.until = NULL;
    assert_int_equal(kill(pid1, SIGKILL), 0);
    turn();
    assert_int_equal(r.e.code, ERR_CLOSED);
    done(&r);
    assert_int_equal(sandbox_exec(box, &spec, &x, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
    assert_int_equal(waitpid(pid1, &status, 0), pid1);
    sandbox_close(take_ptr(&box));
    ev_loop_turn(loop);
    ev_loop_free(loop);
}

static void test_refused_here(void **state)
{
    static const struct row {
        const char *name, *argv[2], *env[2];
        enum err_code code;
    } rows[] = {
        { "no command", { NULL }, { NULL }, ERR_INVALID },
        { "argument is not text", { "a\xff" }, { NULL }, ERR_INVALID },
        { "variable without a name", { "true" }, { "=x" }, ERR_INVALID },
        { "variable without a value", { "true" }, { "X" }, ERR_INVALID },
    };

    (void)state;
    EACH(row, rows) {
        struct sandbox_exec_spec spec = { .argv = (char **)(uintptr_t)row->argv,
                                          .env = (char **)(uintptr_t)row->env,
                                          .events = &events };
        struct sandbox_exec *x;
        struct err e;

        if (sandbox_exec(box, &spec, &x, &e) == 0 || e.code != row->code)
            fail_msg("%s: %d", row->name, e.code);
    }
}

/* ---- a PID 1 that lies ---- */

/* Its end of the stream. */
static int open_liar(void)
{
    struct err e;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    assert_int_equal(sandbox_open(loop, pair[0], &box, &e), 0);
    return pair[1];
}

static void close_liar(int fd)
{
    sandbox_close(box);
    for (int i = 0; i < 4; i++)
        ev_loop_turn(loop);
    ev_loop_free(loop);
    (void)close(fd);
}

static void test_nonsense(void **state)
{
    static const struct row {
        const char *name;
        struct span says;
    } rows[] = {
        { "nothing", BYTES("") },
        { "HTTP", BYTES("HTTP/1.1 200 OK\r\n\r\n") },
        { "a frame of another length", BYTES("\x08\0\0\1\0\0\0\1x") },
        { "a huge frame", BYTES("\x09\xff\xff\xff\0\0\0\1") },
        { "an end that is cut", BYTES("\x08\0\0\0\0\0\0\1\x0d\0\0\1\0\0\0\1") },
        { "an end without a start", BYTES("\x0d\0\0\1\0\0\0\1\0") },
        { "output before the start", BYTES("\x09\0\0\1\0\0\0\1x") },
        { "the end of another command", BYTES("\x08\0\0\0\0\0\0\1\x0d\0\0\1\0\0\0\2\0") },
        { "a frame of ours", BYTES("\x07\0\0\0\0\0\0\1") },
    };

    (void)state;
    EACH(row, rows) {
        struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"true", NULL } };
        struct run r;
        struct err e;
        int fd;

        fd = open_liar();
        begin(&r, &spec);
        assert_int_equal(fd_write_all(fd, row->says, &e), 0);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        turn();
        if (!r.has_error || (r.e.code != ERR_CLOSED && r.e.code != ERR_PROTOCOL))
            fail_msg("%s: %d %s", row->name, r.has_error, r.has_error ? r.e.msg : "");
        done(&r);
        close_liar(fd);
    }
}

/* Output beyond the window of a reader that has paused ends the conversation. */
static void test_more_than_asked(void **state)
{
    struct sandbox_exec_spec spec = { .argv = (char *[]){ (char *)"true", NULL } };
    OWN(buf_done) struct buf says = BUF_INIT(MIB);
    static const uint8_t zeroes[TALK_PIECE_MAX_BYTES];
    struct run r;
    struct err e;
    int fd;

    (void)state;
    fd = open_liar();
    begin(&r, &spec);
    sandbox_exec_pause(r.x, true);
    assert_int_equal(talk_add(&says, TALK_STARTED, 1, SPAN_NONE, &e), 0);
    for (size_t n = 0; n <= SANDBOX_WINDOW_BYTES; n += sizeof zeroes)
        assert_int_equal(talk_add(&says, TALK_OUT, 1, span_of(zeroes, sizeof zeroes), &e), 0);
    for (struct span rest = buf_span(&says); rest.n; rest = span_skip(rest, 4096)) {
        assert_int_equal(fd_write_all(fd, span_slice(rest, 0, 4096), &e), 0);
        ev_loop_turn(loop);
    }
    assert_int_equal(r.ended, 1);
    assert_int_equal(r.e.code, ERR_PROTOCOL);
    assert_int_equal(r.seen[0].n, SANDBOX_WINDOW_BYTES);
    done(&r);
    close_liar(fd);
}

/* ---- an owner that does not keep to the rules ---- */

#define HELLO      "\0silica1"
#define TRUE_      "\0\0\0\0\0\0\0\0\1\0\0\0\0true\0"
#define START_TRUE "\1\0\0\x12\0\0\0\7" TRUE_ /* as command 7 */

/* What a runtime of our own answers to these bytes before it hangs up, which is its end. */
static void say_to_runtime(struct span bytes, struct buf *heard)
{
    int fd = testruntime_start(&pid1), status;
    struct err e;

    assert_int_equal(fd_write_all(fd, bytes, &e), 0);
    for (;;) {
        uint8_t piece[4096];
        ssize_t n = read(fd, piece, sizeof piece);

        if (n <= 0)
            break;
        assert_int_equal(buf_add(heard, span_of(piece, (size_t)n), &e), 0);
        if (heard->n > TALK_HEAD_BYTES && heard->p[heard->n - 1 - TALK_HEAD_BYTES] == TALK_EXIT)
            assert_int_equal(shutdown(fd, SHUT_WR), 0);
    }
    (void)close(fd);
    assert_int_equal(waitpid(pid1, &status, 0), pid1);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_bad_owners(void **state)
{
    static const struct row {
        const char *name;
        struct span says, hears;
    } rows[] = {
        { "the rules", BYTES(HELLO START_TRUE), BYTES("\x08\0\0\0\0\0\0\7\x0d\0\0\1\0\0\0\7\0") },
        { "what ended long ago", BYTES(HELLO "\7\0\0\0\0\0\0\1\4\0\0\1\0\0\0\2\x09" START_TRUE),
          BYTES("\x08\0\0\0\0\0\0\7\x0d\0\0\1\0\0\0\7\0") },
        { "another preface", BYTES("\0silica2" START_TRUE), BYTES("") },
        { "another kind", BYTES(HELLO "\x08\0\0\0\0\0\0\7"), BYTES("") },
        { "a start of nothing", BYTES(HELLO "\1\0\0\0\0\0\0\7"), BYTES("") },
        { "a start without a NUL", BYTES(HELLO "\1\0\0\x11\0\0\0\7" TRUE_), BYTES("") },
        { "the same number twice", BYTES(HELLO START_TRUE START_TRUE), BYTES("") },
        { "credit for nothing", BYTES(HELLO START_TRUE "\6\0\0\4\0\0\0\7\0\0\0\1"), BYTES("") },
        { "signal 65", BYTES(HELLO START_TRUE "\4\0\0\1\0\0\0\7\x41"), BYTES("") },
    };

    (void)state;
    EACH(row, rows) {
        OWN(buf_done) struct buf heard = BUF_INIT(65536);

        say_to_runtime(row->says, &heard);
        if (!span_eq(buf_span(&heard), row->hears))
            fail_msg("%s: %zu bytes", row->name, heard.n);
    }
}

static void test_clean_text(void **state)
{
    static const struct row {
        const char *name, *in, *out;
    } rows[] = {
        { "plain", "no such file", "no such file" },
        { "letters of the world", "\xc3\xbc \xe2\x82\xac", "\xc3\xbc \xe2\x82\xac" },
        { "an escape sequence", "a\x1b[2Jb", "a?[2Jb" },
        { "new lines and tabs", "a\n\tb", "a??b" },
        { "an 8-bit control",
          "\xc2\x9b"
          "2J",
          "?2J" },
        { "not UTF-8", "\xff\xfe", "??" },
        { "delete", "\x7f", "?" },
    };

    (void)state;
    EACH(row, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(64);

        line_clean_text(span_cstr(row->in), &out);
        if (strcmp(buf_cstr(&out), row->out) != 0)
            fail_msg("%s: '%s'", row->name, buf_cstr(&out));
    }
}

int main(void)
{
#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest list[] = {
        WITH_RUNTIME(test_rows),
        WITH_RUNTIME(test_input_and_back_pressure),
        WITH_RUNTIME(test_nobody_reads),
        WITH_RUNTIME(test_paused_output),
        WITH_RUNTIME(test_signals),
        WITH_RUNTIME(test_terminal),
        WITH_RUNTIME(test_cancel_and_close),
        WITH_RUNTIME(test_refused_here),
        cmocka_unit_test_setup(test_pid1_dies, setup),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_more_than_asked),
        cmocka_unit_test(test_bad_owners),
        cmocka_unit_test(test_clean_text),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
