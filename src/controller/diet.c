#include "controller/diet.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/pod_waiting.h"

static struct json_node *spec_of(const struct object *pod, struct json_edit *ed)
{
    struct json_node *kept = json_edit_object(ed);
    const char *node = object_text(pod, "spec.nodeName");

    if (node)
        json_node_set(kept, "nodeName", json_edit_cstr(ed, node));
    return kept;
}

/* A node says much more of a Pod than we ask: containers that run, images, other conditions. */
static struct json_node *status_of(const struct object *pod, struct json_edit *ed)
{
    static const char *const names[] = { "phase", "podIPs" };
    static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
    static const char *const types[] = { COND_READY, COND_POD_SCHEDULED, COND_POD_ADDRESSES };
    const struct json *status = object_member(pod, "status");
    struct json_node *kept = json_edit_object(ed), *conditions;

    EACH(name, names)
        json_node_set(kept, *name, json_edit_view(ed, json_get(status, *name)));
    EACH(list, lists) {
        struct json_node *waiting = pod_waiting_keep(json_get(status, *list), ed);

        if (waiting)
            json_node_set(kept, *list, waiting);
    }
    if (!json_get(status, "conditions"))
        return kept;
    conditions = json_node_set(kept, "conditions", json_edit_array(ed));
    EACH(type, types) {
        const struct json *c = condition_find(json_get(status, "conditions"), *type);

        if (c)
            json_node_append(conditions, json_edit_view(ed, c));
    }
    return kept;
}

struct object *diet_pod(struct object *pod)
{
    static const char *const drop[] = { "managedFields", "finalizers", "generateName", NULL };
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *without = NULL, *bare = NULL, *less = NULL;
    OWN(json_doc_done) struct json_doc *spec = NULL, *status = NULL;
    bool has_status = object_member(pod, "status") != NULL;
    struct err e;

    if (object_with_meta(pod, &(struct meta_change){ .drop = drop }, &without, &e) < 0 ||
        json_node_freeze(spec_of(pod, ed), &spec, &e) < 0 ||
        (has_status && json_node_freeze(status_of(pod, ed), &status, &e) < 0) ||
        object_with(without, "spec", spec, &bare, &e) < 0 ||
        object_with(bare, "status", status, &less, &e) < 0)
        return object_ref(pod); /* it cannot: less of what there is */
    return object_lean(less);
}
