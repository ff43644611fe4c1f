/* What a router counts, as Prometheus reads it; and that no client can make it count in rows without end. */
#include "router/tally.h"

#include "router/limits.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
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
    struct tally *t = tally_new(NULL, 0);

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
    struct tally *t = tally_new(NULL, 0);
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

/* Two processes count, one is killed, the next one goes on where it was: what is shown is never less than before. */
static void test_seats_are_summed_and_outlive_who_sat_there(void **state)
{
    static const char total[] = "sandbox_router_requests_total{method=\"GET\",code=\"200\","
                                "sandbox_namespace=\"prod\"} %u\n";
    struct tally_board *board = tally_board_new(2);
    struct tally *other = tally_new(board, 1);
    char want[160];

    (void)state;
    tally_begin(other);
    tally_end(other, SPAN("GET"), 200, "prod", 0.02);
    tally_add(other, TALLY_RETRIES, "prod", NULL);
    for (unsigned i = 1; i <= 3; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            struct tally *t = tally_new(board, 0);

            tally_begin(t);
            tally_begin(t);
            tally_end(t, SPAN("GET"), 200, "prod", 2);
            tally_add(t, TALLY_RETRIES, "mine", NULL);
            (void)kill(getpid(), SIGKILL); /* with one under way */
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        (void)snprintf(want, sizeof want, total, i + 1);
        expect_part(other, want);
        expect_part(other, "\nsandbox_router_inflight_requests 1\n");
        tally_board_leave(board, 0);
        expect_part(other, "\nsandbox_router_inflight_requests 0\n");
        assert_int_equal(tally_board_requests(board, 0), i);
        assert_int_equal(tally_board_requests(board, 1), 1);
    }
    expect_part(other, "sandbox_router_request_duration_seconds_bucket{method=\"GET\",code=\"200\","
                       "sandbox_namespace=\"prod\",le=\"0.025\"} 1\n");
    expect_part(other, "sandbox_router_request_duration_seconds_bucket{method=\"GET\",code=\"200\","
                       "sandbox_namespace=\"prod\",le=\"2.5\"} 4\n");
    expect_part(other, "sandbox_router_upstream_retries_total{sandbox_namespace=\"prod\"} 1\n");
    expect_part(other, "sandbox_router_upstream_retries_total{sandbox_namespace=\"mine\"} 3\n");
    tally_free(other);
    tally_board_free(board);
}

/* Codes are the sandboxes' choice. */
static void test_codes_without_end(void **state)
{
    struct tally *t = tally_new(NULL, 0);
    char name[32];

    (void)state;
    for (unsigned i = 0; i < TALLY_ROWS_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        tally_begin(t);
        tally_end(t, SPAN("GET"), 200, name, 0);
    }
    for (int code = 100; code < 100 + TALLY_SPARE_ROWS + 50; code++) {
        tally_begin(t);
        tally_end(t, SPAN("PUT"), code, "late", 0);
    }
    expect_part(t, "{method=\"PUT\",code=\"1099\",sandbox_namespace=\"-\"} 1\n");
    expect_part(t, "{method=\"other\",code=\"0\",sandbox_namespace=\"-\"} 50\n");
    tally_add(t, TALLY_RETRIES, "late", NULL); /* each family has its own rows */
    expect_part(t, "sandbox_router_upstream_retries_total{sandbox_namespace=\"late\"} 1\n");
    tally_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_labels), cmocka_unit_test(test_namespaces_without_end),
        cmocka_unit_test(test_seats_are_summed_and_outlive_who_sat_there),
        cmocka_unit_test(test_codes_without_end)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
