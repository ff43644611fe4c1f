#include "kube/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

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

static const struct kind *kind_named(const char *plural)
{
    const struct kind *kind = kind_find("extensions.agents.x-k8s.io", "v1beta1", plural);

    return kind ? kind : kind_find("agents.x-k8s.io", "v1beta1", plural);
}

static void must_convert(const char *plural, bool is_to_hub, struct json_node *root)
{
    struct err e;

    if (convert_tree(kind_named(plural), is_to_hub ? "v1alpha1" : "v1beta1",
                     is_to_hub ? "v1beta1" : "v1alpha1", root, &e) < 0)
        fail_msg("%s", e.msg);
}

static struct json_node *path(struct json_node *node, const char *dotted)
{
    struct span rest = span_cstr(dotted), name;

    while (node && span_cut(&rest, '.', &name))
        node = json_node_get_span(node, name);
    return node;
}

static void assert_text(struct json_node *root, const char *dotted, const char *want)
{
    struct span text = json_node_str(path(root, dotted));

    if (want ? !span_is(text, want) || !text.p : text.p != NULL)
        fail_msg("%s is '%.*s', not '%s'", dotted, SPAN_ARG(text), want ? want : "(nothing)");
}

static void assert_number(struct json_node *root, const char *dotted, int64_t want)
{
    int64_t v = -1;

    (void)json_node_i64(path(root, dotted), &v);
    assert_int_equal(v, want);
}

static void assert_writes(struct json_node *node, const char *want)
{
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct err e;

    assert_int_equal(json_node_write(node, &out, &e), 0);
    assert_string_equal(buf_cstr(&out), want);
}

/* The vectors of the contract: claim `my-claim`, template `my-template`. */
static const struct {
    const char *pool, *sandbox, *want;
} claim_rows[] = {
    { "my-pool", "my-claim", "my-pool" },
    { "none", "my-claim", "shadow-pool-my-template" },
    { "default", "my-claim", "shadow-pool-my-template" },
    { "default", "my-pool-abcde", "my-pool" },
    { "my-pool", "", "my-pool" },
    { NULL, "", "shadow-pool-my-template" },
    { "", "", "shadow-pool-my-template" },
};

static void test_claims_to_hub_and_back(void **state)
{
    EACH(r, claim_rows) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        char text[512], pool[64] = "";
        struct json_node *root;

        if (r->pool)
            (void)snprintf(pool, sizeof pool, ",\"warmpool\":\"%s\"", r->pool);
        (void)snprintf(
            text, sizeof text,
            "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1alpha1\",\"kind\":"
            "\"SandboxClaim\",\"metadata\":{\"name\":\"my-claim\"},\"spec\":{"
            "\"sandboxTemplateRef\":{\"name\":\"my-template\"}%s},\"status\":{\"sandbox\":"
            "{\"name\":\"%s\"}}}",
            pool, r->sandbox);
        root = must_parse(ed, text);
        must_convert("sandboxclaims", true, root);
        assert_text(root, "spec.warmPoolRef.name", r->want);
        assert_text(root, "spec.warmpool", NULL);
        assert_null(path(root, "spec.sandboxTemplateRef"));
        assert_text(root, "apiVersion", "extensions.agents.x-k8s.io/v1beta1");
        must_convert("sandboxclaims", false, root);
        assert_writes(root, text);
    }
}

static void test_claims_from_hub(void **state)
{
    static const struct {
        const char *ref, *pool, *template;
    } rows[] = {
        { "my-pool", "my-pool", "my-pool" },
        { "", "", NULL },
        { "shadow-pool-my-template", "default", "my-template" },
    };

    EACH(r, rows) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *root;
        char text[256];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"warmPoolRef\":{\"name\":\"%s\"},"
                       "\"volumeClaimTemplates\":[]}}",
                       r->ref);
        root = must_parse(ed, text);
        must_convert("sandboxclaims", false, root);
        assert_text(root, "spec.warmpool", r->pool);
        assert_text(root, "spec.sandboxTemplateRef.name", r->template);
        assert_null(path(root, "spec.volumeClaimTemplates"));
        assert_null(path(root, "spec.warmPoolRef"));
    }
}

/* The hub's pool was changed after the v1alpha1 object was kept: the new pool shows, with the old template. */
static void test_claim_that_moved(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root =
        must_parse(ed, "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"sandboxTemplateRef\":{\"name\":"
                       "\"t\"},\"warmpool\":\"p\"}}");

    must_convert("sandboxclaims", true, root);
    json_node_set(path(root, "spec.warmPoolRef"), "name", json_edit_cstr(ed, "other"));
    must_convert("sandboxclaims", false, root);
    assert_text(root, "spec.warmpool", "other");
    assert_text(root, "spec.sandboxTemplateRef.name", "t");
}

static void test_sandboxes(void **state)
{
    static const struct {
        const char *name, *spec, *mode, *changed; /* the mode that the hub is changed to, or NULL */
        int64_t back;                             /* spec.replicas in v1alpha1; -1: not there */
    } rows[] = {
        { "one", "{\"replicas\":1}", "Running", NULL, 1 },
        { "none said", "{}", "Running", NULL, -1 },
        { "zero", "{\"replicas\":0}", "Suspended", NULL, 0 },
        { "resumed", "{\"replicas\":0}", "Suspended", "Running", 1 },
        { "suspended", "{\"replicas\":1}", "Running", "Suspended", 0 },
        { "suspended, none said", "{}", "Running", "Suspended", 0 },
    };

    EACH(r, rows) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *root;
        char text[256];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"s\"},\"spec\":%s,\"status\":{\"replicas\":1}}",
                       r->spec);
        root = must_parse(ed, text);
        must_convert("sandboxes", true, root);
        assert_text(root, "spec.operatingMode", r->mode);
        assert_null(path(root, "spec.replicas"));
        assert_null(path(root, "status.replicas"));
        if (r->changed)
            json_node_set(path(root, "spec"), "operatingMode", json_edit_cstr(ed, r->changed));
        must_convert("sandboxes", false, root);
        assert_number(root, "spec.replicas", r->back);
        assert_number(root, "status.replicas", 1); /* restored, though it may be stale */
        assert_null(path(root, "spec.operatingMode"));
        assert_null(path(root, "metadata.annotations"));
    }
}

static void test_sandbox_of_the_hub(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *running =
        must_parse(ed, "{\"metadata\":{},\"spec\":{\"operatingMode\":\"Running\"}}");
    struct json_node *suspended = must_parse(
        ed,
        "{\"spec\":{\"operatingMode\":\"Suspended\"},\"status\":{\"nodeName\":\"n\",\"service\":\"x\"}}");

    must_convert("sandboxes", false, running);
    assert_writes(running,
                  "{\"metadata\":{},\"spec\":{\"replicas\":1},\"status\":{\"replicas\":1}}");
    must_convert("sandboxes", false, suspended);
    assert_writes(suspended, "{\"spec\":{\"replicas\":0},\"status\":{\"service\":\"x\"}}");
}

#define POLICY "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy"

static void test_templates(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = must_parse(ed, "{\"metadata\":{\"annotations\":{\"" POLICY
                                            "\":\"Allowed\"}},\"spec\":{\"service\":true}}");
    struct json_node *stale = must_parse(ed, "{\"metadata\":{\"annotations\":{\"" POLICY
                                             "\":\"Allowed\",\"a\":\"b\"}},\"spec\":{}}");
    struct json_node *bad =
        must_parse(ed, "{\"metadata\":{\"annotations\":{\"" POLICY "\":\"Maybe\"}},\"spec\":{}}");
    struct err e;

    must_convert("sandboxtemplates", true, root);
    assert_text(root, "spec.volumeClaimTemplatesPolicy", "Allowed");
    assert_null(json_node_get(path(root, "metadata.annotations"), POLICY));
    must_convert("sandboxtemplates", false, root);
    assert_writes(root, "{\"metadata\":{\"annotations\":{\"" POLICY
                        "\":\"Allowed\"}},\"spec\":{\"service\":true}}");
    must_convert("sandboxtemplates", false, stale);
    assert_writes(stale, "{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{}}");
    assert_int_equal(convert_tree(kind_named("sandboxtemplates"), "v1alpha1", "v1beta1", bad, &e),
                     -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.msg, "invalid VolumeClaimTemplatesPolicy annotation value: \"Maybe\"");
}

static void test_pools(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = must_parse(
        ed,
        "{\"spec\":{\"sandboxTemplateRef\":{\"name\":\"t\"}},\"status\":{\"observedGeneration\":5}}");

    must_convert("sandboxwarmpools", false, root);
    assert_writes(
        root, "{\"spec\":{\"sandboxTemplateRef\":{\"name\":\"t\"},\"replicas\":1},\"status\":{}}");
    must_convert("sandboxwarmpools", true, root);
    assert_number(root, "spec.replicas", 1);
    must_convert("sandboxwarmpools", false, root);
    assert_null(path(root, "metadata.annotations"));
}

/* Converting again and again does not put states into states. */
static void test_state_does_not_nest(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root =
        must_parse(ed, "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"replicas\":1}}");
    size_t once = 0;

    for (int i = 0; i < 5; i++) {
        struct span kept;

        must_convert("sandboxes", true, root);
        kept = json_node_str(json_node_get(path(root, "metadata.annotations"),
                                           "api.agents.x-k8s.io/v1alpha1-sandbox-state"));
        assert_true(kept.n > 10);
        assert_true(span_find_str(kept, SPAN("-state")) == SIZE_MAX);
        once = once ? once : kept.n;
        assert_true(kept.n <= once + 32); /* status.replicas came */
        must_convert("sandboxes", false, root);
    }
}

static void test_bad_state(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = must_parse(
        ed, "{\"metadata\":{\"annotations\":{\"api.agents.x-k8s.io/v1alpha1-sandbox-state\":"
            "\"{\"}},\"spec\":{}}");
    struct err e;

    assert_int_equal(convert_tree(kind_named("sandboxes"), "v1beta1", "v1alpha1", root, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_true(span_starts(span_cstr(e.msg), "failed to unmarshal v1alpha1 Sandbox state: "));
}

static struct object *must_make(const struct kind *kind, const char *text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0 ||
        object_parse(kind, json_doc_root(doc), &o, &e) < 0)
        fail_msg("%s", e.msg);
    return o;
}

static void test_objects_are_converted_once(void **state)
{
    const struct kind *kind = kind_named("sandboxes");
    OWN(object_done)
    struct object *o = must_make(kind, "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"7\"},"
                                       "\"spec\":{\"operatingMode\":\"Suspended\"}}"),
                  *same = NULL, *old = NULL, *again = NULL, *none = NULL;
    int64_t replicas = -1;
    struct err e;

    assert_int_equal(convert_object(o, kind, "v1beta1", &same, &e), 0);
    assert_ptr_equal(same, o);
    assert_int_equal(convert_object(o, kind, "v1alpha1", &old, &e), 0);
    assert_true(json_i64(object_at(old, "spec.replicas"), &replicas) && replicas == 0);
    assert_int_equal(object_version(old), 7);
    assert_ptr_equal(object_meta(old), object_meta(o)); /* nothing in it changed */
    assert_int_equal(convert_object(o, kind, "v1alpha1", &again, &e), 0);
    assert_ptr_equal(again, old);
    assert_int_equal(convert_object(o, kind, "v9", &none, &e), -1);
}

static void test_events(void **state)
{
    const struct kind *core = kind_find("", "v1", "events"),
                      *events = kind_find("events.k8s.io", "v1", "events");
    OWN(object_done)
    struct object *o =
                      must_make(core, "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"kind\":"
                                      "\"Pod\"},\"message\":\"m\",\"count\":2,\"reason\":\"r\"}"),
                  *shown = NULL, *back = NULL;
    OWN(buf_done) struct buf out = BUF_INIT(1000);
    struct err e;

    assert_int_equal(convert_object(o, events, "v1", &shown, &e), 0);
    assert_int_equal(object_write(shown, "events.k8s.io/v1", &out, &e), 0);
    assert_string_equal(
        buf_cstr(&out),
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
        "\"e\"},\"regarding\":{\"kind\":\"Pod\"},\"note\":\"m\",\"deprecatedCount\":2,"
        "\"reason\":\"r\"}");
    assert_int_equal(convert_object(shown, core, "v1", &back, &e), 0);
    assert_true(object_is_same(o, back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims_to_hub_and_back),
        cmocka_unit_test(test_claims_from_hub),
        cmocka_unit_test(test_claim_that_moved),
        cmocka_unit_test(test_sandboxes),
        cmocka_unit_test(test_sandbox_of_the_hub),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_state_does_not_nest),
        cmocka_unit_test(test_bad_state),
        cmocka_unit_test(test_objects_are_converted_once),
        cmocka_unit_test(test_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
