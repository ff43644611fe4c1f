/* Gets and lists. */
#include "kube/client_suite_impl.h"

#include <stdio.h>

static void make_some(struct suite *s, int n)
{
    for (int i = 0; i < n; i++)
        (void)suite_create(s, s->config_maps,
                           "{\"metadata\":{\"name\":\"m%02d\",\"labels\":{\"parity\":\"%s\",\"of\":"
                           "\"suite\"}}}",
                           i, i % 2 ? "odd" : "even");
}

static void get_absent(struct suite *s)
{
    struct result *r = suite_refused(
        s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .name = "none"), 404, "NotFound");

    assert_string_equal(r->message, "configmaps \"none\" not found");
    (void)suite_refused(
        s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .version = "v7", .name = "none"),
        404, "NotFound");
}

static void get_at_version(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, "{\"metadata\":{\"name\":\"a\"}}");
    struct kube_request rq = {
        .verb = KUBE_GET, .kind = s->config_maps, .namespace = s->namespace, .name = "a"
    };
    char text[32];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)object_version(a));
    rq.at_version = text;
    (void)suite_must(s, &rq);
    rq.at_version = "0"; /* any state that the server has at hand; by now that is no older one */
    (void)suite_must(s, &rq);
}

static void list_selected(struct suite *s)
{
    static const struct {
        const char *labels, *fields, *want;
    } rows[] = {
        { "of=suite", NULL, "m00 m01 m02 m03 m04" },
        { "parity=odd", NULL, "m01 m03" },
        { "parity notin (odd),of", NULL, "m00 m02 m04" },
        { "parity=none", NULL, "" },
        { NULL, "metadata.name=m03", "m03" },
        { "parity=even", "metadata.name!=m02", "m00 m04" },
    };

    make_some(s, 5);
    EACH(row, rows) {
        struct result *r = suite_must(s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->config_maps,
                                                  .labels = row->labels ? row->labels : "of=suite",
                                                  .fields = row->fields));

        assert_string_equal(suite_names(s, r), row->want);
        assert_null(r->object);
        assert_null(r->next);
        assert_true(r->version > 0);
    }
}

static void list_bad_selector(struct suite *s)
{
    (void)suite_refused(s,
                        SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->config_maps, .labels = "a=b=c"),
                        400, "BadRequest");
    (void)suite_refused(
        s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->config_maps, .fields = "spec.none=1"), 400,
        "BadRequest");
}

/* All namespaces, or one. */
static void list_everywhere(struct suite *s)
{
    char other[64];
    struct object *ns =
        suite_create(s, s->namespaces, "{\"metadata\":{\"generateName\":\"suite-other-\"}}");
    struct object *o = suite_object(
        s, s->config_maps, "{\"metadata\":{\"name\":\"there\",\"labels\":{\"in\":\"%s\"}}}",
        s->namespace);
    char labels[128];

    (void)snprintf(other, sizeof other, "%s", object_name(ns));
    (void)suite_must(
        s, &(struct kube_request){
               .verb = KUBE_CREATE, .kind = s->config_maps, .namespace = other, .object = o });
    (void)suite_create(s, s->config_maps,
                       "{\"metadata\":{\"name\":\"here\",\"labels\":{\"in\":\"%s\"}}}",
                       s->namespace);
    (void)snprintf(labels, sizeof labels, "in=%s", s->namespace);
    assert_int_equal(suite_must(s, &(struct kube_request){ .verb = KUBE_LIST,
                                                           .kind = s->config_maps,
                                                           .labels = labels })
                         ->item_count,
                     2);
    assert_string_equal(
        suite_names(s, suite_must(s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->config_maps,
                                              .labels = labels))),
        "here");
    (void)suite_must(
        s, &(struct kube_request){ .verb = KUBE_DELETE, .kind = s->namespaces, .name = other });
}

/* The parts of one list are of one state, whatever is written between them. */
static void list_in_parts(struct suite *s)
{
    struct kube_request rq = { .verb = KUBE_LIST,
                               .kind = s->config_maps,
                               .namespace = s->namespace,
                               .labels = "of=suite",
                               .limit = 2 };
    struct result *r;
    uint64_t version;

    make_some(s, 5);
    r = suite_must(s, &rq);
    version = r->version;
    assert_string_equal(suite_names(s, r), "m00 m01");
    (void)suite_must(s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = "m04"));
    rq.next = r->next;
    assert_non_null(rq.next);
    r = suite_must(s, &rq);
    assert_string_equal(suite_names(s, r), "m02 m03");
    rq.next = r->next;
    r = suite_must(s, &rq);
    assert_string_equal(suite_names(s, r), "m04");
    assert_null(r->next);
    assert_true(r->version == version);
    rq.next = NULL;
    rq.limit = 4; /* just all of it: nothing follows */
    r = suite_must(s, &rq);
    assert_int_equal(r->item_count, 4);
    assert_null(r->next);
    rq.next = "bm90IG9uZSBvZiBvdXJz";
    (void)suite_refused(s, &rq, 400, "BadRequest");
}

static void list_long(struct suite *s)
{
    struct kube_request rq = {
        .verb = KUBE_LIST, .kind = s->config_maps, .namespace = s->namespace, .labels = "long"
    };
    struct result *r;

    for (int i = 0; i < 1100; i++)
        (void)suite_start(
            s,
            SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps,
                     .object = suite_object(
                         s, s->config_maps,
                         "{\"metadata\":{\"name\":\"l%04d\",\"labels\":{\"long\":\"\"}}}", i)),
            NULL);
    (void)suite_create(s, s->config_maps,
                       "{\"metadata\":{\"name\":\"l1100\",\"labels\":{\"long\":\"\"}}}");
    do { /* over the wire they may overtake each other */
        r = suite_must(s, &rq);
    } while (r->item_count < 1101);
    assert_int_equal(r->item_count, 1101);
    for (size_t i = 0; i < r->item_count; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "l%04zu", i);
        assert_string_equal(object_name(r->items[i]), name);
    }
}

/* Objects come in the version that is asked for, and are taken in it. */
static void versions_convert(struct suite *s)
{
    struct object *o = suite_object(
        s, s->sandboxes,
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":0,\"podTemplate\":{\"spec\":{"
        "\"containers\":[{\"name\":\"main\",\"image\":\"busybox\"}]}}}}");
    struct result *r;

    r = suite_must(s, SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->sandboxes, .version = "v1alpha1",
                               .object = o));
    assert_string_equal(suite_text(s, r->object, "spec.replicas"), "0");
    r = suite_must(
        s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->sandboxes, .version = "v1beta1", .name = "a"));
    assert_null(object_at(r->object, "spec.replicas"));
    assert_string_equal(object_text(r->object, "spec.operatingMode"), "Suspended");
    r = suite_must(s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->sandboxes, .version = "v1alpha1"));
    assert_int_equal(r->item_count, 1);
    assert_string_equal(suite_text(s, r->items[0], "spec.replicas"), "0");
}

static void stranger_refused(struct suite *s)
{
    const struct client_suite *t = s->target;
    struct kube_client *own = s->client;
    struct object *o = suite_object(s, s->config_maps, "{\"metadata\":{\"name\":\"a\"}}");
    struct seen *seen;

    if (!t->open_stranger)
        return;
    s->client = t->open_stranger(t->ctx);
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->config_maps), 403,
                        "Forbidden");
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps, .object = o),
                        403, "Forbidden");
    seen = suite_watch(s, &(struct kube_watch_spec){ .kind = s->config_maps });
    suite_until(s, &seen->is_over);
    assert_int_equal(seen->code, 403);
    kube_client_free(s->client);
    s->client = own;
}

const struct suite_row suite_read_rows[] = {
    { "what is not there is not found", get_absent },
    { "a get may be of a version", get_at_version },
    { "a list holds what is selected", list_selected },
    { "a selector that is none is refused", list_bad_selector },
    { "a list of all namespaces", list_everywhere },
    { "a list in parts is of one state", list_in_parts },
    { "a long list is whole and in order", list_long },
    { "each version shows the same object", versions_convert, true },
    { "who may do nothing is refused", stranger_refused },
    { 0 },
};
