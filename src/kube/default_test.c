#include "kube/default.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The answers are a public server's of release 1.36 to the same body, without what it stamps. */
static const struct row {
    const char *name, *group, *version, *plural, *in, *want;
} rows[] = {
    { "config map: empty things go, nulls in a map are empty texts", "", "v1", "configmaps",
      "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\",\"labels\":null,\"annotations\":{},\"foo\":1},\"data\":{\"a\":null},"
      "\"immutable\":false,\"bar\":2}",
      "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"\"},\"immutable\":false}" },
    { "secret: texts become data", "", "v1", "secrets",
      "{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"YWJj\\nZGU=\",\"b\":null},\"stringData\":{\"c\":\"x\"}}",
      "{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"YWJjZGU=\",\"b\":\"\",\"c\":\"eA==\"},\"type\":\"Opaque\"}" },
    { "pod", "", "v1", "pods",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":1.5,"
      "\"memory\":\"1024Mi\"}}}]}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":"
      "\"1500m\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"1500m\",\"memory\":\"1Gi\"}},\"terminationMessagePath\":"
      "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],\"restartPolicy\":\"Always\","
      "\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":"
      "\"default-scheduler\",\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
      "\"NoExecute\",\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":"
      "\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,\"preemptionPolicy\":"
      "\"PreemptLowerPriority\"},\"status\":{\"phase\":\"Pending\",\"qosClass\":\"Guaranteed\"}}" },
    { "deployment", "apps", "v1", "deployments",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":"
      "{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"readinessProbe\":{\"httpGet\":{\"port\":80}},"
      "\"ports\":[{\"containerPort\":80}],\"env\":[{\"name\":\"a\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}}]}],"
      "\"volumes\":[{\"name\":\"v\"},{\"name\":\"s\",\"secret\":{\"secretName\":\"q\"}},{\"name\":\"p\",\"projected\":{\"sources\":["
      "{\"serviceAccountToken\":{\"path\":\"t\"}}]}}]}}}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":"
      "{\"labels\":{\"a\":\"b\"}},\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}},{\"name\":\"s\",\"secret\":{\"secretName\":"
      "\"q\",\"defaultMode\":420}},{\"name\":\"p\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3600,"
      "\"path\":\"t\"}}],\"defaultMode\":420}}],\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"ports\":[{\"containerPort\":80,"
      "\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"a\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":"
      "\"metadata.name\"}}}],\"resources\":{},\"readinessProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":80,\"scheme\":\"HTTP\"},"
      "\"timeoutSeconds\":1,\"periodSeconds\":10,\"successThreshold\":1,\"failureThreshold\":3},\"terminationMessagePath\":"
      "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":"
      "\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":"
      "\"default-scheduler\"}},\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":\"25%\",\"maxSurge\":"
      "\"25%\"}},\"revisionHistoryLimit\":10,\"progressDeadlineSeconds\":600},\"status\":{}}" },
    { "service", "", "v1", "services",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"ports\":[{\"port\":80}],\"selector\":{\"a\":\"b\"}}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"ports\":[{\"protocol\":\"TCP\",\"port\":80,\"targetPort\":80}],\"selector\":"
      "{\"a\":\"b\"},\"type\":\"ClusterIP\",\"sessionAffinity\":\"None\",\"internalTrafficPolicy\":\"Cluster\"},\"status\":"
      "{\"loadBalancer\":{}}}" },
    { "headless service", "", "v1", "services",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"clusterIP\":\"None\"}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"clusterIP\":\"None\",\"clusterIPs\":[\"None\"],\"type\":\"ClusterIP\","
      "\"sessionAffinity\":\"None\",\"internalTrafficPolicy\":\"Cluster\"},\"status\":{\"loadBalancer\":{}}}" },
    { "service that is a name", "", "v1", "services",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"type\":\"ExternalName\",\"externalName\":\"a.b\"}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"type\":\"ExternalName\",\"sessionAffinity\":\"None\",\"externalName\":\"a.b\"},"
      "\"status\":{\"loadBalancer\":{}}}" },
    { "namespace", "", "v1", "namespaces", "{\"metadata\":{\"name\":\"x\"}}",
      "{\"metadata\":{\"name\":\"x\",\"labels\":{\"kubernetes.io/metadata.name\":\"x\"}},\"spec\":{\"finalizers\":[\"kubernetes\"]},"
      "\"status\":{\"phase\":\"Active\"}}" },
    { "claim", "", "v1", "persistentvolumeclaims",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":"
      "\"1024Mi\"}}}}",
      "{\"metadata\":{\"name\":\"x\",\"finalizers\":[\"kubernetes.io/pvc-protection\"]},\"spec\":{\"accessModes\":["
      "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}},\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":"
      "\"Pending\"}}" },
    { "event", "", "v1", "events",
      "{\"metadata\":{\"name\":\"x\"},\"involvedObject\":{\"namespace\":\"default\",\"name\":\"p\",\"kind\":\"Pod\"},\"reason\":\"r\","
      "\"message\":\"m\",\"type\":\"Normal\"}",
      "{\"metadata\":{\"name\":\"x\"},\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"p\"},\"reason\":\"r\","
      "\"message\":\"m\",\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,\"type\":\"Normal\",\"eventTime\":null,"
      "\"reportingComponent\":\"\",\"reportingInstance\":\"\"}" },
    { "event of the newer group", "events.k8s.io", "v1", "events",
      "{\"metadata\":{\"name\":\"x\"},\"regarding\":{\"namespace\":\"default\",\"name\":\"p\",\"kind\":\"Pod\"},\"reason\":\"r\","
      "\"note\":\"m\",\"type\":\"Normal\",\"action\":\"a\",\"reportingController\":\"a.b/c\",\"reportingInstance\":\"i\",\"eventTime\":"
      "\"2026-11-16T09:30:00.000000Z\"}",
      "{\"metadata\":{\"name\":\"x\"},\"eventTime\":\"2026-11-16T09:30:00.000000Z\",\"reportingController\":\"a.b/c\","
      "\"reportingInstance\":\"i\",\"action\":\"a\",\"reason\":\"r\",\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":"
      "\"p\"},\"note\":\"m\",\"type\":\"Normal\",\"deprecatedSource\":{},\"deprecatedFirstTimestamp\":null,"
      "\"deprecatedLastTimestamp\":null}" },
    { "references without a name stay without", "", "v1", "serviceaccounts",
      "{\"metadata\":{\"name\":\"x\"},\"imagePullSecrets\":[{\"name\":\"\"},{}]}",
      "{\"metadata\":{\"name\":\"x\"},\"imagePullSecrets\":[{},{}]}" },
    { "lease: times become UTC", "coordination.k8s.io", "v1", "leases",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":\"2026-11-16T10:30:00.123456+01:00\"}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":\"2026-11-16T09:30:00.123456Z\"}}" },
    { "network policy", "networking.k8s.io", "v1", "networkpolicies",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"podSelector\":{},\"egress\":[{\"ports\":[{\"port\":53}]}]}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"podSelector\":{},\"egress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":53}]}],"
      "\"policyTypes\":[\"Ingress\",\"Egress\"]}}" },
    { "storage class", "storage.k8s.io", "v1", "storageclasses",
      "{\"metadata\":{\"name\":\"x\"},\"provisioner\":\"p\"}",
      "{\"metadata\":{\"name\":\"x\"},\"provisioner\":\"p\",\"reclaimPolicy\":\"Delete\",\"volumeBindingMode\":\"Immediate\"}" },
    { "endpoint slice", "discovery.k8s.io", "v1", "endpointslices",
      "{\"metadata\":{\"name\":\"x\"},\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"1.2.3.4\"]}],\"ports\":[{\"port\":80}]}",
      "{\"metadata\":{\"name\":\"x\"},\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"1.2.3.4\"],\"conditions\":{}}],"
      "\"ports\":[{\"name\":\"\",\"protocol\":\"TCP\",\"port\":80}]}" },
    { "budget", "policy", "v1", "poddisruptionbudgets",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"minAvailable\":1}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"minAvailable\":1},\"status\":{\"disruptionsAllowed\":0,\"currentHealthy\":0,"
      "\"desiredHealthy\":0,\"expectedPods\":0}}" },
    { "role", "rbac.authorization.k8s.io", "v1", "roles", "{\"metadata\":{\"name\":\"x\"}}",
      "{\"metadata\":{\"name\":\"x\"},\"rules\":null}" },
    { "role binding", "rbac.authorization.k8s.io", "v1", "rolebindings",
      "{\"metadata\":{\"name\":\"x\"},\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"u\"},"
      "{\"kind\":\"ServiceAccount\",\"name\":\"s\"}]}",
      "{\"metadata\":{\"name\":\"x\"},\"subjects\":[{\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":\"u\"},"
      "{\"kind\":\"ServiceAccount\",\"name\":\"s\"}],\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":"
      "\"r\"}}" },
    { "access review", "authorization.k8s.io", "v1", "selfsubjectaccessreviews",
      "{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}}",
      "{\"metadata\":{},\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}},\"status\":{\"allowed\":false}}" },
    { "definition", "apiextensions.k8s.io", "v1", "customresourcedefinitions",
      "{\"metadata\":{\"name\":\"foos.a.b\"},\"spec\":{\"group\":\"a.b\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"foos\",\"kind\":"
      "\"Foo\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}",
      "{\"metadata\":{\"name\":\"foos.a.b\"},\"spec\":{\"group\":\"a.b\",\"names\":{\"plural\":\"foos\",\"singular\":\"foo\",\"kind\":"
      "\"Foo\",\"listKind\":\"FooList\"},\"scope\":\"Namespaced\",\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
      "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}],\"conversion\":{\"strategy\":\"None\"}},\"status\":{\"conditions\":null,"
      "\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},\"storedVersions\":null}}" },
    { "sandbox: unknown members and nulls go, defaults come", "agents.x-k8s.io", "v1beta1",
      "sandboxes",
      "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"x\",\"labels\":{},\"foo\":1},\"zap\":1,"
      "\"spec\":{\"bar\":1,\"service\":null,\"operatingMode\":null,\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"zip\":1,"
      "\"image\":\"\",\"ports\":[{\"containerPort\":1}]}]}}}}",
      "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"operatingMode\":"
      "\"Running\",\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"\",\"ports\":[{\"containerPort\":1,"
      "\"protocol\":\"TCP\"}]}]}},\"shutdownPolicy\":\"Retain\"}}" },
    { "sandbox of wrong types: left for validation", "agents.x-k8s.io", "v1beta1", "sandboxes",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":{\"a\":[]}}},\"volumeClaimTemplates\":7}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":{\"a\":[]}}},\"volumeClaimTemplates\":7,"
      "\"shutdownPolicy\":\"Retain\",\"operatingMode\":\"Running\"}}" },
    { "claim: defaults only inside what is there", "extensions.agents.x-k8s.io", "v1beta1",
      "sandboxclaims",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"warmPoolRef\":{\"name\":\"p\"},\"lifecycle\":{}}}",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"lifecycle\":{\"shutdownPolicy\":\"Retain\"},\"warmPoolRef\":{\"name\":\"p\"}}}" },
};

static struct json_doc *doc_of(const char *text)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return doc;
}

static void each(void **state)
{
    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, r->version, r->plural);
        OWN(json_doc_done) struct json_doc *in = doc_of(r->in), *want = doc_of(r->want);
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *root = json_edit_doc(ed, in);
        OWN(buf_done) struct buf text = BUF_INIT(65536);
        struct err e;

        /* Twice: what is stored must come back as it is. */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(default_object(k, kind_version(k, r->version), root, &e), 0);
            if (i == 0)
                default_created(k, root);
            assert_int_equal(json_node_write(root, &text, &e), 0);
            if (!json_node_equal_value(root, json_doc_root(want)))
                fail_msg("%s: got %s, want %s", r->name, buf_cstr(&text), r->want);
            buf_clear(&text);
        }
    }
}

/* What is stored already is not opened. */
static void what_is_done_stays_a_view(void **state)
{
    size_t seen = 0;

    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, r->version, r->plural);
        OWN(json_doc_done) struct json_doc *want = doc_of(r->want);
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *root = json_edit_doc(ed, want);
        struct err e;

        assert_int_equal(default_object(k, kind_version(k, r->version), root, &e), 0);
        for (size_t i = 0; k->traits & KIND_CUSTOM && i < json_node_count(root); i++, seen++)
            if (!json_node_plain(json_node_value_at(root, i)))
                fail_msg("%s: %.*s was opened", r->name, SPAN_ARG(json_node_name_at(root, i)));
    }
    assert_true(seen > 0);
}

static void what_is_kept_is_passed_over(void **state)
{
    const struct kind *k = kind_find("", "v1", "pods");
    OWN(json_doc_done)
    struct json_doc *doc = doc_of("{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}");
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *was = json_edit_doc(ed, doc), *now = json_edit_doc(ed, doc);
    struct err e;

    assert_true(default_is_kept(now, was, "spec"));
    assert_int_equal(default_changed(k, &k->versions[0], now, was, &e), 0);
    assert_true(default_is_kept(now, was, "spec"));
    json_node_set(json_node_get(now, "spec"), "hostname", json_edit_cstr(ed, "h"));
    assert_false(default_is_kept(now, was, "spec"));
    assert_int_equal(default_changed(k, &k->versions[0], now, was, &e), 0);
    assert_non_null(json_node_get(json_node_get(now, "spec"), "restartPolicy"));
    assert_null(json_node_get(json_node_get(was, "spec"), "restartPolicy"));
}

static void every_default_is_json(void **state)
{
    size_t n;
    const struct schema_type *const *types = schema_types(&n);
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < types[i]->field_count; j++) {
            const struct schema_field *f = &types[i]->fields[j];
            const char *texts[] = { f->preset, f->fill };

            EACH(text, texts) {
                if (*text && json_node_type(default_text_node(ed, *text)) == JSON_NULL)
                    fail_msg("%s.%s: '%s'", types[i]->name, f->name, *text);
            }
        }
}

static const struct {
    const char *image, *want;
} images[] = {
    { "busybox", "Always" },
    { "busybox:latest", "Always" },
    { "busybox:1", "IfNotPresent" },
    { "host:5000/busybox", "Always" },
    { "host:5000/busybox:1", "IfNotPresent" },
    { "busybox@sha256:abc", "IfNotPresent" },
    { "", "IfNotPresent" },
};

static void pull_policies(void **state)
{
    const struct kind *k = kind_find("", "v1", "pods");

    EACH(r, images) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *root = json_edit_object(ed), *spec = json_edit_object(ed);
        struct json_node *list = json_edit_array(ed), *c = json_edit_object(ed);
        struct err e;

        json_node_set(c, "image", json_edit_cstr(ed, r->image));
        json_node_append(list, c);
        json_node_set(spec, "containers", list);
        json_node_set(root, "spec", spec);
        assert_int_equal(default_object(k, &k->versions[0], root, &e), 0);
        c = json_node_at(json_node_get(json_node_get(root, "spec"), "containers"), 0);
        assert_string_equal(json_node_cstr(json_node_get(c, "imagePullPolicy")), r->want);
    }
}

static const struct {
    const char *name, *was, *now, *want;
} updates[] = {
    { "addresses stay",
      "{\"spec\":{\"type\":\"ClusterIP\",\"clusterIP\":\"10.0.0.1\",\"clusterIPs\":[\"10.0.0.1\"]}}",
      "{\"spec\":{\"type\":\"ClusterIP\"}}",
      "{\"spec\":{\"type\":\"ClusterIP\",\"clusterIP\":\"10.0.0.1\",\"clusterIPs\":[\"10.0.0.1\"]}}" },
    { "what is given wins", "{\"spec\":{\"clusterIP\":\"10.0.0.1\"}}",
      "{\"spec\":{\"clusterIP\":\"10.0.0.2\"}}", "{\"spec\":{\"clusterIP\":\"10.0.0.2\"}}" },
    { "a name has none", "{\"spec\":{\"clusterIP\":\"10.0.0.1\"}}",
      "{\"spec\":{\"type\":\"ExternalName\"}}", "{\"spec\":{\"type\":\"ExternalName\"}}" },
};

static void updates_keep_what_the_server_chose(void **state)
{
    EACH(r, updates) {
        OWN(json_doc_done) struct json_doc *was = doc_of(r->was);
        OWN(json_doc_done) struct json_doc *now = doc_of(r->now);
        OWN(json_doc_done) struct json_doc *want = doc_of(r->want);
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *root = json_edit_doc(ed, now);

        default_updated(kind_find("", "v1", "services"), root, json_edit_doc(ed, was));
        if (!json_node_equal_value(root, json_doc_root(want)))
            fail_msg("%s", r->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each),
        cmocka_unit_test(what_is_done_stays_a_view),
        cmocka_unit_test(what_is_kept_is_passed_over),
        cmocka_unit_test(every_default_is_json),
        cmocka_unit_test(pull_policies),
        cmocka_unit_test(updates_keep_what_the_server_chose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
