/* One container of a pod. */
#include "kube/validate_parts.h"

#include "kube/quantity.h"

#include <string.h>

static const char *const protocols[] = { "SCTP", "TCP", "UDP", NULL };

static void check_ports(struct causes *c, const struct field_path *at, const struct json *container,
                        bool is_host)
{
    const struct json *ports = json_get(container, "ports");
    size_t i = 0;

    if (!valid_count(c, AT(at, "ports"), ports))
        return;
    JSON_EACH(port, ports)
    {
        const struct field_path *here = AT_INDEX(AT(at, "ports"), i);
        const struct json *name = json_get(port, "name"), *number = json_get(port, "containerPort");
        const struct json *host = json_get(port, "hostPort");
        int64_t n = 0, h = 0;
        size_t j = 0;

        if (valid_has_text(name) && valid_name(c, AT(here, "name"), name, NAMES_PORT)) {
            JSON_EACH(other, ports)
            {
                if (j++ == i)
                    break;
                if (span_eq(json_str(json_get(other, "name")), json_str(name))) {
                    causes_add(c, CAUSE_DUPLICATE, AT(here, "name"), name, NULL);
                    break;
                }
            }
        }
        (void)json_i64(number, &n), (void)json_i64(host, &h);
        if (n == 0)
            causes_add(c, CAUSE_REQUIRED, AT(here, "containerPort"), NULL, NULL);
        else
            valid_range(c, AT(here, "containerPort"), number, 1, 65535);
        if (h)
            valid_range(c, AT(here, "hostPort"), host, 1, 65535);
        if (is_host && h && h != n)
            causes_add(c, CAUSE_INVALID, AT(here, "hostPort"), host,
                       "must match `containerPort` when `hostNetwork` is true");
        valid_one_of(c, AT(here, "protocol"), json_get(port, "protocol"), protocols);
        i++;
    }
}

/* What a fieldRef of an environment may name. */
static bool is_env_field(struct span path)
{
    static const char *const paths[] = { "metadata.name",
                                         "metadata.namespace",
                                         "metadata.uid",
                                         "spec.nodeName",
                                         "spec.serviceAccountName",
                                         "status.hostIP",
                                         "status.hostIPs",
                                         "status.podIP",
                                         "status.podIPs",
                                         NULL };

    return valid_is_one_of(path, paths) || ((span_starts(path, "metadata.labels['") ||
                                             span_starts(path, "metadata.annotations['")) &&
                                            span_ends(path, "']"));
}

static void check_key_ref(struct causes *c, const struct field_path *at, const struct json *ref)
{
    (void)valid_name(c, AT(at, "name"), json_get(ref, "name"), NAMES_DNS_SUBDOMAIN);
    if (valid_need_text(c, AT(at, "key"), json_get(ref, "key")))
        (void)valid_name(c, AT(at, "key"), json_get(ref, "key"), NAMES_CONFIG_KEY);
}

static void check_value_from(struct causes *c, const struct field_path *at, const struct json *env)
{
    const struct json *from = json_get(env, "valueFrom");
    const struct json *field = json_get(from, "fieldRef");
    const struct field_path *path_at = AT(AT(at, "fieldRef"), "fieldPath");

    if (json_count(from) == 0) {
        causes_add_text(c, CAUSE_INVALID, at, SPAN(""),
                        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                        "`secretKeyRef` or `fileKeyRef`");
        return;
    }
    if (valid_has_text(json_get(env, "value")))
        causes_add_text(c, CAUSE_INVALID, at, SPAN(""),
                        "may not be specified when `value` is not empty");
    if (json_count(from) > 1)
        causes_add_text(c, CAUSE_INVALID, at, SPAN(""),
                        "may not have more than one field specified at a time");
    if (field && valid_need_text(c, path_at, json_get(field, "fieldPath")) &&
        !is_env_field(json_str(json_get(field, "fieldPath"))))
        causes_add(c, CAUSE_INVALID, path_at, json_get(field, "fieldPath"),
                   "error converting fieldPath: field label not supported: %.*s",
                   SPAN_ARG(json_str(json_get(field, "fieldPath"))));
    if (json_get(from, "secretKeyRef"))
        check_key_ref(c, AT(at, "secretKeyRef"), json_get(from, "secretKeyRef"));
    if (json_get(from, "configMapKeyRef"))
        check_key_ref(c, AT(at, "configMapKeyRef"), json_get(from, "configMapKeyRef"));
    if (json_get(from, "resourceFieldRef"))
        (void)valid_need_text(c, AT(AT(at, "resourceFieldRef"), "resource"),
                              json_get(json_get(from, "resourceFieldRef"), "resource"));
}

static void check_env(struct causes *c, const struct field_path *at, const struct json *container)
{
    static const char *const refs[] = { "configMapRef", "secretRef" };
    size_t i = 0;

    JSON_EACH(env, json_get(container, "env"))
    {
        const struct field_path *here = AT_INDEX(AT(at, "env"), i);

        if (valid_need_text(c, AT(here, "name"), json_get(env, "name")))
            (void)valid_name(c, AT(here, "name"), json_get(env, "name"), NAMES_ENV_VAR);
        if (json_get(env, "valueFrom"))
            check_value_from(c, AT(here, "valueFrom"), env);
        i++;
    }
    i = 0;
    JSON_EACH(from, json_get(container, "envFrom"))
    {
        const struct field_path *here = AT_INDEX(AT(at, "envFrom"), i);
        size_t count = 0;

        EACH(ref, refs) {
            if (!json_get(from, *ref))
                continue;
            count++;
            (void)valid_need_text(c, AT(AT(here, *ref), "name"),
                                  json_get(json_get(from, *ref), "name"));
        }
        if (count != 1)
            causes_add_text(c, CAUSE_INVALID, AT(at, "envFrom"), SPAN(""),
                            count ? "may not have more than one field specified at a time"
                                  : "must specify one of: `configMapRef` or `secretRef`");
        i++;
    }
}

static bool has_volume(const struct json *volumes, struct span name)
{
    JSON_EACH(volume, volumes)
    {
        if (span_eq(json_str(json_get(volume, "name")), name) && name.n)
            return true;
    }
    return false;
}

static void check_mounts(struct causes *c, const struct field_path *at,
                         const struct json *container, const struct json *volumes)
{
    static const char *const propagations[] = { "Bidirectional", "HostToContainer", "None", NULL };
    const struct field_path *list_at = AT(at, "volumeMounts");
    const struct json *mounts = json_get(container, "volumeMounts");
    size_t i = 0;

    if (!valid_count(c, list_at, mounts))
        return;
    JSON_EACH(mount, mounts)
    {
        const struct field_path *here = AT_INDEX(list_at, i);
        const struct json *name = json_get(mount, "name"), *path = json_get(mount, "mountPath");
        size_t j = 0;

        (void)valid_need_text(c, AT(here, "name"), name);
        if (!has_volume(volumes, json_str(name)))
            causes_add_text(c, CAUSE_NOT_FOUND, AT(here, "name"), json_str(name), NULL);
        if (valid_need_text(c, AT(here, "mountPath"), path)) {
            JSON_EACH(other, mounts)
            {
                if (j++ == i)
                    break;
                if (span_eq(json_str(json_get(other, "mountPath")), json_str(path))) {
                    causes_add(c, CAUSE_INVALID, AT(here, "mountPath"), path, "must be unique");
                    break;
                }
            }
        }
        /* The public server leaves the index out of these. */
        valid_relative_path(c, AT(list_at, "subPath"), json_get(mount, "subPath"));
        valid_one_of(c, AT(list_at, "mountPropagation"), json_get(mount, "mountPropagation"),
                     propagations);
        i++;
    }
}

static bool is_standard(struct span name)
{
    static const char *const names[] = { "cpu", "memory", "ephemeral-storage", NULL };

    return valid_is_one_of(name, names) || span_starts(name, "hugepages-");
}

static void check_amounts(struct causes *c, const struct field_path *at, const struct json *list)
{
    JSON_MEMBERS(name, value, list)
    {
        const struct field_path *here = AT_KEY(at, json_str(name));
        struct quantity q;

        if (!is_standard(json_str(name)) && span_find(json_str(name), '/') == SIZE_MAX) {
            causes_add(c, CAUSE_INVALID, here, name,
                       "must be a standard resource type or fully qualified");
            causes_add(c, CAUSE_INVALID, here, name, "must be a standard resource for containers");
        }
        if (!quantity_parse(json_str(value), &q))
            continue;
        if (q.nano < 0)
            causes_add(c, CAUSE_INVALID, here, value, "must be greater than or equal to 0");
        else if (!is_standard(json_str(name)) && !quantity_is_whole(&q))
            causes_add(c, CAUSE_INVALID, here, value, "must be an integer");
    }
}

/* Requests stay below limits; what cannot be overcommitted needs both, and equal. */
static void check_resources(struct causes *c, const struct field_path *at,
                            const struct json *resources)
{
    const struct json *limits = json_get(resources, "limits"),
                      *requests = json_get(resources, "requests");

    check_amounts(c, AT(at, "limits"), limits);
    JSON_MEMBERS(name, value, requests)
    {
        struct quantity request, limit;
        const struct json *bound = json_get_span(limits, json_str(name));
        bool is_shared = is_standard(json_str(name)) && !span_starts(json_str(name), "hugepages-");

        if (!bound && !is_shared &&
            (is_standard(json_str(name)) || span_find(json_str(name), '/') != SIZE_MAX))
            causes_add(c, CAUSE_REQUIRED, AT(at, "limits"), NULL,
                       "Limit must be set for non overcommitable resources");
        if (!quantity_parse(json_str(value), &request) || !quantity_parse(json_str(bound), &limit))
            continue;
        if (is_shared && quantity_compare(&request, &limit) > 0)
            causes_add(c, CAUSE_INVALID, AT(at, "requests"), value,
                       "must be less than or equal to %.*s limit of %.*s", SPAN_ARG(json_str(name)),
                       SPAN_ARG(json_str(bound)));
        if (!is_shared && quantity_compare(&request, &limit) != 0)
            causes_add(c, CAUSE_INVALID, AT(at, "requests"), value,
                       "must be equal to %.*s limit of %.*s", SPAN_ARG(json_str(name)),
                       SPAN_ARG(json_str(bound)));
    }
    check_amounts(c, AT(at, "requests"), requests);
}

/* The one thing a probe or hook does. */
static void check_action(struct causes *c, const struct field_path *at, const struct json *handler)
{
    static const char *const kinds[] = { "exec", "httpGet", "tcpSocket", "grpc", "sleep" };
    static const char *const schemes[] = { "HTTP", "HTTPS", NULL };
    size_t count = 0;

    EACH(kind, kinds) {
        const struct json *action = json_get(handler, *kind);
        const struct field_path *here = AT(at, *kind);

        if (!action || json_is_null(action))
            continue;
        if (count++) {
            causes_add(c, CAUSE_FORBIDDEN, here, NULL, "may not specify more than 1 handler type");
            continue;
        }
        if (strcmp(*kind, "exec") == 0 && !json_count(json_get(action, "command")))
            causes_add(c, CAUSE_REQUIRED, AT(here, "command"), NULL, NULL);
        if (strcmp(*kind, "httpGet") == 0) {
            (void)valid_need_text(c, AT(here, "path"), json_get(action, "path"));
            valid_port(c, AT(here, "port"), json_get(action, "port"));
            valid_one_of(c, AT(here, "scheme"), json_get(action, "scheme"), schemes);
        }
        if (strcmp(*kind, "tcpSocket") == 0 || strcmp(*kind, "grpc") == 0)
            valid_port(c, AT(here, "port"), json_get(action, "port"));
    }
    if (!count)
        causes_add(c, CAUSE_REQUIRED, at, NULL, "must specify a handler type");
}

static void check_probe(struct causes *c, const struct field_path *at, const char *name,
                        const struct json *container)
{
    static const char *const numbers[] = { "initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                           "successThreshold", "failureThreshold" };
    const struct json *probe = json_get(container, name);
    const struct json *grace = json_get(probe, "terminationGracePeriodSeconds");
    const struct field_path *here = AT(at, name);
    bool is_readiness = strcmp(name, "readinessProbe") == 0;
    int64_t n;

    if (!probe || json_is_null(probe))
        return;
    check_action(c, here, probe);
    EACH(number, numbers) {
        valid_not_negative(c, AT(here, *number), json_get(probe, *number));
    }
    if (json_i64(grace, &n) && is_readiness)
        causes_add(c, CAUSE_INVALID, AT(here, "terminationGracePeriodSeconds"), grace,
                   "must not be set for readinessProbes");
    else if (json_i64(grace, &n) && n <= 0)
        causes_add(c, CAUSE_INVALID, AT(here, "terminationGracePeriodSeconds"), grace,
                   "must be greater than 0");
    if (!is_readiness && json_i64(json_get(probe, "successThreshold"), &n) && n != 1 && n >= 0)
        causes_add(c, CAUSE_INVALID, AT(here, "successThreshold"),
                   json_get(probe, "successThreshold"), "must be 1");
}

void validate_ids(struct causes *c, const struct field_path *at, const struct json *context)
{
    static const char *const members[] = { "runAsUser", "runAsGroup", "fsGroup" };
    size_t i = 0;

    EACH(member, members) {
        valid_range(c, AT(at, *member), json_get(context, *member), 0, INT32_MAX);
    }
    JSON_EACH(group, json_get(context, "supplementalGroups"))
    {
        valid_range(c, AT_INDEX(AT(at, "supplementalGroups"), i), group, 0, INT32_MAX);
        i++;
    }
}

void validate_profile(struct causes *c, const struct field_path *at, const struct json *context)
{
    static const char *const types[] = { "Localhost", "RuntimeDefault", "Unconfined", NULL };
    const struct json *profile = json_get(context, "seccompProfile"),
                      *type = json_get(profile, "type");
    const struct field_path *here = AT(at, "seccompProfile");

    if (!profile)
        return;
    if (!valid_has_text(type))
        causes_add(c, CAUSE_REQUIRED, AT(here, "type"), NULL,
                   "type is required when seccompProfile is set");
    valid_one_of(c, AT(here, "type"), type, types);
    if (span_is(json_str(type), "Localhost") &&
        !valid_has_text(json_get(profile, "localhostProfile")))
        causes_add(c, CAUSE_REQUIRED, AT(here, "localhostProfile"), NULL,
                   "must be set when seccomp type is Localhost");
    else if (!span_is(json_str(type), "Localhost") &&
             valid_has_text(json_get(profile, "localhostProfile")))
        causes_add(c, CAUSE_INVALID, AT(here, "localhostProfile"),
                   json_get(profile, "localhostProfile"),
                   "can only be set when seccomp type is Localhost");
}

static void check_context(struct causes *c, const struct field_path *at, const struct json *context)
{
    static const char *const mounts[] = { "Default", "Unmasked", NULL };
    bool is_privileged = false, may_escalate = true;

    validate_ids(c, at, context);
    valid_one_of(c, AT(at, "procMount"), json_get(context, "procMount"), mounts);
    validate_profile(c, at, context);
    (void)json_bool(json_get(context, "privileged"), &is_privileged);
    (void)json_bool(json_get(context, "allowPrivilegeEscalation"), &may_escalate);
    if (is_privileged && !may_escalate)
        causes_add(c, CAUSE_INVALID, at, context,
                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
}

void validate_container(struct causes *c, const struct field_path *at, const struct json *container,
                        const struct json *spec)
{
    static const char *const pulls[] = { "Always", "IfNotPresent", "Never", NULL };
    static const char *const messages[] = { "File", "FallbackToLogsOnError", NULL };
    static const char *const restarts[] = { "Always", "Never", "OnFailure", NULL };
    static const char *const hooks[] = { "postStart", "preStop" };
    const struct json *image = json_get(container, "image");
    const struct json *lifecycle = json_get(container, "lifecycle");
    bool is_host = false;

    (void)json_bool(json_get(spec, "hostNetwork"), &is_host);
    if (valid_need_text(c, AT(at, "name"), json_get(container, "name")))
        (void)valid_name(c, AT(at, "name"), json_get(container, "name"), NAMES_DNS_LABEL);
    if (valid_need_text(c, AT(at, "image"), image)) {
        struct span text = json_str(image);

        if (strchr(" \t\r\n", text.p[0]) || strchr(" \t\r\n", text.p[text.n - 1]))
            causes_add(c, CAUSE_INVALID, AT(at, "image"), image,
                       "must not have leading or trailing whitespace");
    }
    EACH(hook, hooks) {
        if (json_get(lifecycle, *hook))
            check_action(c, AT(AT(at, "lifecycle"), *hook), json_get(lifecycle, *hook));
    }
    check_probe(c, at, "livenessProbe", container);
    check_probe(c, at, "readinessProbe", container);
    check_probe(c, at, "startupProbe", container);
    valid_one_of(c, AT(at, "terminationMessagePolicy"),
                 json_get(container, "terminationMessagePolicy"), messages);
    check_ports(c, at, container, is_host);
    check_env(c, at, container);
    check_mounts(c, at, container, json_get(spec, "volumes"));
    valid_one_of(c, AT(at, "imagePullPolicy"), json_get(container, "imagePullPolicy"), pulls);
    valid_one_of(c, AT(at, "restartPolicy"), json_get(container, "restartPolicy"), restarts);
    check_resources(c, AT(at, "resources"), json_get(container, "resources"));
    if (json_get(container, "securityContext"))
        check_context(c, AT(at, "securityContext"), json_get(container, "securityContext"));
}
