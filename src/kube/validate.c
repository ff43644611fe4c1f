#include "kube/validate.h"

#include "kube/validate_parts.h"

#include <string.h>

static enum names_rule name_rule(const struct kind *k)
{
    return k->traits & (KIND_DNS_LABEL | KIND_DNS_1035) ? NAMES_DNS_LABEL
           : k->traits & KIND_PATH_NAME                 ? NAMES_PATH_SEGMENT
                                                        : NAMES_DNS_SUBDOMAIN;
}

static void check_names(const struct validation *v, struct causes *c, const struct json *meta)
{
    const struct field_path *at = AT(NULL, "metadata");
    const struct json *name = json_get(meta, "name"), *prefix = json_get(meta, "generateName");
    const struct json *space = json_get(meta, "namespace");
    enum names_rule rule = name_rule(v->kind);
    struct names_faults faults;

    if (valid_has_text(prefix) && !names_check_prefix(rule, json_str(prefix), &faults))
        for (unsigned i = 0; i < faults.n; i++)
            causes_add_text(c, CAUSE_INVALID, AT(at, "generateName"), json_str(prefix), "%s",
                            faults.text[i]);
    if (!valid_has_text(name))
        causes_add(c, CAUSE_REQUIRED, AT(at, "name"), NULL, "name or generateName is required");
    else
        (void)valid_name(c, AT(at, "name"), name, rule);
    if (kind_is_namespaced(v->kind) && !valid_has_text(space))
        causes_add(c, CAUSE_REQUIRED, AT(at, "namespace"), NULL, NULL);
    else if (kind_is_namespaced(v->kind))
        (void)valid_name(c, AT(at, "namespace"), space, NAMES_DNS_LABEL);
    else if (valid_has_text(space))
        causes_add(c, CAUSE_FORBIDDEN, AT(at, "namespace"), NULL, "not allowed on this type");
}

/* Keys are judged without regard to case, as they always were. */
static void check_annotation(struct causes *c, const struct field_path *at, struct span key)
{
    OWN(buf_done) struct buf low = BUF_INIT(key.n + 1);
    struct names_faults faults;
    struct err e;

    if (names_check(NAMES_LABEL_KEY, key, &faults))
        return; /* nearly all */
    for (size_t i = 0; i < key.n; i++)
        /* Sized for all of it. */
        (void)buf_addc(
            &low, (uint8_t)(key.p[i] >= 'A' && key.p[i] <= 'Z' ? key.p[i] | 0x20 : key.p[i]), &e);
    if (names_check(NAMES_LABEL_KEY, buf_span(&low), &faults))
        return;
    for (unsigned i = 0; i < faults.n; i++)
        causes_add_text(c, CAUSE_INVALID, at, key, "%s", faults.text[i]);
}

static void check_annotations(struct causes *c, const struct json *meta)
{
    const struct field_path *at = AT(AT(NULL, "metadata"), "annotations");
    size_t total = 0;

    JSON_MEMBERS(name, value, json_get(meta, "annotations"))
    {
        check_annotation(c, at, json_str(name));
        total += json_str(name).n + json_str(value).n;
    }
    if (total > VALIDATE_ANNOTATIONS_MAX_BYTES)
        causes_add(c, CAUSE_TOO_LONG, at, NULL, "may not be more than %d bytes",
                   VALIDATE_ANNOTATIONS_MAX_BYTES);
}

static void check_owner(struct causes *c, const struct json *owner)
{
    static const char *const members[] = { "kind", "name", "uid" };
    const struct field_path *at = AT(AT(NULL, "metadata"), "ownerReferences");
    struct span version = json_str(json_get(owner, "apiVersion"));

    if (!version.n || span_ends(version, "/"))
        causes_add_text(c, CAUSE_INVALID, AT(at, "apiVersion"), version,
                        "version must not be empty");
    EACH(member, members) {
        if (!valid_has_text(json_get(owner, *member)))
            causes_add_text(c, CAUSE_INVALID, AT(at, *member), SPAN(""), "must not be empty");
    }
}

static void check_owners(struct causes *c, const struct json *meta)
{
    const struct field_path *at = AT(AT(NULL, "metadata"), "ownerReferences");
    const struct json *list = json_get(meta, "ownerReferences"), *first = NULL;

    JSON_EACH(owner, list)
    {
        bool is_controller = false;

        check_owner(c, owner);
        (void)json_bool(json_get(owner, "controller"), &is_controller);
        if (is_controller && first)
            causes_add(c, CAUSE_INVALID, at, list,
                       "Only one reference can have Controller set to true. Found \"true\" in "
                       "references for %.*s/%.*s and %.*s/%.*s",
                       SPAN_ARG(json_str(json_get(first, "kind"))),
                       SPAN_ARG(json_str(json_get(first, "name"))),
                       SPAN_ARG(json_str(json_get(owner, "kind"))),
                       SPAN_ARG(json_str(json_get(owner, "name"))));
        if (is_controller && !first)
            first = owner;
    }
}

static void check_finalizers(const struct validation *v, struct causes *c, const struct json *meta)
{
    static const char *const standard[] = { "foregroundDeletion", "orphan", "kubernetes", NULL };
    const struct field_path *at = AT(AT(NULL, "metadata"), "finalizers");
    size_t i = 0;

    JSON_EACH(finalizer, json_get(meta, "finalizers"))
    {
        struct span text = json_str(finalizer);

        (void)valid_name(c, at, finalizer, NAMES_LABEL_KEY);
        if (!(v->kind->traits & KIND_CUSTOM) && span_find(text, '/') == SIZE_MAX &&
            !valid_is_one_of(text, standard))
            causes_add(c, CAUSE_INVALID, AT_INDEX(at, i), finalizer,
                       "name is neither a standard finalizer name nor is it fully qualified");
        i++;
    }
}

/* What an update may not touch. The server stamps most of it back before; this is for what it does not. */
static void check_kept(struct causes *c, const struct json *now, const struct json *was)
{
    static const char *const members[] = { "name",
                                           "namespace",
                                           "uid",
                                           "creationTimestamp",
                                           "deletionTimestamp",
                                           "deletionGracePeriodSeconds" };

    EACH(member, members) {
        valid_unchanged(c, AT(AT(NULL, "metadata"), *member), json_get(now, *member),
                        json_get(was, *member));
    }
}

static void check_meta(const struct validation *v, struct causes *c)
{
    const struct json *meta = object_meta(v->object);

    check_names(v, c, meta);
    valid_not_negative(c, AT(AT(NULL, "metadata"), "generation"), json_get(meta, "generation"));
    valid_labels(c, AT(AT(NULL, "metadata"), "labels"), json_get(meta, "labels"));
    check_annotations(c, meta);
    check_owners(c, meta);
    check_finalizers(v, c, meta);
    if (v->old)
        check_kept(c, meta, object_meta(v->old));
}

static const struct rule {
    const char *group, *plural;
    void (*check)(const struct validation *v, struct causes *c);
    bool is_wide; /* it looks at metadata or status, too */
} rules[] = {
    { "", "pods", validate_pod },
    { "", "services", validate_service },
    { "", "configmaps", validate_config_map },
    { "", "secrets", validate_secret, true },
    { "", "persistentvolumeclaims", validate_volume_claim },
    { "", "resourcequotas", validate_quota, true },
    { "", "nodes", validate_node, true },
    { "", "events", validate_event },
    { "events.k8s.io", "events", validate_event },
    { "coordination.k8s.io", "leases", validate_lease },
    { "storage.k8s.io", "storageclasses", validate_storage_class },
    { "node.k8s.io", "runtimeclasses", validate_runtime_class },
    { "discovery.k8s.io", "endpointslices", validate_endpoint_slice },
    { "networking.k8s.io", "networkpolicies", validate_network_policy },
    { "apps", "deployments", validate_deployment },
    { "apps", "replicasets", validate_replica_set },
    { "policy", "poddisruptionbudgets", validate_budget },
    { "rbac.authorization.k8s.io", "roles", validate_role },
    { "rbac.authorization.k8s.io", "clusterroles", validate_role },
    { "rbac.authorization.k8s.io", "rolebindings", validate_binding },
    { "rbac.authorization.k8s.io", "clusterrolebindings", validate_binding },
    { "apiextensions.k8s.io", "customresourcedefinitions", validate_definition },
    { "authorization.k8s.io", "subjectaccessreviews", validate_access_review },
    { "authorization.k8s.io", "selfsubjectaccessreviews", validate_access_review },
    { "authorization.k8s.io", "localsubjectaccessreviews", validate_access_review },
};

/* What it looks at is as it was, and passed then. */
static bool is_passed(const struct rule *r, const struct validation *v)
{
    static const char *const others[] = { "metadata", "status", NULL };

    return v->old && !r->is_wide && object_differs_only(v->old, v->object, others);
}

void validate_object(const struct validation *v, struct causes *c)
{
    if (!(v->kind->traits & KIND_REVIEW))
        check_meta(v, c);
    if (v->kind->traits & KIND_CUSTOM) {
        validate_rules(v, c);
        return;
    }
    EACH(r, rules) {
        if (strcmp(r->plural, v->kind->plural) == 0 && strcmp(r->group, v->kind->group) == 0 &&
            !is_passed(r, v))
            r->check(v, c);
    }
}
