/* Creates, updates, patches, deletes. */
#include "kube/client_suite_impl.h"

#include <stdio.h>

#define MAP(name, value) "{\"metadata\":{\"name\":\"" name "\"},\"data\":{\"k\":\"" value "\"}}"
#define SANDBOX_SPEC                                                                               \
    "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"busybox\"}]}}}"
#define SANDBOX(name) "{\"metadata\":{\"name\":\"" name "\"}," SANDBOX_SPEC "}"

/* ---- create ---- */

static void create_and_get(struct suite *s)
{
    struct object *made = suite_create(s, s->config_maps, MAP("a", "1"));
    struct object *got = suite_get(s, s->config_maps, "a");

    assert_string_equal(object_namespace(made), s->namespace);
    assert_true(*object_uid(made) && object_version(made) > 0);
    assert_ptr_equal(object_kind(made), s->config_maps);
    assert_string_equal(object_uid(made), object_uid(got));
    assert_true(object_version(made) == object_version(got));
    assert_string_equal(object_text(got, "data.k"), "1");
}

static void create_taken(struct suite *s)
{
    struct object *o = suite_object(s, s->config_maps, MAP("a", "2"));
    struct result *r;

    (void)suite_create(s, s->config_maps, MAP("a", "1"));
    r = suite_refused(s, SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps, .object = o), 409,
                      "AlreadyExists");
    assert_string_equal(r->message, "configmaps \"a\" already exists");
    assert_string_equal(object_text(suite_get(s, s->config_maps, "a"), "data.k"), "1");
}

static void create_made_up(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, "{\"metadata\":{\"generateName\":\"g-\"}}");
    struct object *b = suite_create(s, s->config_maps, "{\"metadata\":{\"generateName\":\"g-\"}}");

    assert_int_equal(strncmp(object_name(a), "g-", 2), 0);
    assert_int_equal(strlen(object_name(a)), 7);
    assert_string_not_equal(object_name(a), object_name(b));
}

static void create_in_no_namespace(struct suite *s)
{
    struct object *o = suite_object(s, s->config_maps, MAP("a", "1"));
    struct kube_request rq = {
        .verb = KUBE_CREATE, .kind = s->config_maps, .namespace = "suite-none", .object = o
    };
    struct result *r = suite_refused(s, &rq, 404, "NotFound");

    assert_string_equal(r->message, "namespaces \"suite-none\" not found");
}

static void create_invalid(struct suite *s)
{
    struct object *o = suite_object(s, s->pods, "{\"metadata\":{\"name\":\"p\"},\"spec\":{}}");
    struct result *r = suite_refused(
        s, SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->pods, .object = o), 422, "Invalid");

    assert_string_equal(r->fields, "spec.containers");
    assert_string_equal(r->message, "Pod \"p\" is invalid: spec.containers: Required value");
}

static void create_defaults(struct suite *s)
{
    struct object *p = suite_create(
        s, s->pods,
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");

    assert_string_equal(object_text(p, "spec.restartPolicy"), "Always");
    assert_string_equal(object_text(p, "spec.dnsPolicy"), "ClusterFirst");
    assert_string_equal(object_text(p, "status.phase"), "Pending");
}

static void create_dry(struct suite *s)
{
    struct object *o = suite_object(s, s->config_maps, MAP("a", "1"));
    struct result *r = suite_must(s, SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps,
                                              .object = o, .is_dry_run = true));

    assert_string_equal(object_name(r->object), "a");
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .name = "a"), 404,
                        "NotFound");
}

/* ---- update ---- */

static struct result *update(struct suite *s, struct object *o, int code, const char *reason)
{
    struct kube_request *rq = SUITE_RQ(s, .verb = KUBE_UPDATE, .kind = object_kind(o),
                                       .name = object_name(o), .object = o);

    return code ? suite_refused(s, rq, code, reason) : suite_must(s, rq);
}

static void update_once(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, MAP("a", "1"));
    struct object *next = update(s, suite_with(s, a, "data.k", "\"2\""), 0, NULL)->object;

    assert_string_equal(object_text(next, "data.k"), "2");
    assert_true(object_version(next) > object_version(a));
    assert_string_equal(object_uid(next), object_uid(a));
    assert_string_equal(object_text(suite_get(s, s->config_maps, "a"), "data.k"), "2");
}

static void update_same(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, MAP("a", "1"));

    assert_true(object_version(update(s, a, 0, NULL)->object) == object_version(a));
}

static void update_stale(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, MAP("a", "1"));
    struct result *r;

    (void)update(s, suite_with(s, a, "data.k", "\"2\""), 0, NULL);
    r = update(s, suite_with(s, a, "data.k", "\"3\""), 409, "Conflict");
    assert_string_equal(
        r->message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; "
        "please apply your changes to the latest version and try again");
    assert_string_equal(object_text(suite_get(s, s->config_maps, "a"), "data.k"), "2");
}

static void update_absent(struct suite *s)
{
    (void)update(s, suite_object(s, s->config_maps, MAP("a", "1")), 404, "NotFound");
}

static void update_unseen(struct suite *s)
{
    struct result *r;

    (void)suite_create(s, s->sandboxes, SANDBOX("a"));
    r = update(s, suite_object(s, s->sandboxes, SANDBOX("a")), 422, "Invalid");
    assert_string_equal(r->fields, "metadata.resourceVersion");
}

static void update_of_another(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, MAP("a", "1")), *old;

    old = suite_with(s, a, "metadata.resourceVersion", NULL);
    old = suite_with(s, old, "metadata.uid", "\"b5e4a0a0-0000-4000-8000-000000000000\"");
    (void)update(s, old, 409, "Conflict");
}

static void generation_counts(struct suite *s)
{
    struct object *a = suite_create(s, s->sandboxes, SANDBOX("a")), *b;

    assert_int_equal(object_generation(a), 1);
    b = update(s, suite_with(s, a, "metadata.labels", "{\"x\":\"y\"}"), 0, NULL)->object;
    assert_int_equal(object_generation(b), 1);
    b = update(s, suite_with(s, b, "spec.shutdownTime", "\"2100-01-01T00:00:00Z\""), 0, NULL)
            ->object;
    assert_int_equal(object_generation(b), 2);
}

/* ---- status ---- */

static void status_apart(struct suite *s)
{
    struct object *a = suite_create(s, s->sandboxes, SANDBOX("a")), *b;

    a = suite_with(s, a, "status.serviceFQDN", "\"a.b.svc\"");
    b = suite_with(s, a, "spec.shutdownTime", "\"2100-01-01T00:00:00Z\"");
    b = suite_must(s, SUITE_RQ(s, .verb = KUBE_UPDATE, .kind = s->sandboxes, .name = "a",
                               .sub = "status", .object = b))
            ->object;
    assert_string_equal(object_text(b, "status.serviceFQDN"), "a.b.svc");
    assert_null(object_text(b, "spec.shutdownTime"));
    assert_int_equal(object_generation(b), 1);
    b = suite_with(s, b, "status.serviceFQDN", "\"other\"");
    b = update(s, suite_with(s, b, "spec.shutdownTime", "\"2100-01-01T00:00:00Z\""), 0, NULL)
            ->object;
    assert_string_equal(object_text(b, "status.serviceFQDN"), "a.b.svc");
    assert_string_equal(object_text(b, "spec.shutdownTime"), "2100-01-01T00:00:00Z");
}

static void status_patch(struct suite *s)
{
    static const char patch[] =
        "{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"status\":{\"serviceFQDN\":\"f\"}}";
    struct object *o;

    (void)suite_create(s, s->sandboxes, SANDBOX("a"));
    o = suite_must(s, SUITE_RQ(s, .verb = KUBE_PATCH, .kind = s->sandboxes, .name = "a",
                               .sub = "status", .patch = KUBE_PATCH_MERGE, .body = SPAN(patch)))
            ->object;
    assert_string_equal(object_text(o, "status.serviceFQDN"), "f");
    assert_null(object_label(o, "x"));
}

/* ---- patch ---- */

static struct result *patch(struct suite *s, enum kube_patch type, const char *name,
                            const char *text)
{
    return suite_ask(s, SUITE_RQ(s, .verb = KUBE_PATCH, .kind = s->config_maps, .name = name,
                                 .patch = type, .body = span_cstr(text)));
}

static void patch_types(struct suite *s)
{
    static const struct {
        enum kube_patch type;
        const char *text, *want;
    } rows[] = {
        { KUBE_PATCH_MERGE, "{\"data\":{\"k\":\"2\",\"l\":\"3\"}}", "{\"k\":\"2\",\"l\":\"3\"}" },
        { KUBE_PATCH_MERGE, "{\"data\":{\"l\":null}}", "{\"k\":\"2\"}" },
        { KUBE_PATCH_JSON, "[{\"op\":\"add\",\"path\":\"/data/m\",\"value\":\"4\"}]",
          "{\"k\":\"2\",\"m\":\"4\"}" },
        { KUBE_PATCH_JSON,
          "[{\"op\":\"test\",\"path\":\"/data/m\",\"value\":\"4\"},"
          "{\"op\":\"remove\",\"path\":\"/data/m\"}]",
          "{\"k\":\"2\"}" },
        { KUBE_PATCH_STRATEGIC, "{\"data\":{\"n\":\"5\"}}", "{\"k\":\"2\",\"n\":\"5\"}" },
    };

    (void)suite_create(s, s->config_maps, MAP("a", "1"));
    EACH(row, rows) {
        struct result *r = patch(s, row->type, "a", row->text);

        assert_false(r->is_refused);
        assert_string_equal(suite_text(s, r->object, "data"), row->want);
        assert_string_equal(suite_text(s, suite_get(s, s->config_maps, "a"), "data"), row->want);
    }
}

static void patch_refused(struct suite *s)
{
    static const struct {
        enum kube_patch type;
        const char *name, *text;
        int code;
        const char *reason;
    } rows[] = {
        { KUBE_PATCH_MERGE, "none", "{}", 404, "NotFound" },
        { KUBE_PATCH_MERGE, "a", "{", 400, "BadRequest" },
        { KUBE_PATCH_JSON, "a", "[{\"op\":\"remove\",\"path\":\"/data/x\"}]", 422, "Invalid" },
        { KUBE_PATCH_JSON, "a", "[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"9\"}]", 422,
          "Invalid" },
        { KUBE_PATCH_MERGE, "a", "{\"metadata\":{\"resourceVersion\":\"1\"}}", 409, "Conflict" },
        { KUBE_PATCH_MERGE, "a", "{\"metadata\":{\"labels\":{\"-\":\"x\"}}}", 422, "Invalid" },
    };

    (void)suite_create(s, s->config_maps, MAP("a", "1"));
    EACH(row, rows) {
        struct result *r = patch(s, row->type, row->name, row->text);

        assert_true(r->is_refused);
        if (r->code != row->code || strcmp(r->reason, row->reason) != 0)
            fail_msg("%s: %d %s (%s)", row->text, r->code, r->reason, r->message);
    }
    assert_string_equal(object_text(suite_get(s, s->config_maps, "a"), "data.k"), "1");
}

static void patch_strategic_custom(struct suite *s)
{
    (void)suite_create(s, s->sandboxes, SANDBOX("a"));
    (void)suite_refused(s,
                        SUITE_RQ(s, .verb = KUBE_PATCH, .kind = s->sandboxes, .name = "a",
                                 .patch = KUBE_PATCH_STRATEGIC, .body = SPAN("{}")),
                        415, "UnsupportedMediaType");
}

/* ---- apply ---- */

static struct result *apply(struct suite *s, const char *manager, bool is_forced, const char *value)
{
    char text[256];

    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
                   "\"data\":{\"k\":\"%s\"}}",
                   value);
    return suite_ask(s, SUITE_RQ(s, .verb = KUBE_PATCH, .kind = s->config_maps, .name = "a",
                                 .patch = KUBE_PATCH_APPLY, .manager = manager,
                                 .is_forced = is_forced, .body = span_cstr(text)));
}

static void apply_conflicts(struct suite *s)
{
    struct result *r = apply(s, "one", false, "1");

    assert_false(r->is_refused); /* made */
    r = apply(s, "two", false, "2");
    assert_true(r->is_refused);
    assert_int_equal(r->code, 409);
    assert_string_equal(r->reason, "Conflict");
    assert_string_equal(r->fields, ".data.k");
    assert_non_null(strstr(r->message, "\"one\""));
    r = apply(s, "two", true, "2");
    assert_false(r->is_refused);
    assert_string_equal(object_text(r->object, "data.k"), "2");
    r = apply(s, NULL, false, "2");
    assert_int_equal(r->code, 422);
    assert_string_equal(r->fields, "fieldManager");
}

/* Who writes is recorded: with the name in the request, else with the client's. */
static void managers_recorded(struct suite *s)
{
    struct object *o = suite_object(s, s->config_maps, MAP("a", "1"));

    o = suite_must(s, SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps, .object = o,
                               .manager = "somebody"))
            ->object;
    assert_string_equal(
        json_cstr(json_get(json_at(object_at(o, "metadata.managedFields"), 0), "manager")),
        "somebody");
    o = suite_create(s, s->config_maps, MAP("b", "1"));
    assert_true(
        json_str(json_get(json_at(object_at(o, "metadata.managedFields"), 0), "manager")).n > 0);
}

/* ---- delete ---- */

static void delete_once(struct suite *s)
{
    struct kube_request *rq = SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = "a");
    struct result *r;

    (void)suite_create(s, s->config_maps, MAP("a", "1"));
    r = suite_must(s, rq);
    if (r->object) /* or a Status came */
        assert_string_equal(object_name(r->object), "a");
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .name = "a"), 404,
                        "NotFound");
    r = suite_refused(s, rq, 404, "NotFound");
    assert_string_equal(r->message, "configmaps \"a\" not found");
}

static void delete_preconditions(struct suite *s)
{
    struct object *a = suite_create(s, s->config_maps, MAP("a", "1"));
    struct kube_request rq = {
        .verb = KUBE_DELETE, .kind = s->config_maps, .namespace = s->namespace, .name = "a"
    };
    struct kube_request by_uid = rq, by_version = rq, by_both = rq;

    by_uid.uid = "b5e4a0a0-0000-4000-8000-000000000000";
    (void)suite_refused(s, &by_uid, 409, "Conflict");
    by_version.only_version = object_version(a) - 1;
    (void)suite_refused(s, &by_version, 409, "Conflict");
    by_both.uid = object_uid(a);
    by_both.only_version = object_version(a);
    (void)suite_must(s, &by_both);
    (void)suite_refused(s, &by_both, 404, "NotFound");
}

static void finalizers_hold(struct suite *s)
{
    struct object *o = suite_create(
        s, s->config_maps, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"silica.dev/hold\"]}}");
    struct result *r;

    assert_false(object_is_deleting(o));
    r = suite_must(s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = "a"));
    assert_non_null(r->object);
    assert_true(object_is_deleting(r->object));
    o = suite_get(s, s->config_maps, "a");
    assert_true(object_is_deleting(o) && object_has_finalizer(o, "silica.dev/hold"));
    r = update(s, suite_with(s, o, "metadata.finalizers", "[\"silica.dev/hold\",\"x.io/more\"]"),
               422, "Invalid");
    (void)update(s, suite_with(s, o, "metadata.finalizers", NULL), 0, NULL);
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .name = "a"), 404,
                        "NotFound");
}

/* A Pod that a node has gets its time; with none left it goes. */
static void delete_with_grace(struct suite *s)
{
    static const int64_t none = 0, some = 7;
    struct kube_request rq = { .verb = KUBE_DELETE,
                               .kind = s->pods,
                               .namespace = s->namespace,
                               .name = "p",
                               .grace_s = &some };
    struct object *o;

    (void)suite_create(s, s->pods,
                       "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\","
                       "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
    o = suite_must(s, &rq)->object;
    assert_true(object_is_deleting(o));
    assert_string_equal(suite_text(s, o, "metadata.deletionGracePeriodSeconds"), "7");
    rq.grace_s = &none;
    (void)suite_must(s, &rq);
    (void)suite_refused(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->pods, .name = "p"), 404,
                        "NotFound");
}

#define GONE_TRIES 1000 /* of suite_pause */

static bool is_gone(struct suite *s, const char *name)
{
    return suite_ask(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = s->config_maps, .name = name))
               ->code == 404;
}

/* Owned by "owner", which must be there. */
static void create_owned(struct suite *s, const char *name, const struct object *owner)
{
    (void)suite_create(s, s->config_maps,
                       "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                       "\"kind\":\"ConfigMap\",\"name\":\"%s\",\"uid\":\"%s\"}]}}",
                       name, object_name(owner), object_uid(owner));
}

static void dependents_follow(struct suite *s)
{
    struct object *owner = suite_create(s, s->config_maps, MAP("owner", "1"));

    create_owned(s, "child", owner);
    (void)suite_must(s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = "owner",
                                 .propagation = KUBE_BACKGROUND));
    for (int i = 0; i < GONE_TRIES && !is_gone(s, "child"); i++)
        suite_pause(s);
    assert_true(is_gone(s, "child"));
}

static void orphans_stay(struct suite *s)
{
    struct object *owner = suite_create(s, s->config_maps, MAP("owner", "1")), *child;

    create_owned(s, "child", owner);
    (void)suite_must(s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = "owner",
                                 .propagation = KUBE_ORPHAN));
    for (int i = 0; i < GONE_TRIES && !is_gone(s, "owner"); i++)
        suite_pause(s);
    assert_true(is_gone(s, "owner"));
    child = suite_get(s, s->config_maps, "child");
    assert_string_equal(suite_text(s, child, "metadata.ownerReferences"), "(none)");
}

static void delete_many(struct suite *s)
{
    struct kube_request list = {
        .verb = KUBE_LIST, .kind = s->config_maps, .namespace = s->namespace, .labels = "t"
    };

    for (int i = 0; i < 150; i++)
        (void)suite_create(s, s->config_maps,
                           "{\"metadata\":{\"name\":\"a%d\",\"labels\":{\"t\":\"%s\"}}}", i,
                           i % 3 ? "go" : "stay");
    (void)suite_must(
        s, SUITE_RQ(s, .verb = KUBE_DELETE_COLLECTION, .kind = s->config_maps, .labels = "t=go"));
    assert_int_equal(suite_must(s, &list)->item_count, 50);
}

const struct suite_row suite_write_rows[] = {
    { "what is created can be got", create_and_get },
    { "a name that is taken is refused", create_taken },
    { "names are made up", create_made_up },
    { "a namespace must be there", create_in_no_namespace },
    { "an invalid object is refused with its fields", create_invalid },
    { "defaults are filled in", create_defaults },
    { "a dry run changes nothing", create_dry },
    { "an update changes, and is a new version", update_once },
    { "an update that changes nothing is no new version", update_same },
    { "an update of an old version is a conflict", update_stale },
    { "what is not there cannot be updated", update_absent },
    { "a custom object is not overwritten unseen", update_unseen },
    { "an object of the same name is another", update_of_another },
    { "the generation counts changes of the spec", generation_counts },
    { "status and spec are written apart", status_apart },
    { "a patch of the status changes nothing else", status_patch },
    { "patches of each type", patch_types },
    { "patches that are refused", patch_refused },
    { "no strategic merge of custom objects", patch_strategic_custom },
    { "an apply conflicts, and takes by force", apply_conflicts },
    { "who wrote is recorded", managers_recorded },
    { "what is deleted is gone", delete_once },
    { "preconditions of a delete", delete_preconditions },
    { "finalizers hold what is deleted", finalizers_hold },
    { "a pod gets its time to end", delete_with_grace },
    { "dependents follow their owner", dependents_follow },
    { "orphans stay", orphans_stay },
    { "many are deleted by label", delete_many },
    { 0 },
};
