#include "kube/typed.h"

#include "kube/typed_place.h"

/* Members of an object; of anything else, null included, there are none. */
static size_t members(struct json_node *v)
{
    return json_node_type(v) == JSON_OBJECT ? json_node_count(v) : 0;
}

static size_t elements(struct json_node *v)
{
    return json_node_type(v) == JSON_ARRAY ? json_node_count(v) : 0;
}

struct fields {
    bool is_unique;
    struct err *e;
};

static int add_fields(const struct fields *f, const struct place *p, struct json_node *v,
                      struct json_node *set);

/* An identity that two elements share is one field, and nothing below it. */
static int add_elements(const struct fields *f, const struct place *p, struct json_node *list,
                        struct json_node *set)
{
    struct json_edit *ed = json_node_edit(set);
    struct json_node *seen = json_edit_object(ed), *twice = json_edit_object(ed);
    struct place inner = place_of_element(p);

    for (size_t i = 0; i < elements(list); i++) {
        struct span id = place_identity(p, json_node_at(list, i));

        if (!id.p && f->is_unique)
            return err_set(f->e, ERR_INVALID,
                           "element %zu: associative list has an element without its keys", i);
        if (!id.p)
            continue;
        if (json_node_get_span(seen, id) && f->is_unique)
            return err_set(f->e, ERR_INVALID, "duplicate entries for key %.*s",
                           SPAN_ARG(span_slice(span_skip(id, 2), 0, 128)));
        (void)json_node_set_span(json_node_get_span(seen, id) ? twice : seen, id,
                                 json_edit_null(ed));
    }
    for (size_t i = 0; i < elements(list); i++) {
        struct json_node *element = json_node_at(list, i);
        struct span id = place_identity(p, element);
        struct json_node *child;

        if (!id.p)
            continue;
        child = fieldset_child(set, id);
        fieldset_mark(child);
        if (!json_node_get_span(twice, id) && inner.shape != PLACE_LEAF &&
            add_fields(f, &inner, element, child) < 0)
            return -1;
    }
    return 0;
}

static int add_fields(const struct fields *f, const struct place *p, struct json_node *v,
                      struct json_node *set)
{
    struct json_edit *ed = json_node_edit(set);

    if (p->shape == PLACE_LEAF) {
        fieldset_mark(set);
        return 0;
    }
    if (p->shape == PLACE_LIST)
        return add_elements(f, p, v, set);
    for (size_t i = 0; i < members(v); i++) {
        struct span name = json_node_name_at(v, i);
        struct json_node *value = json_node_value_at(v, i),
                         *child = fieldset_child(set, fieldset_field(ed, name));
        struct place inner = place_of_member(p, name);

        if (add_fields(f, &inner, value, child) < 0)
            return -1;
        if (p->shape == PLACE_MAP || json_node_type(value) == JSON_NULL ||
            (json_node_type(value) == JSON_OBJECT && json_node_count(value) == 0))
            fieldset_mark(child);
    }
    return 0;
}

int typed_fields(const struct schema_type *type, struct json_node *value, bool is_unique,
                 struct json_node **ret, struct err *e)
{
    struct json_node *set = fieldset_new(json_node_edit(value));
    struct place root = place_of_type(type);

    if (add_fields(&(struct fields){ is_unique, e }, &root, value, set) < 0)
        return -1;
    *ret = set;
    return 0;
}

enum change { ADDED, REMOVED, MODIFIED, CHANGE_COUNT };

/* Where a comparison stands. The nodes of the sets are made when something differs there, which is rare. */
struct at {
    struct at *up;
    struct span name; /* of a member, or the identity of an element */
    bool is_member;
    struct json_node *sets[CHANGE_COUNT];
};

static void compare(const struct place *p, struct json_node *a, struct json_node *b, struct at *at);

static struct json_node *set_at(struct at *at, enum change change)
{
    struct json_node *parent;

    if (at->sets[change])
        return at->sets[change];
    parent = set_at(at->up, change);
    if (at->is_member) {
        at->name = fieldset_field(json_node_edit(parent), at->name);
        at->is_member = false;
    }
    at->sets[change] = fieldset_child(parent, at->name);
    return at->sets[change];
}

static void mark(struct at *at, enum change change)
{
    fieldset_mark(set_at(at, change));
}

static void compare_leaf(struct json_node *a, struct json_node *b, struct at *at)
{
    if (!a)
        mark(at, ADDED);
    else if (!b)
        mark(at, REMOVED);
    else if (!json_node_equal(a, b))
        mark(at, MODIFIED);
}

/* Untouched and of one document: nothing can differ. */
static bool is_same_view(struct json_node *a, struct json_node *b)
{
    return a && b && json_node_view(a) && json_node_view(a) == json_node_view(b);
}

static void compare_members(const struct place *p, struct json_node *a, struct json_node *b,
                            struct at *at)
{
    struct json_node *sides[] = { a, b };

    for (size_t s = 0; s < LEN(sides); s++)
        for (size_t i = 0; i < members(sides[s]); i++) {
            struct span name = json_node_name_at(sides[s], i);
            struct json_node *mine = json_node_value_at(sides[s], i),
                             *other = json_node_get_span(sides[1 - s], name);
            struct at child = { .up = at, .name = name, .is_member = true };
            struct place inner;

            if ((s == 1 && other) || is_same_view(mine, other))
                continue; /* a member of both was compared in the first round */
            inner = place_of_member(p, name);
            compare(&inner, s == 0 ? mine : other, s == 0 ? other : mine, &child);
        }
}

/* Elements by identity: an array of those that share it. */
static struct json_node *by_identity(const struct place *p, struct json_node *list,
                                     struct json_edit *ed)
{
    struct json_node *map = json_edit_object(ed);

    for (size_t i = 0; i < elements(list); i++) {
        struct json_node *element = json_node_at(list, i), *same;
        struct span id = place_identity(p, element);

        if (!id.p)
            continue;
        same = json_node_get_span(map, id);
        if (!same)
            same = json_node_set_span(map, id, json_edit_array(ed));
        json_node_append(same, element);
    }
    return map;
}

static void compare_element(const struct place *p, struct json_node *mine, struct json_node *theirs,
                            struct at *at)
{
    size_t mine_n = json_node_count(mine), theirs_n = json_node_count(theirs);
    struct json_node *a = json_node_at(mine, 0), *b = json_node_at(theirs, 0);

    if (mine_n <= 1 && theirs_n <= 1) {
        compare(p, a, b, at);
    } else if (mine_n >= 2 && theirs_n >= 2) {
        if (!json_node_equal(mine, theirs))
            mark(at, MODIFIED);
    } else if (mine_n >= 2) {
        if (b)
            compare(p, NULL, b, at);
        mark(at, REMOVED);
    } else {
        if (a)
            compare(p, a, NULL, at);
        mark(at, ADDED);
    }
}

static void compare_lists(const struct place *p, struct json_node *a, struct json_node *b,
                          struct at *at)
{
    struct json_edit *ed = json_node_edit(a ? a : b);
    struct json_node *maps[] = { by_identity(p, a, ed), by_identity(p, b, ed) };
    struct place inner = place_of_element(p);

    for (size_t s = 0; s < LEN(maps); s++)
        for (size_t i = 0; i < json_node_count(maps[s]); i++) {
            struct span id = json_node_name_at(maps[s], i);
            struct at child = { .up = at, .name = id };

            if (s == 1 && json_node_get_span(maps[0], id))
                continue;
            compare_element(&inner, json_node_get_span(maps[0], id),
                            json_node_get_span(maps[1], id), &child);
        }
}

static void compare(const struct place *p, struct json_node *a, struct json_node *b, struct at *at)
{
    bool is_empty =
        p->shape == PLACE_LIST ? !elements(a) && !elements(b) : !members(a) && !members(b);

    if (is_same_view(a, b))
        return;
    if (p->shape == PLACE_LEAF || is_empty) {
        compare_leaf(a, b, at);
        return;
    }
    if (p->shape == PLACE_LIST)
        compare_lists(p, a, b, at);
    else
        compare_members(p, a, b, at);
    if (!a)
        mark(at, ADDED);
    else if (!b)
        mark(at, REMOVED);
}

void typed_compare(const struct schema_type *type, struct json_node *a, struct json_node *b,
                   struct typed_diff *ret)
{
    struct json_edit *ed = json_node_edit(b);
    struct place root = place_of_type(type);
    struct at at = { .sets = { fieldset_new(ed), fieldset_new(ed), fieldset_new(ed) } };

    compare(&root, a, b, &at);
    *ret = (struct typed_diff){ at.sets[ADDED], at.sets[REMOVED], at.sets[MODIFIED] };
}

static void remove_from(const struct place *p, struct json_node *v, struct json_node *set)
{
    struct place inner;

    if (p->shape == PLACE_LIST) {
        struct json_node *kept = json_edit_array(json_node_edit(v));

        inner = place_of_element(p);
        for (size_t i = 0; i < elements(v); i++) {
            struct json_node *element = json_node_at(v, i);
            struct span id = place_identity(p, element);
            struct json_node *gone = id.p ? fieldset_find(set, id) : NULL;

            if (gone && fieldset_is_marked(gone))
                continue;
            if (gone)
                remove_from(&inner, element, gone);
            json_node_append(kept, element);
        }
        while (elements(v))
            json_node_remove_at(v, elements(v) - 1);
        for (size_t i = 0; i < json_node_count(kept); i++)
            json_node_append(v, json_node_at(kept, i));
        return;
    }
    if (p->shape == PLACE_LEAF)
        return;
    for (size_t i = 0; i < json_node_count(set); i++) {
        struct span element = json_node_name_at(set, i), name = span_skip(element, 2);
        struct json_node *gone = json_node_value_at(set, i), *child;

        if (element.n < 2 || element.p[0] != 'f')
            continue;
        child = json_node_get_span(v, name);
        if (!child)
            continue;
        inner = place_of_member(p, name);
        if (fieldset_is_marked(gone))
            (void)json_node_remove_span(v, name);
        else
            remove_from(&inner, child, gone);
    }
}

void typed_remove(const struct schema_type *type, struct json_node *value, struct json_node *set)
{
    struct place root = place_of_type(type);

    remove_from(&root, value, set);
}

static void name_parents(const struct place *p, struct json_node *set)
{
    for (size_t i = 0; i < json_node_count(set); i++) {
        struct span element = json_node_name_at(set, i), name = span_skip(element, 2);
        struct json_node *child = json_node_value_at(set, i);
        struct place inner = { .shape = PLACE_LEAF };

        if (element.n < 2 || fieldset_is_empty(child))
            continue;
        if (p->shape == PLACE_STRUCT && element.p[0] == 'f' && schema_field(p->type, name))
            fieldset_mark(child);
        if ((p->shape == PLACE_STRUCT || p->shape == PLACE_MAP) && element.p[0] == 'f')
            inner = place_of_member(p, name);
        else if (p->shape == PLACE_LIST && element.p[0] == 'k')
            inner = place_of_element(p);
        name_parents(&inner, child);
    }
}

void typed_name_parents(const struct schema_type *type, struct json_node *set)
{
    struct place root = place_of_type(type);

    name_parents(&root, set);
}
