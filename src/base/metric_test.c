#include "base/metric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_samples_are_written_as_prometheus_reads_them(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct err e;

    (void)state;
    assert_int_equal(metric_head(&out, "a_total", "counter", "What it is.", &e), 0);
    assert_int_equal(metric_u64(&out, "a_total", "", UINT64_MAX, &e), 0);
    assert_int_equal(metric_double(&out, "b", "x=\"1\"", 0.25, &e), 0);
    assert_int_equal(metric_double(&out, "b", "x=\"2\"", 3, &e), 0);
    assert_int_equal(metric_double(&out, "b", "", INFINITY, &e), 0);
    assert_string_equal(buf_cstr(&out), "# HELP a_total What it is.\n# TYPE a_total counter\n"
                                        "a_total 18446744073709551615\n"
                                        "b{x=\"1\"} 0.25\nb{x=\"2\"} 3\nb +Inf\n");
}

static void test_values_of_labels_are_escaped(void **state)
{
    OWN(buf_done) struct buf labels = BUF_INIT(256);
    struct err e;

    (void)state;
    assert_int_equal(metric_label(&labels, "a", "plain", &e), 0);
    assert_int_equal(metric_label(&labels, "b", "q\"b\\n\nend", &e), 0);
    assert_string_equal(buf_cstr(&labels), "a=\"plain\",b=\"q\\\"b\\\\n\\nend\"");
}

static void test_a_histogram_counts_up(void **state)
{
    static const struct metric_bound rows[] = { { 0.001, "0.001" }, { 1, "1" }, { 10, "10" } };
    static const struct metric_bounds bounds = { rows, LEN(rows) };
    static const double values[] = { 0, 0.001, 0.5, 1, 1.5, 10.5 };
    struct metric_histogram h = { 0 };
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct err e;

    (void)state;
    EACH(v, values) {
        metric_observe(&h, &bounds, *v);
    }
    assert_int_equal(metric_histogram(&out, "h", "name=\"q\"", &bounds, &h, &e), 0);
    assert_string_equal(buf_cstr(&out),
                        "h_bucket{name=\"q\",le=\"0.001\"} 2\nh_bucket{name=\"q\",le=\"1\"} 4\n"
                        "h_bucket{name=\"q\",le=\"10\"} 5\nh_bucket{name=\"q\",le=\"+Inf\"} 6\n"
                        "h_sum{name=\"q\"} 13.501\nh_count{name=\"q\"} 6\n");
    buf_clear(&out);
    assert_int_equal(metric_histogram(&out, "h", "", &bounds, &h, &e), 0);
    assert_non_null(strstr(buf_cstr(&out), "h_bucket{le=\"1\"} 4\n"));
    assert_non_null(strstr(buf_cstr(&out), "h_count 6\n"));
}

static void test_a_full_text_is_an_error(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(8);
    struct err e;

    (void)state;
    assert_int_equal(metric_u64(&out, "a_long_name", "", 1, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void test_the_process_says_what_it_costs(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    const char *began;
    double at;
    struct err e;

    (void)state;
    assert_int_equal(metric_process(&out, &e), 0);
    assert_null(strstr(buf_cstr(&out), "process_resident_memory_bytes 0\n"));
    began = strstr(buf_cstr(&out), "\nprocess_start_time_seconds ");
    assert_non_null(began);
    at = strtod(began + strlen("\nprocess_start_time_seconds "), NULL);
    assert_true(at > (double)time(NULL) - 600 && at <= (double)time(NULL) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_are_written_as_prometheus_reads_them),
        cmocka_unit_test(test_values_of_labels_are_escaped),
        cmocka_unit_test(test_a_histogram_counts_up),
        cmocka_unit_test(test_a_full_text_is_an_error),
        cmocka_unit_test(test_the_process_says_what_it_costs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
