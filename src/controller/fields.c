#include "controller/fields.h"

#include "controller/names.h"
#include "kube/informer.h"

bool fields_are_applied(const struct object *o)
{
    const struct json *list = json_get(object_meta(o), "managedFields");

    for (size_t i = 0; i < json_count(list); i++)
        if (span_is(json_str(json_get(json_at(list, i), "operation")), "Apply"))
            return true;
    return false;
}

/* One entry that says nothing: an empty list would be taken for a client that knows nothing of them, and change nothing. */
void fields_forget(struct step *patch, const struct object *o)
{
    struct json_edit *ed = json_node_edit(patch->body);
    struct json_node *list;

    if (fields_are_applied(o))
        return;
    list =
        json_node_set(tree_object(patch->body, "metadata"), "managedFields", json_edit_array(ed));
    json_node_append(list, json_edit_object(ed));
}

struct object *fields_trim(struct object *o)
{
    return fields_are_applied(o) ? object_lean(o) : informer_trim_managed(o);
}
