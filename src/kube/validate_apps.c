/* Workloads, policies, access and definitions. */
#include "kube/validate_parts.h"

#include <string.h>

/* Labels that a selector's matchLabels want. Expressions are judged by the selector itself. */
static bool selects(const struct json *selector, const struct json *labels)
{
    JSON_MEMBERS(name, value, json_get(selector, "matchLabels"))
    {
        if (!valid_same(json_get_span(labels, json_str(name)), value))
            return false;
    }
    return true;
}

/* The pod template of a workload, with the selector that must find its pods. */
static void check_template(const struct validation *v, struct causes *c)
{
    static const char *const always[] = { "Always", NULL };
    const struct json *spec = object_member(v->object, "spec");
    const struct json *selector = json_get(spec, "selector"),
                      *template = json_get(spec, "template");
    const struct json *labels = json_get(json_get(template, "metadata"), "labels");
    const struct json *pod = json_get(template, "spec");
    const struct field_path *at = AT(NULL, "spec"), *template_at = AT(at, "template");
    bool is_empty = !json_count(json_get(selector, "matchLabels")) &&
                    !json_count(json_get(selector, "matchExpressions"));

    valid_not_negative(c, AT(at, "replicas"), json_get(spec, "replicas"));
    if (!selector || json_is_null(selector)) {
        causes_add(c, CAUSE_REQUIRED, AT(at, "selector"), NULL, NULL);
    } else {
        valid_label_selector(c, AT(at, "selector"), selector);
        if (is_empty)
            causes_add(c, CAUSE_INVALID, AT(at, "selector"), selector,
                       "empty selector is invalid for deployment");
    }
    if (!selector || json_is_null(selector) || !selects(selector, labels)) {
        const struct field_path *labels_at = AT(AT(template_at, "metadata"), "labels");

        if (labels)
            causes_add(c, CAUSE_INVALID, labels_at, labels,
                       "`selector` does not match template `labels`");
        else
            causes_add_shown(c, CAUSE_INVALID, labels_at, "null",
                             "`selector` does not match template `labels`");
    }
    valid_labels(c, AT(AT(template_at, "metadata"), "labels"), labels);
    validate_pod_spec(c, AT(template_at, "spec"), pod);
    valid_one_of(c, AT(AT(template_at, "spec"), "restartPolicy"), json_get(pod, "restartPolicy"),
                 always);
    if (json_get(pod, "activeDeadlineSeconds"))
        causes_add(c, CAUSE_FORBIDDEN, AT(AT(template_at, "spec"), "activeDeadlineSeconds"), NULL,
                   "activeDeadlineSeconds in ReplicaSet is not Supported");
    if (v->old)
        valid_unchanged(c, AT(at, "selector"), selector, object_at(v->old, "spec.selector"));
}

static bool is_zero(const struct json *v)
{
    int64_t n = 1;

    return (json_i64(v, &n) && n == 0) || span_is(json_str(v), "0%");
}

static void check_strategy(struct causes *c, const struct json *strategy)
{
    static const char *const types[] = { "Recreate", "RollingUpdate", NULL };
    const struct field_path *at = AT(AT(NULL, "spec"), "strategy");
    const struct json *rolling = json_get(strategy, "rollingUpdate"),
                      *type = json_get(strategy, "type");
    const struct json *gone = json_get(rolling, "maxUnavailable");

    if (valid_has_text(type) && !valid_is_one_of(json_str(type), types))
        causes_add_unsupported(c, at, type, types);
    if (span_is(json_str(type), "Recreate") && rolling)
        causes_add(c, CAUSE_FORBIDDEN, AT(at, "rollingUpdate"), NULL,
                   "may not be specified when strategy `type` is 'Recreate'");
    if (span_is(json_str(type), "RollingUpdate") && is_zero(gone) &&
        is_zero(json_get(rolling, "maxSurge")))
        causes_add(c, CAUSE_INVALID, AT(AT(at, "rollingUpdate"), "maxUnavailable"), gone,
                   "may not be 0 when `maxSurge` is 0");
}

void validate_deployment(const struct validation *v, struct causes *c)
{
    const struct json *spec = object_member(v->object, "spec");
    const struct field_path *at = AT(NULL, "spec");

    check_template(v, c);
    check_strategy(c, json_get(spec, "strategy"));
    valid_not_negative(c, AT(at, "minReadySeconds"), json_get(spec, "minReadySeconds"));
    valid_not_negative(c, AT(at, "revisionHistoryLimit"), json_get(spec, "revisionHistoryLimit"));
    valid_not_negative(c, AT(at, "progressDeadlineSeconds"),
                       json_get(spec, "progressDeadlineSeconds"));
}

void validate_replica_set(const struct validation *v, struct causes *c)
{
    check_template(v, c);
    valid_not_negative(c, AT(AT(NULL, "spec"), "minReadySeconds"),
                       object_at(v->object, "spec.minReadySeconds"));
}

/* A number that is not negative, or a percentage. */
static void check_share(struct causes *c, const struct field_path *at, const struct json *v)
{
    struct span text = json_str(v);
    bool is_percent = text.n > 1 && text.p[text.n - 1] == '%';

    for (size_t i = 0; is_percent && i + 1 < text.n; i++)
        is_percent = text.p[i] >= '0' && text.p[i] <= '9';
    if (json_type(v) == JSON_STRING && !is_percent)
        causes_add(
            c, CAUSE_INVALID, at, v,
            "a valid percent string must be a numeric string followed by an ending '%%' (e.g. '1%%',  or "
            "'93%%', regex used for validation is '[0-9]+%%')");
    valid_not_negative(c, at, v);
}

/* The public server shows its own struct. */
static void both_set(struct causes *c, const struct json *spec)
{
    static const char *const members[][2] = { { "MinAvailable", "minAvailable" },
                                              { "Selector", "selector" },
                                              { "MaxUnavailable", "maxUnavailable" },
                                              { "UnhealthyPodEvictionPolicy",
                                                "unhealthyPodEvictionPolicy" } };
    OWN(buf_done) struct buf shown = BUF_INIT(4096);
    struct json_out o;
    struct err e;

    json_out_init(&o, &shown, 0);
    json_out_object_begin(&o);
    EACH(member, members) {
        json_out_key(&o, (*member)[0]), json_out_value(&o, json_get(spec, (*member)[1]));
    }
    json_out_object_end(&o);
    causes_add_shown(c, CAUSE_INVALID, AT(NULL, "spec"),
                     json_out_end(&o, &e) < 0 ? "{...}" : buf_cstr(&shown),
                     "minAvailable and maxUnavailable cannot be both set");
}

void validate_budget(const struct validation *v, struct causes *c)
{
    static const char *const policies[] = { "AlwaysAllow", "IfHealthyBudget", NULL };
    const struct json *spec = object_member(v->object, "spec");
    const struct field_path *at = AT(NULL, "spec");
    const struct json *min = json_get(spec, "minAvailable"),
                      *max = json_get(spec, "maxUnavailable");

    if (min && max)
        both_set(c, spec);
    check_share(c, AT(at, "minAvailable"), min);
    check_share(c, AT(at, "maxUnavailable"), max);
    valid_label_selector(c, AT(at, "selector"), json_get(spec, "selector"));
    valid_one_of(c, AT(at, "unhealthyPodEvictionPolicy"),
                 json_get(spec, "unhealthyPodEvictionPolicy"), policies);
}

static void check_policy_ports(struct causes *c, const struct field_path *at,
                               const struct json *ports)
{
    static const char *const protocols[] = { "TCP", "UDP", "SCTP", NULL };
    size_t i = 0;

    JSON_EACH(port, ports)
    {
        const struct field_path *here = AT_INDEX(at, i);
        const struct json *number = json_get(port, "port"), *end = json_get(port, "endPort");
        int64_t from, to;

        valid_one_of(c, AT(here, "protocol"), json_get(port, "protocol"), protocols);
        valid_port(c, AT(here, "port"), number);
        if (end && !number)
            causes_add(c, CAUSE_INVALID, AT(here, "endPort"), end,
                       "may not be specified when `port` is not specified");
        else if (json_i64(end, &to) && json_i64(number, &from) && to < from)
            causes_add(c, CAUSE_INVALID, AT(here, "endPort"), end,
                       "must be greater than or equal to `port`");
        i++;
    }
}

static void check_peer(struct causes *c, const struct field_path *at, const struct json *peer)
{
    const struct json *block = json_get(peer, "ipBlock");
    bool has_selector = json_get(peer, "podSelector") || json_get(peer, "namespaceSelector");
    size_t i = 0;

    valid_label_selector(c, AT(at, "podSelector"), json_get(peer, "podSelector"));
    valid_label_selector(c, AT(at, "namespaceSelector"), json_get(peer, "namespaceSelector"));
    if (block) {
        (void)valid_cidr(c, AT(AT(at, "ipBlock"), "cidr"), json_get(block, "cidr"));
        JSON_EACH(hole, json_get(block, "except"))
        {
            (void)valid_cidr(c, AT_INDEX(AT(AT(at, "ipBlock"), "except"), i), hole);
            i++;
        }
    }
    if (block && has_selector)
        causes_add(c, CAUSE_FORBIDDEN, at, NULL, "may not specify both ipBlock and another peer");
    if (!block && !has_selector)
        causes_add(c, CAUSE_REQUIRED, at, NULL, "must specify a peer");
}

void validate_network_policy(const struct validation *v, struct causes *c)
{
    static const char *const types[] = { "Ingress", "Egress", NULL };
    static const char *const ways[][2] = { { "ingress", "from" }, { "egress", "to" } };
    const struct json *spec = object_member(v->object, "spec");
    const struct field_path *at = AT(NULL, "spec");
    size_t i = 0;

    valid_label_selector(c, AT(at, "podSelector"), json_get(spec, "podSelector"));
    EACH(way, ways) {
        i = 0;
        JSON_EACH(rule, json_get(spec, (*way)[0]))
        {
            const struct field_path *here = AT_INDEX(AT(at, (*way)[0]), i);
            size_t j = 0;

            check_policy_ports(c, AT(here, "ports"), json_get(rule, "ports"));
            JSON_EACH(peer, json_get(rule, (*way)[1]))
            {
                check_peer(c, AT_INDEX(AT(here, (*way)[1]), j), peer);
                j++;
            }
            i++;
        }
    }
    i = 0;
    JSON_EACH(type, json_get(spec, "policyTypes"))
    {
        valid_one_of(c, AT_INDEX(AT(at, "policyTypes"), i), type, types);
        i++;
    }
}

static void check_rule(struct causes *c, const struct field_path *at, const struct json *rule,
                       bool is_namespaced)
{
    const struct json *urls = json_get(rule, "nonResourceURLs");

    if (!json_count(json_get(rule, "verbs")))
        causes_add(c, CAUSE_REQUIRED, AT(at, "verbs"), NULL,
                   "verbs must contain at least one value");
    if (json_count(urls)) {
        if (is_namespaced)
            causes_add(c, CAUSE_INVALID, AT(at, "nonResourceURLs"), urls,
                       "namespaced rules cannot apply to non-resource URLs");
        if (json_count(json_get(rule, "apiGroups")) || json_count(json_get(rule, "resources")) ||
            json_count(json_get(rule, "resourceNames")))
            causes_add(c, CAUSE_INVALID, AT(at, "nonResourceURLs"), urls,
                       "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    if (!json_count(json_get(rule, "apiGroups")))
        causes_add(c, CAUSE_REQUIRED, AT(at, "apiGroups"), NULL,
                   "resource rules must supply at least one api group");
    if (!json_count(json_get(rule, "resources")))
        causes_add(c, CAUSE_REQUIRED, AT(at, "resources"), NULL,
                   "resource rules must supply at least one resource");
}

void validate_role(const struct validation *v, struct causes *c)
{
    size_t i = 0;

    JSON_EACH(rule, object_member(v->object, "rules"))
    {
        check_rule(c, AT_INDEX(AT(NULL, "rules"), i), rule, kind_is_namespaced(v->kind));
        i++;
    }
}

static void check_subject(struct causes *c, const struct field_path *at, const struct json *subject,
                          bool is_namespaced)
{
    static const char *const kinds[] = { "ServiceAccount", "User", "Group", NULL };
    static const char *const rbac[] = { "rbac.authorization.k8s.io", NULL };
    static const char *const core[] = { "", NULL };
    struct span kind = json_str(json_get(subject, "kind"));
    const struct json *name = json_get(subject, "name"), *group = json_get(subject, "apiGroup");

    (void)valid_need_text(c, AT(at, "name"), name);
    if (!valid_is_one_of(kind, kinds)) {
        causes_add_unsupported(c, AT(at, "kind"), json_get(subject, "kind"), kinds);
        return;
    }
    if (!span_is(kind, "ServiceAccount")) {
        if (!valid_is_one_of(json_str(group), rbac))
            causes_add_unsupported(c, AT(at, "apiGroup"), group, rbac);
        return;
    }
    valid_name_if(c, AT(at, "name"), name, NAMES_DNS_SUBDOMAIN);
    if (valid_has_text(group))
        causes_add_unsupported(c, AT(at, "apiGroup"), group, core);
    if (!is_namespaced)
        (void)valid_need_text(c, AT(at, "namespace"), json_get(subject, "namespace"));
}

void validate_binding(const struct validation *v, struct causes *c)
{
    static const char *const rbac[] = { "rbac.authorization.k8s.io", NULL };
    static const char *const roles[] = { "Role", "ClusterRole", NULL };
    const struct json *role = object_member(v->object, "roleRef");
    const struct field_path *at = AT(NULL, "roleRef");
    const char *const *kinds = roles + !kind_is_namespaced(v->kind);
    size_t i = 0;

    if (!valid_is_one_of(json_str(json_get(role, "apiGroup")), rbac))
        causes_add_unsupported(c, AT(at, "apiGroup"), json_get(role, "apiGroup"), rbac);
    if (!valid_is_one_of(json_str(json_get(role, "kind")), kinds))
        causes_add_unsupported(c, AT(at, "kind"), json_get(role, "kind"), kinds);
    if (valid_need_text(c, AT(at, "name"), json_get(role, "name")))
        (void)valid_name(c, AT(at, "name"), json_get(role, "name"), NAMES_PATH_SEGMENT);
    JSON_EACH(subject, object_member(v->object, "subjects"))
    {
        check_subject(c, AT_INDEX(AT(NULL, "subjects"), i), subject, kind_is_namespaced(v->kind));
        i++;
    }
    if (v->old && !valid_same(role, object_member(v->old, "roleRef")))
        causes_add(c, CAUSE_INVALID, at, role, "cannot change roleRef");
}

void validate_definition(const struct validation *v, struct causes *c)
{
    static const char *const scopes[] = { "Cluster", "Namespaced", NULL };
    static const char *const names[] = { "plural", "singular", "kind", "listKind" };
    const struct json *spec = object_member(v->object, "spec"), *list = json_get(spec, "versions");
    const struct field_path *at = AT(NULL, "spec");
    struct span plural = json_str(json_get(json_get(spec, "names"), "plural"));
    struct span group = json_str(json_get(spec, "group")), name = span_cstr(object_name(v->object));
    size_t stored = 0;

    if (name.n != plural.n + 1 + group.n || !span_eq(span_slice(name, 0, plural.n), plural) ||
        !span_eq(span_skip(name, plural.n + 1), group))
        causes_add_text(c, CAUSE_INVALID, AT(AT(NULL, "metadata"), "name"), name,
                        "must be spec.names.plural+\".\"+spec.group");
    (void)valid_need_text(c, AT(at, "group"), json_get(spec, "group"));
    (void)valid_need_text(c, AT(at, "scope"), json_get(spec, "scope"));
    valid_one_of(c, AT(at, "scope"), json_get(spec, "scope"), scopes);
    JSON_EACH(version, list)
    {
        bool is_stored = false;

        (void)json_bool(json_get(version, "storage"), &is_stored);
        stored += is_stored;
    }
    if (stored != 1)
        causes_add_shown(c, CAUSE_INVALID, AT(at, "versions"), json_count(list) ? "[...]" : "[]",
                         "must have exactly one version marked as storage version");
    EACH(member, names) {
        (void)valid_need_text(c, AT(AT(at, "names"), *member),
                              json_get(json_get(spec, "names"), *member));
    }
}

void validate_access_review(const struct validation *v, struct causes *c)
{
    const struct json *spec = object_member(v->object, "spec");
    const struct json *resource = json_get(spec, "resourceAttributes"),
                      *url = json_get(spec, "nonResourceAttributes");
    const struct field_path *at = AT(NULL, "spec");
    bool is_self = strncmp(v->kind->name, "Self", 4) == 0;

    if (resource && url)
        causes_add(c, CAUSE_INVALID, AT(at, "nonResourceAttributes"), url,
                   "cannot be specified in combination with resourceAttributes");
    if (!resource && !url)
        causes_add_shown(
            c, CAUSE_INVALID, AT(at, "resourceAttributes"), "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    if (!is_self && !valid_has_text(json_get(spec, "user")) &&
        !json_count(json_get(spec, "groups")))
        causes_add_text(c, CAUSE_INVALID, AT(at, "user"), SPAN(""),
                        "at least one of user or group must be specified");
    if (strncmp(v->kind->name, "Local", 5) == 0 &&
        !span_is(json_str(json_get(resource, "namespace")), object_namespace(v->object)))
        causes_add_text(c, CAUSE_INVALID, AT(AT(at, "resourceAttributes"), "namespace"),
                        json_str(json_get(resource, "namespace")), "must match metadata.namespace");
}
