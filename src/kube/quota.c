#include "kube/quota.h"

#include <stdlib.h>
#include <string.h>

#define CLASS_SUFFIX ".storageclass.storage.k8s.io/"
#define CLASS_OLD    "volume.beta.kubernetes.io/storage-class"
#define NANO         1000000000

/* ---- names ---- */

static const struct {
    const char *name;
    enum quota_what what;
    const char *plural;
} shorts[] = {
    { "pods", QUOTA_PODS, "pods" },
    { "configmaps", QUOTA_OBJECTS, "configmaps" },
    { "secrets", QUOTA_OBJECTS, "secrets" },
    { "services", QUOTA_OBJECTS, "services" },
    { "services.nodeports", QUOTA_NODE_PORTS, "services" },
    { "services.loadbalancers", QUOTA_BALANCERS, "services" },
    { "resourcequotas", QUOTA_OBJECTS, "resourcequotas" },
    { "persistentvolumeclaims", QUOTA_OBJECTS, "persistentvolumeclaims" },
    { "requests.storage", QUOTA_STORAGE, "persistentvolumeclaims" },
    { "replicationcontrollers", QUOTA_NOTHING, "" },
};

static const struct kind *core(const char *plural)
{
    return kind_find("", "v1", plural);
}

/* "pods", "deployments.apps" */
static bool counted(struct span place, struct quota_measure *ret)
{
    size_t dot = span_find(place, '.');
    OWN_MEM char *plural = span_dup(span_slice(place, 0, dot));
    OWN_MEM char *group = span_dup(dot == SIZE_MAX ? SPAN("") : span_skip(place, dot + 1));
    const struct kind *k = kind_find(group, NULL, plural);

    if (!k || !kind_is_namespaced(k) || k->traits & KIND_REVIEW)
        return false;
    if (k->storage_kind)
        k = kind_find_kind("", NULL, k->storage_kind);
    *ret = (struct quota_measure){ .what = QUOTA_OBJECTS, .kind = k };
    return true;
}

static bool claimed(struct span resource, size_t at, struct quota_measure *ret)
{
    struct span rest = span_skip(resource, at + sizeof CLASS_SUFFIX - 1);

    *ret = (struct quota_measure){ .what = span_is(rest, "requests.storage") ? QUOTA_STORAGE
                                                                             : QUOTA_CLAIMS,
                                   .kind = core("persistentvolumeclaims"),
                                   .class = span_slice(resource, 0, at) };
    return ret->what == QUOTA_STORAGE || span_is(rest, "persistentvolumeclaims");
}

static bool is_compute(struct span name)
{
    return span_is(name, "cpu") || span_is(name, "memory") || span_is(name, "ephemeral-storage");
}

bool quota_measure_of(struct span resource, struct quota_measure *ret)
{
    size_t class = span_find_str(resource, SPAN(CLASS_SUFFIX));
    bool is_asked = span_starts(resource, "requests.");

    EACH(s, shorts) {
        if (span_is(resource, s->name)) {
            *ret = (struct quota_measure){ .what = s->what, .kind = core(s->plural) };
            return true;
        }
    }
    if (span_starts(resource, "count/"))
        return counted(span_skip(resource, 6), ret);
    if (class != SIZE_MAX)
        return claimed(resource, class, ret);
    *ret = (struct quota_measure){ .what = QUOTA_COMPUTE, .kind = core("pods"), .name = resource };
    ret->is_limit = span_starts(resource, "limits.");
    if (is_asked || ret->is_limit)
        ret->name = span_skip(resource, is_asked ? 9 : 7);
    return is_compute(ret->name) || (!ret->is_limit && span_starts(ret->name, "hugepages-")) ||
           (is_asked && span_find(ret->name, '/') != SIZE_MAX);
}

/* ---- amounts ---- */

static void add(struct quantity *sum, const struct quantity *more)
{
    if (sum->nano == 0)
        sum->form = more->form;
    sum->nano += more->nano;
}

static struct quantity larger(const struct quantity *a, const struct quantity *b)
{
    return a->nano >= b->nano ? *a : *b;
}

static struct quantity parsed(const struct json *v)
{
    struct quantity q;

    return quantity_parse(json_str(v), &q) ? q : (struct quantity){ 0 };
}

const struct json *quota_said(const struct quota_measure *m, const struct json *resources)
{
    return json_get_span(json_get(resources, m->is_limit ? "limits" : "requests"), m->name);
}

static struct quantity asked(const struct quota_measure *m, const struct json *container)
{
    return parsed(quota_said(m, json_get(container, "resources")));
}

/* Init containers run one after the other, before the others; those that always restart stay beside all that come later. */
static struct quantity of_containers(const struct quota_measure *m, const struct json *spec)
{
    struct quantity sum = { 0 }, beside = { 0 }, most = { 0 };

    JSON_EACH(container, json_get(spec, "containers"))
    {
        struct quantity q = asked(m, container);

        add(&sum, &q);
    }
    JSON_EACH(container, json_get(spec, "initContainers"))
    {
        struct quantity q = asked(m, container);

        if (span_is(json_str(json_get(container, "restartPolicy")), "Always")) {
            add(&beside, &q);
            q = beside;
        } else {
            add(&q, &beside);
        }
        most = larger(&most, &q);
    }
    add(&sum, &beside);
    return larger(&sum, &most);
}

static struct quantity of_pod(const struct quota_measure *m, const struct object *pod)
{
    const struct json *spec = object_member(pod, "spec");
    const struct json *whole = quota_said(m, json_get(spec, "resources"));
    struct quantity sum = whole ? parsed(whole) : of_containers(m, spec);
    struct quantity over = parsed(json_get_span(json_get(spec, "overhead"), m->name));

    if (!m->is_limit || sum.nano > 0)
        add(&sum, &over);
    return sum;
}

static bool has_ended(const struct object *pod)
{
    struct span phase = json_str(object_at(pod, "status.phase"));

    return span_is(phase, "Succeeded") || span_is(phase, "Failed");
}

static bool is_of_class(const struct object *claim, struct span class)
{
    const char *old = object_annotation(claim, CLASS_OLD);

    return !class.n || span_eq(class, old ? span_cstr(old)
                                          : json_str(object_at(claim, "spec.storageClassName")));
}

static struct quantity whole(int64_t n)
{
    return (struct quantity){ (__int128)n * NANO, QUANTITY_DECIMAL };
}

/* Ports that a Service has, or will be given, at each node. */
static int64_t node_ports(const struct object *service)
{
    const struct json *spec = object_member(service, "spec");
    struct span type = json_str(json_get(spec, "type"));
    bool is_given = true;
    int64_t n = 0;

    if (span_is(type, "LoadBalancer"))
        (void)json_bool(json_get(spec, "allocateLoadBalancerNodePorts"), &is_given);
    else if (!span_is(type, "NodePort"))
        return 0;
    JSON_EACH(port, json_get(spec, "ports"))
    {
        int64_t number = 0;

        (void)json_i64(json_get(port, "nodePort"), &number);
        n += is_given || number != 0;
    }
    return n;
}

struct quantity quota_amount(const struct quota_measure *m, const struct object *o)
{
    if (object_kind(o) != m->kind)
        return whole(0);
    switch (m->what) {
    case QUOTA_NOTHING:
        return whole(0);
    case QUOTA_OBJECTS:
        return whole(1);
    case QUOTA_PODS:
        return whole(!has_ended(o));
    case QUOTA_COMPUTE:
        return has_ended(o) ? whole(0) : of_pod(m, o);
    case QUOTA_CLAIMS:
        return whole(is_of_class(o, m->class));
    case QUOTA_STORAGE:
        return is_of_class(o, m->class) ? parsed(object_at(o, "spec.resources.requests.storage"))
                                        : whole(0);
    case QUOTA_NODE_PORTS:
        return whole(node_ports(o));
    case QUOTA_BALANCERS:
        return whole(span_is(json_str(object_at(o, "spec.type")), "LoadBalancer"));
    }
    return whole(0);
}

bool quota_must_be_said(const struct quota_measure *m)
{
    return m->what == QUOTA_COMPUTE && (span_is(m->name, "cpu") || span_is(m->name, "memory"));
}

/* ---- scopes ---- */

static bool is_in_scope(struct span scope, const struct object *pod)
{
    bool has_end = json_type(object_at(pod, "spec.activeDeadlineSeconds")) == JSON_NUMBER;
    bool is_best_effort = span_is(json_str(object_at(pod, "status.qosClass")), "BestEffort");

    if (span_is(scope, "Terminating"))
        return has_end;
    if (span_is(scope, "NotTerminating"))
        return !has_end;
    return span_is(scope, "BestEffort") ? is_best_effort : !is_best_effort;
}

bool quota_matches(const struct json *spec, const struct object *o)
{
    JSON_EACH(scope, json_get(spec, "scopes"))
    {
        if (object_kind(o) != core("pods") || !is_in_scope(json_str(scope), o))
            return false;
    }
    return true;
}
