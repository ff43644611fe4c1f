/* Defaults of a pod that depend on other members of it. */
#include "kube/default_kinds.h"

#include "kube/default.h"
#include "kube/quantity.h"

#include <string.h>

/* "Always" where the image may change under its name: tag latest, or neither tag nor digest. */
static const char *pull_policy(struct span image)
{
    size_t slash = SIZE_MAX, colon = SIZE_MAX;

    for (size_t i = 0; i < image.n; i++) {
        if (image.p[i] == '@')
            return "IfNotPresent";
        if (image.p[i] == '/')
            slash = i;
        if (image.p[i] == ':')
            colon = i;
    }
    if (image.n == 0)
        return "IfNotPresent";
    if (colon == SIZE_MAX || (slash != SIZE_MAX && colon < slash))
        return "Always";
    return span_is(span_skip(image, colon + 1), "latest") ? "Always" : "IfNotPresent";
}

/* A limit is a request where none was made. */
static void requests_from_limits(struct json_node *container)
{
    struct json_node *resources = json_node_get(container, "resources");
    struct json_node *limits = json_node_get(resources, "limits");

    for (size_t i = 0; i < json_node_count(limits); i++) {
        struct json_node *requests = default_object_at(resources, "requests");
        struct span name = json_node_name_at(limits, i);

        if (!json_node_get_span(requests, name))
            json_node_set_span(
                requests, name,
                json_node_copy(json_node_edit(limits), json_node_value_at(limits, i)));
    }
}

static void host_ports(struct json_node *container)
{
    struct json_node *ports = json_node_get(container, "ports");

    for (size_t i = 0; i < json_node_count(ports); i++) {
        struct json_node *port = json_node_at(ports, i);

        if (!json_node_get(port, "hostPort"))
            json_node_set(
                port, "hostPort",
                json_node_copy(json_node_edit(port), json_node_get(port, "containerPort")));
    }
}

static void containers(struct json_node *spec, const char *member, bool is_pod)
{
    struct json_node *list = json_node_get(spec, member);
    bool is_host = false;

    (void)json_node_bool(json_node_get(spec, "hostNetwork"), &is_host);
    for (size_t i = 0; i < json_node_count(list); i++) {
        struct json_node *container = json_node_at(list, i);

        default_text_at(container, "imagePullPolicy",
                        pull_policy(json_node_str(json_node_get(container, "image"))));
        if (is_host)
            host_ports(container);
        if (is_pod)
            requests_from_limits(container);
    }
}

/* A volume without a source is an empty directory. */
static void volumes(struct json_node *spec)
{
    struct json_node *list = json_node_get(spec, "volumes");

    for (size_t i = 0; i < json_node_count(list); i++) {
        struct json_node *volume = json_node_at(list, i);

        if (json_node_count(volume) == 1 && json_node_get(volume, "name"))
            json_node_set(volume, "emptyDir", json_edit_object(json_node_edit(volume)));
    }
}

/* One account under two names, one of them old. */
static void service_account(struct json_node *spec)
{
    struct span name = json_node_str(json_node_get(spec, "serviceAccountName"));
    struct span old = json_node_str(json_node_get(spec, "serviceAccount"));
    struct json_edit *ed = json_node_edit(spec);

    if (name.n && !span_eq(name, old))
        json_node_set(spec, "serviceAccount", json_edit_str(ed, name));
    else if (old.n && !name.n)
        json_node_set(spec, "serviceAccountName", json_edit_str(ed, old));
}

void default_pod_spec(struct json_node *spec, bool is_pod)
{
    if (json_node_type(spec) != JSON_OBJECT)
        return;
    containers(spec, "containers", is_pod);
    containers(spec, "initContainers", is_pod);
    containers(spec, "ephemeralContainers", false);
    volumes(spec);
    service_account(spec);
    if (is_pod && !json_node_get(spec, "enableServiceLinks"))
        json_node_set(spec, "enableServiceLinks", json_edit_bool(json_node_edit(spec), true));
}

/* True when requests and limits name the same amount of what a Guaranteed pod must bound. */
static bool is_equal(struct json_node *resources, const char *name)
{
    struct quantity limit, request;
    struct json_node *l = json_node_get(json_node_get(resources, "limits"), name);
    struct json_node *r = json_node_get(json_node_get(resources, "requests"), name);

    return quantity_parse(json_node_str(l), &limit) && quantity_parse(json_node_str(r), &request) &&
           limit.nano > 0 && quantity_compare(&limit, &request) == 0;
}

static bool asks_for(struct json_node *resources, const char *list, const char *name)
{
    struct quantity q;

    return quantity_parse(json_node_str(json_node_get(json_node_get(resources, list), name)), &q) &&
           q.nano > 0;
}

/* Guaranteed, Burstable or BestEffort: by cpu and memory of all containers. */
static const char *quality(struct json_node *spec)
{
    static const char *const members[] = { "containers", "initContainers" };
    static const char *const names[] = { "cpu", "memory" };
    static const char *const lists[] = { "limits", "requests" };
    bool is_guaranteed = true, has_any = false;

    EACH(member, members) {
        struct json_node *list = json_node_get(spec, *member);

        for (size_t i = 0; i < json_node_count(list); i++) {
            struct json_node *resources = json_node_get(json_node_at(list, i), "resources");

            EACH(name, names) {
                is_guaranteed = is_guaranteed && is_equal(resources, *name);
                EACH(which, lists) {
                    has_any = has_any || asks_for(resources, *which, *name);
                }
            }
        }
    }
    return !has_any ? "BestEffort" : is_guaranteed ? "Guaranteed" : "Burstable";
}

#define TOLERATE(key)                                                                              \
    "{\"key\":\"" key                                                                              \
    "\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}"

/* A pod stays five minutes on a node that is gone, unless it says otherwise. */
static void tolerate(struct json_node *spec, const char *key, const char *json)
{
    struct json_edit *ed = json_node_edit(spec);
    struct json_node *list = json_node_get(spec, "tolerations");

    for (size_t i = 0; i < json_node_count(list); i++) {
        struct json_node *t = json_node_at(list, i);
        struct span given = json_node_str(json_node_get(t, "key"));
        struct span effect = json_node_str(json_node_get(t, "effect"));

        if ((given.n == 0 || span_is(given, key)) &&
            (effect.n == 0 || span_is(effect, "NoExecute")))
            return;
    }
    if (!list)
        list = json_node_set(spec, "tolerations", json_edit_array(ed));
    json_node_append(list, default_text_node(ed, json));
}

void default_pod_created(struct json_node *root)
{
    struct json_edit *ed = json_node_edit(root);
    struct json_node *spec = default_object_at(root, "spec");
    struct json_node *status = json_edit_object(ed);

    tolerate(spec, "node.kubernetes.io/not-ready", TOLERATE("node.kubernetes.io/not-ready"));
    tolerate(spec, "node.kubernetes.io/unreachable", TOLERATE("node.kubernetes.io/unreachable"));
    if (!json_node_get(spec, "priority"))
        json_node_set(spec, "priority", json_edit_i64(ed, 0));
    default_text_at(spec, "preemptionPolicy", "PreemptLowerPriority");
    json_node_set(status, "phase", json_edit_cstr(ed, "Pending"));
    json_node_set(status, "qosClass", json_edit_cstr(ed, quality(spec)));
    json_node_set(root, "status", status);
}
