#include "base/sha1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* The lengths stand around the borders of a block and of the length field; digests by sha1sum. */
static const struct row {
    const char *name;
    size_t repeat;
    const char *text;
    const char *hex;
} rows[] = {
    { "nothing", 0, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
    { "FIPS 180 example 1", 1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
    { "FIPS 180 example 2", 1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
    { "length fits the block", 55, "a", "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
    { "length does not fit", 56, "a", "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
    { "one byte missing", 63, "a", "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
    { "exactly a block", 64, "a", "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
    { "a block and a byte", 65, "a", "11655326c708d70319be2610e8a57d9a5b959d3b" },
    { "FIPS 180 example 3", 1000000, "a", "34aa973cd4c4daa4f61eeb2bdbad27316534016f" },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf text = BUF_INIT(1000000), hex = BUF_INIT(64);
        uint8_t digest[SHA1_BYTES];
        struct err e;

        for (size_t i = 0; i < r->repeat; i++)
            assert_int_equal(buf_add(&text, span_cstr(r->text), &e), 0);
        sha1(buf_span(&text), digest);
        for (size_t i = 0; i < sizeof digest; i++)
            assert_int_equal(buf_addf(&hex, &e, "%02x", digest[i]), 0);
        if (!span_is(buf_span(&hex), r->hex))
            fail_msg("%s: %s, not %s", r->name, buf_cstr(&hex), r->hex);
    }
}

int main(void)
{
    const struct CMUnitTest all[] = { cmocka_unit_test(test_rows) };

    return cmocka_run_group_tests(all, NULL, NULL);
}
