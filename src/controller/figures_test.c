#include "controller/figures.h"

#include "controller/limits.h"
#include "controller/testobject.h"
#include "kube/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct kind *claims(void)
{
    return kind_find("extensions.agents.x-k8s.io", NULL, "sandboxclaims");
}

static const struct kind *sandboxes(void)
{
    return kind_find("agents.x-k8s.io", NULL, "sandboxes");
}

static struct timespec at(const char *text)
{
    struct timespec t;

    assert_true(kube_time_parse(span_cstr(text), &t));
    return t;
}

static struct object *warm(const char *template)
{
    return test_object(
        sandboxes(),
        "{'metadata':{'name':'s','namespace':'n','creationTimestamp':'2026-11-16T10:00:00Z',"
        "'labels':{'agents.x-k8s.io/launch-type':'warm'},"
        "'annotations':{'agents.x-k8s.io/sandbox-template-ref':'%s'}},"
        "'status':{'conditions':[{'type':'Ready','status':'True',"
        "'lastTransitionTime':'2026-11-16T10:00:02Z'}]}}",
        template);
}

static void has(const struct buf *text, const char *line)
{
    if (!strstr(buf_cstr(text), line))
        fail_msg("no '%s' in:\n%s", line, buf_cstr(text));
}

static void test_claims_are_counted_by_how_they_got_their_sandbox(void **state)
{
    struct figures *m = figures_new();
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct object *claim = test_object(claims(), "{'metadata':{'name':'c','namespace':'n','labels':"
                                                 "{'agents.x-k8s.io/created-by':'go-client'}},"
                                                 "'spec':{'warmPoolRef':{'name':'p'}}}");
    struct object *cold = test_object(sandboxes(), "{'metadata':{'name':'c','namespace':'n'}}");
    struct err e;

    (void)state;
    figures_claim_bound(m, claim, warm("t"));
    figures_claim_bound(m, claim, warm("t"));
    figures_claim_bound(m, claim, cold);
    assert_int_equal(figures_write(m, NULL, &out, &e), 0);
    has(&out,
        "\nagent_sandbox_claim_creation_total{namespace=\"n\",sandbox_template=\"t\",launch_type=\"warm\","
        "warmpool_name=\"p\",pod_condition=\"ready\",created_by=\"go-client\"} 2\n");
    has(&out,
        "\nagent_sandbox_claim_creation_total{namespace=\"n\",sandbox_template=\"__unknown__\","
        "launch_type=\"cold\",warmpool_name=\"none\",pod_condition=\"not_ready\",created_by=\"go-client\"} 1\n");
    figures_free(m);
    test_objects_free();
}

static void test_latencies_are_those_of_the_clocks_that_are_told(void **state)
{
    struct figures *m = figures_new();
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct err e;
    struct object *claim = test_object(
        claims(), "{'metadata':{'name':'c','namespace':'n','annotations':{"
                  "'agents.x-k8s.io/controller-first-observed-at':'2026-11-16T10:00:02.100000000Z',"
                  "'agents.x-k8s.io/webhook-first-observed-at':'tomorrow',"
                  "'agents.x-k8s.io/client-first-requested-at':'2026-11-16T10:00:09Z'}}}");

    (void)state;
    figures_claim_ready(m, claim, warm("t"), at("2026-11-16T10:00:02.300Z"));
    assert_int_equal(figures_write(m, NULL, &out, &e), 0);
    has(&out,
        "agent_sandbox_claim_controller_startup_latency_ms_bucket{launch_type=\"warm\",sandbox_template=\"t\","
        "le=\"100\"} 0\n");
    has(&out,
        "agent_sandbox_claim_controller_startup_latency_ms_sum{launch_type=\"warm\",sandbox_template=\"t\"} 200\n");
    has(&out,
        "agent_sandbox_creation_latency_ms_sum{namespace=\"n\",launch_type=\"warm\",sandbox_template=\"t\"} 2000\n");
    assert_null(
        strstr(buf_cstr(&out), "agent_sandbox_claim_startup_latency_ms_count")); /* unreadable */
    assert_null(strstr(buf_cstr(&out),
                       "agent_sandbox_client_claim_startup_latency_ms_count")); /* to come */
    figures_free(m);
    test_objects_free();
}

/* TestRecordCreationLatencyMetric, TestClientClaimLatencyMetric: each clock from its own beginning. */
static void test_each_clock_has_its_own_beginning(void **state)
{
    static const struct {
        const char *name, *notes, *has, *lacks;
    } rows[] = {
        { "the webhook's", "'agents.x-k8s.io/webhook-first-observed-at':'2026-11-16T10:00:01Z'",
          "agent_sandbox_claim_startup_latency_ms_sum{launch_type=\"warm\",sandbox_template=\"t\"} "
          "1000\n",
          "client_claim_startup_latency_ms_count" },
        { "the client's", "'agents.x-k8s.io/client-first-requested-at':'2026-11-16T10:00:00.5Z'",
          "agent_sandbox_client_claim_startup_latency_ms_sum{launch_type=\"warm\",sandbox_template="
          "\"t\"} 1500\n",
          "claim_controller_startup_latency_ms_count" },
        { "a webhook of tomorrow",
          "'agents.x-k8s.io/webhook-first-observed-at':'2026-11-17T10:00:01Z'",
          "agent_sandbox_creation_latency_ms_count",
          "agent_sandbox_claim_startup_latency_ms_count" },
        { "none", "", "agent_sandbox_creation_latency_ms_count",
          "agent_sandbox_claim_controller_startup_latency_ms_count" },
        { "an unreadable client", "'agents.x-k8s.io/client-first-requested-at':'now'",
          "agent_sandbox_creation_latency_ms_count",
          "agent_sandbox_client_claim_startup_latency_ms_count" },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
        struct figures *m = figures_new();
        struct err e;

        figures_claim_ready(m,
                            test_object(claims(),
                                        "{'metadata':{'name':'c','namespace':'n',"
                                        "'annotations':{%s}}}",
                                        r->notes),
                            warm("t"), at("2026-11-16T10:00:02Z"));
        assert_int_equal(figures_write(m, NULL, &out, &e), 0);
        has(&out, r->has);
        if (strstr(buf_cstr(&out), r->lacks))
            fail_msg("%s: has %s", r->name, r->lacks);
        figures_free(m);
    }
    test_objects_free();
}

static void test_what_users_name_has_a_ceiling(void **state)
{
    struct figures *m = figures_new();
    OWN(buf_done) struct buf out = BUF_INIT(4 << 20);
    struct err e;
    char template[32];

    (void)state;
    for (int i = 0; i < FIGURES_SERIES_MAX + 7; i++) {
        (void)snprintf(template, sizeof template, "t%d", i);
        figures_claim_bound(m, warm(template), warm(template));
    }
    assert_int_equal(figures_write(m, NULL, &out, &e), 0);
    has(&out, "\nsilica_metrics_dropped_total 7\n");
    figures_free(m);
    test_objects_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims_are_counted_by_how_they_got_their_sandbox),
        cmocka_unit_test(test_latencies_are_those_of_the_clocks_that_are_told),
        cmocka_unit_test(test_each_clock_has_its_own_beginning),
        cmocka_unit_test(test_what_users_name_has_a_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
