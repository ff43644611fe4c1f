/* Core kinds without pods in them. */
#include "kube/validate_parts.h"

#include "base/str.h"
#include "kube/quantity.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const char *const protocols[] = { "SCTP", "TCP", "UDP", NULL };

static bool is_same_port(const struct json *a, const struct json *b)
{
    return valid_same(json_get(a, "port"), json_get(b, "port")) &&
           valid_same(json_get(a, "protocol"), json_get(b, "protocol"));
}

static void check_service_port(struct causes *c, const struct field_path *list_at,
                               const struct json *ports, const struct json *port, size_t i)
{
    const struct field_path *at = AT_INDEX(list_at, i);
    const struct json *name = json_get(port, "name"), *target = json_get(port, "targetPort");
    bool is_repeated = false, is_named_twice = false;
    char shown[200];

    JSON_EACH(other, ports)
    {
        if (other == port)
            break;
        is_repeated = is_repeated || is_same_port(other, port);
        is_named_twice =
            is_named_twice || (valid_has_text(name) && valid_same(json_get(other, "name"), name));
    }
    if (json_count(ports) > 1 && !valid_has_text(name))
        causes_add(c, CAUSE_REQUIRED, AT(at, "name"), NULL, NULL);
    else if (valid_has_text(name) && valid_name(c, AT(at, "name"), name, NAMES_DNS_LABEL) &&
             is_named_twice)
        causes_add(c, CAUSE_DUPLICATE, AT(at, "name"), name, NULL);
    valid_range(c, AT(at, "port"), json_get(port, "port"), 1, 65535);
    valid_one_of(c, AT(at, "protocol"), json_get(port, "protocol"), protocols);
    valid_port(c, AT(at, "targetPort"), target);
    if (is_repeated) {
        snprintf(
            shown, sizeof shown,
            "{\"Name\":\"\",\"Protocol\":\"%.*s\",\"AppProtocol\":null,\"Port\":%.*s,\"TargetPort\":0,\"NodePort\":0}",
            SPAN_ARG(span_slice(json_str(json_get(port, "protocol")), 0, 20)),
            SPAN_ARG(json_number(json_get(port, "port"))));
        causes_add_shown(c, CAUSE_DUPLICATE, at, shown, NULL);
    }
}

static void check_service_ports(struct causes *c, const struct json *spec, bool is_headless)
{
    const struct field_path *at = AT(AT(NULL, "spec"), "ports");
    const struct json *ports = json_get(spec, "ports");
    struct span type = json_str(json_get(spec, "type"));
    size_t i = 0;

    if (!json_count(ports) && !is_headless && !span_is(type, "ExternalName"))
        causes_add(c, CAUSE_REQUIRED, at, NULL, NULL);
    if (!valid_count(c, at, ports))
        return;
    JSON_EACH(port, ports)
    {
        int64_t node = 0;

        check_service_port(c, at, ports, port, i);
        (void)json_i64(json_get(port, "nodePort"), &node);
        if (node && span_is(type, "ClusterIP"))
            causes_add(c, CAUSE_FORBIDDEN, AT(AT_INDEX(at, i), "nodePort"), NULL,
                       "may not be used when `type` is 'ClusterIP'");
        i++;
    }
}

static void check_cluster_ips(const struct validation *v, struct causes *c, const struct json *spec)
{
    const struct field_path *at = AT(AT(NULL, "spec"), "clusterIPs");
    const struct json *list = json_get(spec, "clusterIPs"), *first = json_at(list, 0);
    const struct json *was = json_get(v->old ? object_member(v->old, "spec") : NULL, "clusterIPs");
    const char *type = json_cstr(json_get(spec, "type"));
    size_t i = 0;

    JSON_EACH(ip, list)
    {
        if (!span_is(json_str(ip), "None"))
            (void)valid_ip(c, AT_INDEX(at, i), ip);
        i++;
    }
    if (span_is(json_str(first), "None") && type &&
        (strcmp(type, "LoadBalancer") == 0 || strcmp(type, "NodePort") == 0))
        causes_add(c, CAUSE_INVALID, AT_INDEX(at, 0), first,
                   "may not be set to 'None' for %s services", type);
    if (json_count(was) && type && strcmp(type, "ExternalName") != 0 &&
        !valid_same(json_at(was, 0), first))
        causes_add(c, CAUSE_INVALID, AT_INDEX(at, 0), list, "may not change once set");
}

void validate_service(const struct validation *v, struct causes *c)
{
    static const char *const types[] = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                         NULL };
    static const char *const affinities[] = { "ClientIP", "None", NULL };
    const struct json *spec = object_member(v->object, "spec");
    const struct field_path *at = AT(NULL, "spec");
    size_t i = 0;

    check_service_ports(c, spec, span_is(json_str(json_get(spec, "clusterIP")), "None"));
    valid_labels(c, AT(at, "selector"), json_get(spec, "selector"));
    valid_one_of(c, AT(at, "sessionAffinity"), json_get(spec, "sessionAffinity"), affinities);
    check_cluster_ips(v, c, spec);
    JSON_EACH(ip, json_get(spec, "externalIPs"))
    {
        (void)valid_ip(c, AT_INDEX(AT(at, "externalIPs"), i), ip);
        i++;
    }
    valid_one_of(c, AT(at, "type"), json_get(spec, "type"), types);
    if (span_is(json_str(json_get(spec, "type")), "ExternalName") &&
        valid_need_text(c, AT(at, "externalName"), json_get(spec, "externalName")))
        (void)valid_name(c, AT(at, "externalName"), json_get(spec, "externalName"),
                         NAMES_DNS_SUBDOMAIN);
}

/* Keys of data; returns the bytes of the values. */
static size_t check_data(struct causes *c, const struct field_path *at, const struct json *data,
                         bool is_coded)
{
    size_t total = 0;

    JSON_MEMBERS(name, value, data)
    {
        (void)valid_name(c, AT_KEY(at, json_str(name)), name, NAMES_CONFIG_KEY);
        total += is_coded ? json_str(value).n / 4 * 3 : json_str(value).n;
    }
    return total;
}

/* Once it said so, it stays. */
static void check_immutable(const struct validation *v, struct causes *c,
                            const char *const *members)
{
    bool was = false, is = false;

    if (!v->old || !json_bool(object_member(v->old, "immutable"), &was) || !was)
        return;
    if (!json_bool(object_member(v->object, "immutable"), &is) || !is)
        causes_add(c, CAUSE_FORBIDDEN, AT(NULL, "immutable"), NULL,
                   "field is immutable when `immutable` is set");
    for (; *members; members++)
        if (!valid_same(object_member(v->object, *members), object_member(v->old, *members)))
            causes_add(c, CAUSE_FORBIDDEN, AT(NULL, *members), NULL,
                       "field is immutable when `immutable` is set");
}

void validate_config_map(const struct validation *v, struct causes *c)
{
    static const char *const members[] = { "data", "binaryData", NULL };
    const struct json *data = object_member(v->object, "data");
    const struct json *binary = object_member(v->object, "binaryData");
    size_t total = check_data(c, AT(NULL, "data"), data, false);

    JSON_MEMBERS(name, value, binary)
    {
        if (value && json_get_span(data, json_str(name)))
            causes_add(c, CAUSE_INVALID, AT_KEY(AT(NULL, "data"), json_str(name)), name,
                       "duplicate of key present in binaryData");
    }
    total += check_data(c, AT(NULL, "binaryData"), binary, true);
    if (total > VALIDATE_DATA_MAX_BYTES)
        causes_add(c, CAUSE_TOO_LONG, AT_KEY(NULL, SPAN("")), NULL, "may not be more than %d bytes",
                   VALIDATE_DATA_MAX_BYTES);
    check_immutable(v, c, members);
}

/* What well-known types of secrets must hold. */
static const struct {
    const char *type, *keys[3];
} secret_keys[] = {
    { "kubernetes.io/dockercfg", { ".dockercfg" } },
    { "kubernetes.io/dockerconfigjson", { ".dockerconfigjson" } },
    { "kubernetes.io/ssh-auth", { "ssh-privatekey" } },
    { "kubernetes.io/tls", { "tls.crt", "tls.key" } },
};

static void need_keys(struct causes *c, const struct json *data, const char *const *keys)
{
    for (; *keys; keys++)
        if (!json_get(data, *keys))
            causes_add(c, CAUSE_REQUIRED, AT_KEY(AT(NULL, "data"), span_cstr(*keys)), NULL, NULL);
}

static void check_docker_config(struct causes *c, const char *key, const struct json *coded)
{
    OWN(buf_done) struct buf text = BUF_INIT(VALIDATE_DATA_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (str_base64_decode(json_str(coded), &text, &e) < 0 ||
        json_parse(buf_span(&text), NULL, &doc, &e) < 0)
        causes_add_text(c, CAUSE_INVALID, AT_KEY(AT(NULL, "data"), span_cstr(key)),
                        SPAN("<secret contents redacted>"), "%s", e.msg);
}

void validate_secret(const struct validation *v, struct causes *c)
{
    static const char *const members[] = { "data", NULL };
    static const char *const basic[] = { "username", "password", NULL };
    const struct json *data = object_member(v->object, "data"),
                      *type = object_member(v->object, "type");
    size_t total = check_data(c, AT(NULL, "data"), data, true);

    if (total > VALIDATE_DATA_MAX_BYTES)
        causes_add(c, CAUSE_TOO_LONG, AT(NULL, "data"), NULL, "may not be more than %d bytes",
                   VALIDATE_DATA_MAX_BYTES);
    EACH(r, secret_keys) {
        if (!span_is(json_str(type), r->type))
            continue;
        need_keys(c, data, r->keys);
        if (strstr(r->type, "docker") && json_get(data, r->keys[0]))
            check_docker_config(c, r->keys[0], json_get(data, r->keys[0]));
    }
    if (span_is(json_str(type), "kubernetes.io/basic-auth") && !json_get(data, "username") &&
        !json_get(data, "password"))
        need_keys(c, data, basic);
    if (span_is(json_str(type), "kubernetes.io/service-account-token") &&
        !object_annotation(v->object, "kubernetes.io/service-account.name"))
        causes_add(c, CAUSE_REQUIRED,
                   AT_KEY(AT(AT(NULL, "metadata"), "annotations"),
                          SPAN("kubernetes.io/service-account.name")),
                   NULL, NULL);
    if (v->old)
        valid_unchanged(c, AT(NULL, "type"), type, object_member(v->old, "type"));
    check_immutable(v, c, members);
}

void validate_node(const struct validation *v, struct causes *c)
{
    static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute", NULL };
    static const char *const amounts[] = { "capacity", "allocatable" };
    const struct field_path *at =
        AT(AT(NULL, "metadata"), "taints"); /* where the public server says it */
    size_t i = 0;

    JSON_EACH(taint, object_at(v->object, "spec.taints"))
    {
        const struct field_path *here = AT_INDEX(at, i);
        const struct json *effect = json_get(taint, "effect");

        (void)valid_name(c, AT(here, "key"), json_get(taint, "key"), NAMES_LABEL_KEY);
        valid_name_if(c, AT(here, "value"), json_get(taint, "value"), NAMES_LABEL_VALUE);
        if (!valid_has_text(effect))
            causes_add(c, CAUSE_REQUIRED, AT(here, "effect"), NULL, NULL);
        valid_one_of(c, AT(here, "effect"), effect, effects);
        i++;
    }
    EACH(member, amounts) {
        JSON_MEMBERS(name, value, json_get(object_member(v->object, "status"), *member))
        {
            struct quantity q;

            if (quantity_parse(json_str(value), &q) && q.nano < 0)
                causes_add(c, CAUSE_INVALID,
                           AT_SPAN(AT(AT(NULL, "status"), *member), json_str(name)), value,
                           "must be greater than or equal to 0");
        }
    }
}

/* Events of the newer group must say when, by whom and what. */
static void check_new_event(const struct validation *v, struct causes *c)
{
    static const char *const types[] = { "Normal", "Warning", NULL };
    const struct json *controller = object_member(v->object, "reportingController");
    const struct json *type = object_member(v->object, "type");

    if (!valid_has_text(object_member(v->object, "eventTime"))) {
        causes_add(c, CAUSE_REQUIRED, AT(NULL, "eventTime"), NULL, NULL);
    } else {
        if (valid_need_text(c, AT(NULL, "reportingController"), controller))
            (void)valid_name(c, AT(NULL, "reportingController"), controller, NAMES_LABEL_KEY);
        (void)valid_need_text(c, AT(NULL, "reportingInstance"),
                              object_member(v->object, "reportingInstance"));
        (void)valid_need_text(c, AT(NULL, "action"), object_member(v->object, "action"));
        (void)valid_need_text(c, AT(NULL, "reason"), object_member(v->object, "reason"));
        if (json_str(object_member(v->object, "reportingInstance")).n > 128)
            causes_add_text(c, CAUSE_INVALID, AT(NULL, "reportingInstance"), SPAN(""),
                            "can have at most 128 characters");
        if (json_str(object_member(v->object, "note")).n > 1024)
            causes_add_text(c, CAUSE_INVALID, AT(NULL, "message"), SPAN(""),
                            "can have at most 1024 characters");
    }
    if (!valid_is_one_of(json_str(type), types))
        causes_add_text(c, CAUSE_INVALID, AT(NULL, "type"), SPAN(""), "has invalid value: %.*s",
                        SPAN_ARG(span_slice(json_str(type), 0, 100)));
}

void validate_event(const struct validation *v, struct causes *c)
{
    const struct json *about =
        object_member(v->object, v->kind->group[0] ? "regarding" : "involvedObject");
    struct span space = json_str(json_get(about, "namespace"));

    if (v->kind->group[0] && !v->old)
        check_new_event(v, c);
    /* Events about objects without a namespace live in "default". */
    if (!span_is(space.n ? space : SPAN("default"), object_namespace(v->object)))
        causes_add_text(c, CAUSE_INVALID, AT(AT(NULL, "involvedObject"), "namespace"), space,
                        "does not match event.namespace");
}

void validate_lease(const struct validation *v, struct causes *c)
{
    const struct json *spec = object_member(v->object, "spec");
    const struct json *seconds = json_get(spec, "leaseDurationSeconds");
    const struct field_path *at = AT(NULL, "spec");
    int64_t n;

    if (json_i64(seconds, &n) && n <= 0)
        causes_add(c, CAUSE_INVALID, AT(at, "leaseDurationSeconds"), seconds,
                   "must be greater than 0");
    valid_not_negative(c, AT(at, "leaseTransitions"), json_get(spec, "leaseTransitions"));
}

void validate_storage_class(const struct validation *v, struct causes *c)
{
    static const char *const policies[] = { "Delete", "Retain", NULL };
    static const char *const modes[] = { "Immediate", "WaitForFirstConsumer", NULL };
    static const char *const kept[] = { "parameters", "provisioner", "reclaimPolicy",
                                        "volumeBindingMode" };

    (void)valid_need_text(c, AT(NULL, "provisioner"), object_member(v->object, "provisioner"));
    valid_one_of(c, AT(NULL, "reclaimPolicy"), object_member(v->object, "reclaimPolicy"), policies);
    valid_one_of(c, AT(NULL, "volumeBindingMode"), object_member(v->object, "volumeBindingMode"),
                 modes);
    EACH(member, kept) {
        if (v->old)
            valid_unchanged(c, AT(NULL, *member), object_member(v->object, *member),
                            object_member(v->old, *member));
    }
}

void validate_runtime_class(const struct validation *v, struct causes *c)
{
    if (valid_need_text(c, AT(NULL, "handler"), object_member(v->object, "handler")))
        (void)valid_name(c, AT(NULL, "handler"), object_member(v->object, "handler"),
                         NAMES_DNS_LABEL);
    if (v->old)
        valid_unchanged(c, AT(NULL, "handler"), object_member(v->object, "handler"),
                        object_member(v->old, "handler"));
}

static void check_endpoint(struct causes *c, const struct field_path *at, const struct json *point,
                           struct span family)
{
    const struct json *addresses = json_get(point, "addresses");
    size_t i = 0;

    if (!json_count(addresses))
        causes_add(c, CAUSE_REQUIRED, AT(at, "addresses"), NULL, "must contain at least 1 address");
    JSON_EACH(address, addresses)
    {
        const char *text = json_cstr(address);
        uint8_t bytes[16];

        if (span_is(family, "FQDN"))
            (void)valid_name(c, AT_INDEX(AT(at, "addresses"), i), address, NAMES_DNS_SUBDOMAIN);
        else if (valid_ip(c, AT_INDEX(AT(at, "addresses"), i), address) &&
                 inet_pton(span_is(family, "IPv6") ? AF_INET6 : AF_INET, text, bytes) != 1 &&
                 family.n)
            causes_add(c, CAUSE_INVALID, AT(at, "addresses"), address, "must be an %.*s address",
                       SPAN_ARG(family));
        i++;
    }
    valid_name_if(c, AT(at, "hostname"), json_get(point, "hostname"), NAMES_DNS_LABEL);
}

/* Loopback addresses are let pass: pods of this system have them. */
void validate_endpoint_slice(const struct validation *v, struct causes *c)
{
    static const char *const families[] = { "FQDN", "IPv4", "IPv6", NULL };
    const struct json *family = object_member(v->object, "addressType");
    const struct json *ports = object_member(v->object, "ports");
    size_t i = 0;

    (void)valid_need_text(c, AT(NULL, "addressType"), family);
    valid_one_of(c, AT(NULL, "addressType"), family, families);
    if (v->old)
        valid_unchanged(c, AT(NULL, "addressType"), family, object_member(v->old, "addressType"));
    if (!valid_count(c, AT(NULL, "ports"), ports))
        return;
    JSON_EACH(port, ports)
    {
        const struct field_path *at = AT_INDEX(AT(NULL, "ports"), i);

        JSON_EACH(other, ports)
        {
            if (other == port)
                break;
            if (valid_same(json_get(other, "name"), json_get(port, "name")))
                causes_add_text(c, CAUSE_DUPLICATE, AT(at, "name"),
                                json_str(json_get(port, "name")), NULL);
        }
        valid_name_if(c, AT(at, "name"), json_get(port, "name"), NAMES_DNS_LABEL);
        valid_one_of(c, AT(at, "protocol"), json_get(port, "protocol"), protocols);
        i++;
    }
    i = 0;
    JSON_EACH(point, object_member(v->object, "endpoints"))
    {
        check_endpoint(c, AT_INDEX(AT(NULL, "endpoints"), i), point, json_str(family));
        i++;
    }
}
