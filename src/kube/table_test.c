#include "kube/table.h"

#include "kube/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define META "\"metadata\":{\"name\":\"x\",\"creationTimestamp\":\"2026-11-16T09:30:00Z\"}"

static const struct row {
    const char *name, *group, *version, *plural, *body, *want;
} rows[] = {
    { "running pod", "", "v1", "pods",
      "{" META
      ",\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"nodeName\":\"n\"},\"status\":{\"phase\":"
      "\"Running\",\"podIPs\":[{\"ip\":\"127.1.2.3\"}],\"containerStatuses\":[{\"ready\":true,\"restartCount\":2,\"state\":"
      "{\"running\":{}},\"lastState\":{\"terminated\":{\"finishedAt\":\"2026-11-16T09:31:00Z\"}}},{\"ready\":false,"
      "\"restartCount\":0,\"state\":{\"running\":{}}}]}}",
      "[\"x\",\"1/2\",\"Running\",\"2 (60s ago)\",\"2m\",\"127.1.2.3\",\"n\",\"<none>\",\"<none>\"]" },
    { "pod that waits", "", "v1", "pods",
      "{" META
      ",\"spec\":{\"containers\":[{\"name\":\"a\"}]},\"status\":{\"phase\":\"Pending\",\"containerStatuses\":["
      "{\"restartCount\":0,\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}]}}",
      "[\"x\",\"0/1\",\"ImagePullBackOff\",\"0\",\"2m\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]" },
    { "pod whose second init container runs", "", "v1", "pods",
      "{" META
      ",\"spec\":{\"containers\":[{\"name\":\"a\"}],\"initContainers\":[{\"name\":\"i\"},{\"name\":\"j\"}]},"
      "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{\"terminated\":{\"exitCode\":0}}},"
      "{\"name\":\"j\",\"state\":{\"running\":{}}}]}}",
      "[\"x\",\"0/1\",\"Init:1/2\",\"0\",\"2m\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]" },
    { "pod that failed", "", "v1", "pods",
      "{" META
      ",\"spec\":{\"containers\":[{\"name\":\"a\"}],\"readinessGates\":[{\"conditionType\":\"g\"}]},\"status\":"
      "{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":3}}}]}}",
      "[\"x\",\"0/1\",\"ExitCode:3\",\"0\",\"2m\",\"<none>\",\"<none>\",\"<none>\",\"0/1\"]" },
    { "pod that is being deleted", "", "v1", "pods",
      "{\"metadata\":{\"name\":\"x\",\"deletionTimestamp\":\"2026-11-16T09:30:00Z\"},\"spec\":{\"containers\":[{}]},"
      "\"status\":{\"phase\":\"Running\"}}",
      "[\"x\",\"0/1\",\"Terminating\",\"0\",\"<unknown>\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]" },
    { "pod with a sidecar", "", "v1", "pods",
      "{" META
      ",\"spec\":{\"containers\":[{\"name\":\"a\"}],\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\"}]},"
      "\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":[{\"name\":\"s\",\"started\":true,\"ready\":true,"
      "\"restartCount\":1}],\"containerStatuses\":[{\"ready\":true,\"state\":{\"running\":{}}}]}}",
      "[\"x\",\"2/2\",\"Running\",\"1\",\"2m\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]" },
    { "namespace", "", "v1", "namespaces", "{" META ",\"status\":{\"phase\":\"Active\"}}",
      "[\"x\",\"Active\",\"2m\"]" },
    { "config map", "", "v1", "configmaps",
      "{" META ",\"data\":{\"a\":\"1\"},\"binaryData\":{\"b\":\"\"}}", "[\"x\",2,\"2m\"]" },
    { "secret", "", "v1", "secrets", "{" META ",\"type\":\"Opaque\",\"data\":{\"a\":\"\"}}",
      "[\"x\",\"Opaque\",1,\"2m\"]" },
    { "service account", "", "v1", "serviceaccounts", "{" META "}", "[\"x\",\"2m\"]" },
    { "headless service", "", "v1", "services",
      "{" META
      ",\"spec\":{\"type\":\"ClusterIP\",\"clusterIPs\":[\"None\"],\"selector\":{\"b\":\"2\",\"a\":\"1\"}}}",
      "[\"x\",\"ClusterIP\",\"None\",\"<none>\",\"<none>\",\"2m\",\"a=1,b=2\"]" },
    { "load balancer", "", "v1", "services",
      "{" META
      ",\"spec\":{\"type\":\"LoadBalancer\",\"clusterIPs\":[\"10.0.0.1\"],\"ports\":[{\"port\":80,\"protocol\":\"TCP\","
      "\"nodePort\":30000},{\"port\":53,\"protocol\":\"UDP\"}]}}",
      "[\"x\",\"LoadBalancer\",\"10.0.0.1\",\"<pending>\",\"80:30000/TCP,53/UDP\",\"2m\",\"<none>\"]" },
    { "node", "", "v1", "nodes",
      "{\"metadata\":{\"name\":\"x\",\"creationTimestamp\":\"2026-11-16T09:30:00Z\",\"labels\":{\"node-role.kubernetes.io/b\":\"\","
      "\"node-role.kubernetes.io/a\":\"\"}},\"spec\":{\"unschedulable\":true},\"status\":{\"conditions\":[{\"type\":\"Ready\","
      "\"status\":\"True\"}],\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.9\"}],\"nodeInfo\":{\"kubeletVersion\":"
      "\"v1\",\"kernelVersion\":\"6.1\",\"architecture\":\"amd64\"}}}",
      "[\"x\",\"Ready,SchedulingDisabled\",\"a,b\",\"2m\",\"v1\",\"10.0.0.9\",\"<none>\",\"<unknown>\",\"6.1 (amd64)\","
      "\"<unknown>\"]" },
    { "bound claim", "", "v1", "persistentvolumeclaims",
      "{" META
      ",\"spec\":{\"volumeName\":\"v\",\"storageClassName\":\"s\",\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":"
      "\"Bound\",\"capacity\":{\"storage\":\"1Gi\"},\"accessModes\":[\"ReadWriteMany\",\"ReadWriteOnce\"]}}",
      "[\"x\",\"Bound\",\"v\",\"1Gi\",\"RWO,RWX\",\"s\",\"<unset>\",\"2m\",\"Filesystem\"]" },
    { "event", "", "v1", "events",
      "{" META
      ",\"type\":\"Normal\",\"reason\":\"Made\",\"message\":\" done \",\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\"},"
      "\"firstTimestamp\":\"2026-11-16T09:30:00Z\",\"lastTimestamp\":\"2026-11-16T09:31:00Z\",\"count\":3,\"source\":"
      "{\"component\":\"c\",\"host\":\"h\"}}",
      "[\"60s\",\"Normal\",\"Made\",\"pod/p\",\"\",\"c, h\",\"done\",\"2m\",3,\"x\"]" },
    { "event of the newer group", "events.k8s.io", "v1", "events",
      "{" META
      ",\"type\":\"Normal\",\"reason\":\"Made\",\"note\":\"done\",\"regarding\":{\"kind\":\"Pod\",\"name\":\"p\"},"
      "\"eventTime\":\"2026-11-16T09:30:00.000000Z\",\"reportingController\":\"c\"}",
      "[\"2m\",\"Normal\",\"Made\",\"pod/p\",\"\",\"c\",\"done\",\"2m\",1,\"x\"]" },
    { "deployment", "apps", "v1", "deployments",
      "{" META
      ",\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"k\","
      "\"operator\":\"In\",\"values\":[\"v\",\"w\"]}]},\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}},"
      "\"status\":{\"readyReplicas\":1,\"updatedReplicas\":2}}",
      "[\"x\",\"1/2\",2,0,\"2m\",\"c\",\"i\",\"a=b,k in (v,w)\"]" },
    { "replica set", "apps", "v1", "replicasets",
      "{" META ",\"spec\":{\"replicas\":2},\"status\":{\"replicas\":1}}",
      "[\"x\",2,1,0,\"2m\",\"\",\"\",\"<none>\"]" },
    { "endpoint slice", "discovery.k8s.io", "v1", "endpointslices",
      "{" META
      ",\"addressType\":\"IPv4\",\"ports\":[{\"port\":80}],\"endpoints\":[{\"addresses\":[\"1\",\"2\"]},{\"addresses\":"
      "[\"3\",\"4\"]}]}",
      "[\"x\",\"IPv4\",\"80\",\"1,2,3 + 1 more...\",\"2m\"]" },
    { "network policy", "networking.k8s.io", "v1", "networkpolicies",
      "{" META ",\"spec\":{\"podSelector\":{}}}", "[\"x\",\"<none>\",\"2m\"]" },
    { "lease", "coordination.k8s.io", "v1", "leases",
      "{" META ",\"spec\":{\"holderIdentity\":\"me\"}}", "[\"x\",\"me\",\"2m\"]" },
    { "quota", "", "v1", "resourcequotas",
      "{" META
      ",\"status\":{\"hard\":{\"pods\":\"5\",\"limits.cpu\":\"2\",\"cpu\":\"1\"},\"used\":{\"pods\":\"1\",\"cpu\":"
      "\"300m\"}}}",
      "[\"x\",\"cpu: 300m/1, pods: 1/5\",\"limits.cpu: 0/2\",\"2m\"]" },
    { "budget", "policy", "v1", "poddisruptionbudgets", "{" META ",\"spec\":{\"minAvailable\":1}}",
      "[\"x\",\"1\",\"N/A\",0,\"2m\"]" },
    { "storage class", "storage.k8s.io", "v1", "storageclasses",
      "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"storageclass.kubernetes.io/is-default-class\":\"true\"}},\"provisioner\":"
      "\"p\"}",
      "[\"x (default)\",\"p\",\"Delete\",\"Immediate\",false,\"<unknown>\"]" },
    { "role", "rbac.authorization.k8s.io", "v1", "roles", "{" META "}",
      "[\"x\",\"2026-11-16T09:30:00Z\"]" },
    { "role binding", "rbac.authorization.k8s.io", "v1", "rolebindings",
      "{" META
      ",\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"u\"},{\"kind\":"
      "\"ServiceAccount\",\"namespace\":\"n\",\"name\":\"s\"}]}",
      "[\"x\",\"Role/r\",\"2m\",\"u\",\"\",\"n/s\"]" },
    { "sandbox", "agents.x-k8s.io", "v1beta1", "sandboxes",
      "{" META
      ",\"status\":{\"conditions\":[{\"type\":\"Other\",\"status\":\"no\"},{\"type\":\"Ready\",\"status\":\"True\",\"reason\":"
      "\"DependenciesReady\"}]}}",
      "[\"x\",\"True\",\"DependenciesReady\",\"2m\"]" },
    { "sandbox without status", "agents.x-k8s.io", "v1beta1", "sandboxes", "{" META "}",
      "[\"x\",null,null,\"2m\"]" },
    { "sandbox in the old version", "agents.x-k8s.io", "v1alpha1", "sandboxes", "{" META "}",
      "[\"x\",\"2m\"]" },
    { "pool", "extensions.agents.x-k8s.io", "v1beta1", "sandboxwarmpools",
      "{" META ",\"spec\":{\"replicas\":3},\"status\":{\"readyReplicas\":1}}",
      "[\"x\",1,3,\"2m\"]" },
    { "route", "gateway.networking.k8s.io", "v1", "httproutes",
      "{" META ",\"spec\":{\"hostnames\":[\"a\",\"b\"]}}",
      "[\"x\",\"[\\\"a\\\",\\\"b\\\"]\",\"2m\"]" },
};

static struct object *object_of(const struct kind *k, const char *body)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    assert_int_equal(json_parse(span_cstr(body), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(k, json_doc_root(doc), &o, &e), 0);
    return o;
}

static void cells_of_each_kind(void **state)
{
    struct timespec now;

    assert_true(kube_time_parse(SPAN("2026-11-16T09:32:00Z"), &now));
    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, r->version, r->plural);
        struct table_view view = { k, kind_version(k, r->version), now.tv_sec, TABLE_INCLUDE_NONE };
        OWN(object_done) struct object *o = object_of(k, r->body);
        OWN(buf_done) struct buf out = BUF_INIT(65536), cells = BUF_INIT(65536);
        OWN(json_doc_done) struct json_doc *table = NULL;
        const struct json *row;
        struct err e;

        assert_int_equal(table_write_one(&view, o, &out, &e), 0);
        assert_int_equal(json_parse(buf_span(&out), NULL, &table, &e), 0);
        row = json_at(json_get(json_doc_root(table), "rows"), 0);
        assert_int_equal(json_write(json_get(row, "cells"), &cells, &e), 0);
        if (strcmp(buf_cstr(&cells), r->want) != 0)
            fail_msg("%s: got %s, want %s", r->name, buf_cstr(&cells), r->want);
        assert_int_equal(json_count(json_get(json_doc_root(table), "columnDefinitions")),
                         json_count(json_get(row, "cells")));
    }
}

static void rows_carry_their_object(void **state)
{
    const struct kind *k = kind_find("", "v1", "pods");
    struct table_view view = { k, &k->versions[0], 0, TABLE_INCLUDE_METADATA };
    OWN(object_done)
    struct object *o = object_of(
        k,
        "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"},\"status\":{\"phase\":\"Succeeded\"}}");
    OWN(buf_done) struct buf out = BUF_INIT(65536);
    struct err e;

    assert_int_equal(table_write_one(&view, o, &out, &e), 0);
    assert_non_null(
        strstr(buf_cstr(&out),
               "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"
               "{\"resourceVersion\":\"7\"},\"columnDefinitions\":[{\"name\":\"Name\",\"type\":"
               "\"string\",\"format\":\"name\",\"description\":\"\",\"priority\":0}"));
    assert_non_null(
        strstr(buf_cstr(&out), "\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\""));
    assert_non_null(strstr(buf_cstr(&out), "\"kind\":\"PartialObjectMetadata\""));
    assert_null(strstr(buf_cstr(&out), "\"phase\""));
    view.include = TABLE_INCLUDE_OBJECT;
    buf_clear(&out);
    assert_int_equal(table_write_one(&view, o, &out, &e), 0);
    assert_non_null(strstr(buf_cstr(&out), "\"phase\""));
}

static void paths_find_or_do_not(void **state)
{
    const struct kind *k = kind_find("", "v1", "pods");
    OWN(object_done)
    struct object *o = object_of(
        k, "{\"metadata\":{},\"a\":{\"b\":[{\"k\":\"v\",\"n\":1},{\"k\":\"w\",\"n\":2}]}}");
    int64_t n;

    assert_true(json_i64(table_path(o, ".a.b[1].n"), &n) && n == 2);
    assert_true(json_i64(table_path(o, ".a.b[?(@.k=='w')].n"), &n) && n == 2);
    assert_true(json_i64(table_path(o, ".a.b[?(@.k==\"v\")].n"), &n) && n == 1);
    assert_true(json_i64(table_path(o, ".a.b[*].n"), &n) && n == 1);
    assert_null(table_path(o, ".a.b[?(@.k=='')].n"));
    assert_null(table_path(o, ".a.b[?(@.k==)].n"));
    assert_null(table_path(o, ".a.b[9].n"));
    assert_null(table_path(o, ".a.b[1.n"));
    assert_null(table_path(o, "[0]"));
    assert_null(table_path(o, "a"));
    assert_null(table_path(o, ""));
}

static void include_is_parsed(void **state)
{
    enum table_include i;

    assert_true(table_include_parse(SPAN_NONE, &i) && i == TABLE_INCLUDE_METADATA);
    assert_true(table_include_parse(SPAN("None"), &i) && i == TABLE_INCLUDE_NONE);
    assert_true(table_include_parse(SPAN("Object"), &i) && i == TABLE_INCLUDE_OBJECT);
    assert_false(table_include_parse(SPAN("object"), &i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_of_each_kind),
        cmocka_unit_test(rows_carry_their_object),
        cmocka_unit_test(paths_find_or_do_not),
        cmocka_unit_test(include_is_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
