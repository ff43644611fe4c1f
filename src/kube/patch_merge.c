/* Merge patch (RFC 7386): objects are merged, null removes, everything else replaces. */
#include "kube/patch.h"

static struct json_node *value_of(struct json_edit *ed, const struct json *v)
{
    struct json_node *node = json_edit_view(ed, v);

    json_node_prune(node);
    return node;
}

static void merge(struct json_node *into, const struct json *patch)
{
    struct json_edit *ed = json_node_edit(into);

    JSON_MEMBERS(name, value, patch)
    {
        struct span key = json_str(name);
        struct json_node *there;

        if (json_is_null(value)) {
            (void)json_node_remove_span(into, key);
            continue;
        }
        there = json_node_get_span(into, key);
        if (json_node_type(there) == JSON_OBJECT && json_type(value) == JSON_OBJECT)
            merge(there, value);
        else if (json_node_type(there) == JSON_OBJECT)
            (void)json_node_set_span(into, key, json_edit_view(ed, value));
        else
            (void)json_node_set_span(into, key, value_of(ed, value));
    }
}

int patch_merge(struct json_node *root, const struct json *patch, struct err *e)
{
    if (json_is_null(patch))
        return err_set(e, ERR_PROTOCOL, "Invalid JSON Patch");
    if (json_type(patch) != JSON_OBJECT)
        return err_set(e, ERR_PROTOCOL,
                       "error decoding patch: json: cannot unmarshal %s into Go value of type "
                       "map[string]interface {}",
                       json_type(patch) == JSON_BOOL ? "bool" : json_type_name(patch));
    merge(root, patch);
    if (json_edit_is_full(json_node_edit(root)) || json_node_is_deeper(root, JSON_DEPTH_MAX))
        return err_set(e, ERR_LIMIT, "the patch makes more of the object than there can be");
    return 0;
}
