#include "http/ws_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Frames as they stand on the wire; what passes of them, and what was seen. */
static const struct row {
    const char *name;
    struct span in;
    size_t passes;
    uint64_t messages;
    bool is_closed, is_too_big, is_between;
} rows[] = {
    { "nothing", BYTES(""), 0, 0, false, false, true },
    { "a message", BYTES("\x81\x02hi"), 4, 1, false, false, true },
    { "an empty one", BYTES("\x82\x00"), 2, 1, false, false, true },
    { "from a client",
      BYTES("\x81\x82"
            "mask"
            "hi"),
      8, 1, false, false, true },
    { "as long as may be",
      BYTES("\x81\x08"
            "12345678"),
      10, 1, false, false, true },
    { "longer",
      BYTES("\x81\x02hi\x81\x09"
            "123456789"),
      4, 1, false, true, true },
    { "longer in pieces",
      BYTES("\x01\x05"
            "12345\x80\x04"
            "6789"),
      7, 0, false, true, true },
    { "as long in pieces",
      BYTES("\x01\x04"
            "1234\x80\x04"
            "5678"),
      12, 1, false, false, true },
    { "a ping between pieces",
      BYTES("\x01\x04"
            "1234\x89\x09"
            "123456789\x80\x04"
            "5678"),
      23, 1, false, false, true },
    { "not over", BYTES("\x81\x05hi"), 4, 0, false, false, false },
    { "half a head", BYTES("\x81\x7e\x01"), 3, 0, false, false, false },
    { "two bytes of length", BYTES("\x81\x7e\x00\x02hi"), 6, 1, false, false, true },
    { "two bytes of a length that is too much", BYTES("\x81\x7e\x01\x00zz"), 0, 0, false, true,
      true },
    { "eight bytes of length", BYTES("\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x02hi"), 12, 1, false,
      false, true },
    { "more than there is", BYTES("\x01\x01z\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), 3, 0, false,
      true, true },
    { "a goodbye", BYTES("\x81\x02hi\x88\x02\x03\xe8"), 8, 1, true, false, true },
};

static void test_frames(void **state)
{
    (void)state;
    EACH(r, rows) {
        for (size_t step = 1; step <= r->in.n + 1; step++) {
            struct ws_watch w = { .message_max = 8 };
            size_t passed = 0;

            for (size_t at = 0; at < r->in.n; at += step) {
                struct span piece = span_slice(r->in, at, at + step);
                size_t n = ws_watch_look(&w, piece);

                passed += n;
                if (n < piece.n)
                    break;
            }
            if (w.is_too_big != r->is_too_big || w.messages != r->messages ||
                w.is_closed != r->is_closed)
                fail_msg("'%s' by %zu: messages %u, closed %d, too big %d", r->name, step,
                         (unsigned)w.messages, w.is_closed, w.is_too_big);
            /* Cut within a head, some of it has passed: then nothing of ours may follow. */
            if (r->is_too_big && passed != r->passes)
                assert_false(ws_watch_is_between(&w));
            else if (passed != r->passes || ws_watch_is_between(&w) != r->is_between)
                fail_msg("'%s' by %zu: %zu bytes pass", r->name, step, passed);
        }
    }
}

static void test_no_limit(void **state)
{
    struct ws_watch w = { 0 };
    struct span in = SPAN("\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xffzz");

    (void)state;
    assert_int_equal(ws_watch_look(&w, in), in.n);
    assert_false(w.is_too_big || ws_watch_is_between(&w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
