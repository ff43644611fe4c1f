#include "kube/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define C(requests, limits) "{\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}}"
#define ALWAYS(requests)                                                                           \
    "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" requests "}}}"

static const struct row {
    const char *what, *plural, *resource, *members, *amount;
} rows[] = {
    { "an object", "secrets", "secrets", "", "1" },
    { "an object by its full name", "secrets", "count/secrets", "", "1" },
    { "another kind", "configmaps", "secrets", "", "0" },
    { "a Pod that waits", "pods", "pods", ",\"status\":{\"phase\":\"Pending\"}", "1" },
    { "a Pod that has ended", "pods", "pods", ",\"status\":{\"phase\":\"Failed\"}", "0" },
    { "an object of one that has ended", "pods", "count/pods", ",\"status\":{\"phase\":\"Failed\"}",
      "1" },
    { "requests of containers", "pods", "requests.cpu",
      ",\"spec\":{\"containers\":[" C("\"cpu\":\"100m\"", "") "," C("\"cpu\":\"1\"", "") "]}",
      "1100m" },
    { "cpu is that of requests", "pods", "cpu",
      ",\"spec\":{\"containers\":[" C("\"cpu\":\"100m\"", "\"cpu\":\"2\"") "]}", "100m" },
    { "limits", "pods", "limits.memory",
      ",\"spec\":{\"containers\":[" C("\"memory\":\"1Mi\"", "\"memory\":\"2Mi\"") "]}", "2Mi" },
    { "of one that has ended", "pods", "limits.memory",
      ",\"status\":{\"phase\":\"Succeeded\"},\"spec\":{\"containers\":[" C(
          "", "\"memory\":\"2Mi\"") "]}",
      "0" },
    { "an init container that needs more", "pods", "requests.memory",
      ",\"spec\":{\"initContainers\":[" C("\"memory\":\"5Mi\"", "") "],\"containers\":[" C(
          "\"memory\":\"1Mi\"", "") "," C("\"memory\":\"2Mi\"", "") "]}",
      "5Mi" },
    { "an init container that stays", "pods", "requests.memory",
      ",\"spec\":{\"initContainers\":[" ALWAYS("\"memory\":\"4Mi\"") "," C(
          "\"memory\":\"5Mi\"", "") "],\"containers\":[" C("\"memory\":\"1Mi\"", "") "]}",
      "9Mi" },
    { "the Pod as a whole", "pods", "requests.cpu",
      ",\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"3\"}},\"containers\":[" C("\"cpu\":\"1\"",
                                                                                   "") "]}",
      "3" },
    { "overhead", "pods", "requests.cpu",
      ",\"spec\":{\"overhead\":{\"cpu\":\"50m\"},\"containers\":[" C("\"cpu\":\"1\"", "") "]}",
      "1050m" },
    { "overhead of no limit", "pods", "limits.cpu",
      ",\"spec\":{\"overhead\":{\"cpu\":\"50m\"},\"containers\":[" C("\"cpu\":\"1\"", "") "]}",
      "0" },
    { "a device", "pods", "requests.example.com/gpu",
      ",\"spec\":{\"containers\":[" C("\"example.com/gpu\":\"2\"", "") "]}", "2" },
    { "storage", "persistentvolumeclaims", "requests.storage",
      ",\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}", "1Gi" },
    { "storage of a class", "persistentvolumeclaims",
      "fast.storageclass.storage.k8s.io/requests.storage",
      ",\"spec\":{\"storageClassName\":\"fast\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}",
      "1Gi" },
    { "storage of another", "persistentvolumeclaims",
      "slow.storageclass.storage.k8s.io/requests.storage",
      ",\"spec\":{\"storageClassName\":\"fast\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}",
      "0" },
    { "claims of a class", "persistentvolumeclaims",
      "fast.storageclass.storage.k8s.io/persistentvolumeclaims",
      ",\"spec\":{\"storageClassName\":\"fast\"}", "1" },
    { "ports of nodes", "services", "services.nodeports",
      ",\"spec\":{\"type\":\"NodePort\",\"ports\":[{\"port\":1},{\"port\":2}]}", "2" },
    { "no ports of nodes", "services", "services.nodeports",
      ",\"spec\":{\"type\":\"ClusterIP\",\"ports\":[{\"port\":1}]}", "0" },
    { "balancers", "services", "services.loadbalancers", ",\"spec\":{\"type\":\"LoadBalancer\"}",
      "1" },
    { "one of ours", "sandboxes", "count/sandboxes.agents.x-k8s.io", "", "1" },
    { "events of the newer group", "events", "count/events.events.k8s.io", "", "1" },
};

static struct object *made(const char *plural, const char *members)
{
    static const char *const groups[] = { "", "agents.x-k8s.io" };
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct kind *kind = NULL;
    struct object *o;
    char text[2048];
    struct err e;

    EACH(group, groups) {
        kind = kind ? kind : kind_find(*group, NULL, plural);
    }
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"x\"}%s}",
                   members);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind, json_doc_root(doc), &o, &e), 0);
    return o;
}

static void test_amounts(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(object_done) struct object *o = made(r->plural, r->members);
        char text[QUANTITY_TEXT_BYTES];
        struct quota_measure m;
        struct quantity q;

        assert_true(quota_measure_of(span_cstr(r->resource), &m));
        q = quota_amount(&m, o);
        if (strcmp(quantity_text(&q, text), r->amount) != 0)
            fail_msg("%s: %s, not %s", r->what, text, r->amount);
    }
}

static void test_names_of_nothing(void **state)
{
    static const char *const names[] = {
        "count/nothing", "count/secrets.apps", "count/nodes", "limits.example.com/gpu", "disk",
    };
    struct quota_measure m;

    (void)state;
    EACH(name, names) {
        assert_false(quota_measure_of(span_cstr(*name), &m));
    }
    assert_true(quota_measure_of(SPAN("replicationcontrollers"), &m));
    assert_null(m.kind);
}

static void test_scopes(void **state)
{
    static const struct {
        const char *spec, *plural, *members;
        bool matches;
    } scopes[] = {
        { "{}", "secrets", "", true },
        { "{\"scopes\":[\"Terminating\"]}", "secrets", "", false },
        { "{\"scopes\":[\"Terminating\"]}", "pods", ",\"spec\":{\"activeDeadlineSeconds\":5}",
          true },
        { "{\"scopes\":[\"NotTerminating\"]}", "pods", ",\"spec\":{\"activeDeadlineSeconds\":5}",
          false },
        { "{\"scopes\":[\"NotTerminating\",\"BestEffort\"]}", "pods",
          ",\"status\":{\"qosClass\":\"BestEffort\"}", true },
        { "{\"scopes\":[\"NotBestEffort\"]}", "pods", ",\"status\":{\"qosClass\":\"BestEffort\"}",
          false },
        { "{\"scopes\":[\"NotBestEffort\"]}", "pods", ",\"status\":{\"qosClass\":\"Burstable\"}",
          true },
    };

    (void)state;
    EACH(s, scopes) {
        OWN(object_done) struct object *o = made(s->plural, s->members);
        OWN(json_doc_done) struct json_doc *doc = NULL;
        struct err e;

        assert_int_equal(json_parse(span_cstr(s->spec), NULL, &doc, &e), 0);
        assert_int_equal(quota_matches(json_doc_root(doc), o), s->matches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_names_of_nothing),
        cmocka_unit_test(test_scopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
