/* What stands below an object: scale, token, eviction, binding. And questions that are created. */
#include "kube/client_suite_impl.h"

#define DEPLOYMENT                                                                                 \
    "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{"      \
    "\"app\":\"d\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"d\"}},\"spec\":{"           \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}"
#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"

static int64_t replicas(const struct result *r)
{
    int64_t n = -1;

    assert_non_null(r->body);
    assert_null(r->object);
    (void)json_i64(json_get(json_get(json_doc_root(r->body), "spec"), "replicas"), &n);
    return n;
}

static void scale_reads_and_writes(struct suite *s)
{
    static const char more[] =
        "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{"
        "\"name\":\"d\"},\"spec\":{\"replicas\":5}}";
    struct kube_request rq = {
        .kind = s->deployments, .namespace = s->namespace, .name = "d", .sub = "scale"
    };
    struct result *r;

    (void)suite_create(s, s->deployments, DEPLOYMENT);
    rq.verb = KUBE_GET;
    r = suite_must(s, &rq);
    assert_int_equal(replicas(r), 2);
    assert_string_equal(json_cstr(json_get(json_get(json_doc_root(r->body), "status"), "selector")),
                        "app=d");
    rq.verb = KUBE_UPDATE;
    rq.body = SPAN(more);
    assert_int_equal(replicas(suite_must(s, &rq)), 5);
    rq.verb = KUBE_PATCH;
    rq.patch = KUBE_PATCH_MERGE;
    rq.body = SPAN("{\"spec\":{\"replicas\":3}}");
    assert_int_equal(replicas(suite_must(s, &rq)), 3);
    assert_string_equal(suite_text(s, suite_get(s, s->deployments, "d"), "spec.replicas"), "3");
    rq.body = SPAN("{\"spec\":{\"replicas\":-1}}");
    assert_string_equal(suite_refused(s, &rq, 422, "Invalid")->fields, "spec.replicas");
    rq.name = "none";
    (void)suite_refused(s, &rq, 404, "NotFound");
}

static void token_is_given(struct suite *s)
{
    struct kube_request rq = { .verb = KUBE_CREATE,
                               .kind = s->accounts,
                               .namespace = s->namespace,
                               .name = "robot",
                               .sub = "token",
                               .body = SPAN("{\"spec\":{\"expirationSeconds\":900}}") };
    const struct json *status;
    struct result *r;

    (void)suite_create(s, s->accounts, "{\"metadata\":{\"name\":\"robot\"}}");
    r = suite_must(s, &rq);
    assert_non_null(r->body);
    status = json_get(json_doc_root(r->body), "status");
    assert_true(json_str(json_get(status, "token")).n > 100);
    assert_true(json_str(json_get(status, "expirationTimestamp")).n > 0);
    rq.body = SPAN("{\"spec\":{\"expirationSeconds\":5}}");
    assert_string_equal(suite_refused(s, &rq, 422, "Invalid")->fields, "spec.expirationSeconds");
    rq.body = SPAN("[]");
    (void)suite_refused(s, &rq, 400, "BadRequest");
    rq.body = SPAN("{\"spec\":{\"expirationSeconds\":\"soon\"}}");
    (void)suite_refused(s, &rq, 400, "BadRequest");
    rq.body = SPAN("{}");
    rq.name = "nobody";
    (void)suite_refused(s, &rq, 404, "NotFound");
}

static void evicted_pod_goes(struct suite *s)
{
    struct kube_request rq = {
        .verb = KUBE_CREATE,
        .kind = s->pods,
        .namespace = s->namespace,
        .name = "p",
        .sub = "eviction",
        .body = SPAN(
            "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\"}}")
    };
    struct result *r;

    (void)suite_create(s, s->pods, POD);
    r = suite_must(s, &rq);
    assert_null(r->object);
    assert_null(r->body); /* a Status, which says no more */
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->pods, .name = "p"), 404,
                        "NotFound");
    (void)suite_refused(s, &rq, 404, "NotFound");
}

static void pod_is_bound_once(struct suite *s)
{
    struct kube_request rq = { .verb = KUBE_CREATE,
                               .kind = s->pods,
                               .namespace = s->namespace,
                               .name = "p",
                               .sub = "binding",
                               .body = SPAN("{\"apiVersion\":\"v1\",\"kind\":\"Binding\","
                                            "\"metadata\":{\"name\":\"p\"},\"target\":{\"kind\":"
                                            "\"Node\",\"name\":\"n\"}}") };

    (void)suite_create(s, s->pods, POD);
    (void)suite_must(s, &rq);
    assert_string_equal(object_text(suite_get(s, s->pods, "p"), "spec.nodeName"), "n");
    (void)suite_refused(s, &rq, 409, "Conflict");
}

/* Questions about access are answered, and not kept. */
static void access_is_reviewed(struct suite *s)
{
    const struct kind *self = kind_find("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
    const struct kind *other = kind_find("authorization.k8s.io", "v1", "subjectaccessreviews");
    struct kube_request rq = { .verb = KUBE_CREATE, .kind = self };
    struct object *o;

    rq.object = suite_object(s, self,
                             "{\"spec\":{\"resourceAttributes\":{\"verb\":\"delete\",\"resource\":"
                             "\"pods\",\"namespace\":\"%s\"}}}",
                             s->namespace);
    o = suite_must(s, &rq)->object;
    assert_string_equal(suite_text(s, o, "status.allowed"), "true");
    rq.kind = other;
    rq.object = suite_object(s, other,
                             "{\"spec\":{\"user\":\"nobody\",\"resourceAttributes\":{\"verb\":"
                             "\"delete\",\"resource\":\"pods\",\"namespace\":\"%s\"}}}",
                             s->namespace);
    o = suite_must(s, &rq)->object;
    assert_string_equal(suite_text(s, o, "status.allowed"), "false");
    rq.object = suite_object(s, other, "{\"spec\":{\"user\":\"nobody\"}}");
    (void)suite_refused(s, &rq, 422, "Invalid");
}

static void nothing_else(struct suite *s)
{
    (void)suite_create(s, s->config_maps, "{\"metadata\":{\"name\":\"a\"}}");
    (void)suite_refused(
        s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .name = "a", .sub = "scale"), 404,
        "NotFound");
}

const struct suite_row suite_sub_rows[] = {
    { "a scale is read and written", scale_reads_and_writes },
    { "an account's token is given", token_is_given },
    { "a pod that is evicted goes", evicted_pod_goes },
    { "a pod gets its node once", pod_is_bound_once },
    { "access is reviewed", access_is_reviewed },
    { "there is nothing else below an object", nothing_else },
    { 0 },
};
