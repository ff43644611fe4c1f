#include "kube/convert.h"

#include <stdio.h>

#define STATE_PREFIX      "api.agents.x-k8s.io/v1alpha1-"
#define POLICY_ANNOTATION "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy"
#define SHADOW_PREFIX     "shadow-pool-"
/* A claim's names are bounded by validation; the texts made of them here are too. */
#define NAME_MAX_BYTES 1024

/* What a conversion works on. Either direction finds in `state` the v1alpha1 object that was kept, or
 * NULL. */
struct conversion {
    struct json_edit *ed;
    struct json_node *root, *spec, *status;
    const struct json *state;
};

struct converter {
    const char *kind;
    const char *state_annotation;
    int (*to_hub)(struct conversion *c, struct err *e);
    int (*from_hub)(struct conversion *c, struct err *e);
};

static struct json_node *annotations(const struct conversion *c)
{
    return json_node_get(json_node_get(c->root, "metadata"), "annotations");
}

static void annotate(struct conversion *c, const char *key, struct span value)
{
    struct json_node *meta = json_node_get(c->root, "metadata"), *map = annotations(c);

    if (!meta)
        meta = json_node_set(c->root, "metadata", json_edit_object(c->ed));
    if (json_node_type(map) != JSON_OBJECT)
        map = json_node_set(meta, "annotations", json_edit_object(c->ed));
    json_node_set(map, key, json_edit_str(c->ed, value));
}

static void drop_annotation(struct conversion *c, const char *key)
{
    if (json_node_remove(annotations(c), key) && json_node_count(annotations(c)) == 0)
        (void)json_node_remove(json_node_get(c->root, "metadata"), "annotations");
}

static struct span text_at(struct json_node *node, const char *outer, const char *inner)
{
    return json_node_str(json_node_get(json_node_get(node, outer), inner));
}

static struct span state_text(const struct conversion *c, const char *outer, const char *inner)
{
    const struct json *v = json_get(json_get(c->state, "spec"), outer);

    return json_str(inner ? json_get(v, inner) : v);
}

static void set_i64(struct conversion *c, struct json_node *in, const char *name, int64_t v)
{
    json_node_set(in, name, json_edit_i64(c->ed, v));
}

static int sandbox_to_hub(struct conversion *c, struct err *e)
{
    int64_t replicas;
    bool is_zero = json_node_i64(json_node_get(c->spec, "replicas"), &replicas) && replicas == 0;

    (void)json_node_remove(c->spec, "replicas");
    json_node_set(c->spec, "operatingMode",
                  json_edit_cstr(c->ed, is_zero ? "Suspended" : "Running"));
    (void)json_node_remove(c->status, "replicas");
    return 0;
}

static int sandbox_from_hub(struct conversion *c, struct err *e)
{
    struct span mode = json_node_str(json_node_get(c->spec, "operatingMode"));
    bool is_suspended = span_is(mode, "Suspended");
    const struct json *was = json_get(json_get(c->state, "spec"), "replicas");
    int64_t replicas = is_suspended ? 0 : 1, seen = replicas, kept;

    (void)json_node_remove(c->spec, "operatingMode");
    set_i64(c, c->spec, "replicas", replicas);
    if (c->state && span_is(mode, "Running") && !json_i64(was, &kept))
        (void)json_node_remove(c->spec, "replicas");
    if (c->state && !json_i64(json_get(json_get(c->state, "status"), "replicas"), &seen))
        seen = 0;
    if (!c->status && seen)
        c->status = json_node_set(c->root, "status", json_edit_object(c->ed));
    (void)json_node_remove(c->status, "nodeName");
    (void)json_node_remove(c->status, "replicas");
    if (seen) /* a zero is not written: omitempty */
        set_i64(c, c->status, "replicas", seen);
    return 0;
}

static int template_to_hub(struct conversion *c, struct err *e)
{
    struct json_node *policy = json_node_get(annotations(c), POLICY_ANNOTATION);
    struct span text = json_node_str(policy);

    if (!policy)
        return 0;
    if (!span_is(text, "Disallowed") && !span_is(text, "Allowed") && !span_is(text, "Overrides"))
        return err_set(e, ERR_INVALID,
                       "invalid VolumeClaimTemplatesPolicy annotation value: \"%.*s\"",
                       SPAN_ARG(span_slice(text, 0, 128)));
    json_node_set(c->spec, "volumeClaimTemplatesPolicy", json_edit_str(c->ed, text));
    drop_annotation(c, POLICY_ANNOTATION);
    return 0;
}

static int template_from_hub(struct conversion *c, struct err *e)
{
    struct span policy = json_node_str(json_node_get(c->spec, "volumeClaimTemplatesPolicy"));

    if (policy.n)
        annotate(c, POLICY_ANNOTATION, json_edit_text(c->ed, policy));
    else
        drop_annotation(c, POLICY_ANNOTATION);
    (void)json_node_remove(c->spec, "volumeClaimTemplatesPolicy");
    return 0;
}

static int pool_to_hub(struct conversion *c, struct err *e)
{
    if (!json_node_get(c->spec, "replicas"))
        set_i64(c, c->spec, "replicas", 0);
    return 0;
}

static int pool_from_hub(struct conversion *c, struct err *e)
{
    if (json_node_type(json_node_get(c->spec, "replicas")) != JSON_NUMBER)
        set_i64(c, c->spec, "replicas", 1);
    (void)json_node_remove(c->status, "observedGeneration");
    return 0;
}

static bool is_specific_pool(struct span pool)
{
    return pool.n && !span_is(pool, "none") && !span_is(pool, "default");
}

/* The pool that a member's name tells: without what follows the last '-'. */
static struct span without_suffix(struct span name)
{
    size_t n = name.n;

    while (n > 0 && name.p[n - 1] != '-')
        n--;
    return n > 0 ? span_slice(name, 0, n - 1) : name;
}

static int claim_to_hub(struct conversion *c, struct err *e)
{
    OWN(buf_done) struct buf name = BUF_INIT(NAME_MAX_BYTES);
    struct span pool = json_node_str(json_node_get(c->spec, "warmpool")),
                sandbox = text_at(c->status, "sandbox", "name"),
                claim = text_at(c->root, "metadata", "name"),
                template = text_at(c->spec, "sandboxTemplateRef", "name");
    struct json_node *ref = json_edit_object(c->ed);

    if (is_specific_pool(pool)) {
        if (buf_add(&name, pool, e) < 0)
            return -1;
    } else if (sandbox.n && !span_eq(sandbox, claim)) {
        if (buf_add(&name, without_suffix(sandbox), e) < 0)
            return -1;
    } else if (buf_addf(&name, e, SHADOW_PREFIX "%.*s", SPAN_ARG(template)) < 0) {
        return -1;
    }
    json_node_set(ref, "name", json_edit_str(c->ed, buf_span(&name)));
    (void)json_node_remove(c->spec, "sandboxTemplateRef");
    (void)json_node_remove(c->spec, "warmpool");
    json_node_set(c->spec, "warmPoolRef", ref);
    return 0;
}

/* The pool is still the one that the kept object led to, by any of the ways it could. */
static bool is_pool_of_state(struct span pool, struct span expected, struct span sandbox)
{
    return span_eq(pool, expected) ||
           (span_starts(pool, SHADOW_PREFIX) &&
            span_eq(span_skip(pool, strlen(SHADOW_PREFIX)), expected)) ||
           (sandbox.n && (span_eq(pool, sandbox) || span_eq(pool, without_suffix(sandbox))));
}

static void set_template_ref(struct conversion *c, struct span name, struct span pool)
{
    struct json_node *ref = json_edit_object(c->ed);

    (void)json_node_remove(c->spec, "warmPoolRef");
    (void)json_node_remove(c->spec, "volumeClaimTemplates");
    if (name.n)
        json_node_set(ref, "name", json_edit_str(c->ed, name));
    json_node_set(c->spec, "sandboxTemplateRef", ref);
    if (pool.p)
        json_node_set(c->spec, "warmpool", json_edit_str(c->ed, pool));
    else
        (void)json_node_remove(c->spec, "warmpool");
}

static int claim_from_hub(struct conversion *c, struct err *e)
{
    struct span pool = text_at(c->spec, "warmPoolRef", "name"),
                sandbox = text_at(c->status, "sandbox", "name"),
                template = state_text(c, "sandboxTemplateRef", "name"),
                was = state_text(c, "warmpool", NULL),
                expected = is_specific_pool(was) ? was : template;

    pool = pool.p ? pool : SPAN("");
    if (c->state && is_pool_of_state(pool, expected, sandbox))
        set_template_ref(c, template, was);
    else if (c->state)
        set_template_ref(c, template, pool);
    else if (span_starts(pool, SHADOW_PREFIX))
        set_template_ref(c, span_skip(pool, strlen(SHADOW_PREFIX)), SPAN("default"));
    else
        set_template_ref(c, pool, pool);
    return 0;
}

static const struct converter converters[] = {
    { "Sandbox", STATE_PREFIX "sandbox-state", sandbox_to_hub, sandbox_from_hub },
    { "SandboxTemplate", STATE_PREFIX "sandboxtemplate-state", template_to_hub, template_from_hub },
    { "SandboxWarmPool", STATE_PREFIX "sandboxwarmpool-state", pool_to_hub, pool_from_hub },
    { "SandboxClaim", STATE_PREFIX "sandboxclaim-state", claim_to_hub, claim_from_hub },
};

static const struct converter *converter_of(const struct kind *kind)
{
    if (!(kind->traits & KIND_CUSTOM))
        return NULL;
    EACH(c, converters) {
        if (strcmp(c->kind, kind->name) == 0)
            return c;
    }
    return NULL;
}

static int to_hub(const struct converter *how, struct conversion *c, struct err *e)
{
    OWN(buf_done) struct buf state = BUF_INIT(JSON_TEXT_MAX_BYTES);

    drop_annotation(c, how->state_annotation);
    if (json_node_write(c->root, &state, e) < 0)
        return err_wrap(e, "failed to marshal v1alpha1 %s state", how->kind);
    if (how->to_hub(c, e) < 0)
        return -1;
    annotate(c, how->state_annotation, buf_span(&state));
    return 0;
}

static int from_hub(const struct converter *how, struct conversion *c, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct span state = json_node_str(json_node_get(annotations(c), how->state_annotation));
    bool needs_state = how->to_hub == sandbox_to_hub || how->to_hub == claim_to_hub;

    if (state.p && needs_state) {
        if (json_parse(state, NULL, &doc, e) < 0)
            return err_wrap(e, "failed to unmarshal v1alpha1 %s state", how->kind);
        c->state = json_doc_root(json_edit_hold(c->ed, doc));
    }
    drop_annotation(c, how->state_annotation);
    return how->from_hub(c, e);
}

static void set_api_version(const struct kind *kind, const char *version, struct json_node *root)
{
    const struct kind_version *v = kind_version(kind, version);

    if (v && json_node_get(root, "apiVersion"))
        json_node_set(root, "apiVersion",
                      json_edit_cstr(json_node_edit(root), kind_api_version(kind, v)));
}

int convert_tree(const struct kind *kind, const char *from, const char *to, struct json_node *root,
                 struct err *e)
{
    const struct converter *how = converter_of(kind);
    struct conversion c = { .ed = json_node_edit(root),
                            .root = root,
                            .spec = json_node_get(root, "spec"),
                            .status = json_node_get(root, "status") };

    if (strcmp(from, to) == 0 || !how)
        return 0;
    if ((strcmp(to, "v1beta1") == 0 ? to_hub(how, &c, e) : from_hub(how, &c, e)) < 0)
        return -1;
    set_api_version(kind, to, root);
    return 0;
}

/* The core's name and the name in events.k8s.io of what both have. */
static const struct {
    const char *core, *events;
} event_members[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
    { "reportingComponent", "reportingController" },
};

static const char *event_name(const char *name, bool is_to_core)
{
    EACH(m, event_members) {
        if (strcmp(name, is_to_core ? m->events : m->core) == 0)
            return is_to_core ? m->core : m->events;
    }
    return name;
}

static int convert_event(const struct object *o, const struct kind *kind, struct object **ret,
                         struct err *e)
{
    struct object_member members[OBJECT_MEMBERS_MAX];
    bool is_to_core = kind->group[0] == '\0';
    const char *name = NULL;
    size_t n = 0;

    while (n < LEN(members)) {
        struct json_doc *doc = object_member_at(o, n, &name);

        if (!doc)
            break;
        members[n++] = (struct object_member){ event_name(name, is_to_core), doc };
    }
    return object_new(kind, members, n, ret, e);
}

static int convert_custom(const struct object *o, const struct kind *kind, const char *version,
                          struct object **ret, struct err *e)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = object_thaw(o, NULL, ed);

    if (convert_tree(kind, kind->versions[0].name, version, root, e) < 0)
        return -1;
    return object_freeze(kind, o, root, ret, e);
}

int convert_object(struct object *o, const struct kind *kind, const char *version,
                   struct object **ret, struct err *e)
{
    bool is_event = kind != object_kind(o);
    OWN(object_done) struct object *made = NULL, *versioned = NULL;

    if (!kind_version(kind, version))
        return err_set(e, ERR_NOT_FOUND, "%s is not served in version '%s'", kind->name, version);
    if (!is_event && (strcmp(version, kind->versions[0].name) == 0 || !converter_of(kind))) {
        *ret = object_ref(o);
        return 0;
    }
    made = object_other(o, kind, version);
    if (made) {
        *ret = take_ptr(&made);
        return 0;
    }
    if ((is_event ? convert_event(o, kind, &made, e) : convert_custom(o, kind, version, &made, e)) <
        0)
        return -1;
    versioned = object_with_version(made, object_version(o));
    object_keep_other(o, kind_version(kind, version)->name, versioned);
    *ret = take_ptr(&versioned);
    return 0;
}
