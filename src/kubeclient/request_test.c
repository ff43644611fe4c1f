#include "kubeclient/request.h"

#include "kubeclient/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct kind *kind(const char *name)
{
    static const char *const groups[] = { "", "agents.x-k8s.io", "rbac.authorization.k8s.io",
                                          "apps" };
    const struct kind *k = NULL;

    EACH(g, groups) {
        if (!k)
            k = kind_find_kind(*g, NULL, name);
    }
    assert_non_null(k);
    return k;
}

/* "METHOD target content-type body", or the error. */
static const char *shown(const struct kube_request *rq)
{
    static char text[2048];
    struct rest_request r;
    struct err e;

    if (rest_request_make(rq, &r, &e) < 0) {
        assert_int_equal(e.code, ERR_INVALID);
        (void)snprintf(text, sizeof text, "%s", e.msg);
        return text;
    }
    (void)snprintf(text, sizeof text, "%s %s%s %s %s", r.method, buf_cstr(&r.path),
                   buf_cstr(&r.query), r.content_type ? r.content_type : "-", buf_cstr(&r.body));
    assert_int_equal(r.is_read, rq->verb == KUBE_GET || rq->verb == KUBE_LIST);
    rest_request_done(&r);
    return text;
}

static struct object *object(const char *kind_name, const char *json)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o;
    struct err e;

    assert_int_equal(json_parse(span_cstr(json), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind(kind_name), json_doc_root(doc), &o, &e), 0);
    return o;
}

static void test_reads(void **state)
{
    const struct {
        struct kube_request rq;
        const char *want;
    } rows[] = {
        { { .verb = KUBE_GET, .kind = kind("Pod"), .namespace = "a", .name = "b" },
          "GET /api/v1/namespaces/a/pods/b - " },
        { { .verb = KUBE_GET, .kind = kind("Node"), .name = "n", .sub = "status" },
          "GET /api/v1/nodes/n/status - " },
        { { .verb = KUBE_GET,
            .kind = kind("ClusterRole"),
            .name = "system:a b",
            .at_version = "0" },
          "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b?resourceVersion=0 - " },
        { { .verb = KUBE_LIST, .kind = kind("Pod") }, "GET /api/v1/pods - " },
        { { .verb = KUBE_LIST,
            .kind = kind("Sandbox"),
            .version = "v1alpha1",
            .namespace = "a",
            .labels = "a=b,c in (d)",
            .fields = "metadata.name=x",
            .limit = 5,
            .at_version = "17" },
          "GET /apis/agents.x-k8s.io/v1alpha1/namespaces/a/"
          "sandboxes?labelSelector=a%3Db%2Cc%20in%20%28d%29&fieldSelector=metadata.name%3Dx&limit=5"
          "&resourceVersion=17 - " },
        { { .verb = KUBE_LIST, .kind = kind("Pod"), .next = "ab+/=", .at_version = "17" },
          "GET /api/v1/pods?continue=ab%2B%2F%3D - " },
        { { .verb = KUBE_GET, .kind = kind("Pod"), .namespace = "a", .name = ".." },
          "'..' cannot be a name" },
        { { .verb = KUBE_GET, .kind = kind("Pod"), .namespace = "a/b", .name = "c" },
          "'a/b' cannot be a namespace" },
        { { .verb = KUBE_GET, .kind = kind("Pod"), .namespace = "a", .name = "" },
          "the name is empty" },
        { { .verb = KUBE_GET, .kind = kind("Pod"), .name = "c" },
          "a Pod is in a namespace, and none is given" },
        { { .verb = KUBE_GET, .kind = kind("Pod"), .version = "v9", .namespace = "a", .name = "c" },
          "Pod has no version 'v9'" },
    };

    (void)state;
    EACH(r, rows)
        assert_string_equal(shown(&r->rq), r->want);
}

static void test_writes(void **state)
{
    static const int64_t now = 0;
    OWN(object_done)
    struct object *o = object("ConfigMap", "{\"metadata\":{\"name\":\"m\",\"namespace\":\"a\","
                                           "\"resourceVersion\":\"7\"},\"data\":{\"k\":\"v\"}}");
    const struct kind *map = kind("ConfigMap");
    const struct {
        struct kube_request rq;
        const char *want;
    } rows[] = {
        { { .verb = KUBE_CREATE, .kind = map, .object = o, .manager = "me", .is_dry_run = true },
          "POST /api/v1/namespaces/a/configmaps?fieldManager=me&dryRun=All application/json "
          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"resourceVersion\":\"7\",\"name\":"
          "\"m\",\"namespace\":\"a\"},\"data\":{\"k\":\"v\"}}" },
        { { .verb = KUBE_UPDATE, .kind = map, .object = o, .is_lax = true },
          "PUT /api/v1/namespaces/a/configmaps/m?fieldValidation=Ignore application/json "
          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"resourceVersion\":\"7\",\"name\":"
          "\"m\",\"namespace\":\"a\"},\"data\":{\"k\":\"v\"}}" },
        { { .verb = KUBE_CREATE,
            .kind = kind("ServiceAccount"),
            .namespace = "a",
            .name = "default",
            .sub = "token",
            .body = BYTES("{}") },
          "POST /api/v1/namespaces/a/serviceaccounts/default/token application/json {}" },
        { { .verb = KUBE_PATCH,
            .kind = map,
            .namespace = "a",
            .name = "m",
            .patch = KUBE_PATCH_MERGE,
            .body = BYTES("{}") },
          "PATCH /api/v1/namespaces/a/configmaps/m application/merge-patch+json {}" },
        { { .verb = KUBE_PATCH,
            .kind = map,
            .namespace = "a",
            .name = "m",
            .patch = KUBE_PATCH_APPLY,
            .manager = "me",
            .is_forced = true,
            .body = BYTES("{}") },
          "PATCH /api/v1/namespaces/a/configmaps/m?fieldManager=me&force=true "
          "application/apply-patch+yaml {}" },
        { { .verb = KUBE_DELETE, .kind = map, .namespace = "a", .name = "m" },
          "DELETE /api/v1/namespaces/a/configmaps/m - " },
        { { .verb = KUBE_DELETE,
            .kind = map,
            .namespace = "a",
            .name = "m",
            .uid = "u",
            .only_version = 9,
            .grace_s = &now,
            .propagation = KUBE_FOREGROUND,
            .is_dry_run = true },
          "DELETE /api/v1/namespaces/a/configmaps/m application/json "
          "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,"
          "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"9\"},\"propagationPolicy\":"
          "\"Foreground\",\"dryRun\":[\"All\"]}" },
        { { .verb = KUBE_DELETE_COLLECTION, .kind = map, .namespace = "a", .labels = "x" },
          "DELETE /api/v1/namespaces/a/configmaps?labelSelector=x - " },
        { { .verb = KUBE_CREATE, .kind = map, .namespace = "a" }, "there is no object to send" },
    };

    (void)state;
    EACH(r, rows)
        assert_string_equal(shown(&r->rq), r->want);
}

static void test_pages(void **state)
{
    OWN(buf_done) struct buf first = BUF_INIT(1024), second = BUF_INIT(1024);
    const struct kube_request rq = {
        .verb = KUBE_LIST, .kind = kind("Pod"), .labels = "a", .at_version = "3"
    };
    struct rest_request r;
    struct err e;

    (void)state;
    assert_int_equal(rest_request_make(&rq, &r, &e), 0);
    assert_int_equal(rest_request_page(&r, 500, NULL, &first, &e), 0);
    assert_string_equal(buf_cstr(&first),
                        "/api/v1/pods?labelSelector=a&resourceVersion=3&limit=500");
    assert_int_equal(rest_request_page(&r, 500, "t=", &second, &e), 0);
    assert_string_equal(buf_cstr(&second), "/api/v1/pods?labelSelector=a&limit=500&continue=t%3D");
    rest_request_done(&r);
}

static void test_a_watch(void **state)
{
    const struct kube_watch_spec spec = { .kind = kind("Pod"), .namespace = "a", .fields = "x=y" };
    struct rest_request r;
    struct err e;

    (void)state;
    assert_int_equal(rest_request_watch(&spec, 12, 300, &r, &e), 0);
    assert_string_equal(buf_cstr(&r.path), "/api/v1/namespaces/a/pods");
    assert_string_equal(buf_cstr(&r.query),
                        "?watch=true&allowWatchBookmarks=true&fieldSelector=x%3Dy"
                        "&resourceVersion=12&timeoutSeconds=300");
    rest_request_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_a_watch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
