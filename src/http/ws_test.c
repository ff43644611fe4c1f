#include "http/ws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define MESSAGE_MAX 300

/* Frames as a server sends them (no mask), unless is_from_client. What was read is noted as lines. */
static const struct row {
    const char *name;
    bool is_from_client;
    struct span in;
    const char *log;
    uint16_t code; /* of WS_IS_BAD */
    const char *err;
} rows[] = {
    { "nothing", false, BYTES(""), "", 0, "" },
    { "a text", false, BYTES("\x81\5hello"), "text hello\n", 0, "" },
    { "a masked text", true, BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "text Hello\n",
      0, "" }, /* RFC 6455 5.7 */
    { "an empty binary message", false, BYTES("\x82\0"), "binary \n", 0, "" },
    { "an empty masked one", true, BYTES("\x82\x80wxyz"), "binary \n", 0, "" },
    { "two messages", false, BYTES("\x82\1a\x81\1b"), "binary a\ntext b\n", 0, "" },
    { "a message in three pieces", false, BYTES("\1\2ab\0\1c\x80\1d"), "text abcd\n", 0, "" },
    { "a ping between pieces", false, BYTES("\1\1a\x89\2hi\x80\1b"), "ping hi\ntext ab\n", 0, "" },
    { "an empty last piece", false, BYTES("\2\1a\x80\0"), "binary a\n", 0, "" },
    { "only empty pieces", false, BYTES("\2\0\0\0\x80\0"), "binary \n", 0, "" },
    { "a character cut by a piece", false, BYTES("\1\1\xc3\x80\1\xa4"), "text \xc3\xa4\n", 0, "" },
    { "a pong nobody asked for", false, BYTES("\x8a\1x"), "pong x\n", 0, "" },
    { "a close with code and reason", false,
      BYTES("\x88\5\3\xe8"
            "bye"),
      "close 1000 bye\n", 0, "" },
    { "a close without a code", false, BYTES("\x88\0"), "close 1005 \n", 0, "" },
    { "what follows a close is dropped", false, BYTES("\x88\0\xff\xff\xff"), "close 1005 \n", 0,
      "" },
    { "a code of an application", false, BYTES("\x88\2\x0f\xa0"), "close 4000 \n", 0, "" },
    { "a length of 16 bits", false, BYTES("\x82\x7e\0\x7e"), "", 0, "" },
    { "a cut frame", false, BYTES("\x81\5hel"), "", 0, "" },
    { "reserved bits", false, BYTES("\xc1\0"), "", WS_PROTOCOL_ERROR,
      "frame with reserved bits, but no extension was agreed on" },
    { "opcode 3", false, BYTES("\x83\0"), "", WS_PROTOCOL_ERROR, "frame with unknown opcode 3" },
    { "opcode 11", false, BYTES("\x8b\0"), "", WS_PROTOCOL_ERROR, "frame with unknown opcode 11" },
    { "a mask from a server", false, BYTES("\x81\x80"), "", WS_PROTOCOL_ERROR,
      "masked frame from a server" },
    { "no mask from a client", true, BYTES("\x81\0"), "", WS_PROTOCOL_ERROR,
      "frame without a mask" },
    { "a ping in pieces", false, BYTES("\x09\0"), "", WS_PROTOCOL_ERROR,
      "control frame that is long or in pieces" },
    { "a long ping", false, BYTES("\x89\x7e"), "", WS_PROTOCOL_ERROR,
      "control frame that is long or in pieces" },
    { "a continuation of nothing", false, BYTES("\x80\0"), "", WS_PROTOCOL_ERROR,
      "continuation of no message" },
    { "a continuation behind the end", false, BYTES("\x81\1a\x80\0"), "text a\n", WS_PROTOCOL_ERROR,
      "continuation of no message" },
    { "a message inside another", false, BYTES("\1\1a\x81\1b"), "", WS_PROTOCOL_ERROR,
      "new message inside another" },
    { "125 in 16 bits", false, BYTES("\x82\x7e\0\x7d"), "", WS_PROTOCOL_ERROR,
      "frame whose length is not in its shortest form" },
    { "65535 in 64 bits", false, BYTES("\x82\x7f\0\0\0\0\0\0\xff\xff"), "", WS_PROTOCOL_ERROR,
      "frame whose length is not in its shortest form" },
    { "a negative length", false, BYTES("\x82\x7f\x80\0\0\0\0\0\0\0"), "", WS_PROTOCOL_ERROR,
      "frame whose length is not in its shortest form" },
    { "a message over the ceiling", false, BYTES("\x82\x7e\1\x2d"), "", WS_TOO_BIG,
      "message of more than 300 bytes" },
    { "as large as can be", false, BYTES("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), "",
      WS_TOO_BIG, "message of more than 300 bytes" },
    { "over the ceiling in pieces", false, BYTES("\2\1a\x80\x7e\1\x2c"), "", WS_TOO_BIG,
      "message of more than 300 bytes" },
    { "text that is not UTF-8", false, BYTES("\x81\2\xc3("), "", WS_BAD_DATA,
      "text that is not UTF-8" },
    { "an overlong character", false, BYTES("\x81\2\xc0\x80"), "", WS_BAD_DATA,
      "text that is not UTF-8" },
    { "a surrogate", false, BYTES("\x81\3\xed\xa0\x80"), "", WS_BAD_DATA,
      "text that is not UTF-8" },
    { "beyond Unicode", false, BYTES("\x81\4\xf4\x90\x80\x80"), "", WS_BAD_DATA,
      "text that is not UTF-8" },
    { "a character without its end", false, BYTES("\x81\1\xc3"), "", WS_BAD_DATA,
      "text that is not UTF-8" },
    { "bad text far behind ASCII", false,
      BYTES("\x81\x0a"
            "12345678\xff."),
      "", WS_BAD_DATA, "text that is not UTF-8" },
    { "binary may be anything", false, BYTES("\x82\1\xff"), "binary \xff\n", 0, "" },
    { "a close of one byte", false, BYTES("\x88\1\3"), "", WS_PROTOCOL_ERROR,
      "close frame without a proper code" },
    { "a close with code 1005", false, BYTES("\x88\2\3\xed"), "", WS_PROTOCOL_ERROR,
      "close frame without a proper code" },
    { "a close with code 999", false, BYTES("\x88\2\3\xe7"), "", WS_PROTOCOL_ERROR,
      "close frame without a proper code" },
    { "a close with code 2999", false, BYTES("\x88\2\x0b\xb7"), "", WS_PROTOCOL_ERROR,
      "close frame without a proper code" },
    { "a reason that is not UTF-8", false, BYTES("\x88\3\3\xe8\xff"), "", WS_BAD_DATA,
      "close frame whose reason is not UTF-8" },
};

struct reader {
    struct ws w;
    struct buf log, msg;
    enum ws_event last;
    bool is_inside; /* between a first piece and a last one */
    struct err e;
};

static void note(struct reader *r, const char *what, struct span text)
{
    assert_int_equal(buf_addf(&r->log, &r->e, "%s ", what), 0);
    assert_int_equal(buf_add(&r->log, text, &r->e), 0);
    assert_int_equal(buf_addc(&r->log, '\n', &r->e), 0);
}

static void on_event(struct reader *r, struct span data)
{
    char code[32];

    switch (r->last) {
    case WS_NEED_MORE:
    case WS_IS_BAD:
        return;
    case WS_GOT_DATA:
        assert_true(r->w.is_first == !r->is_inside);
        assert_true(data.n > 0 || r->w.is_last);
        if (r->w.is_first)
            buf_clear(&r->msg);
        assert_int_equal(buf_add(&r->msg, data, &r->e), 0);
        r->is_inside = !r->w.is_last;
        if (r->w.is_last)
            note(r, r->w.opcode == WS_TEXT ? "text" : "binary", buf_span(&r->msg));
        return;
    case WS_GOT_PING:
        note(r, "ping", data);
        return;
    case WS_GOT_PONG:
        note(r, "pong", data);
        return;
    case WS_GOT_CLOSE:
        (void)snprintf(code, sizeof code, "close %u", r->w.close_code);
        note(r, code, data);
        return;
    }
}

static void read_all(struct reader *r, struct span in, size_t step)
{
    while (in.n > 0 && r->last != WS_IS_BAD) {
        struct span piece = span_slice(in, 0, step), data = SPAN_NONE;
        size_t used = SIZE_MAX;

        r->last = ws_feed(&r->w, piece, &used, &data, &r->e);
        assert_true(used <= piece.n);
        assert_true(r->last != WS_NEED_MORE || used == piece.n);
        on_event(r, data);
        in = span_skip(in, used);
    }
}

static void run(const struct row *row, size_t step)
{
    struct reader r = { .log = BUF_INIT(4096), .msg = BUF_INIT(4096) };

    ws_init(&r.w, row->is_from_client ? WS_SERVER : WS_CLIENT, MESSAGE_MAX);
    read_all(&r, row->in, step);
    if (!span_is(buf_span(&r.log), row->log))
        fail_msg("%s, by %zu: %s", row->name, step, buf_cstr(&r.log));
    if ((r.last == WS_IS_BAD) != (row->code != 0))
        fail_msg("%s, by %zu: verdict %d", row->name, step, r.last);
    if (row->code) {
        struct span data;
        size_t used;

        assert_int_equal(r.w.close_code, row->code);
        assert_string_equal(r.e.msg, row->err);
        assert_int_equal(ws_feed(&r.w, SPAN("\x81\0"), &used, &data, &r.e), WS_IS_BAD);
        assert_int_equal(used, 0);
    }
    ws_done(&r.w);
    buf_done(&r.log);
    buf_done(&r.msg);
}

static void test_rows(void **state)
{
    (void)state;
    EACH(row, rows) {
        for (size_t step = 1; step <= row->in.n; step++)
            run(row, step);
        run(row, SIZE_MAX);
    }
}

/* What one side writes the other reads, at every border of the length's forms and in any cut. */
static void test_written_is_read(void **state)
{
    static const size_t sizes[] = {
        0, 1, 125, 126, 65535, 65536, 16383, 16384, 16385, 40000, 200000
    };
    static const uint8_t mask[4] = { 0x11, 0x22, 0x83, 0xf4 };

    (void)state;
    EACH(n, sizes) {
        OWN_MEM uint8_t *payload = own_new(*n + 1);
        OWN(buf_done) struct buf wire = BUF_INIT(1 << 20);
        struct err e;

        for (size_t i = 0; i < *n; i++)
            payload[i] = (uint8_t)(i * 7 + i / 251);
        for (int is_client = 0; is_client < 2; is_client++) {
            const struct ws_frame f = { .opcode = WS_BINARY, .mask = is_client ? mask : NULL };

            buf_clear(&wire);
            assert_int_equal(ws_write(&wire, &f, span_of(payload, *n), &e), 0);
            for (size_t step = 1; step <= 3; step++) {
                struct reader r = { .log = BUF_INIT(1 << 20), .msg = BUF_INIT(1 << 20) };

                ws_init(&r.w, is_client ? WS_SERVER : WS_CLIENT, 1 << 20);
                read_all(&r, buf_span(&wire), step == 3 ? SIZE_MAX : step * 5000);
                assert_int_equal(r.msg.n, *n);
                assert_true(*n == 0 || memcmp(r.msg.p, payload, *n) == 0);
                ws_done(&r.w);
                buf_done(&r.log);
                buf_done(&r.msg);
            }
        }
    }
}

static void test_write_forms(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(400);
    static const uint8_t large[400];
    struct err e;

    (void)state;
    assert_int_equal(ws_write_head(&out, WS_BINARY, 125, &e), 0);
    assert_int_equal(ws_write_head(&out, WS_BINARY, 126, &e), 0);
    assert_int_equal(ws_write_head(&out, WS_TEXT, 65536, &e), 0);
    assert_int_equal(out.n, 2 + 4 + 10);
    assert_memory_equal(out.p, "\x82\x7d\x82\x7e\0\x7e\x81\x7f\0\0\0\0\0\1\0\0", 16);
    buf_clear(&out);
    assert_int_equal(
        ws_write(&out, &(struct ws_frame){ .opcode = WS_TEXT, .is_partial = true }, SPAN("a"), &e),
        0);
    assert_memory_equal(out.p, "\1\1a", 3);
    buf_clear(&out);
    assert_int_equal(
        ws_write(&out, &(struct ws_frame){ .opcode = WS_BINARY }, span_of(large, 400), &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(out.n, 0);
}

static void test_close_is_cut_between_characters(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(400), reason = BUF_INIT(400);
    struct err e;

    (void)state;
    assert_int_equal(ws_write_close(&out, NULL, WS_NO_CODE, SPAN("unsaid"), &e), 0);
    assert_memory_equal(out.p, "\x88\0", 2);
    buf_clear(&out);
    for (int i = 0; i < 62; i++)
        assert_int_equal(buf_add(&reason, SPAN("\xc3\xa4"), &e), 0);
    assert_int_equal(ws_write_close(&out, NULL, WS_NORMAL, buf_span(&reason), &e), 0);
    assert_int_equal(out.n, 2 + 2 + 122); /* 61 characters of two bytes; 123 would fit */
    assert_memory_equal(out.p, "\x88\x7c\3\xe8\xc3\xa4", 6);
    buf_clear(&out);
    assert_int_equal(ws_write_close(&out, NULL, WS_NORMAL, SPAN("\xff"), &e), 0);
    assert_memory_equal(out.p, "\x88\2\3\xe8", 4); /* what may not stand there is left out */
}

/* An idle connection holds no block. */
static void test_idle_is_cheap(void **state)
{
    OWN(ws_done) struct ws w;
    struct span data;
    struct err e;
    size_t used;

    (void)state;
    ws_init(&w, WS_SERVER, MESSAGE_MAX);
    assert_int_equal(ws_feed(&w, SPAN("\x82\x81\0\0\0\0a"), &used, &data, &e), WS_GOT_DATA);
    assert_true(w.piece.cap > 0);
    assert_int_equal(ws_feed(&w, SPAN_NONE, &used, &data, &e), WS_NEED_MORE);
    assert_int_equal(w.piece.cap, 0);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_write_forms),
        cmocka_unit_test(test_close_is_cut_between_characters),
        cmocka_unit_test(test_idle_is_cheap),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
