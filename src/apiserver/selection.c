#include "apiserver/selection.h"

int selection_init(struct selection *s, const struct op *op, const char *labels, const char *fields,
                   struct status *st)
{
    struct err e;

    *s = (struct selection){ .kind = op_number(op->kind), .namespace = op->namespace };
    if (labels && *labels && selector_parse(span_cstr(labels), &s->labels, &e) < 0)
        return status_of_err(st, &e);
    if (fields && *fields && field_selector_parse(op->kind, span_cstr(fields), &s->fields, &e) < 0)
        return status_of_err(st, &e);
    return 0;
}

void selection_done(struct selection *s)
{
    selector_free(s->labels);
    field_selector_free(s->fields);
    *s = (struct selection){ .namespace = "" };
}

bool selection_holds(const struct selection *s, const struct object *o)
{
    return (!s->labels || selector_matches_object(s->labels, o)) &&
           (!s->fields || field_selector_matches(s->fields, o));
}

const char *selection_name(const struct selection *s)
{
    const char *name = s->fields ? field_selector_value(s->fields, "metadata.name") : NULL;

    return name ? name : "";
}

bool selection_judge(const struct selection *s, const struct store_event *ev,
                     enum event_type *ret_type, struct object **ret)
{
    bool is_now, was;

    *ret_type = ev->type;
    if (s->labels || s->fields) {
        is_now = ev->type != EVENT_DELETED && selection_holds(s, ev->now);
        was = ev->before && selection_holds(s, ev->before);
        if (!is_now && !was)
            return false;
        *ret_type = is_now && was ? EVENT_MODIFIED : is_now ? EVENT_ADDED : EVENT_DELETED;
    }
    *ret = *ret_type == EVENT_DELETED && ev->type != EVENT_DELETED
               ? object_with_version(ev->before, ev->version)
               : object_ref(ev->now);
    return true;
}
