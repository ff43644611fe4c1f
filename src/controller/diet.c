#include "controller/diet.h"

struct object *diet_pod(struct object *pod)
{
    static const char *const drop[] = { "managedFields", "finalizers", NULL };
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *without = NULL, *less = NULL;
    OWN(json_doc_done) struct json_doc *spec = NULL;
    struct json_node *kept = json_edit_object(ed);
    const char *node = object_text(pod, "spec.nodeName");
    struct err e;

    if (node)
        json_node_set(kept, "nodeName", json_edit_cstr(ed, node));
    if (object_with_meta(pod, &(struct meta_change){ .drop = drop }, &without, &e) < 0 ||
        json_node_freeze(kept, &spec, &e) < 0 || object_with(without, "spec", spec, &less, &e) < 0)
        return object_ref(pod); /* it cannot: less of what there is */
    return object_lean(less);
}
