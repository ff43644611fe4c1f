#include "kubeclient/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_requests_are_counted_by_method_and_code(void **state)
{
    struct counts c = { 0 };
    OWN(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct err e;

    (void)state;
    counts_add(&c, "GET", 200, 0.001);
    counts_add(&c, "GET", 200, 0.2);
    counts_add(&c, "GET", 404, 0.001);
    counts_add(&c, "PATCH", 0, 70);
    assert_int_equal(counts_write(&c, &out, &e), 0);
    assert_non_null(strstr(buf_cstr(&out),
                           "\nrest_client_requests_total{code=\"200\",method=\"GET\"} 2\n"
                           "rest_client_requests_total{code=\"404\",method=\"GET\"} 1\n"
                           "rest_client_requests_total{code=\"<error>\",method=\"PATCH\"} 1\n"));
    assert_non_null(
        strstr(buf_cstr(&out),
               "\nrest_client_request_duration_seconds_bucket{verb=\"GET\",le=\"0.005\"} 2\n"));
    assert_non_null(
        strstr(buf_cstr(&out),
               "\nrest_client_request_duration_seconds_bucket{verb=\"PATCH\",le=\"60\"} 0\n"));
    assert_null(strstr(buf_cstr(&out), "verb=\"PUT\""));
}

static void test_codes_that_a_server_makes_up_do_not_grow_the_table(void **state)
{
    struct counts c = { 0 };
    OWN(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct err e;

    (void)state;
    for (int code = 100; code < 100 + COUNTS_ROWS_MAX + 9; code++)
        counts_add(&c, "POST", code, 0);
    counts_add(&c, "BREW", 418, 0);
    assert_int_equal(c.n, COUNTS_ROWS_MAX);
    assert_int_equal(counts_write(&c, &out, &e), 0);
    assert_non_null(strstr(buf_cstr(&out), "{code=\"other\",method=\"other\"} 10\n"));
}

static void test_sums(void **state)
{
    struct counts a = { 0 }, b = { 0 }, sum = { 0 };
    OWN(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct err e;

    (void)state;
    counts_add(&a, "GET", 200, 0.01);
    counts_add(&b, "POST", 201, 3);
    counts_add(&b, "GET", 200, 0.001);
    counts_add(&b, "BREW", 418, 0);
    counts_sum(&sum, &a);
    counts_sum(&sum, &b);
    assert_int_equal(counts_write(&sum, &out, &e), 0);
    assert_non_null(strstr(buf_cstr(&out), "{code=\"200\",method=\"GET\"} 2\n"));
    assert_non_null(strstr(buf_cstr(&out), "{code=\"201\",method=\"POST\"} 1\n"));
    assert_non_null(strstr(buf_cstr(&out), "{code=\"other\",method=\"other\"} 1\n"));
    assert_non_null(strstr(buf_cstr(&out), "_bucket{verb=\"GET\",le=\"0.005\"} 1\n"));
    assert_non_null(strstr(buf_cstr(&out), "_count{verb=\"GET\"} 2\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_counted_by_method_and_code),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_codes_that_a_server_makes_up_do_not_grow_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
