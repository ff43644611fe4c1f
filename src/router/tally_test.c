/* What a router counts, as Prometheus reads it; and that no client can make it count in rows without end. */
#include "router/tally.h"

#include "router/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void expect_part(const struct tally *t, const char *part)
{
    OWN(buf_done) struct buf out = BUF_INIT(64 << 20);
    struct err e;

    assert_int_equal(tally_write(t, &out, &e), 0);
    if (!strstr(buf_cstr(&out), part))
        fail_msg("no '%s' in:\n%.4000s", part, buf_cstr(&out));
}

static void test_names_and_labels(void **state)
{
    struct tally *t = tally_new();

    (void)state;
    tally_begin(t);
    tally_begin(t);
    expect_part(t, "\nsandbox_router_inflight_requests 2\n");
    tally_end(t, SPAN("GET"), 200, "prod", 0.02);
    tally_end(t, SPAN("G\"T"), 400, "", 0.001);
    expect_part(t, "# TYPE sandbox_router_requests_total counter\n");
    expect_part(t, "sandbox_router_requests_total{method=\"GET\",code=\"200\","
                   "sandbox_namespace=\"prod\"} 1\n");
    expect_part(t, "sandbox_router_requests_total{method=\"other\",code=\"400\","
                   "sandbox_namespace=\"-\"} 1\n");
    expect_part(t, "sandbox_router_request_duration_seconds_bucket{method=\"GET\",code=\"200\","
                   "sandbox_namespace=\"prod\",le=\"0.01\"} 0\n");
    expect_part(t, "sandbox_router_request_duration_seconds_bucket{method=\"GET\",code=\"200\","
                   "sandbox_namespace=\"prod\",le=\"0.025\"} 1\n");
    tally_add(t, TALLY_UPSTREAM_ERRORS, "prod", "dial");
    tally_add(t, TALLY_RETRIES, "prod", NULL);
    tally_add(t, TALLY_RETRIES, "prod", NULL);
    tally_add(t, TALLY_CERT_RELOADS, NULL, "success");
    expect_part(t, "sandbox_router_upstream_errors_total{sandbox_namespace=\"prod\","
                   "reason=\"dial\"} 1\n");
    expect_part(t, "sandbox_router_upstream_retries_total{sandbox_namespace=\"prod\"} 2\n");
    expect_part(t, "sandbox_router_cert_reloads_total{outcome=\"success\"} 1\n");
    expect_part(t, "\nsandbox_router_inflight_requests 0\n");
    tally_free(t);
}

static void test_namespaces_without_end(void **state)
{
    struct tally *t = tally_new();
    char name[32];

    (void)state;
    for (unsigned i = 0; i < TALLY_ROWS_MAX + 100; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        tally_begin(t);
        tally_end(t, SPAN("GET"), 404, name, 0);
    }
    expect_part(t, "{method=\"GET\",code=\"404\",sandbox_namespace=\"n4095\"} 1\n");
    expect_part(t, "{method=\"GET\",code=\"404\",sandbox_namespace=\"-\"} 100\n");
    tally_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_names_and_labels),
                                        cmocka_unit_test(test_namespaces_without_end) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
