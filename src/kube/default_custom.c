/* Custom kinds: what their schema does not know goes, and its defaults come. */
#include "kube/default_kinds.h"

#include "kube/default.h"

static void custom_fields(const struct schema_type *t, struct json_node *node);

static void custom_value(const struct schema_field *f, struct json_node *v)
{
    if (f->value == SCHEMA_OBJECT && json_node_type(v) == JSON_OBJECT)
        custom_fields(f->ref, v);
}

static void custom_field(const struct schema_field *f, struct json_node *v)
{
    static const enum json_type containers[] = {
        [SCHEMA_LIST] = JSON_ARRAY, [SCHEMA_MAP] = JSON_OBJECT
    };

    if (f->value != SCHEMA_OBJECT)
        return;
    if (f->shape == SCHEMA_SINGLE) {
        custom_value(f, v);
        return;
    }
    if (json_node_type(v) != containers[f->shape])
        return;
    if (json_node_view(v) && default_is_custom_done_field(f, json_node_view(v)))
        return;
    for (size_t i = 0; i < json_node_count(v); i++)
        custom_value(f, f->shape == SCHEMA_LIST ? json_node_at(v, i) : json_node_value_at(v, i));
}

static void custom_presets(const struct schema_type *t, struct json_node *node)
{
    for (size_t i = 0; i < t->field_count; i++) {
        const struct schema_field *f = &t->fields[i];

        if (f->preset && !json_node_get(node, f->name))
            custom_field(f, json_node_set(node, f->name,
                                          default_text_node(json_node_edit(node), f->preset)));
    }
}

/* Pruning and defaults of a custom kind. Types may be wrong: validation says so later. */
static void custom_fields(const struct schema_type *t, struct json_node *node)
{
    struct json_edit *ed = json_node_edit(node);

    if (json_node_view(node) && default_is_custom_done(t, json_node_view(node)))
        return;
    for (size_t i = json_node_count(node); i-- > 0 && !json_edit_is_full(ed);) {
        struct span name = json_node_name_at(node, i);
        const struct schema_field *f = schema_field(t, name);
        struct json_node *v = json_node_value_at(node, i);

        if (!f || json_node_type(v) == JSON_NULL)
            json_node_remove_span(node, name);
        else
            custom_field(f, v);
    }
    custom_presets(t, node);
}

void default_custom(const struct schema_type *t, struct json_node *root, struct json_node *was)
{
    struct json_edit *ed = json_node_edit(root);

    for (size_t i = json_node_count(root); i-- > 0 && !json_edit_is_full(ed);) {
        struct span name = json_node_name_at(root, i);
        const struct schema_field *f = schema_field(t, name);
        struct json_node *v = json_node_value_at(root, i);

        if (span_is(name, "apiVersion") || span_is(name, "kind") ||
            (was && default_is_same_view(v, json_node_get_span(was, name))))
            continue;
        if (!f || json_node_type(v) == JSON_NULL)
            json_node_remove_span(root, name);
        else if (span_is(name, "metadata") && json_node_type(v) == JSON_OBJECT)
            default_normalise(f->ref, v, json_node_get(was, "metadata"));
        else
            custom_field(f, v);
    }
    custom_presets(t, root);
}
