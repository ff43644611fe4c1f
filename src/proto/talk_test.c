/* Frames of the control stream: what is added reads back, whatever the cuts; what does not fit is refused. */
#include "proto/talk.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FRAME(kind, length, rest) BYTES(kind "\0" length "\0\0\0\7" rest)

static void test_heads(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        enum talk_side from;
        bool is_good;
    } rows[] = {
        { "started", FRAME("\x08", "\0\0", ""), TALK_PID1, true },
        { "started with bytes", FRAME("\x08", "\0\1", "x"), TALK_PID1, false },
        { "output", FRAME("\x09", "\0\2", "hi"), TALK_PID1, true },
        { "output of nothing", FRAME("\x09", "\0\0", ""), TALK_PID1, false },
        { "the longest output there is, so far", BYTES("\x09\1\0\0\0\0\0\7"), TALK_PID1, true },
        { "more output", BYTES("\x09\1\0\1\0\0\0\7"), TALK_PID1, false },
        { "exit", FRAME("\x0d", "\0\1", "\xff"), TALK_PID1, true },
        { "exit without a code", FRAME("\x0d", "\0\0", ""), TALK_PID1, false },
        { "failed without a status", FRAME("\x0e", "\0\0", ""), TALK_PID1, false },
        { "kind 0", FRAME("\0", "\0\0", ""), TALK_PID1, false },
        { "a kind that nobody has", FRAME("\x0f", "\0\0", ""), TALK_PID1, false },
        { "a frame of the other side", FRAME("\x07", "\0\0", ""), TALK_PID1, false },
        { "PID 1's from the owner", FRAME("\x08", "\0\0", ""), TALK_OWNER, false },
        { "cancel", FRAME("\x07", "\0\0", ""), TALK_OWNER, true },
        { "signal", FRAME("\x04", "\0\1", "\x0f"), TALK_OWNER, true },
        { "a long signal", FRAME("\x04", "\0\2", "\x0f\x0f"), TALK_OWNER, false },
        { "a short start", FRAME("\x01", "\0\1", "x"), TALK_OWNER, false },
        { "a start that is too long", BYTES("\x01\x40\0\1\0\0\0\7"), TALK_OWNER, false },
        { "HTTP", BYTES("HTTP/1.1 400"), TALK_PID1, false },
    };

    (void)state;
    EACH(row, rows) {
        struct talk_frame f;
        struct talk t;
        enum feed verdict;
        struct err e = { 0 };
        size_t used;

        talk_init(&t, row->from);
        verdict = talk_feed(&t, row->in, &used, &f, &e);
        if ((verdict != FEED_BAD) != row->is_good)
            fail_msg("%s: %d", row->name, verdict);
        if (verdict == FEED_DONE)
            assert_true(f.call == 7 && used == row->in.n && f.bytes.n == used - TALK_HEAD_BYTES);
        if (verdict == FEED_BAD) {
            assert_int_equal(e.code, ERR_PROTOCOL);
            assert_int_equal(talk_feed(&t, SPAN("later"), &used, &f, &e), FEED_BAD);
        }
        talk_done(&t);
    }
}

static void test_numbers(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(1024);
    static const struct {
        enum talk_kind kind;
        uint32_t number;
    } rows[] = { { TALK_SIGNAL, 64 },
                 { TALK_RESIZE, 132u << 16 | 50 },
                 { TALK_CREDIT, 0xfffffffe } };
    struct talk_frame f;
    struct talk t;
    struct err e;
    size_t used;

    (void)state;
    talk_init(&t, TALK_OWNER);
    EACH(row, rows) {
        buf_clear(&out);
        assert_int_equal(talk_add_number(&out, row->kind, UINT32_MAX, row->number, &e), 0);
        assert_int_equal(talk_feed(&t, buf_span(&out), &used, &f, &e), FEED_DONE);
        assert_true(f.kind == row->kind && f.call == UINT32_MAX && talk_number(&f) == row->number);
    }
    talk_done(&t);
}

/* Three frames, a long one between two short ones, in pieces of every length. */
static void test_cuts(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    uint8_t long_one[300];
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof long_one; i++)
        long_one[i] = (uint8_t)i;
    assert_int_equal(talk_add(&out, TALK_STARTED, 1, SPAN_NONE, &e), 0);
    assert_int_equal(talk_add(&out, TALK_OUT, 2, span_of(long_one, sizeof long_one), &e), 0);
    assert_int_equal(talk_add_number(&out, TALK_EXIT, 3, 9, &e), 0);
    for (size_t step = 1; step <= out.n; step++) {
        struct talk_frame f;
        struct talk t;
        uint32_t seen = 0;
        size_t at = 0, used;

        talk_init(&t, TALK_PID1);
        while (at < out.n) {
            if (talk_feed(&t, span_slice(buf_span(&out), at, at + step), &used, &f, &e) ==
                FEED_DONE) {
                assert_int_equal(f.call, ++seen);
                if (seen == 2)
                    assert_true(span_eq(f.bytes, span_of(long_one, sizeof long_one)));
                if (seen == 3)
                    assert_int_equal(talk_number(&f), 9);
            }
            at += used;
        }
        assert_int_equal(seen, 3);
        talk_done(&t);
    }
}

static void test_start(void **state)
{
    char *argv[] = { (char *)"sh", (char *)"", (char *)"\xc3\xbc", NULL };
    char *env[] = { (char *)"A=", (char *)"B=x=y", NULL };
    const struct talk_start start = { .has_tty = true,
                                      .cols = 91,
                                      .rows = 65535,
                                      .cwd = (char *)"/work",
                                      .argv = argv,
                                      .argc = 3,
                                      .env = env,
                                      .env_count = 2 };
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct talk_start got;
    struct err e;

    (void)state;
    assert_int_equal(talk_add_start(&out, 5, &start, &e), 0);
    assert_int_equal(talk_read_start(span_skip(buf_span(&out), TALK_HEAD_BYTES), &got, &e), 0);
    assert_true(got.has_tty && got.cols == 91 && got.rows == 65535);
    assert_string_equal(got.cwd, "/work");
    assert_int_equal(got.argc, 3);
    assert_string_equal(got.argv[2], "\xc3\xbc");
    assert_null(got.argv[3]);
    assert_int_equal(got.env_count, 2);
    assert_string_equal(got.env[1], "B=x=y");
    assert_null(got.env[2]);
    talk_start_done(&got);
    /* Cut anywhere it is not one. */
    for (size_t n = TALK_HEAD_BYTES; n < out.n; n++)
        assert_int_equal(talk_read_start(span_slice(buf_span(&out), TALK_HEAD_BYTES, n), &got, &e),
                         -1);
}

#define START(flags, argc, env, texts) BYTES(flags "\0\x50\0\x19\0\0" argc "\0\0" env texts)

static void test_bad_starts(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        bool is_good;
    } rows[] = {
        { "the least there is", START("\0", "\0\1", "\0\0", "a\0"), true },
        { "no program", START("\0", "\0\0", "\0\0", ""), false },
        { "no NUL", START("\0", "\0\1", "\0\0", "a"), false },
        { "one text too many", START("\0", "\0\1", "\0\0", "a\0b\0"), false },
        { "one too few", START("\0", "\0\2", "\0\0", "a\0"), false },
        { "a directory", START("\2", "\0\1", "\0\0", "/\0a\0"), true },
        { "no directory", START("\2", "\0\1", "\0\0", "a\0"), false },
        { "an unknown flag", START("\4", "\0\1", "\0\0", "a\0"), false },
        { "an argument that is not text", START("\0", "\0\1", "\0\0", "\xff\0"), false },
        { "a directory that is not text", START("\2", "\0\1", "\0\0", "\xff\0a\0"), false },
        { "a variable", START("\0", "\0\1", "\0\1", "a\0B=\0"), true },
        { "a variable without a name", START("\0", "\0\1", "\0\1", "a\0=b\0"), false },
        { "a variable without a value", START("\0", "\0\1", "\0\1", "a\0B\0"), false },
        { "more than there can be", START("\0", "\xff\xff", "\xff\xff", "a\0"), false },
    };

    (void)state;
    EACH(row, rows) {
        struct talk_start got;
        struct err e = { 0 };
        int done = talk_read_start(row->in, &got, &e);

        if ((done == 0) != row->is_good || (done < 0 && e.code != ERR_PROTOCOL))
            fail_msg("%s: %d %s", row->name, done, e.msg);
        if (done == 0)
            talk_start_done(&got);
    }
}

static void test_refused_starts(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(TALK_START_MAX_BYTES * 2);
    OWN_MEM char *huge = own_resize(NULL, TALK_START_MAX_BYTES + 1, 1);
    char *argv[] = { huge, NULL };
    struct talk_start start = { .argv = argv, .argc = 0 };
    struct err e;

    (void)state;
    assert_int_equal(talk_add_start(&out, 1, &start, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    memset(huge, 'a', TALK_START_MAX_BYTES);
    huge[TALK_START_MAX_BYTES] = '\0';
    start.argc = 1;
    assert_int_equal(talk_add_start(&out, 1, &start, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(out.n, 0);
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_heads),      cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_cuts),       cmocka_unit_test(test_start),
        cmocka_unit_test(test_bad_starts), cmocka_unit_test(test_refused_starts),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
