/* Variables that tell of Services, as the kubelet and before it Docker's links have them. */
#include "node/env.h"

#include "base/str.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define NAME_MAX_BYTES  512 /* two names of 63 bytes and what stands between */
#define VALUE_MAX_BYTES 128

/* One Service's port, or the Service itself, as its variables need it. */
struct door {
    char prefix[128]; /* its name in capitals */
    const char *ip;
    const char *protocol; /* "TCP" */
    uint64_t port;
};

/* Capitals, and '_' for '-'. */
static void capitals(struct span name, char *ret, size_t size)
{
    size_t n = MIN(name.n, size - 1);

    for (size_t i = 0; i < n; i++)
        ret[i] = name.p[i] == '-' ? '_' : (char)toupper(name.p[i]);
    ret[n] = '\0';
}

/* The name is "PREFIX<rest>". */
static int add(struct env *env, const struct door *d, const char *rest, const char *value,
               struct err *e)
{
    char name[NAME_MAX_BYTES];

    (void)snprintf(name, sizeof name, "%s%s", d->prefix, rest);
    return env_set(env, span_cstr(name), span_cstr(value), true, e);
}

static int add_port_number(struct env *env, const struct door *d, const char *rest, struct err *e)
{
    char value[VALUE_MAX_BYTES];

    (void)snprintf(value, sizeof value, "%" PRIu64, d->port);
    return add(env, d, rest, value, e);
}

/* NAME_PORT_80_TCP and those that begin with it; of the first port NAME_PORT too. */
static int add_link(struct env *env, const struct door *d, bool is_first, struct err *e)
{
    bool is_v6 = strchr(d->ip, ':') != NULL;
    char protocol[8], url[VALUE_MAX_BYTES], rest[64];
    int n;

    (void)snprintf(protocol, sizeof protocol, "%s", d->protocol);
    for (char *c = protocol; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    (void)snprintf(url, sizeof url, "%s://%s%s%s:%" PRIu64, protocol, is_v6 ? "[" : "", d->ip,
                   is_v6 ? "]" : "", d->port);
    if (is_first && add(env, d, "_PORT", url, e) < 0)
        return -1;
    n = snprintf(rest, sizeof rest, "_PORT_%" PRIu64 "_%s", d->port, d->protocol);
    if (add(env, d, rest, url, e) < 0)
        return -1;
    (void)snprintf(rest + n, sizeof rest - (size_t)n, "_PROTO");
    if (add(env, d, rest, protocol, e) < 0)
        return -1;
    (void)snprintf(rest + n, sizeof rest - (size_t)n, "_PORT");
    if (add_port_number(env, d, rest, e) < 0)
        return -1;
    (void)snprintf(rest + n, sizeof rest - (size_t)n, "_ADDR");
    return add(env, d, rest, d->ip, e);
}

static bool read_port(const struct json *port, struct door *d)
{
    d->protocol = json_cstr(json_get(port, "protocol"));
    if (!d->protocol || !*d->protocol)
        d->protocol = "TCP";
    return strlen(d->protocol) <= 4 && json_u64(json_get(port, "port"), &d->port);
}

static int add_named_port(struct env *env, const struct door *d, struct span name, struct err *e)
{
    char rest[128] = "_SERVICE_PORT_";
    size_t n = strlen(rest);

    if (!name.n)
        return 0;
    capitals(name, rest + n, sizeof rest - n);
    return add_port_number(env, d, rest, e);
}

static int add_service(struct env *env, const struct object *service, struct err *e)
{
    const struct json *ports = object_at(service, "spec.ports");
    struct door d = { .ip = object_text(service, "spec.clusterIP") };
    bool is_first = true;

    if (!d.ip || !*d.ip || strcmp(d.ip, "None") == 0 || !json_count(ports))
        return 0;
    capitals(span_cstr(object_name(service)), d.prefix, sizeof d.prefix);
    if (add(env, &d, "_SERVICE_HOST", d.ip, e) < 0)
        return -1;
    JSON_EACH(port, ports)
    {
        if (!read_port(port, &d))
            continue;
        if ((is_first && add_port_number(env, &d, "_SERVICE_PORT", e) < 0) ||
            add_named_port(env, &d, json_str(json_get(port, "name")), e) < 0 ||
            add_link(env, &d, is_first, e) < 0)
            return -1;
        is_first = false;
    }
    return 0;
}

static bool is_of_server(const struct object *service)
{
    return strcmp(object_namespace(service), "default") == 0 &&
           strcmp(object_name(service), "kubernetes") == 0;
}

int env_add_services(struct env *env, const struct env_spec *spec, struct err *e)
{
    const struct object *pod = spec->downward.pod;
    bool has_links = true;

    (void)json_bool(object_at(pod, "spec.enableServiceLinks"), &has_links);
    for (size_t i = 0; i < spec->service_count; i++) {
        const struct object *service = spec->services[i];
        bool is_near = strcmp(object_namespace(service), object_namespace(pod)) == 0;

        if (!is_of_server(service) && !(has_links && is_near))
            continue;
        if (add_service(env, service, e) < 0) {
            if (e->code == ERR_LIMIT)
                err_hint(e, "spec.enableServiceLinks: false leaves the Services out");
            return -1;
        }
    }
    return 0;
}
