#include "kube/default.h"

#include "base/str.h"
#include "kube/default_kinds.h"
#include "kube/quantity.h"
#include "kube/time.h"

#include <string.h>

struct json_node *default_text_node(struct json_edit *ed, const char *json)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct span text = span_cstr(json);
    struct err e;

    /* Nearly all are one of these; a document each would cost more than the rest of the walk. */
    if (json[0] == '"' && !strchr(json, '\\'))
        return json_edit_str(ed, span_slice(text, 1, text.n - 1));
    if (strcmp(json, "{}") == 0)
        return json_edit_object(ed);
    if (strcmp(json, "[]") == 0)
        return json_edit_array(ed);
    if (strcmp(json, "true") == 0 || strcmp(json, "false") == 0)
        return json_edit_bool(ed, json[0] == 't');
    if (strspn(json, "-0123456789") == text.n)
        return json_edit_number(ed, text);
    if (json_parse(text, NULL, &doc, &e) < 0)
        return json_edit_null(ed); /* a row of our own table: its test reads them all */
    return json_edit_doc(ed, doc);
}

struct json_node *default_object_at(struct json_node *parent, const char *name)
{
    struct json_node *node = json_node_get(parent, name);

    if (json_node_type(node) == JSON_OBJECT)
        return node;
    return json_node_set(parent, name, json_edit_object(json_node_edit(parent)));
}

void default_text_at(struct json_node *object, const char *name, const char *text)
{
    struct json_node *node = json_node_get(object, name);

    if (!node || json_node_type(node) == JSON_NULL ||
        (json_node_type(node) == JSON_STRING && json_node_str(node).n == 0))
        json_node_set(object, name, json_edit_cstr(json_node_edit(object), text));
}

static bool is_empty(const struct schema_field *f, struct json_node *v)
{
    size_t n = json_node_type(v) == JSON_STRING ? json_node_str(v).n : json_node_count(v);
    int64_t number = 1;
    bool b = true;

    (void)json_node_i64(v, &number);
    (void)json_node_bool(v, &b);
    return default_is_empty(f, json_node_type(v), n, number == 0 || !b);
}

/* What Go writes for the zero of a field that is always there. */
static struct json_node *zero_of(struct json_edit *ed, const struct schema_field *f)
{
    if (f->shape != SCHEMA_SINGLE || f->flags & SCHEMA_POINTER)
        return json_edit_null(ed);
    switch (f->value) {
    case SCHEMA_STRING:
        return json_edit_cstr(ed, "");
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_DOUBLE:
    case SCHEMA_INT_OR_STRING:
        return json_edit_i64(ed, 0);
    case SCHEMA_BOOL:
        return json_edit_bool(ed, false);
    case SCHEMA_QUANTITY:
        return json_edit_cstr(ed, "0");
    case SCHEMA_DURATION:
        return json_edit_cstr(ed, "0s");
    case SCHEMA_OBJECT:
        return json_edit_object(ed);
    case SCHEMA_BYTES:
    case SCHEMA_TIME:
    case SCHEMA_MICROTIME:
    case SCHEMA_RAW:
    case SCHEMA_STRINGS:
        break;
    }
    return json_edit_null(ed);
}

static struct json_node *canonical_quantity(struct json_edit *ed, struct json_node *v)
{
    struct quantity q;
    char text[QUANTITY_TEXT_BYTES];
    struct span given = json_node_type(v) == JSON_STRING ? json_node_str(v) : json_node_number(v);
    const char *want;

    if (!quantity_parse(given, &q))
        return v;
    want = quantity_text(&q, text);
    return json_node_type(v) == JSON_STRING && span_is(given, want) ? v : json_edit_cstr(ed, want);
}

static struct json_node *canonical_time(struct json_edit *ed, struct json_node *v, bool is_micro)
{
    struct timespec t;
    char text[TIME_TEXT_BYTES];
    const char *want;

    if (!kube_time_parse(json_node_str(v), &t))
        return v;
    want = is_micro ? kube_microtime_text(text, t) : kube_time_text(text, t.tv_sec);
    return span_is(json_node_str(v), want) ? v : json_edit_cstr(ed, want);
}

static struct json_node *canonical_base64(struct json_edit *ed, struct json_node *v)
{
    struct span given = json_node_str(v);
    OWN(buf_done) struct buf plain = BUF_INIT(given.n + 1);
    struct err e;

    if (span_find(given, '\n') == SIZE_MAX && span_find(given, '\r') == SIZE_MAX)
        return v;
    for (size_t i = 0; i < given.n; i++)
        if (given.p[i] != '\n' && given.p[i] != '\r')
            /* Sized for all of it. */
            (void)buf_addc(&plain, given.p[i], &e);
    return json_edit_str(ed, buf_span(&plain));
}

/* One value of a field; null is the zero of elements. */
static struct json_node *normal_value(struct json_edit *ed, const struct schema_field *f,
                                      struct json_node *v)
{
    if (json_node_type(v) == JSON_NULL && f->value != SCHEMA_RAW) {
        struct schema_field element = *f;

        element.shape = SCHEMA_SINGLE;
        element.flags = 0;
        v = f->value == SCHEMA_BYTES ? json_edit_cstr(ed, "") : zero_of(ed, &element);
    }
    switch (f->value) {
    case SCHEMA_OBJECT:
        if (json_node_type(v) == JSON_OBJECT)
            default_normalise(f->ref, v, NULL);
        return v;
    case SCHEMA_QUANTITY:
        return canonical_quantity(ed, v);
    case SCHEMA_TIME:
    case SCHEMA_MICROTIME:
        return canonical_time(ed, v, f->value == SCHEMA_MICROTIME);
    case SCHEMA_BYTES:
        return canonical_base64(ed, v);
    case SCHEMA_STRING:
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_BOOL:
    case SCHEMA_DOUBLE:
    case SCHEMA_DURATION:
    case SCHEMA_INT_OR_STRING:
    case SCHEMA_RAW:
    case SCHEMA_STRINGS:
        break;
    }
    return v;
}

static void normal_field(struct json_node *owner, const struct schema_field *f, struct json_node *v)
{
    struct json_edit *ed = json_node_edit(owner);
    struct json_node *changed;

    if (f->shape == SCHEMA_SINGLE) {
        changed = normal_value(ed, f, v);
        if (changed != v)
            json_node_set(owner, f->name, changed);
        return;
    }
    if (json_node_view(v) && default_is_done_field(f, json_node_view(v)))
        return;
    for (size_t i = 0; i < json_node_count(v); i++) {
        struct json_node *item =
            f->shape == SCHEMA_LIST ? json_node_at(v, i) : json_node_value_at(v, i);

        changed = normal_value(ed, f, item);
        if (changed == item)
            continue;
        if (f->shape == SCHEMA_LIST)
            json_node_replace_at(v, i, changed);
        else
            json_node_set_span(v, json_node_name_at(v, i), changed);
    }
}

bool default_is_kept(struct json_node *root, struct json_node *was, const char *member)
{
    return was && default_is_same_view(json_node_get(root, member), json_node_get(was, member));
}

static void normal_members(const struct schema_type *t, struct json_node *node,
                           struct json_node *was);

/* was: what stood there before, or NULL. */
static void changed_field(struct json_node *owner, const struct schema_field *f,
                          struct json_node *v, struct json_node *was)
{
    if (default_is_same_view(v, was))
        return;
    if (was && f->shape == SCHEMA_SINGLE && f->value == SCHEMA_OBJECT && !json_node_view(v) &&
        json_node_type(v) == JSON_OBJECT)
        normal_members(f->ref, v, was);
    else
        normal_field(owner, f, v);
}

/* was: the same object before, or NULL. What is still its document's got its defaults when that was written. */
static void normal_members(const struct schema_type *t, struct json_node *node,
                           struct json_node *was)
{
    struct json_edit *ed = json_node_edit(node);

    for (size_t i = json_node_count(node); i-- > 0 && !json_edit_is_full(ed);) {
        struct span name = json_node_name_at(node, i);
        const struct schema_field *f = schema_field(t, name);
        struct json_node *v = json_node_value_at(node, i);

        if (default_is_dropped(t, f, name, json_node_type(v) == JSON_NULL, f && is_empty(f, v)))
            json_node_remove_span(node, name);
        else if (f && json_node_type(v) != JSON_NULL)
            changed_field(node, f, v, json_node_get_span(was, name));
    }
    for (size_t i = 0; i < t->field_count; i++) {
        const struct schema_field *f = &t->fields[i];
        const char *preset = default_preset(f);
        struct json_node *v;

        if (!preset && !(f->flags & SCHEMA_ALWAYS))
            continue;
        v = json_node_get(node, f->name);
        if (v && !(preset && is_empty(f, v)))
            continue;
        v = json_node_set(node, f->name, preset ? default_text_node(ed, preset) : zero_of(ed, f));
        if (f->value == SCHEMA_OBJECT && f->shape == SCHEMA_SINGLE &&
            json_node_type(v) == JSON_OBJECT)
            default_normalise(f->ref, v, NULL);
    }
}

void default_normalise(const struct schema_type *t, struct json_node *node, struct json_node *was)
{
    if (!json_node_view(node) || !default_is_done(t, json_node_view(node)))
        normal_members(t, node, was);
}

static int finish(struct json_node *root, struct err *e)
{
    return json_edit_is_full(json_node_edit(root))
               ? err_set(e, ERR_LIMIT, "object is too large to be filled with defaults")
               : 0;
}

int default_body(const struct schema_type *t, struct json_node *root, struct err *e)
{
    default_normalise(t, root, NULL);
    return finish(root, e);
}

/* stringData is written, data is read. */
static void default_secret(struct json_node *root)
{
    struct json_node *given = json_node_get(root, "stringData");
    struct json_edit *ed = json_node_edit(root);
    struct err e;

    for (size_t i = 0; i < json_node_count(given); i++) {
        struct span text = json_node_str(json_node_value_at(given, i));
        OWN(buf_done) struct buf coded = BUF_INIT(text.n * 2 + 8);

        if (str_base64_encode(text, &coded, &e) == 0)
            json_node_set_span(default_object_at(root, "data"), json_node_name_at(given, i),
                               json_edit_str(ed, buf_span(&coded)));
    }
    json_node_remove(root, "stringData");
}

static void default_service(struct json_node *root)
{
    struct json_node *spec = json_node_get(root, "spec");
    struct json_node *ports = json_node_get(spec, "ports");
    struct json_edit *ed = json_node_edit(root);
    struct span type = json_node_str(json_node_get(spec, "type"));
    struct span ip = json_node_str(json_node_get(spec, "clusterIP"));
    int64_t n;

    for (size_t i = 0; i < json_node_count(ports); i++) {
        struct json_node *port = json_node_at(ports, i),
                         *target = json_node_get(port, "targetPort");

        if ((json_node_i64(target, &n) && n == 0) ||
            (json_node_type(target) == JSON_STRING && json_node_str(target).n == 0))
            json_node_set(port, "targetPort", json_node_copy(ed, json_node_get(port, "port")));
    }
    if (span_is(json_node_str(json_node_get(spec, "sessionAffinity")), "ClientIP") &&
        !json_node_get(spec, "sessionAffinityConfig"))
        json_node_set(spec, "sessionAffinityConfig",
                      default_text_node(ed, "{\"clientIP\":{\"timeoutSeconds\":10800}}"));
    if (!span_is(type, "ExternalName"))
        default_text_at(spec, "internalTrafficPolicy", "Cluster");
    if (span_is(type, "NodePort") || span_is(type, "LoadBalancer"))
        default_text_at(spec, "externalTrafficPolicy", "Cluster");
    if (span_is(type, "LoadBalancer") && !json_node_get(spec, "allocateLoadBalancerNodePorts"))
        json_node_set(spec, "allocateLoadBalancerNodePorts", json_edit_bool(ed, true));
    /* The two spellings of one address. */
    if (ip.n && !json_node_get(spec, "clusterIPs")) {
        struct json_node *list = json_edit_array(ed);

        json_node_append(list, json_edit_str(ed, ip));
        json_node_set(spec, "clusterIPs", list);
    }
}

static void default_network_policy(struct json_node *root)
{
    struct json_node *spec = json_node_get(root, "spec");

    if (!json_node_get(spec, "policyTypes"))
        json_node_set(spec, "policyTypes",
                      default_text_node(json_node_edit(root), json_node_get(spec, "egress")
                                                                  ? "[\"Ingress\",\"Egress\"]"
                                                                  : "[\"Ingress\"]"));
}

static void default_binding(struct json_node *root)
{
    struct json_node *subjects = json_node_get(root, "subjects");

    for (size_t i = 0; i < json_node_count(subjects); i++) {
        struct json_node *subject = json_node_at(subjects, i);
        struct span kind = json_node_str(json_node_get(subject, "kind"));

        if (span_is(kind, "User") || span_is(kind, "Group"))
            default_text_at(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}

static void default_deployment(struct json_node *root)
{
    struct json_node *strategy = json_node_get(json_node_get(root, "spec"), "strategy");

    if (span_is(json_node_str(json_node_get(strategy, "type")), "RollingUpdate")) {
        struct json_node *rolling = default_object_at(strategy, "rollingUpdate");

        default_text_at(rolling, "maxUnavailable", "25%");
        default_text_at(rolling, "maxSurge", "25%");
    }
    default_pod_spec(json_node_get(json_node_get(json_node_get(root, "spec"), "template"), "spec"),
                     false);
}

static void default_replica_set(struct json_node *root)
{
    default_pod_spec(json_node_get(json_node_get(json_node_get(root, "spec"), "template"), "spec"),
                     false);
}

static void default_pod(struct json_node *root)
{
    default_pod_spec(json_node_get(root, "spec"), true);
}

/* The label every namespace is found by. */
static void default_namespace(struct json_node *root)
{
    struct json_node *meta = default_object_at(root, "metadata");
    struct span name = json_node_str(json_node_get(meta, "name"));

    if (name.n)
        json_node_set(default_object_at(meta, "labels"), "kubernetes.io/metadata.name",
                      json_edit_str(json_node_edit(root), name));
}

static void default_definition(struct json_node *root)
{
    struct json_node *names = json_node_get(json_node_get(root, "spec"), "names");
    struct span kind = json_node_str(json_node_get(names, "kind"));
    OWN(buf_done) struct buf text = BUF_INIT(256);
    struct err e;

    if (kind.n > 200)
        return;
    for (size_t i = 0; i < kind.n; i++)
        /* Fits: 200 bytes at most. */
        (void)buf_addc(
            &text, (uint8_t)(kind.p[i] >= 'A' && kind.p[i] <= 'Z' ? kind.p[i] | 0x20 : kind.p[i]),
            &e);
    default_text_at(names, "singular", buf_cstr(&text));
    buf_clear(&text);
    /* Fits: 200 bytes at most. */
    (void)buf_addf(&text, &e, "%.*sList", SPAN_ARG(kind));
    default_text_at(names, "listKind", buf_cstr(&text));
}

static void created_namespace(struct json_node *root)
{
    struct json_edit *ed = json_node_edit(root);

    struct json_node *list = json_node_get(json_node_get(root, "spec"), "finalizers");
    bool has_ours = false;

    for (size_t i = 0; i < json_node_count(list); i++)
        has_ours |= span_is(json_node_str(json_node_at(list, i)), "kubernetes");
    if (json_node_type(list) != JSON_ARRAY)
        json_node_set(root, "spec", default_text_node(ed, "{\"finalizers\":[\"kubernetes\"]}"));
    else if (!has_ours)
        json_node_append(list, json_edit_cstr(ed, "kubernetes"));
    json_node_set(root, "status", default_text_node(ed, "{\"phase\":\"Active\"}"));
}

static void created_claim(struct json_node *root)
{
    struct json_node *meta = default_object_at(root, "metadata");
    struct json_edit *ed = json_node_edit(root);

    json_node_set(root, "status", default_text_node(ed, "{\"phase\":\"Pending\"}"));
    if (!json_node_get(meta, "finalizers"))
        json_node_set(meta, "finalizers",
                      default_text_node(ed, "[\"kubernetes.io/pvc-protection\"]"));
}

static bool has_addresses(struct json_node *spec)
{
    return !span_is(json_node_str(json_node_get(spec, "type")), "ExternalName");
}

static void keep_addresses(struct json_node *root, struct json_node *was)
{
    static const char *const members[] = { "clusterIP", "clusterIPs", "ipFamilies",
                                           "ipFamilyPolicy", "healthCheckNodePort" };
    struct json_node *now = json_node_get(root, "spec"), *old = json_node_get(was, "spec");

    EACH(member, members) {
        struct json_node *kept = json_node_get(old, *member);

        if (kept && !json_node_get(now, *member) && has_addresses(now) && has_addresses(old))
            json_node_set(now, *member, json_node_copy(json_node_edit(root), kept));
    }
}

/* Who holds a Namespace is changed by its finalize alone. */
static void keep_finalizers(struct json_node *root, struct json_node *was)
{
    struct json_edit *ed = json_node_edit(root);
    struct json_node *list = json_node_get(json_node_get(was, "spec"), "finalizers");

    if (list)
        json_node_set(default_object_at(root, "spec"), "finalizers", json_node_copy(ed, list));
    else
        (void)json_node_remove(json_node_get(root, "spec"), "finalizers");
}

void default_updated(const struct kind *k, struct json_node *root, struct json_node *was)
{
    if (strcmp(k->plural, "services") == 0 && !k->group[0] && !default_is_kept(root, was, "spec"))
        keep_addresses(root, was);
    if (strcmp(k->plural, "namespaces") == 0 && !k->group[0])
        keep_finalizers(root, was);
}

/* What follows the table, kind by kind. */
static const struct rule {
    const char *group, *plural;
    void (*fill)(struct json_node *root);    /* on every write; or NULL */
    void (*created)(struct json_node *root); /* when it is made; or NULL */
    const char *of; /* the one member that `fill` looks at; NULL: more than one */
} rules[] = {
    { "", "pods", default_pod, default_pod_created, "spec" },
    { "", "secrets", default_secret, NULL, NULL },
    { "", "services", default_service, NULL, "spec" },
    { "", "namespaces", default_namespace, created_namespace, NULL },
    { "", "persistentvolumeclaims", NULL, created_claim, NULL },
    { "apps", "deployments", default_deployment, NULL, "spec" },
    { "apps", "replicasets", default_replica_set, NULL, "spec" },
    { "networking.k8s.io", "networkpolicies", default_network_policy, NULL, "spec" },
    { "rbac.authorization.k8s.io", "rolebindings", default_binding, NULL, "subjects" },
    { "rbac.authorization.k8s.io", "clusterrolebindings", default_binding, NULL, "subjects" },
    { "apiextensions.k8s.io", "customresourcedefinitions", default_definition, NULL, "spec" },
};

static const struct rule *rule_of(const struct kind *k)
{
    EACH(r, rules) {
        if (strcmp(r->plural, k->plural) == 0 && strcmp(r->group, k->group) == 0)
            return r;
    }
    return NULL;
}

int default_object(const struct kind *k, const struct kind_version *v, struct json_node *root,
                   struct err *e)
{
    return default_changed(k, v, root, NULL, e);
}

int default_changed(const struct kind *k, const struct kind_version *v, struct json_node *root,
                    struct json_node *was, struct err *e)
{
    const struct rule *rule = rule_of(k);

    if (v->type->is_custom)
        default_custom(v->type, root, was);
    else
        normal_members(v->type, root, was);
    if (rule && rule->fill && !(rule->of && default_is_kept(root, was, rule->of)))
        rule->fill(root);
    return finish(root, e);
}

void default_created(const struct kind *k, struct json_node *root)
{
    const struct rule *rule = rule_of(k);

    if (rule && rule->created)
        rule->created(root);
}
