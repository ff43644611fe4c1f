#include "controller/condition.h"

#include "controller/names.h"

static size_t place_of(struct json_node *list, const char *type)
{
    for (size_t i = 0; i < json_node_count(list); i++)
        if (span_is(json_node_str(json_node_get(json_node_at(list, i), "type")), type))
            return i;
    return SIZE_MAX;
}

void condition_set(struct json_node *list, const struct condition *c, const char *now)
{
    struct json_edit *ed = json_node_edit(list);
    size_t place = place_of(list, c->type);
    struct json_node *made = place == SIZE_MAX ? json_edit_object(ed) : json_node_at(list, place);
    bool has_flipped = !span_is(json_node_str(json_node_get(made, "status")), c->status);

    tree_text(made, "type", c->type);
    tree_text(made, "status", c->status);
    json_node_set(made, "observedGeneration",
                  c->generation ? json_edit_i64(ed, c->generation) : NULL);
    if (has_flipped || !json_node_get(made, "lastTransitionTime"))
        tree_text(made, "lastTransitionTime", c->since ? c->since : now);
    tree_text(made, "reason", c->reason);
    tree_text(made, "message", c->message);
    if (place == SIZE_MAX)
        json_node_append(list, made);
}

void condition_remove(struct json_node *list, const char *type)
{
    size_t place = place_of(list, type);

    if (place != SIZE_MAX)
        json_node_remove_at(list, place);
}

const struct json *condition_find(const struct json *list, const char *type)
{
    JSON_EACH(c, list)
    {
        if (span_is(json_str(json_get(c, "type")), type))
            return c;
    }
    return NULL;
}

bool condition_is(const struct json *list, const char *type, const char *status)
{
    return span_is(json_str(json_get(condition_find(list, type), "status")), status);
}

const char *condition_reason(const struct json *list, const char *type)
{
    const char *reason = json_cstr(json_get(condition_find(list, type), "reason"));

    return reason ? reason : "";
}
