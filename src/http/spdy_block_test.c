#include "http/spdy_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <zlib.h>

static void add(struct http_head *h, const char *name, struct span value)
{
    struct err e;

    assert_int_equal(http_head_add(h, span_cstr(name), value, &e), 0);
}

static void test_heads_come_back(void **state)
{
    struct spdy_packer *p = spdy_packer_new();
    struct spdy_unpacker *u = spdy_unpacker_new();

    (void)state;
    for (int round = 0; round < 50; round++) { /* one zlib stream for all of them */
        OWN(http_head_done) struct http_head in, out;
        OWN(buf_done) struct buf block = BUF_INIT(4096);
        size_t iter = 0;
        struct err e;

        http_head_init(&in, 4096, 16);
        http_head_init(&out, 4096, 16);
        if (round % 3) {
            add(&in, "streamtype", round % 2 ? SPAN("data") : SPAN("error"));
            add(&in, "port", SPAN("8080"));
            add(&in, "x", SPAN("1"));
            add(&in, "empty", SPAN(""));
            add(&in, "x", SPAN("2"));
        }
        assert_int_equal(spdy_pack(p, &in, &block, &e), 0);
        assert_int_equal(spdy_unpack(u, buf_span(&block), 4096, &out, &e), 0);
        assert_int_equal(http_head_count(&out), http_head_count(&in));
        if (!(round % 3))
            continue;
        assert_true(span_is(http_head_get(&out, "streamtype"), round % 2 ? "data" : "error"));
        assert_true(span_is(http_head_next(&out, "x", &iter), "1"));
        assert_true(span_is(http_head_next(&out, "x", &iter), "2"));
        assert_non_null(http_head_get(&out, "empty").p);
    }
    spdy_packer_free(p);
    spdy_unpacker_free(u);
}

/* Two answers without fields, as Go's server sends them: its own zlib header, then what anybody's looks like. */
static void test_go_is_read(void **state)
{
    struct spdy_unpacker *u = spdy_unpacker_new();
    OWN(http_head_done) struct http_head head;
    struct err e;

    (void)state;
    http_head_init(&head, 4096, 16);
    assert_int_equal(spdy_unpack(u,
                                 SPAN("\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x06\0\0\0\0\xff\xff"),
                                 4096, &head, &e),
                     0);
    assert_int_equal(spdy_unpack(u, SPAN("\x02\x01\0\0\0\0\xff\xff"), 4096, &head, &e), 0);
    assert_int_equal(http_head_count(&head), 0);
    spdy_unpacker_free(u);
}

static void test_the_second_answer_is_gos(void **state)
{
    struct spdy_packer *p = spdy_packer_new();
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct err e;

    (void)state;
    assert_int_equal(spdy_pack(p, NULL, &out, &e), 0);
    buf_clear(&out);
    assert_int_equal(spdy_pack(p, NULL, &out, &e), 0);
    assert_int_equal(out.n, 8);
    assert_memory_equal(out.p, "\x02\x01\0\0\0\0\xff\xff", 8);
    spdy_packer_free(p);
}

/* Blocks as they are before zlib. */
static const struct row {
    const char *name;
    struct span plain;
    const char *err; /* "" for a good one */
} rows[] = {
    { "no field", BYTES("\0\0\0\0"), "" },
    { "one field", BYTES("\0\0\0\1\0\0\0\1a\0\0\0\1b"), "" },
    { "a name of SPDY's own", BYTES("\0\0\0\1\0\0\0\5:path\0\0\0\1/"), "" },
    { "a count cut short", BYTES("\0\0\0"), "head that ends before its first field" },
    { "fewer fields than counted", BYTES("\0\0\0\1"), "head that ends inside a field" },
    { "a count beyond all", BYTES("\xff\xff\xff\xff\0\0\0\1a\0\0\0\1b"),
      "head that ends inside a field" },
    { "a name longer than the block",
      BYTES("\0\0\0\1\0\0\0\xff"
            "a"),
      "head that ends inside a field" },
    { "a value longer than the block", BYTES("\0\0\0\1\0\0\0\1a\xff\xff\xff\xff"),
      "head that ends inside a field" },
    { "bytes behind the last field", BYTES("\0\0\0\0x"), "head with bytes behind its last field" },
    { "an empty name", BYTES("\0\0\0\1\0\0\0\0\0\0\0\1b"),
      "head with a name that may not stand there" },
    { "a capital letter", BYTES("\0\0\0\1\0\0\0\1A\0\0\0\1b"),
      "head with a name that may not stand there" },
    { "a line break in a value", BYTES("\0\0\0\1\0\0\0\1a\0\0\0\2b\n"),
      "head with a value that may not stand there" },
    { "too many values", BYTES("\0\0\0\1\0\0\0\1a\0\0\0\5\0\0\0\0\0"),
      "head with too many fields" },
};

/* What a peer with the right dictionary sends: taken from our own packer, which made the same beginning. */
static void pack_plain(z_stream *z, struct span plain, struct buf *out)
{
    struct err e;

    buf_clear(out);
    assert_int_equal(buf_reserve(out, 4096, &e), 0);
    z->next_in = (Bytef *)(uintptr_t)plain.p;
    z->avail_in = (uInt)plain.n;
    z->next_out = out->p;
    z->avail_out = 4096;
    assert_int_equal(deflate(z, Z_SYNC_FLUSH), Z_OK);
    buf_grown(out, 4096 - z->avail_out);
}

/* A block that is no head is the stream's fault: the next one is read again. */
static void test_rows(void **state)
{
    struct spdy_packer *p = spdy_packer_new();
    struct spdy_unpacker *u = spdy_unpacker_new();
    OWN(http_head_done) struct http_head first;
    OWN(buf_done) struct buf block = BUF_INIT(8192);
    z_stream z = { 0 };
    struct err e;

    (void)state;
    http_head_init(&first, 4096, 4);
    assert_int_equal(spdy_pack(p, NULL, &block, &e), 0);
    assert_int_equal(spdy_unpack(u, buf_span(&block), 4096, &first, &e), 0);
    spdy_packer_free(p);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    EACH(r, rows) {
        OWN(http_head_done) struct http_head head;
        int got;

        http_head_init(&head, 4096, 4);
        e = (struct err){ 0 };
        pack_plain(&z, r->plain, &block);
        got = spdy_unpack(u, buf_span(&block), 4096, &head, &e);
        if (got != (r->err[0] ? -1 : 0) || strcmp(e.msg, r->err) != 0)
            fail_msg("%s: %d %s", r->name, got, e.msg);
        assert_int_equal(e.code, r->err[0] ? ERR_INVALID : ERR_NONE);
    }
    (void)deflateEnd(&z);
    spdy_unpacker_free(u);
}

static void test_what_breaks_the_stream(void **state)
{
    static const struct broken {
        const char *name;
        struct span in;
        enum err_code code;
        const char *err;
    } broken[] = {
        { "no zlib", BYTES("\xff\xff\xff\xff"), ERR_PROTOCOL, "head that cannot be unpacked" },
        { "no dictionary", BYTES("\x78\xda\x62\x60\x60\x60\x00\x00\x00\x00\xff\xff"), ERR_NONE,
          "" },
        { "another dictionary", BYTES("\x78\xf9\1\2\3\4\x02\xa6\x23\x06\0\0\0\0\xff\xff"),
          ERR_PROTOCOL, "head packed with another dictionary" },
        { "an end", BYTES("\x78\x9c\3\0\0\0\0\1\1"), ERR_PROTOCOL, "head that cannot be unpacked" },
    };

    (void)state;
    EACH(b, broken) {
        struct spdy_unpacker *u = spdy_unpacker_new();
        OWN(http_head_done) struct http_head head;
        struct err e = { 0 };

        http_head_init(&head, 4096, 4);
        if (spdy_unpack(u, b->in, 4096, &head, &e) != (b->code ? -1 : 0) || e.code != b->code)
            fail_msg("%s: %s", b->name, e.msg);
        assert_string_equal(e.msg, b->err);
        spdy_unpacker_free(u);
    }
}

/* A few bytes that unpack to a megabyte. */
static void test_a_bomb_meets_the_ceiling(void **state)
{
    struct spdy_unpacker *u = spdy_unpacker_new();
    OWN(http_head_done) struct http_head head;
    OWN_MEM uint8_t *plain = own_new(1 << 20);
    OWN(buf_done) struct buf block = BUF_INIT(8192);
    z_stream z = { 0 };
    struct err e;

    (void)state;
    http_head_init(&head, 4096, 4);
    assert_int_equal(deflateInit(&z, 9), Z_OK);
    pack_plain(&z, span_of(plain, 1 << 20), &block);
    assert_true(block.n < 2048);
    assert_int_equal(spdy_unpack(u, buf_span(&block), 4096, &head, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_string_equal(e.msg, "head of more than 4096 bytes");
    (void)deflateEnd(&z);
    spdy_unpacker_free(u);
}

static void test_what_is_not_packed(void **state)
{
    struct spdy_packer *p = spdy_packer_new();
    struct spdy_unpacker *u = spdy_unpacker_new();
    OWN(http_head_done) struct http_head bad, large, good;
    OWN(buf_done) struct buf out = BUF_INIT(512);
    uint8_t much[600];
    struct err e;

    (void)state;
    http_head_init(&bad, 4096, 4);
    http_head_init(&large, 4096, 4);
    http_head_init(&good, 4096, 4);
    add(&bad, "a", SPAN("b\r\nc"));
    assert_int_equal(spdy_pack(p, &bad, &out, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    memset(much, 'x', sizeof much);
    add(&large, "b", span_of(much, sizeof much));
    assert_int_equal(spdy_pack(p, &large, &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(out.n, 0);
    add(&good, "a", SPAN("b"));
    assert_int_equal(spdy_pack(p, &good, &out, &e), 0); /* as if nothing had been */
    http_head_clear(&good);
    assert_int_equal(spdy_unpack(u, buf_span(&out), 4096, &good, &e), 0);
    assert_true(span_is(http_head_get(&good, "a"), "b"));
    spdy_packer_free(p);
    spdy_unpacker_free(u);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_heads_come_back),
        cmocka_unit_test(test_go_is_read),
        cmocka_unit_test(test_the_second_answer_is_gos),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_what_breaks_the_stream),
        cmocka_unit_test(test_a_bomb_meets_the_ceiling),
        cmocka_unit_test(test_what_is_not_packed),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
