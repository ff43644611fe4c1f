#include "controller/profile.h"
#include "controller/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include <zlib.h>

#define OUT_BYTES (1u << 20)

/* Spends processor time under a name that can be looked for. */
__attribute__((noinline)) void sampler_test_burn(void);
void sampler_test_burn(void)
{
    struct timespec from, now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    do {
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < 300);
}

static void test_time_is_found_where_it_was_spent(void **state)
{
    struct symbols *names = symbols_open();
    uint64_t all = 0, ours = 0;
    struct samples s;
    struct err e;

    assert_int_equal(sampler_start(SAMPLER_CPU, &e), 0);
    assert_int_equal(sampler_start(SAMPLER_WALL, &e), -1);
    assert_string_equal(e.msg, "another profile is being taken");
    sampler_test_burn();
    sampler_stop(&s);
    for (size_t i = 0; i < SAMPLER_STACKS; i++) {
        bool is_ours = false;

        for (uint32_t j = 0; j < s.stacks[i].depth; j++) {
            const char *name = symbols_name(names, s.stacks[i].addresses[j] - (j ? 1 : 0));

            is_ours |= name && strcmp(name, "sampler_test_burn") == 0;
        }
        all += s.stacks[i].count;
        ours += is_ours ? s.stacks[i].count : 0;
    }
    assert_true(all > 0);
    assert_true(ours * 2 > all);
    free(s.stacks);
    symbols_close(names);
}

static void test_addresses_that_are_nobodys(void **state)
{
    struct symbols *names = symbols_open();
    struct symbols_mapping m = symbols_mapping();

    assert_true(symbols_count(names) > 0);
    assert_null(symbols_name(names, 0));
    assert_null(symbols_name(names, UINTPTR_MAX));
    assert_string_equal(symbols_name(names, (uintptr_t)sampler_test_burn), "sampler_test_burn");
    assert_in_range((uintptr_t)sampler_test_burn, m.start, m.limit - 1);
    symbols_close(names);
}

static void unpack(struct span in, struct buf *out)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (unsigned)in.n };
    struct err e;

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(buf_reserve(out, OUT_BYTES - 1, &e), 0);
    z.next_out = out->p;
    z.avail_out = OUT_BYTES - 1;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    buf_grown(out, z.total_out);
    (void)inflateEnd(&z);
}

static void test_a_profile_to_the_byte(void **state)
{
    static const uint8_t want[] =
        "\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04" /* two sample types */
        "\x2a\x06\x08\x01\x10\x05\x18\x05"                 /* a function */
        "\x22\x06\x08\x01\x22\x02\x08\x01"                 /* its place, without an address */
        "\x12\x06\x08\x01\x10\x03\x10\x07"                 /* the sample */
        "\x12\x07\x08\x01\x10\x01\x10\xac\x02"             /* another at the same place */
        "\x32\x00\x32\x01n\x32\x05"
        "count\x32\x01s\x32\x05"
        "bytes\x32\x03"
        "a/b";
    const struct profile_kind kind = { "n", "count", "s", "bytes", 0 };
    struct profile *p = profile_new(&kind);
    OWN(buf_done) struct buf out = BUF_INIT(2 * PROFILE_MAX_BYTES), plain = BUF_INIT(OUT_BYTES);
    struct err e;

    profile_add(p, &(struct profile_frame){ .name = "a/b" }, 1, 3, 7);
    profile_add(p, &(struct profile_frame){ .name = "a/b" }, 1, 1, 300);
    assert_int_equal(profile_write(p, &out, &e), 0);
    unpack(buf_span(&out), &plain);
    assert_int_equal(plain.n, sizeof want - 1);
    assert_memory_equal(plain.p, want, sizeof want - 1);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_found_where_it_was_spent),
        cmocka_unit_test(test_addresses_that_are_nobodys),
        cmocka_unit_test(test_a_profile_to_the_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
