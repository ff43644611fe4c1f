#include "kube/check.h"

#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define POD     "", "v1", "pods"
#define MAP     "", "v1", "configmaps"
#define SECRET  "", "v1", "secrets"
#define SANDBOX "agents.x-k8s.io", "v1beta1", "sandboxes"

/* The texts are those of a public server of release 1.36. refused: of a wrong type; issues: joined. */
static const struct row {
    const char *group, *version, *plural, *body, *refused, *issues;
} rows[] = {
    { POD,
      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":null}}",
      NULL, NULL },
    { POD,
      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\",\"foo\":1},\"spec\":{\"bar\":2,\"containers\":[{\"name\":"
      "\"a\",\"image\":\"i\",\"zip\":1,\"name\":\"b\"}],\"hostNetwork\":true,\"hostNetwork\":false}}",
      NULL,
      "strict decoding error: unknown field \"metadata.foo\", unknown field \"spec.bar\", unknown field "
      "\"spec.containers[0].zip\", duplicate field \"spec.containers[0].name\", duplicate field \"spec.hostNetwork\"" },
    { MAP,
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"1\",\"a\":\"2\"},\"zz\":1,"
      "\"zz\":2,\"zz\":3},\"kind\":\"ConfigMap\",\"data\":{\"a\":\"1\",\"a\":\"2\"}}",
      NULL,
      "strict decoding error: duplicate field \"metadata.labels.a\", unknown field \"metadata.zz\", duplicate field \"kind\", "
      "duplicate field \"data.a\"" },
    { POD, "{\"spec\":{\"containers\":\"no\"}}",
      "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
      NULL },
    { POD, "{\"spec\":{\"terminationGracePeriodSeconds\":\"5\"}}",
      "json: cannot unmarshal string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
      NULL },
    { POD, "{\"spec\":{\"restartPolicy\":5}}",
      "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
      NULL },
    { POD, "{\"metadata\":{\"name\":1}}",
      "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
      NULL },
    { POD, "{\"metadata\":{\"labels\":{\"a\":1}}}",
      "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
      NULL },
    { POD, "{\"metadata\":\"x\"}",
      "json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta",
      NULL },
    { POD, "{\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":99999999999}]}]}}",
      "json: cannot unmarshal number 99999999999 into Go struct field ContainerPort.spec.containers.ports.containerPort of type "
      "int32",
      NULL },
    { POD, "{\"spec\":{\"containers\":[{\"livenessProbe\":{\"periodSeconds\":1.5}}]}}",
      "json: cannot unmarshal number 1.5 into Go struct field Probe.spec.containers.livenessProbe.periodSeconds of type int32",
      NULL },
    { POD, "{\"spec\":{\"hostNetwork\":\"yes\"}}",
      "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
      NULL },
    { POD, "{\"spec\":[]}",
      "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec", NULL },
    { POD, "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":\"abc\"}}}]}}",
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      NULL },
    { POD,
      "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":1.5,\"memory\":\"1Gi\"}}}]}}",
      NULL, NULL },
    { POD, "{\"metadata\":{\"creationTimestamp\":\"yesterday\"}}",
      "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"",
      NULL },
    { POD, "{\"metadata\":{\"creationTimestamp\":5}}",
      "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
      NULL },
    { "coordination.k8s.io", "v1", "leases",
      "{\"spec\":{\"renewTime\":\"2026-11-16T09:30:00.123456Z\"}}", NULL, NULL },
    { "coordination.k8s.io", "v1", "leases", "{\"spec\":{\"renewTime\":\"2026-11-16T09:30:00Z\"}}",
      "parsing time \"2026-11-16T09:30:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse "
      "\"2026-11-16T09:30:00Z\" as \"2006\"",
      NULL },
    { SECRET, "{\"data\":{\"a\":\"!!\"}}", "illegal base64 data at input byte 0", NULL },
    { SECRET, "{\"data\":{\"a\":\"YWJj\\nZGU=\",\"b\":null}}", NULL, NULL },
    { SECRET, "{\"data\":{\"a\":5}}",
      "json: cannot unmarshal number into Go struct field Secret.data of type []uint8", NULL },
    { MAP, "{\"data\":{\"a\":true}}",
      "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string", NULL },
    { MAP, "[]", "json: cannot unmarshal array into Go value of type v1.ConfigMap", NULL },
    { SANDBOX,
      "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"x\",\"foo\":1},\"zap\":1,\"spec\":"
      "{\"bar\":1,\"bar\":2,\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"zip\":1,\"name\":\"a\"}]}}}}",
      NULL,
      "strict decoding error: duplicate field \"spec.bar\", duplicate field \"spec.podTemplate.spec.containers[0].name\", "
      "unknown field \"metadata.foo\", unknown field \"spec.bar\", unknown field \"spec.podTemplate.spec.containers[0].zip\", "
      "unknown field \"zap\"" },
    { SANDBOX, "{\"metadata\":{\"name\":\"x\"},\"spec\":\"no\"}", NULL, NULL },
    { SANDBOX, "{\"metadata\":{\"labels\":{\"a\":1}}}",
      "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string", NULL },
    { SANDBOX, "{\"metadata\":\"x\"}",
      "json: cannot unmarshal string into Go value of type v1.ObjectMeta", NULL },
};

static void each(void **state)
{
    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, r->version, r->plural);
        OWN(json_doc_done) struct json_doc *doc = NULL;
        OWN(check_issues_done) struct check_issues issues = CHECK_ISSUES_INIT;
        OWN(buf_done) struct buf text = BUF_INIT(65536);
        const char *want = r->issues ? r->issues : "";
        struct err e = { .msg = "" };
        int status;

        assert_int_equal(json_parse(span_cstr(r->body), NULL, &doc, &e), 0);
        status = check_object(kind_version(k, r->version)->type, json_doc_root(doc), &issues, &e);
        if ((status < 0) != (r->refused != NULL) || (r->refused && strcmp(e.msg, r->refused) != 0))
            fail_msg("%s: got '%s', want '%s'", r->body, e.msg, r->refused);
        if (issues.n)
            assert_int_equal(check_issues_summary(&issues, &text, &e), 0);
        if (!r->refused && strcmp(buf_cstr(&text), want) != 0)
            fail_msg("%s: got '%s', want '%s'", r->body, buf_cstr(&text), want);
    }
}

/* A tree is judged like the text it would be, whatever of it was opened. */
static void trees_are_judged_alike(void **state)
{
    static const char *const members[] = { "metadata", "spec", "data" };

    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, r->version, r->plural);

        for (unsigned opened = 0; opened < 1u << LEN(members); opened++) {
            OWN(json_doc_done) struct json_doc *doc = NULL;
            OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
            struct json_node *root;
            struct err e = { .msg = "" };
            int status;

            assert_int_equal(json_parse(span_cstr(r->body), NULL, &doc, &e), 0);
            root = json_edit_doc(ed, doc);
            for (unsigned i = 0; i < LEN(members); i++)
                if (opened & 1u << i) /* a look at a name opens */
                    (void)json_node_get(json_node_get(root, members[i]), "-");
            status = check_tree(kind_version(k, r->version)->type, root, NULL, &e);
            if ((status < 0) != (r->refused != NULL) ||
                (r->refused && strcmp(e.msg, r->refused) != 0))
                fail_msg("%s: got '%s', want '%s'", r->body, e.msg, r->refused);
        }
    }
}

/* The same document twice: it passed when it was written. */
static void members_that_stay_are_passed_over(void **state)
{
    const struct kind *k = kind_find(POD);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *was = NULL;
    struct json_node *root;
    struct err e;

    assert_int_equal(
        json_parse(SPAN("{\"metadata\":{\"name\":\"x\"},\"spec\":\"no\"}"), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(k, json_doc_root(doc), &was, &e), 0);
    root = object_thaw(was, "v1", ed);
    assert_int_equal(check_tree(k->versions[0].type, root, was, &e), 0);
    assert_int_equal(check_tree(k->versions[0].type, root, NULL, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
}

static void issues_are_bounded(void **state)
{
    OWN(buf_done) struct buf body = BUF_INIT(1 << 20);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(check_issues_done) struct check_issues issues = CHECK_ISSUES_INIT;
    struct err e;

    (void)buf_addf(&body, &e, "{");
    for (int i = 0; i < 5000; i++)
        (void)buf_addf(&body, &e, "%s\"x%d\":1", i ? "," : "", i);
    (void)buf_addf(&body, &e, "}");
    assert_int_equal(json_parse(buf_span(&body), NULL, &doc, &e), 0);
    assert_int_equal(
        check_object(kind_find(MAP)->versions[0].type, json_doc_root(doc), &issues, &e), 0);
    assert_int_equal(issues.n, CHECK_ISSUES_MAX);
    assert_int_equal(check_object(kind_find(MAP)->versions[0].type, json_doc_root(doc), NULL, &e),
                     0);
}

static void modes_are_parsed(void **state)
{
    enum check_mode m;

    assert_true(check_mode_parse(SPAN_NONE, &m) && m == CHECK_WARN);
    assert_true(check_mode_parse(SPAN("Strict"), &m) && m == CHECK_STRICT);
    assert_true(check_mode_parse(SPAN("Ignore"), &m) && m == CHECK_IGNORE);
    assert_false(check_mode_parse(SPAN("strict"), &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each),
        cmocka_unit_test(trees_are_judged_alike),
        cmocka_unit_test(members_that_stay_are_passed_over),
        cmocka_unit_test(issues_are_bounded),
        cmocka_unit_test(modes_are_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
