/* The fields of a new object, written straight as FieldsV1: what a comparison with the empty object would
 * find. Every create needs it, and trees of sets for a Pod cost more than all the rest of a create. */
#include "kube/typed.h"

#include "kube/typed_place.h"

#define LIST_MAX 32 /* elements are compared each with each; longer lists take the long way */

/* What the empty object has where a value stands. */
enum was {
    WAS_ABSENT,
    WAS_NULL,
    WAS_STRUCT, /* with its own members, of which some are there though empty */
};

struct writing {
    struct json_out o;
    bool is_given_up; /* an identity twice, or a list too long */
};

static enum was was_member(const struct place *p, enum was was, struct span name)
{
    const struct schema_field *f;

    if (was != WAS_STRUCT || p->shape != PLACE_STRUCT)
        return WAS_ABSENT;
    f = schema_field(p->type, name);
    if (!f || !(f->flags & SCHEMA_ALWAYS || span_is(name, "metadata")))
        return WAS_ABSENT;
    return f->shape == SCHEMA_SINGLE && f->value == SCHEMA_OBJECT ? WAS_STRUCT : WAS_NULL;
}

static bool has_inside(const struct place *p, struct json_node *v)
{
    enum json_type wanted = p->shape == PLACE_LIST ? JSON_ARRAY : JSON_OBJECT;

    return p->shape != PLACE_LEAF && json_node_type(v) == wanted && json_node_count(v) > 0;
}

static bool is_marked(const struct place *p, enum was was, struct json_node *v)
{
    if (was == WAS_NULL && !has_inside(p, v))
        return json_node_type(v) != JSON_NULL;
    return was == WAS_ABSENT;
}

/* Something in it is in the set. Finds the first, so it is quick. */
static bool adds_any(const struct place *p, enum was was, struct json_node *v)
{
    if (is_marked(p, was, v))
        return true;
    if (!has_inside(p, v))
        return false;
    if (p->shape == PLACE_LIST) {
        for (size_t i = 0; i < json_node_count(v); i++)
            if (place_identity(p, json_node_at(v, i)).p)
                return true;
        return false;
    }
    for (size_t i = 0; i < json_node_count(v); i++) {
        struct span name = json_node_name_at(v, i);
        struct place inner = place_of_member(p, name);

        if (adds_any(&inner, was_member(p, was, name), json_node_value_at(v, i)))
            return true;
    }
    return false;
}

static void put_field(struct writing *w, struct json_node *in, struct span name)
{
    uint8_t text[128] = "f:";

    if (name.n > sizeof text - 2) {
        json_out_key_span(&w->o, fieldset_field(json_node_edit(in), name));
        return;
    }
    memcpy(text + 2, name.p, name.n);
    json_out_key_span(&w->o, span_of(text, name.n + 2));
}

static void put_node(struct writing *w, const struct place *p, enum was was, struct json_node *v);

static void put_elements(struct writing *w, const struct place *p, struct json_node *list)
{
    struct place inner = place_of_element(p);
    struct span seen[LIST_MAX];
    size_t n = json_node_count(list), seen_n = 0;

    if (n > LIST_MAX) {
        w->is_given_up = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct json_node *element = json_node_at(list, i);
        struct span id = place_identity(p, element);

        if (!id.p)
            continue;
        for (size_t k = 0; k < seen_n; k++)
            w->is_given_up |= span_eq(seen[k], id);
        seen[seen_n++] = id;
        json_out_key_span(&w->o, id);
        put_node(w, &inner, WAS_ABSENT, element);
    }
}

static void put_members(struct writing *w, const struct place *p, enum was was, struct json_node *v)
{
    for (size_t i = 0; i < json_node_count(v); i++) {
        struct span name = json_node_name_at(v, i);
        struct json_node *value = json_node_value_at(v, i);
        struct place inner = place_of_member(p, name);
        enum was before = was_member(p, was, name);

        if (!adds_any(&inner, before, value))
            continue;
        put_field(w, v, name);
        put_node(w, &inner, before, value);
    }
}

static void put_node(struct writing *w, const struct place *p, enum was was, struct json_node *v)
{
    json_out_object_begin(&w->o);
    if (has_inside(p, v)) {
        if (is_marked(p, was, v)) {
            json_out_key(&w->o, ".");
            json_out_object_begin(&w->o);
            json_out_object_end(&w->o);
        }
        if (p->shape == PLACE_LIST)
            put_elements(w, p, v);
        else
            put_members(w, p, was, v);
    }
    json_out_object_end(&w->o);
}

bool typed_write_new(const struct schema_type *type, struct json_node *object,
                     struct json_node *skip, struct buf *out)
{
    struct place root = place_of_type(type);
    struct writing w = { .is_given_up = root.shape != PLACE_STRUCT };
    struct err e;

    json_out_init(&w.o, out, 0);
    json_out_object_begin(&w.o);
    for (size_t i = 0; i < json_node_count(object); i++) {
        struct span name = json_node_name_at(object, i);
        struct json_node *value = json_node_value_at(object, i),
                         *skip_below = json_node_get_span(skip, name);
        struct place inner = place_of_member(&root, name);
        enum was before = was_member(&root, WAS_STRUCT, name);

        if (skip_below && json_node_count(skip_below) == 0)
            continue;
        if (skip_below) { /* its members are named one by one, and it is nobody's itself */
            value = json_node_copy(json_node_edit(object), value);
            for (size_t k = 0; k < json_node_count(skip_below); k++)
                (void)json_node_remove_span(value, json_node_name_at(skip_below, k));
            before = WAS_STRUCT;
        }
        if (!adds_any(&inner, before, value))
            continue;
        put_field(&w, object, name);
        put_node(&w, &inner, before, value);
    }
    json_out_object_end(&w.o);
    return json_out_end(&w.o, &e) == 0 && !w.is_given_up;
}
