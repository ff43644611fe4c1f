/* The rules of a ResourceQuota. */
#include "kube/quantity.h"
#include "kube/validate_parts.h"

static const char *const objects[] = { "pods",
                                       "services",
                                       "services.nodeports",
                                       "services.loadbalancers",
                                       "replicationcontrollers",
                                       "resourcequotas",
                                       "secrets",
                                       "configmaps",
                                       "persistentvolumeclaims",
                                       NULL };
static const char *const amounts[] = { "cpu",
                                       "memory",
                                       "ephemeral-storage",
                                       "requests.cpu",
                                       "requests.memory",
                                       "requests.ephemeral-storage",
                                       "limits.cpu",
                                       "limits.memory",
                                       "limits.ephemeral-storage",
                                       "requests.storage",
                                       NULL };
static const char *const scopes[] = { "BestEffort", "NotBestEffort", "NotTerminating",
                                      "Terminating", NULL };

static bool is_standard(struct span name)
{
    return valid_is_one_of(name, objects) || valid_is_one_of(name, amounts) ||
           span_starts(name, "hugepages-") || span_starts(name, "requests.hugepages-");
}

static bool is_whole(struct span name)
{
    return valid_is_one_of(name, objects) ||
           (span_find(name, '/') != SIZE_MAX && !span_starts(name, "requests.") &&
            span_find_str(name, SPAN("kubernetes.io/")) == SIZE_MAX);
}

static void check_amount(struct causes *c, const struct field_path *at, const struct json *name,
                         const struct json *value)
{
    struct quantity q;

    if (valid_name(c, at, name, NAMES_LABEL_KEY) && span_find(json_str(name), '/') == SIZE_MAX) {
        if (!is_standard(json_str(name)) && !span_is(json_str(name), "storage"))
            causes_add(c, CAUSE_INVALID, at, name,
                       "must be a standard resource type or fully qualified");
        if (!is_standard(json_str(name)))
            causes_add(c, CAUSE_INVALID, at, name, "must be a standard resource for quota");
    }
    if (!quantity_parse(json_str(value), &q))
        return;
    if (q.nano < 0)
        causes_add(c, CAUSE_INVALID, at, value, "must be greater than or equal to 0");
    if (is_whole(json_str(name)) && !quantity_is_whole(&q))
        causes_add(c, CAUSE_INVALID, at, value, "must be an integer");
}

static void check_amounts(struct causes *c, const struct field_path *at, const struct json *list)
{
    JSON_MEMBERS(name, value, list)
    {
        check_amount(c, AT_KEY(at, json_str(name)), name, value);
    }
}

/* Pods are in scopes; what is best effort asks for nothing that could be added up. */
static bool is_of_scope(struct span scope, struct span resource)
{
    if (!is_standard(resource) || span_is(resource, "pods"))
        return true;
    return !span_is(scope, "BestEffort") && valid_is_one_of(resource, amounts) &&
           !span_is(resource, "requests.storage");
}

static bool has(const struct json *list, const char *wanted)
{
    JSON_EACH(item, list)
    {
        if (span_is(json_str(item), wanted))
            return true;
    }
    return false;
}

static void check_scopes(struct causes *c, const struct json *spec)
{
    const struct field_path *at = AT(AT(NULL, "spec"), "scopes");
    const struct json *list = json_get(spec, "scopes");

    if (!valid_count(c, at, list))
        return;
    JSON_EACH(scope, list)
    {
        if (!valid_is_one_of(json_str(scope), scopes))
            causes_add(c, CAUSE_INVALID, at, list, "unsupported scope");
        JSON_MEMBERS(name, value, json_get(spec, "hard"))
        {
            (void)value;
            if (!is_of_scope(json_str(scope), json_str(name)))
                causes_add(c, CAUSE_INVALID, at, list, "unsupported scope applied to resource");
        }
    }
    if ((has(list, "BestEffort") && has(list, "NotBestEffort")) ||
        (has(list, "Terminating") && has(list, "NotTerminating")))
        causes_add(c, CAUSE_INVALID, at, list, "conflicting scopes");
}

void validate_quota(const struct validation *v, struct causes *c)
{
    const struct json *spec = object_member(v->object, "spec");
    const struct json *status = object_member(v->object, "status");

    check_amounts(c, AT(AT(NULL, "spec"), "hard"), json_get(spec, "hard"));
    check_scopes(c, spec);
    if (json_type(json_get(spec, "scopeSelector")) == JSON_OBJECT)
        causes_add(c, CAUSE_FORBIDDEN, AT(AT(NULL, "spec"), "scopeSelector"), NULL,
                   "is not served here; name the scopes in spec.scopes");
    check_amounts(c, AT(AT(NULL, "status"), "hard"), json_get(status, "hard"));
    check_amounts(c, AT(AT(NULL, "status"), "used"), json_get(status, "used"));
    if (v->old)
        valid_unchanged(c, AT(AT(NULL, "spec"), "scopes"), json_get(spec, "scopes"),
                        json_get(object_member(v->old, "spec"), "scopes"));
}
