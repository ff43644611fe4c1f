/* Pods and the templates of pods. */
#include "kube/validate_parts.h"

#include <string.h>

/* An init container that ends has no life to be probed. */
static void check_init(struct causes *c, const struct field_path *at, const struct json *container)
{
    static const char *const members[] = { "lifecycle", "livenessProbe", "readinessProbe",
                                           "startupProbe" };

    if (span_is(json_str(json_get(container, "restartPolicy")), "Always"))
        return;
    EACH(member, members) {
        if (json_get(container, *member))
            causes_add(c, CAUSE_FORBIDDEN, AT(at, *member), NULL,
                       "may not be set for init containers without restartPolicy=Always");
    }
}

static bool is_name_taken(const struct json *list, struct span name, const struct json *before)
{
    JSON_EACH(container, list)
    {
        if (container == before)
            return false;
        if (name.n && span_eq(json_str(json_get(container, "name")), name))
            return true;
    }
    return false;
}

static void check_containers(struct causes *c, const struct field_path *at, const struct json *spec)
{
    const struct json *main = json_get(spec, "containers"),
                      *init = json_get(spec, "initContainers");
    size_t i = 0;

    if (!valid_count(c, AT(at, "containers"), main) ||
        !valid_count(c, AT(at, "initContainers"), init))
        return;
    if (!json_count(main))
        causes_add(c, CAUSE_REQUIRED, AT(at, "containers"), NULL, NULL);
    JSON_EACH(container, main)
    {
        const struct field_path *here = AT_INDEX(AT(at, "containers"), i);

        validate_container(c, here, container, spec);
        if (is_name_taken(main, json_str(json_get(container, "name")), container))
            causes_add(c, CAUSE_DUPLICATE, AT(here, "name"), json_get(container, "name"), NULL);
        i++;
    }
    i = 0;
    JSON_EACH(container, init)
    {
        const struct field_path *here = AT_INDEX(AT(at, "initContainers"), i);
        struct span name = json_str(json_get(container, "name"));

        validate_container(c, here, container, spec);
        check_init(c, here, container);
        if (is_name_taken(init, name, container) || is_name_taken(main, name, NULL))
            causes_add(c, CAUSE_DUPLICATE, AT(here, "name"), json_get(container, "name"), NULL);
        i++;
    }
}

static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute", NULL };

static void check_toleration(struct causes *c, const struct field_path *at, const struct json *t)
{
    static const char *const operators[] = { "Equal", "Exists", NULL };
    const struct json *key = json_get(t, "key"), *op = json_get(t, "operator");
    const struct json *value = json_get(t, "value"), *effect = json_get(t, "effect");
    bool is_exists = span_is(json_str(op), "Exists");

    valid_name_if(c, AT(at, "key"), key, NAMES_LABEL_KEY);
    if (!valid_has_text(key) && !is_exists)
        causes_add_text(
            c, CAUSE_INVALID, AT(at, "operator"), json_str(op),
            "operator must be Exists when `key` is empty, which means \"match all values and "
            "all keys\"");
    if (json_get(t, "tolerationSeconds") && !span_is(json_str(effect), "NoExecute"))
        causes_add_text(c, CAUSE_INVALID, AT(at, "effect"), json_str(effect),
                        "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (is_exists && valid_has_text(value))
        causes_add(c, CAUSE_INVALID, AT(at, "operator"), value,
                   "value must be empty when `operator` is 'Exists'");
    if (!is_exists)
        valid_name_if(c, AT(at, "operator"), value, NAMES_LABEL_VALUE);
    valid_one_of(c, AT(at, "operator"), op, operators);
    valid_one_of(c, AT(at, "effect"), effect, effects);
}

static void check_dns(struct causes *c, const struct field_path *at, const struct json *spec)
{
    static const char *const policies[] = { "ClusterFirstWithHostNet", "ClusterFirst", "Default",
                                            "None", NULL };
    const struct json *config = json_get(spec, "dnsConfig"),
                      *servers = json_get(config, "nameservers");
    const struct field_path *here = AT(AT(at, "dnsConfig"), "nameservers");
    bool is_none = span_is(json_str(json_get(spec, "dnsPolicy")), "None");
    size_t i = 0;

    valid_one_of(c, AT(at, "dnsPolicy"), json_get(spec, "dnsPolicy"), policies);
    if (is_none && !config)
        causes_add(c, CAUSE_REQUIRED, AT(at, "dnsConfig"), NULL,
                   "must provide `dnsConfig` when `dnsPolicy` is None");
    else if (is_none && !json_count(servers))
        causes_add(c, CAUSE_REQUIRED, here, NULL,
                   "must provide at least one DNS nameserver when `dnsPolicy` is None");
    if (json_count(servers) > 3)
        causes_add(c, CAUSE_INVALID, here, servers, "must not have more than 3 nameservers");
    JSON_EACH(server, servers)
    {
        (void)valid_ip(c, AT_INDEX(here, i), server);
        i++;
    }
}

static void check_aliases(struct causes *c, const struct field_path *at, const struct json *spec)
{
    size_t i = 0;

    JSON_EACH(alias, json_get(spec, "hostAliases"))
    {
        const struct field_path *here = AT_INDEX(AT(at, "hostAliases"), i);
        size_t j = 0;

        (void)valid_ip(c, AT(here, "ip"), json_get(alias, "ip"));
        JSON_EACH(name, json_get(alias, "hostnames"))
        {
            (void)valid_name(c, AT_INDEX(AT(here, "hostnames"), j), name, NAMES_DNS_SUBDOMAIN);
            j++;
        }
        i++;
    }
}

static void check_affinity(struct causes *c, const struct field_path *at,
                           const struct json *affinity)
{
    static const char *const pods[] = { "podAffinity", "podAntiAffinity" };
    const char *required = "requiredDuringSchedulingIgnoredDuringExecution";
    const struct json *node = json_get(json_get(affinity, "nodeAffinity"), required);

    if (node && !json_count(json_get(node, "nodeSelectorTerms")))
        causes_add(c, CAUSE_REQUIRED, AT(AT(AT(at, "nodeAffinity"), required), "nodeSelectorTerms"),
                   NULL, "must have at least one node selector term");
    EACH(member, pods) {
        size_t i = 0;

        JSON_EACH(term, json_get(json_get(affinity, *member), required))
        {
            const struct field_path *here = AT_INDEX(AT(AT(at, *member), required), i);

            if (!valid_has_text(json_get(term, "topologyKey")))
                causes_add(c, CAUSE_REQUIRED, AT(here, "topologyKey"), NULL, "can not be empty");
            (void)valid_name(c, AT(here, "topologyKey"), json_get(term, "topologyKey"),
                             NAMES_LABEL_KEY);
            valid_label_selector(c, AT(here, "labelSelector"), json_get(term, "labelSelector"));
            i++;
        }
    }
}

static void check_spread(struct causes *c, const struct field_path *at, const struct json *spec)
{
    static const char *const actions[] = { "DoNotSchedule", "ScheduleAnyway", NULL };
    size_t i = 0;

    JSON_EACH(rule, json_get(spec, "topologySpreadConstraints"))
    {
        const struct field_path *here = AT_INDEX(AT(at, "topologySpreadConstraints"), i);
        const struct json *action = json_get(rule, "whenUnsatisfiable");
        int64_t skew = 0;

        (void)json_i64(json_get(rule, "maxSkew"), &skew);
        if (skew <= 0)
            causes_add(c, CAUSE_INVALID, AT(here, "maxSkew"), json_get(rule, "maxSkew"),
                       "must be greater than zero");
        if (!valid_has_text(json_get(rule, "topologyKey")))
            causes_add(c, CAUSE_REQUIRED, AT(here, "topologyKey"), NULL, "can not be empty");
        if (!valid_is_one_of(json_str(action), actions))
            causes_add_unsupported(c, AT(here, "whenUnsatisfiable"), action, actions);
        i++;
    }
}

/* Names and choices that stand alone. */
static void check_plain(struct causes *c, const struct field_path *at, const struct json *spec)
{
    static const char *const restarts[] = { "Always", "OnFailure", "Never", NULL };
    static const char *const systems[] = { "linux", "windows", NULL };
    size_t i = 0;

    valid_one_of(c, AT(at, "restartPolicy"), json_get(spec, "restartPolicy"), restarts);
    valid_labels(c, AT(at, "nodeSelector"), json_get(spec, "nodeSelector"));
    valid_name_if(c, AT(at, "serviceAccountName"), json_get(spec, "serviceAccountName"),
                  NAMES_DNS_SUBDOMAIN);
    valid_name_if(c, AT(at, "nodeName"), json_get(spec, "nodeName"), NAMES_DNS_SUBDOMAIN);
    valid_range(c, AT(at, "activeDeadlineSeconds"), json_get(spec, "activeDeadlineSeconds"), 1,
                INT32_MAX);
    valid_name_if(c, AT(at, "hostname"), json_get(spec, "hostname"), NAMES_DNS_LABEL);
    valid_name_if(c, AT(at, "subdomain"), json_get(spec, "subdomain"), NAMES_DNS_LABEL);
    valid_name_if(c, AT(at, "runtimeClassName"), json_get(spec, "runtimeClassName"),
                  NAMES_DNS_SUBDOMAIN);
    valid_name_if(c, AT(at, "priorityClassName"), json_get(spec, "priorityClassName"),
                  NAMES_DNS_SUBDOMAIN);
    valid_one_of(c, AT(at, "os"), json_get(json_get(spec, "os"), "name"), systems);
    JSON_EACH(gate, json_get(spec, "readinessGates"))
    {
        (void)valid_name(c, AT(AT_INDEX(AT(at, "readinessGates"), i), "conditionType"),
                         json_get(gate, "conditionType"), NAMES_LABEL_KEY);
        i++;
    }
    i = 0;
    JSON_EACH(t, json_get(spec, "tolerations"))
    {
        check_toleration(c, AT_INDEX(AT(at, "tolerations"), i), t);
        i++;
    }
}

void validate_pod_spec(struct causes *c, const struct field_path *at, const struct json *spec)
{
    const struct json *context = json_get(spec, "securityContext");

    validate_volumes(c, at, spec);
    check_containers(c, at, spec);
    check_plain(c, at, spec);
    check_dns(c, at, spec);
    validate_ids(c, AT(at, "securityContext"), context);
    validate_profile(c, AT(at, "securityContext"), context);
    check_affinity(c, AT(at, "affinity"), json_get(spec, "affinity"));
    check_aliases(c, at, spec);
    check_spread(c, at, spec);
}

/* The members of a spec that may change, made the same on both sides. */
static struct json_node *frozen_part(struct json_edit *ed, const struct object *pod)
{
    static const char *const members[] = { "containers", "initContainers" };
    struct json_node *spec = json_edit_view(ed, object_member(pod, "spec"));

    json_node_remove(spec, "activeDeadlineSeconds");
    json_node_remove(spec, "tolerations");
    json_node_remove(spec, "schedulingGates");
    EACH(member, members) {
        struct json_node *list = json_node_get(spec, *member);

        for (size_t i = 0; i < json_node_count(list); i++)
            json_node_remove(json_node_at(list, i), "image");
    }
    return spec;
}

static void check_pod_update(const struct validation *v, struct causes *c)
{
    static const char *const members[] = { "containers", "initContainers" };
    const struct field_path *at = AT(NULL, "spec");
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    bool is_stopped = false;

    EACH(member, members) {
        if (json_count(json_get(object_member(v->object, "spec"), *member)) !=
            json_count(json_get(object_member(v->old, "spec"), *member))) {
            causes_add(c, CAUSE_FORBIDDEN, AT(at, *member), NULL,
                       "pod updates may not add or remove containers");
            is_stopped = true;
        }
    }
    if (!is_stopped && !json_node_equal(frozen_part(ed, v->object), frozen_part(ed, v->old)))
        causes_add(
            c, CAUSE_FORBIDDEN, at, NULL,
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
            "set to 1 if it was previously negative)");
}

void validate_pod(const struct validation *v, struct causes *c)
{
    const struct json *spec = object_member(v->object, "spec");
    const struct field_path *at = AT(NULL, "spec");

    validate_pod_spec(c, at, spec);
    if (!v->old && json_count(json_get(spec, "ephemeralContainers")))
        causes_add(c, CAUSE_FORBIDDEN, AT(at, "ephemeralContainers"), NULL,
                   "cannot be set on create");
    /* Subresources change what is theirs. */
    if (v->old && !v->sub)
        check_pod_update(v, c);
}
