#include "kube/apply.h"
#include "kube/fieldset.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define T1 "2026-01-01T00:00:01Z"
#define T2 "2026-01-01T00:00:02Z"
#define T3 "2026-01-01T00:00:03Z"

static struct json_node *must_parse(struct json_edit *ed, const char *text)
{
    struct json_doc *doc = NULL;
    struct json_node *root;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    root = json_edit_doc(ed, doc);
    json_doc_unref(doc);
    return root;
}

static void assert_says(struct json_edit *ed, struct json_node *node, const char *want)
{
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct err e;

    if (json_node_equal(node, must_parse(ed, want)))
        return;
    assert_int_equal(json_node_write(node, &out, &e), 0);
    fail_msg("\nis   %s\nwant %s", buf_cstr(&out), want);
}

/* One step of a story: someone writes. */
enum verb { CREATE, UPDATE, APPLY, FORCE };

struct step {
    const char *name;
    enum verb verb;
    const char *who, *now, *sub;
    const char *body;    /* the whole object, or the configuration */
    const char *object;  /* what is there then, without managedFields; or the conflict's text */
    const char *managed; /* managedFields then; NULL: a conflict was wanted */
};

static const char *api_version;
static const struct kind *kind;

static int write_step(const struct step *s, struct json_node *live, struct json_node *body,
                      struct causes *conflicts, struct json_node **ret, struct err *e)
{
    struct apply_by by = { .kind = kind,
                           .version = api_version,
                           .subresource = s->sub ? s->sub : "",
                           .manager = s->who,
                           .now = s->now,
                           .is_forced = s->verb == FORCE };

    if (s->verb == APPLY || s->verb == FORCE)
        return apply_config(&by, live, body, conflicts, ret, e);
    *ret = body;
    return apply_track(&by, s->verb == CREATE ? NULL : live, body, e);
}

static void tell(const struct step *steps, size_t n)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *live = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        OWN(buf_done) struct buf text = BUF_INIT(1 << 16);
        OWN(causes_done) struct causes conflicts = CAUSES_INIT;
        struct json_node *object = NULL, *bare, *list;
        struct err e;

        print_message("%s\n", s->name);
        if (write_step(s, live, must_parse(ed, s->body), &conflicts, &object, &e) < 0) {
            if (s->managed)
                fail_msg("%s", e.msg);
            assert_int_equal(e.code, ERR_CONFLICT);
            assert_int_equal(apply_conflict_text(&conflicts, &text, &e), 0);
            assert_string_equal(buf_cstr(&text), s->object);
            continue;
        }
        assert_non_null(s->managed);
        list = json_node_get(json_node_get(object, "metadata"), "managedFields");
        bare = json_node_copy(ed, object);
        json_node_remove(json_node_get(bare, "metadata"), "managedFields");
        assert_says(ed, bare, s->object);
        if (list || s->managed[0])
            assert_says(ed, list ? list : json_edit_null(ed), s->managed);
        live = object;
    }
}

#define TELL(steps, k, version)                                                                    \
    do {                                                                                           \
        kind = (k);                                                                                \
        api_version = (version);                                                                   \
        tell(steps, LEN(steps));                                                                   \
    } while (0)

#define ENTRY(who, op, version, time, fields)                                                      \
    "{\"manager\":\"" who "\",\"operation\":\"" op "\",\"apiVersion\":\"" version                  \
    "\",\"time\":\"" time "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":" fields "}"
#define CM(data)                                                                                   \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":" data "}"
#define CM_PLAIN "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}"

static void test_two_appliers(void **state)
{
    static const struct step steps[] = {
        { "the first applies", APPLY, "one", T1, NULL, CM("{\"a\":\"1\",\"b\":\"1\"}"),
          CM("{\"a\":\"1\",\"b\":\"1\"}"),
          "[" ENTRY("one", "Apply", "v1", T1, "{\"f:data\":{\"f:a\":{},\"f:b\":{}}}") "]" },
        { "the second wants another value", APPLY, "two", T2, NULL, CM("{\"b\":\"2\"}"),
          "Apply failed with 1 conflict: conflict with \"one\": .data.b", NULL },
        { "two conflicts", APPLY, "two", T2, NULL, CM("{\"b\":\"2\",\"a\":\"2\"}"),
          "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b", NULL },
        { "the second takes it", FORCE, "two", T2, NULL, CM("{\"b\":\"2\"}"),
          CM("{\"a\":\"1\",\"b\":\"2\"}"),
          "[" ENTRY("one", "Apply", "v1", T1, "{\"f:data\":{\"f:a\":{}}}") "," ENTRY(
              "two", "Apply", "v1", T2, "{\"f:data\":{\"f:b\":{}}}") "]" },
        { "the same value is shared", APPLY, "two", T3, NULL, CM("{\"a\":\"1\",\"b\":\"2\"}"),
          CM("{\"a\":\"1\",\"b\":\"2\"}"),
          "[" ENTRY("one", "Apply", "v1", T1, "{\"f:data\":{\"f:a\":{}}}") "," ENTRY(
              "two", "Apply", "v1", T2, "{\"f:data\":{\"f:a\":{},\"f:b\":{}}}") "]" },
        { "what is shared stays when one lets go", APPLY, "one", T3, NULL, CM("{\"n\":\"3\"}"),
          CM("{\"a\":\"1\",\"b\":\"2\",\"n\":\"3\"}"),
          "[" ENTRY("two", "Apply", "v1", T2, "{\"f:data\":{\"f:a\":{},\"f:b\":{}}}") "," ENTRY(
              "one", "Apply", "v1", T3, "{\"f:data\":{\"f:n\":{}}}") "]" },
        { "what nobody owns goes", APPLY, "two", T3, NULL, CM("{\"b\":\"2\"}"),
          CM("{\"b\":\"2\",\"n\":\"3\"}"),
          "[" ENTRY("one", "Apply", "v1", T3, "{\"f:data\":{\"f:n\":{}}}") "," ENTRY(
              "two", "Apply", "v1", T3, "{\"f:data\":{\"f:b\":{}}}") "]" },
        { "an update takes what it changes", UPDATE, "three", T3, NULL,
          CM("{\"b\":\"9\",\"n\":\"3\"}"), CM("{\"b\":\"9\",\"n\":\"3\"}"),
          "[" ENTRY("one", "Apply", "v1", T3, "{\"f:data\":{\"f:n\":{}}}") "," ENTRY(
              "three", "Update", "v1", T3, "{\"f:data\":{\"f:b\":{}}}") "]" },
        { "and is named in conflicts", APPLY, "two", T3, NULL, CM("{\"b\":\"2\"}"),
          "Apply failed with 1 conflict: conflict with \"three\" using v1: .data.b", NULL },
        { "an update that removes", UPDATE, "three", T3, NULL, CM("{\"b\":\"9\"}"),
          CM("{\"b\":\"9\"}"),
          "[" ENTRY("three", "Update", "v1", T3, "{\"f:data\":{\"f:b\":{}}}") "]" },
        { "clearing managedFields", UPDATE, "three", T3, NULL,
          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"managedFields\":[]},\"data\":{"
          "\"b\":\"9\"}}",
          CM("{\"b\":\"9\"}"), "" },
        { "no account is kept then", UPDATE, "three", T3, NULL, CM("{\"b\":\"8\"}"),
          CM("{\"b\":\"8\"}"), "" },
        { "until somebody applies", APPLY, "one", T3, NULL, CM("{\"z\":\"1\"}"),
          CM("{\"b\":\"8\",\"z\":\"1\"}"),
          "[" ENTRY("one", "Apply", "v1", T3, "{\"f:data\":{\"f:z\":{}}}") "," ENTRY(
              "before-first-apply", "Update", "v1", T3, "{\"f:data\":{\".\":{},\"f:b\":{}}}") "]" },
    };

    TELL(steps, kind_find("", "v1", "configmaps"), "v1");
}

#define POD(spec)                                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":" spec "}"
#define K_A  "\"k:{\\\"name\\\":\\\"a\\\"}\""
#define K_B  "\"k:{\\\"name\\\":\\\"b\\\"}\""
#define K_80 "\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\""

static void test_lists_with_keys(void **state)
{
    static const struct step steps[] = {
        { "create", CREATE, "kubectl-create", T1, NULL,
          POD("{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"args\":[\"x\"],\"ports\":[{\"containerPort\":80}]}]}"),
          POD("{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"args\":[\"x\"],\"ports\":[{\"containerPort\":80}]}]}"),
          "[" ENTRY("kubectl-create", "Update", "v1", T1,
                    "{\"f:spec\":{\"f:containers\":{" K_A
                    ":{\".\":{},\"f:name\":{},\"f:image\":{},\"f:args\":{},"
                    "\"f:ports\":{\".\":{}," K_80 ":{\".\":{},\"f:containerPort\":{}}}}}}}") "]" },
        { "apply another container", APPLY, "two", T2, NULL,
          POD("{\"containers\":[{\"name\":\"b\",\"image\":\"2\"}]}"),
          POD("{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"args\":[\"x\"],\"ports\":[{\"containerPort\":80}]},"
              "{\"name\":\"b\",\"image\":\"2\"}]}"),
          "[" ENTRY(
              "two", "Apply", "v1", T2,
              "{\"f:spec\":{\"f:containers\":{" K_B
              ":{\".\":{},\"f:name\":{},\"f:image\":{}}}}}") "," ENTRY("kubectl-create", "Update",
                                                                       "v1", T1,
                                                                       "{\"f:spec\":{\"f:containers\":{" K_A
                                                                       ":{\".\":{},\"f:name\":{},\"f:image\":{},\"f:args\":{},"
                                                                       "\"f:ports\":{\".\":{}," K_80
                                                                       ":{\".\":{},\"f:containerPort\":{}}}}}}}") "]" },
        { "conflict inside an element", APPLY, "two", T2, NULL,
          POD("{\"containers\":[{\"name\":\"a\",\"image\":\"9\"},{\"name\":\"b\",\"image\":\"2\"}]}"),
          "Apply failed with 1 conflict: conflict with \"kubectl-create\" using v1: "
          ".spec.containers[name=\"a\"].image",
          NULL },
        { "an atomic list is one field", APPLY, "two", T2, NULL,
          POD("{\"containers\":[{\"name\":\"a\",\"args\":[\"y\"]},{\"name\":\"b\",\"image\":\"2\"}]}"),
          "Apply failed with 1 conflict: conflict with \"kubectl-create\" using v1: "
          ".spec.containers[name=\"a\"].args",
          NULL },
        { "the container goes again", APPLY, "two", T3, NULL, POD("{\"restartPolicy\":\"Never\"}"),
          POD("{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"args\":[\"x\"],\"ports\":[{\"containerPort\":80}]}],"
              "\"restartPolicy\":\"Never\"}"),
          "[" ENTRY("two", "Apply", "v1", T3, "{\"f:spec\":{\"f:restartPolicy\":{}}}") "," ENTRY(
              "kubectl-create", "Update", "v1", T1,
              "{\"f:spec\":{\"f:containers\":{" K_A
              ":{\".\":{},\"f:name\":{},\"f:image\":{},\"f:args\":{},"
              "\"f:ports\":{\".\":{}," K_80 ":{\".\":{},\"f:containerPort\":{}}}}}}}") "]" },
    };

    TELL(steps, kind_find("", "v1", "pods"), "v1");
}

static void test_emptied_objects(void **state)
{
    static const struct step steps[] = {
        { "create", CREATE, "zero", T1, NULL, POD("{}"), POD("{}"), "" },
        { "a volume", APPLY, "one", T1, NULL,
          POD("{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{\"medium\":\"Memory\"}}],\"nodeSelector\":{\"x\":\"y\"},"
              "\"securityContext\":{\"fsGroup\":1}}"),
          POD("{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{\"medium\":\"Memory\"}}],\"nodeSelector\":{\"x\":\"y\"},"
              "\"securityContext\":{\"fsGroup\":1}}"),
          "[" ENTRY("one", "Apply", "v1", T1,
                    "{\"f:spec\":{\"f:volumes\":{" K_A
                    ":{\".\":{},\"f:name\":{},\"f:emptyDir\":{\"f:medium\":{}}}},"
                    "\"f:nodeSelector\":{},\"f:securityContext\":{\"f:fsGroup\":{}}}}") "]" },
        { "of another kind, and what was in it goes", APPLY, "one", T2, NULL,
          POD("{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}}]}"),
          POD("{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}}]}"),
          "[" ENTRY("one", "Apply", "v1", T2,
                    "{\"f:spec\":{\"f:volumes\":{" K_A
                    ":{\".\":{},\"f:name\":{},\"f:emptyDir\":{}}}}}") "]" },
    };

    TELL(steps, kind_find("", "v1", "pods"), "v1");
}

static void test_sets(void **state)
{
#define FIN(list, data)                                                                               \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"finalizers\":" list \
    "}}"
    static const struct step steps[] = {
        { "one finalizer", APPLY, "one", T1, NULL, FIN("[\"x.io/a\"]", ""), FIN("[\"x.io/a\"]", ""),
          "[" ENTRY("one", "Apply", "v1", T1,
                    "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x.io/a\\\"\":{}}}}") "]" },
        { "another", APPLY, "two", T2, NULL, FIN("[\"x.io/b\"]", ""),
          FIN("[\"x.io/a\",\"x.io/b\"]", ""),
          "[" ENTRY("one", "Apply", "v1", T1, "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x.io/a\\\"\":{}}}}") "," ENTRY(
              "two", "Apply", "v1", T2,
              "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x.io/b\\\"\":{}}}}") "]" },
        { "the first goes", APPLY, "one", T3, NULL, CM_PLAIN, FIN("[\"x.io/b\"]", ""),
          "[" ENTRY("two", "Apply", "v1", T2,
                    "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x.io/b\\\"\":{}}}}") "]" },
    };

    TELL(steps, kind_find("", "v1", "configmaps"), "v1");
}

#define SB(spec, status)                                                                                            \
    "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"s\"},\"spec\":" spec \
        status "}"
#define BETA "agents.x-k8s.io/v1beta1"

static void test_our_kinds_and_status(void **state)
{
    static const struct step steps[] = {
        { "apply", APPLY, "kubectl", T1, NULL,
          SB("{\"operatingMode\":\"Running\",\"service\":true}", ""),
          SB("{\"operatingMode\":\"Running\",\"service\":true}", ""),
          "[" ENTRY("kubectl", "Apply", BETA, T1,
                    "{\"f:spec\":{\"f:operatingMode\":{},\"f:service\":{}}}") "]" },
        { "the controller writes the status", UPDATE, "controller", T2, "status",
          SB("{\"operatingMode\":\"Running\",\"service\":true}",
             ",\"status\":{\"nodeName\":\"n\"}"),
          SB("{\"operatingMode\":\"Running\",\"service\":true}",
             ",\"status\":{\"nodeName\":\"n\"}"),
          "[" ENTRY(
              "kubectl", "Apply", BETA, T1,
              "{\"f:spec\":{\"f:operatingMode\":{},\"f:service\":{}}}") ","
                                                                        "{\"manager\":\"controller\",\"operation\":\"Update\",\"apiVersion\":\"" BETA
                                                                        "\",\"time\":\"" T2
                                                                        "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\".\":{},\"f:nodeName\":{}}},\"subresource\":\"status\"}]" },
        { "a field that is no longer applied", APPLY, "kubectl", T3, NULL,
          SB("{\"operatingMode\":\"Suspended\"}", ""),
          SB("{\"operatingMode\":\"Suspended\"}", ",\"status\":{\"nodeName\":\"n\"}"),
          "[" ENTRY(
              "kubectl", "Apply", BETA, T3,
              "{\"f:spec\":{\"f:operatingMode\":{}}}") ","
                                                       "{\"manager\":\"controller\",\"operation\":\"Update\",\"apiVersion\":\"" BETA
                                                       "\",\"time\":\"" T2
                                                       "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\".\":{},\"f:nodeName\":{}}},\"subresource\":\"status\"}]" },
    };

    TELL(steps, kind_find("agents.x-k8s.io", "v1beta1", "sandboxes"), "v1beta1");
}

/* Fields that were set through the other version of the API are found there. */
static void test_managers_of_another_version(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(causes_done) struct causes conflicts = CAUSES_INIT;
    OWN(buf_done) struct buf text = BUF_INIT(1000);
    struct json_node *live = must_parse(
        ed,
        "{\"apiVersion\":\"" BETA
        "\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"s\",\"managedFields\":["
        "{\"manager\":\"old\",\"operation\":\"Update\",\"apiVersion\":\"agents.x-k8s.io/v1alpha1\",\"fieldsType\":"
        "\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{}}}},"
        "{\"manager\":\"gone\",\"operation\":\"Update\",\"apiVersion\":\"agents.x-k8s.io/v9\",\"fieldsType\":"
        "\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:x\":{}}}}]},\"spec\":{\"operatingMode\":\"Running\"}}");
    struct apply_by by = { .kind = kind_find("agents.x-k8s.io", "v1beta1", "sandboxes"),
                           .version = "v1beta1",
                           .subresource = "",
                           .manager = "new",
                           .now = T1 };
    struct json_node *made = NULL;
    struct err e;

    assert_int_equal(apply_config(&by, live,
                                  must_parse(ed, SB("{\"operatingMode\":\"Suspended\"}", "")),
                                  &conflicts, &made, &e),
                     -1);
    assert_int_equal(apply_conflict_text(&conflicts, &text, &e), 0);
    assert_string_equal(buf_cstr(&text),
                        "Apply failed with 1 conflict: conflict with \"old\" using "
                        "agents.x-k8s.io/v1alpha1: .spec.replicas");
    by.is_forced = true;
    assert_int_equal(apply_config(&by, live,
                                  must_parse(ed, SB("{\"operatingMode\":\"Suspended\"}", "")),
                                  &conflicts, &made, &e),
                     0);
    assert_says(ed, json_node_get(json_node_get(made, "metadata"), "managedFields"),
                "[" ENTRY("new", "Apply", BETA, T1, "{\"f:spec\":{\"f:operatingMode\":{}}}") "]");
}

static void test_from_client_side_apply(void **state)
{
    static const char last[] =
        "{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"ConfigMap\\\",\\\"metadata\\\":"
        "{\\\"name\\\":\\\"c\\\"},\\\"data\\\":{\\\"a\\\":\\\"1\\\"}}";
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(causes_done) struct causes conflicts = CAUSES_INIT;
    OWN(buf_done) struct buf text = BUF_INIT(4000);
    struct apply_by by = { .kind = kind_find("", "v1", "configmaps"),
                           .version = "v1",
                           .subresource = "",
                           .manager = "kubectl",
                           .now = T2 };
    struct json_node *live, *made = NULL;
    struct err e;

    assert_int_equal(
        buf_addf(
            &text, &e,
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"annotations\":{"
            "\"kubectl.kubernetes.io/last-applied-configuration\":\"%s\"},\"managedFields\":[" ENTRY(
                "kubectl-client-side-apply", "Update", "v1", T1,
                "{\"f:data\":{\"f:a\":{}}}") "]},\"data\":{\"a\":\"1\",\"o\":\"1\"}}",
            last),
        0);
    live = must_parse(ed, buf_cstr(&text));
    assert_int_equal(
        apply_config(&by, live, must_parse(ed, CM("{\"a\":\"2\"}")), &conflicts, &made, &e), 0);
    assert_int_equal(conflicts.n, 0);
    assert_says(ed, json_node_get(made, "data"), "{\"a\":\"2\",\"o\":\"1\"}");
    by.manager = "else";
    assert_int_equal(
        apply_config(&by, live, must_parse(ed, CM("{\"a\":\"2\"}")), &conflicts, &made, &e), -1);
    assert_int_equal(conflicts.n, 1);
}

static void test_many_updaters(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *live = NULL, *list;
    struct err e;

    for (int i = 0; i < 14; i++) {
        struct apply_by by = { .kind = kind_find("", "v1", "configmaps"),
                               .version = "v1",
                               .subresource = "" };
        OWN(buf_done) struct buf body = BUF_INIT(4000), who = BUF_INIT(100), when = BUF_INIT(100);
        struct json_node *object;

        assert_int_equal(buf_addf(&body, &e, "{\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":\"\""),
                         0);
        for (int k = 0; k <= i; k++)
            assert_int_equal(buf_addf(&body, &e, ",\"k%d\":\"\"", k), 0);
        assert_int_equal(buf_add(&body, SPAN("}}"), &e), 0);
        assert_int_equal(buf_addf(&who, &e, "w%d", i), 0);
        assert_int_equal(buf_addf(&when, &e, "2026-01-01T00:00:%02dZ", i), 0);
        by.manager = buf_cstr(&who);
        by.now = buf_cstr(&when);
        object = must_parse(ed, buf_cstr(&body));
        assert_int_equal(apply_track(&by, live, object, &e), 0);
        live = object;
    }
    list = json_node_get(json_node_get(live, "metadata"), "managedFields");
    assert_int_equal(json_node_count(list), MIN(14, 10));
    assert_true(
        span_is(json_node_str(json_node_get(json_node_at(list, 0), "manager")), "ancient-changes"));
    assert_true(span_is(json_node_str(json_node_get(json_node_at(list, 9), "manager")), "w13"));
}

static void test_refused(void **state)
{
    static const struct {
        const char *config, *says;
        enum err_code code;
    } rows[] = {
        { "[]", "the configuration is a JSON array, not an object", ERR_PROTOCOL },
        { "{\"apiVersion\":\"v2\",\"metadata\":{}}",
          "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
          ERR_PROTOCOL },
        { "{\"apiVersion\":\"v1\",\"metadata\":{\"managedFields\":[]}}",
          "metadata.managedFields must be nil", ERR_PROTOCOL },
        { "{\"apiVersion\":\"v1\",\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"a\"}]}}",
          "duplicate entries for key {\"name\":\"a\"}", ERR_INVALID },
        { "{\"apiVersion\":\"v1\",\"spec\":{\"containers\":[{}]}}",
          "element 0: associative list has an element without its keys", ERR_INVALID },
    };

    EACH(r, rows) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        OWN(causes_done) struct causes conflicts = CAUSES_INIT;
        struct apply_by by = { .kind = kind_find("", "v1", "pods"),
                               .version = "v1",
                               .subresource = "",
                               .manager = "m",
                               .now = T1 };
        struct json_node *made = NULL;
        struct err e;

        assert_int_equal(apply_config(&by, NULL, must_parse(ed, r->config), &conflicts, &made, &e),
                         -1);
        assert_string_equal(e.msg, r->says);
        assert_int_equal(e.code, r->code);
    }
}

static void test_bad_managed_fields_start_anew(void **state)
{
    static const char *const lists[] = {
        "[{\"manager\":\"m\",\"operation\":\"Frob\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\"}]",
        "[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
        "\"x\":{}}}]",
        "[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
        "\"f:x\":5}}]",
        "[{\"manager\":\"m\",\"operation\":\"Update\",\"fieldsType\":\"FieldsV1\"}]",
        "[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV2\"}]",
    };

    EACH(list, lists) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct apply_by by = { .kind = kind_find("", "v1", "configmaps"),
                               .version = "v1",
                               .subresource = "",
                               .manager = "",
                               .now = T1 };
        struct json_node *object = must_parse(ed, CM("{\"a\":\"1\"}"));
        struct err e;

        json_node_set(json_node_get(object, "metadata"), "managedFields", must_parse(ed, *list));
        assert_int_equal(apply_track(&by, NULL, object, &e), 0);
        assert_says(
            ed, json_node_get(json_node_get(object, "metadata"), "managedFields"),
            "[" ENTRY("unknown", "Update", "v1", T1, "{\"f:data\":{\".\":{},\"f:a\":{}}}") "]");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_appliers),
        cmocka_unit_test(test_lists_with_keys),
        cmocka_unit_test(test_emptied_objects),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_our_kinds_and_status),
        cmocka_unit_test(test_managers_of_another_version),
        cmocka_unit_test(test_from_client_side_apply),
        cmocka_unit_test(test_many_updaters),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_managed_fields_start_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
