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
    struct json_edit *ed;
    bool is_given_up; /* an identity twice or none, or a list too long */
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

static bool has_inside(const struct place *p, const struct json *v)
{
    enum json_type wanted = p->shape == PLACE_LIST ? JSON_ARRAY : JSON_OBJECT;

    return p->shape != PLACE_LEAF && json_type(v) == wanted && json_count(v) > 0;
}

static bool is_marked(const struct place *p, enum was was, const struct json *v)
{
    if (was == WAS_NULL && !has_inside(p, v))
        return json_type(v) != JSON_NULL;
    return was == WAS_ABSENT;
}

/* Something in it is in the set. Finds the first, so it is quick. */
static bool adds_any(const struct writing *w, const struct place *p, enum was was,
                     const struct json *v)
{
    if (is_marked(p, was, v))
        return true;
    if (!has_inside(p, v))
        return false;
    JSON_EACH(element, v)
    {
        if (place_identity_of(p, element, w->ed).p)
            return true;
    }
    JSON_MEMBERS(name, value, v)
    {
        struct place inner = place_of_member(p, json_str(name));

        if (adds_any(w, &inner, was_member(p, was, json_str(name)), value))
            return true;
    }
    return false;
}

static void put_field(struct writing *w, struct span name)
{
    uint8_t text[128] = "f:";

    if (name.n > sizeof text - 2) {
        json_out_key_span(&w->o, fieldset_field(w->ed, name));
        return;
    }
    memcpy(text + 2, name.p, name.n);
    json_out_key_span(&w->o, span_of(text, name.n + 2));
}

static void put_node(struct writing *w, const struct place *p, enum was was, const struct json *v);

static void put_elements(struct writing *w, const struct place *p, const struct json *list)
{
    struct place inner = place_of_element(p);
    struct span seen[LIST_MAX];
    size_t seen_n = 0;

    if (json_count(list) > LIST_MAX) {
        w->is_given_up = true;
        return;
    }
    JSON_EACH(element, list)
    {
        struct span id = place_identity_of(p, element, w->ed);

        if (!id.p) {
            w->is_given_up = true;
            return;
        }
        for (size_t k = 0; k < seen_n; k++)
            w->is_given_up |= span_eq(seen[k], id);
        seen[seen_n++] = id;
        json_out_key_span(&w->o, id);
        put_node(w, &inner, WAS_ABSENT, element);
    }
}

static void put_member(struct writing *w, const struct place *p, enum was was, struct span name,
                       const struct json *value)
{
    struct place inner = place_of_member(p, name);
    enum was before = was_member(p, was, name);

    if (!adds_any(w, &inner, before, value))
        return;
    put_field(w, name);
    put_node(w, &inner, before, value);
}

static void put_node(struct writing *w, const struct place *p, enum was was, const struct json *v)
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
        JSON_MEMBERS(name, value, v)
        {
            put_member(w, p, was, json_str(name), value);
        }
    }
    json_out_object_end(&w->o);
}

static bool is_in(struct span name, const char *const *names)
{
    while (*names && !span_is(name, *names))
        names++;
    return *names != NULL;
}

/* It is nobody's itself, nor are some of its members. */
static void put_metadata(struct writing *w, const struct place *p, struct json_node *meta,
                         const char *const *skip)
{
    bool has_any = false;
    struct err e;

    for (size_t i = 0; i < json_node_count(meta); i++) {
        struct span name = json_node_name_at(meta, i);
        struct json_node *node = json_node_value_at(meta, i);
        struct place inner = place_of_member(p, name);
        enum was before = was_member(p, WAS_STRUCT, name);

        if (is_in(name, skip))
            continue;
        w->is_given_up |= json_node_settle(node, &e) < 0;
        if (w->is_given_up || !adds_any(w, &inner, before, json_node_plain(node)))
            continue;
        if (!has_any) {
            put_field(w, SPAN("metadata"));
            json_out_object_begin(&w->o);
        }
        has_any = true;
        put_field(w, name);
        put_node(w, &inner, before, json_node_plain(node));
    }
    if (has_any)
        json_out_object_end(&w->o);
}

bool typed_write_new(const struct schema_type *type, struct json_node *object,
                     const struct typed_skip *skip, struct buf *out)
{
    struct place root = place_of_type(type);
    struct writing w = { .ed = json_node_edit(object), .is_given_up = root.shape != PLACE_STRUCT };
    struct err e;

    json_out_init(&w.o, out, 0);
    json_out_object_begin(&w.o);
    for (size_t i = 0; i < json_node_count(object) && !w.is_given_up; i++) {
        struct span name = json_node_name_at(object, i);
        struct json_node *node = json_node_value_at(object, i);
        struct place inner = place_of_member(&root, name);

        if (is_in(name, skip->members))
            continue;
        if (span_is(name, "metadata") && json_node_type(node) == JSON_OBJECT) {
            put_metadata(&w, &inner, node, skip->metadata);
            continue;
        }
        w.is_given_up |= json_node_settle(node, &e) < 0;
        if (!w.is_given_up)
            put_member(&w, &root, WAS_STRUCT, name, json_node_plain(node));
    }
    json_out_object_end(&w.o);
    return json_out_end(&w.o, &e) == 0 && !w.is_given_up;
}
