#include "apiserver/admit.h"

#include "apiserver/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SERVICE(spec) "{\"metadata\":{\"name\":\"s\"},\"spec\":{" spec "}}"
#define PORTS         "\"ports\":[{\"port\":80}]"
#define POD(spec)     "{\"metadata\":{\"name\":\"s\"},\"spec\":{" spec "}}"
#define BOX           "\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]"

/* What is made of a body: the value at `path` as JSON, or the refusal, or a part of it. */
/* clang-format off */
static const struct row {
    const char *name, *plural, *json;
    int code;
    const char *path, *want;
} rows[] = {
    { "one family",                "services", SERVICE(PORTS), 0, "spec.ipFamilies", "[\"IPv4\"]" },
    { "one family, said",          "services", SERVICE(PORTS), 0, "spec.ipFamilyPolicy", "\"SingleStack\"" },
    { "headless, selecting",       "services", SERVICE("\"clusterIP\":\"None\",\"selector\":{\"a\":\"b\"}"), 0, "spec.ipFamilies", "[\"IPv4\"]" },
    { "headless, free",            "services", SERVICE("\"clusterIP\":\"None\""), 0, "spec.ipFamilies", "[\"IPv4\",\"IPv6\"]" },
    { "headless, free, one",       "services", SERVICE("\"clusterIP\":\"None\",\"ipFamilyPolicy\":\"SingleStack\""), 0, "spec.ipFamilies", "[\"IPv4\"]" },
    { "headless, free, the other", "services", SERVICE("\"clusterIP\":\"None\",\"ipFamilies\":[\"IPv6\"]"), 0, "spec.ipFamilies", "[\"IPv6\",\"IPv4\"]" },
    { "both are preferred",        "services", SERVICE(PORTS ",\"ipFamilyPolicy\":\"PreferDualStack\""), 0, "spec.ipFamilies", "[\"IPv4\"]" },
    { "both are required",         "services", SERVICE(PORTS ",\"ipFamilyPolicy\":\"RequireDualStack\""), 422, NULL, "not configured for dual-stack services" },
    { "the other family",          "services", SERVICE(PORTS ",\"ipFamilies\":[\"IPv6\"]"), 422, NULL, "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster" },
    { "two, but single",           "services", SERVICE(PORTS ",\"ipFamilies\":[\"IPv4\",\"IPv6\"]"), 422, NULL, "when multiple IP families are specified" },
    { "an address of the other",   "services", SERVICE(PORTS ",\"clusterIP\":\"fd00::1\""), 422, NULL, "IPv6 is not configured on this cluster" },
    { "no address at all",         "services", SERVICE("\"type\":\"ExternalName\",\"externalName\":\"a.b\""), 0, "spec.ipFamilies", NULL },
    { "the account of a pod",      "pods", POD(BOX), 0, "spec.serviceAccountName", "\"default\"" },
    { "an account that is not",    "pods", POD(BOX ",\"serviceAccountName\":\"none\""), 403, NULL, "serviceaccount \"none\" not found" },
    { "no token wanted",           "pods", POD(BOX ",\"automountServiceAccountToken\":false"), 0, "spec.volumes", NULL },
    { "a map given twice",         "configmaps", "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"1\",\"a\":\"2\"},\"data\":{\"b\":\"3\"}}", 0, "data", "{\"b\":\"3\",\"a\":\"2\"}" },
    { "twice, and in it twice",    "configmaps", "{\"metadata\":{\"name\":\"s\",\"labels\":{\"a\":\"1\"}},\"metadata\":{\"labels\":{\"b\":\"2\"}}}", 0, "metadata.labels", "{\"b\":\"2\",\"a\":\"1\"}" },
    { "a list given twice",        "pods", POD(BOX ",\"tolerations\":[{\"key\":\"a\"}],\"tolerations\":[]"), 0, "spec.hostNetwork", NULL },
    { "another kind",              "configmaps", "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"}}", 400, NULL, "the kind in the data (Secret) does not match the expected kind (ConfigMap)" },
    { "another version",           "configmaps", "{\"apiVersion\":\"v2\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"s\"}}", 400, NULL, "the API version in the data (v2)" },
    { "another namespace",         "configmaps", "{\"metadata\":{\"name\":\"s\",\"namespace\":\"other\"}}", 400, NULL, "does not match the namespace sent on the request" },
    { "metadata that is none",     "configmaps", "{\"metadata\":[]}", 400, NULL, "" },
    { "a version at birth",        "configmaps", "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"5\"}}", 500, NULL, "resourceVersion should not be set on objects to be created" },
};
/* clang-format on */

static int create(struct testserver *t, const struct row *r, struct object **ret, struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct kind *k = testserver_kind(r->plural);
    struct op op = { .store = t->server->store,
                     .kind = k,
                     .version = &k->versions[0],
                     .namespace = "default",
                     .name = "",
                     .manager = "test",
                     .warnings = BUF_INIT(4096) };
    struct err e;
    int rc;

    assert_int_equal(json_parse(span_cstr(r->json), NULL, &doc, &e), 0);
    rc = op_create(&op, ed, json_edit_doc(ed, doc), ret, st);
    buf_done(&op.warnings);
    return rc;
}

static void check(struct testserver *t, const struct row *r)
{
    OWN(object_done) struct object *o = NULL;
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(buf_done) struct buf got = BUF_INIT(65536);
    int rc = create(t, r, &o, &st);
    struct err e;

    if ((rc < 0) != (r->code != 0) || (rc < 0 && st.code != r->code))
        fail_msg("%s: code %d, want %d: %s", r->name, st.code, r->code, buf_cstr(&st.message));
    if (rc < 0) {
        if (!strstr(buf_cstr(&st.message), r->want))
            fail_msg("%s: told '%s', want '%s'", r->name, buf_cstr(&st.message), r->want);
        return;
    }
    if (object_at(o, r->path))
        (void)json_write(object_at(o, r->path), &got, &e);
    if (strcmp(buf_cstr(&got), r->want ? r->want : "") != 0)
        fail_msg("%s: %s is %s, want %s", r->name, r->path, buf_cstr(&got), r->want);
    assert_int_equal(testserver_delete(t, r->plural, "default", "s", KUBE_PROPAGATION_UNSAID)->code,
                     0);
}

static void each(void **state)
{
    struct testserver t;

    testserver_begin(&t, NULL);
    EACH(r, rows) {
        check(&t, r);
    }
    testserver_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
