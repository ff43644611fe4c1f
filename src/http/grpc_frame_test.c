#include "http/grpc_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define MAX_BYTES 16

static const struct row {
    const char *name;
    struct span in;
    enum feed want;     /* the last verdict */
    const char *msgs;   /* every message read, each followed by '|' */
    enum err_code code; /* of FEED_BAD */
    const char *err;    /* its text */
    enum err_code end;  /* of grpc_frame_end() after a good stream */
} rows[] = {
    { "nothing", BYTES(""), FEED_MORE, "", ERR_NONE, "", ERR_NONE },
    { "empty message", BYTES("\0\0\0\0\0"), FEED_DONE, "|", ERR_NONE, "", ERR_NONE },
    { "one message", BYTES("\0\0\0\0\2hi"), FEED_DONE, "hi|", ERR_NONE, "", ERR_NONE },
    { "two messages", BYTES("\0\0\0\0\2hi\0\0\0\0\1x"), FEED_DONE, "hi|x|", ERR_NONE, "",
      ERR_NONE },
    { "empty between two", BYTES("\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\1b"), FEED_DONE, "a||b|", ERR_NONE,
      "", ERR_NONE },
    { "exactly the limit",
      BYTES("\0\0\0\0\x10"
            "0123456789abcdef"),
      FEED_DONE, "0123456789abcdef|", ERR_NONE, "", ERR_NONE },
    { "prefix cut short", BYTES("\0\0\0"), FEED_MORE, "", ERR_NONE, "", ERR_PROTOCOL },
    { "prefix without its body", BYTES("\0\0\0\0\2"), FEED_MORE, "", ERR_NONE, "", ERR_PROTOCOL },
    { "payload cut short", BYTES("\0\0\0\0\2h"), FEED_MORE, "", ERR_NONE, "", ERR_PROTOCOL },
    { "second payload cut short", BYTES("\0\0\0\0\1a\0\0\0\0\2b"), FEED_MORE, "a|", ERR_NONE, "",
      ERR_PROTOCOL },
    { "compressed, not agreed", BYTES("\1\0\0\0\0"), FEED_BAD, "", ERR_PROTOCOL,
      "compressed message, but no encoding was agreed on", ERR_NONE },
    { "unknown flag", BYTES("\2\0\0\0\0"), FEED_BAD, "", ERR_PROTOCOL,
      "message with unknown flags 0x02", ERR_NONE },
    { "a trailer frame of grpc-web", BYTES("\x80\0\0\0\1x"), FEED_BAD, "", ERR_PROTOCOL,
      "message with unknown flags 0x80", ERR_NONE },
    { "one byte over the limit", BYTES("\0\0\0\0\x11"), FEED_BAD, "", ERR_LIMIT,
      "message of 17 bytes; at most 16", ERR_NONE },
    { "length over any limit", BYTES("\0\xff\xff\xff\xff"), FEED_BAD, "", ERR_LIMIT,
      "message of 4294967295 bytes; at most 16", ERR_NONE },
    { "good, then bad", BYTES("\0\0\0\0\1a\1\0\0\0\0"), FEED_BAD, "a|", ERR_PROTOCOL,
      "compressed message, but no encoding was agreed on", ERR_NONE },
};

/* Feeds in pieces of at most `step` bytes and checks every promise of the header. */
static void run(const struct row *r, size_t step)
{
    OWN(grpc_frame_done) struct grpc_frame f;
    OWN(buf_done) struct buf seen = BUF_INIT(4096);
    struct span rest = r->in;
    enum feed got = FEED_MORE;
    struct err e = { 0 };

    grpc_frame_init(&f, MAX_BYTES);
    while (rest.n > 0 && got != FEED_BAD) {
        struct span piece = span_slice(rest, 0, step);
        size_t used = 0;

        got = grpc_frame_feed(&f, piece, &used, &e);
        assert_true(used > 0 && used <= piece.n);
        assert_true(got != FEED_MORE || used == piece.n);
        rest = span_skip(rest, used);
        if (got == FEED_DONE) {
            assert_int_equal(buf_add(&seen, buf_span(&f.msg), &e), 0);
            assert_int_equal(buf_addc(&seen, '|', &e), 0);
        }
    }
    if (got != r->want)
        fail_msg("%s, by %zu: verdict %d, not %d", r->name, step, got, r->want);
    assert_string_equal(buf_cstr(&seen), r->msgs);
    if (got == FEED_BAD) {
        size_t used = 7;

        assert_int_equal(e.code, r->code);
        assert_string_equal(e.msg, r->err);
        assert_int_equal(grpc_frame_feed(&f, SPAN("\0\0\0\0\0"), &used, &e), FEED_BAD);
        assert_int_equal(used, 0);
        assert_int_equal(grpc_frame_end(&f, &e), -1);
        return;
    }
    e.code = ERR_NONE;
    assert_int_equal(grpc_frame_end(&f, &e), r->end == ERR_NONE ? 0 : -1);
    assert_int_equal(e.code, r->end);
}

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        for (size_t step = 1; step <= r->in.n; step++)
            run(r, step);
        run(r, SIZE_MAX);
    }
}

static void test_write(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(300);
    OWN_MEM uint8_t *big = own_new(300);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(grpc_frame_add(&out, SPAN("hi"), &e), 0);
    assert_int_equal(grpc_frame_add(&out, SPAN_NONE, &e), 0);
    assert_int_equal(out.n, 12);
    assert_memory_equal(out.p, "\0\0\0\0\2hi\0\0\0\0\0", 12);
    buf_clear(&out);
    assert_int_equal(grpc_frame_add(&out, span_of(big, 0x0102 - 1), &e), 0);
    assert_memory_equal(out.p, "\0\0\0\1\1", 5);
    buf_clear(&out);
    assert_int_equal(grpc_frame_add(&out, span_of(big, 296), &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(out.n, 0); /* all or nothing */
    assert_int_equal(grpc_frame_add_prefix(&out, (size_t)UINT32_MAX + 1, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

/* A large message must not leave its block behind on a stream that then idles. */
static void test_large_block_is_freed(void **state)
{
    OWN(grpc_frame_done) struct grpc_frame f;
    OWN(buf_done) struct buf in = BUF_INIT(1024 * 1024);
    OWN_MEM uint8_t *big = own_new(200 * 1024);
    struct err e = { 0 };
    size_t used;

    (void)state;
    grpc_frame_init(&f, GRPC_MESSAGE_MAX_BYTES);
    assert_int_equal(grpc_frame_add(&in, span_of(big, 200 * 1024), &e), 0);
    assert_int_equal(grpc_frame_feed(&f, buf_span(&in), &used, &e), FEED_DONE);
    assert_int_equal(f.msg.n, 200 * 1024);
    assert_int_equal(grpc_frame_feed(&f, SPAN("\0"), &used, &e), FEED_MORE);
    assert_int_equal(f.msg.cap, 0);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_large_block_is_freed),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
