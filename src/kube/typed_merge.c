/* The merge of server-side apply: what is applied wins where both have a field; lists with identities
 * keep the order of what is applied, with the elements of others where they stood. */
#include "kube/typed.h"

#include "kube/typed_place.h"

static struct json_node *merge(const struct place *p, struct json_node *l, struct json_node *r);

static struct json_node *merge_members(const struct place *p, struct json_node *l,
                                       struct json_node *r)
{
    for (size_t i = 0; i < json_node_count(r); i++) {
        struct span name = json_node_name_at(r, i);
        struct place inner = place_of_member(p, name);
        struct json_node *made =
            merge(&inner, json_node_get_span(l, name), json_node_value_at(r, i));

        (void)json_node_set_span(l, name, made);
    }
    return l;
}

/* A list and where its identities stand. */
struct side {
    struct json_node *list;
    struct span *ids;
    size_t n;
    struct json_node *at; /* identity to element */
};

static void side_init(struct side *s, const struct place *p, struct json_node *list,
                      struct json_edit *ed)
{
    size_t n = json_node_type(list) == JSON_ARRAY ? json_node_count(list) : 0;

    *s = (struct side){ .list = list, .ids = own_array(n, sizeof *s->ids), .n = n };
    s->at = json_edit_object(ed);
    for (size_t i = 0; i < n; i++) {
        struct json_node *element = json_node_at(list, i);

        s->ids[i] = place_identity(p, element);
        if (s->ids[i].p && !json_node_get_span(s->at, s->ids[i]))
            (void)json_node_set_span(s->at, s->ids[i], json_edit_i64(ed, (int64_t)i));
    }
}

static struct json_node *element_of(const struct side *s, struct span id)
{
    int64_t at;

    return id.p && json_node_i64(json_node_get_span(s->at, id), &at)
               ? json_node_at(s->list, (size_t)at)
               : NULL;
}

/* The next identity of `r`, from i on, that `l` has too; r->n when there is none. */
static size_t next_shared(const struct side *l, const struct side *r, size_t i)
{
    while (i < r->n && !element_of(l, r->ids[i]))
        i++;
    return i;
}

struct weave {
    const struct place *inner;
    struct side l, r;
    struct json_node *out, *done; /* done: identities of r that were put out */
};

static void put(struct weave *w, struct json_node *l, struct json_node *r)
{
    json_node_append(w->out, merge(w->inner, l, r));
}

static void put_right(struct weave *w, size_t i)
{
    struct span id = w->r.ids[i];

    (void)json_node_set_span(w->done, id, json_edit_null(json_node_edit(w->done)));
    put(w, element_of(&w->l, id), json_node_at(w->r.list, i));
}

static void weave(struct weave *w)
{
    size_t l = 0, r = 0, shared = next_shared(&w->l, &w->r, 0);

    while (l < w->l.n || r < w->r.n) {
        struct span id = l < w->l.n ? w->l.ids[l] : SPAN_NONE;
        bool is_in_both = id.p && element_of(&w->r, id);

        if (l < w->l.n && r < w->r.n && is_in_both) {
            if (span_eq(id, w->r.ids[r])) {
                put_right(w, r++);
                l++;
                shared = next_shared(&w->l, &w->r, r);
                continue;
            }
            if (shared < w->r.n && !span_eq(w->r.ids[shared], id)) {
                l++; /* it comes when its turn in r does */
                continue;
            }
        }
        if (l < w->l.n && !is_in_both) {
            put(w, json_node_at(w->l.list, l), NULL);
            l++;
            continue;
        }
        if (l < w->l.n && json_node_get_span(w->done, id))
            l++;
        if (r < w->r.n) {
            if (r == shared)
                shared = next_shared(&w->l, &w->r, r + 1);
            put_right(w, r++);
        }
    }
}

static struct json_node *merge_lists(const struct place *p, struct json_node *l,
                                     struct json_node *r)
{
    struct json_edit *ed = json_node_edit(l);
    struct place inner = place_of_element(p);
    struct weave w = { .inner = &inner, .out = json_edit_array(ed), .done = json_edit_object(ed) };

    side_init(&w.l, p, l, ed);
    side_init(&w.r, p, r, ed);
    weave(&w);
    free(w.l.ids);
    free(w.r.ids);
    return w.out;
}

static struct json_node *merge(const struct place *p, struct json_node *l, struct json_node *r)
{
    enum json_type wanted = p->shape == PLACE_LIST ? JSON_ARRAY : JSON_OBJECT;
    bool is_there = json_node_type(l) == wanted && json_node_count(l) > 0;

    if (!r || !l)
        return r ? r : l;
    if (p->shape == PLACE_LEAF)
        return r;
    if (json_node_type(r) != wanted) /* null: nothing is said of what is inside */
        return is_there ? l : r;
    if (!is_there)
        return r;
    return p->shape == PLACE_LIST ? merge_lists(p, l, r) : merge_members(p, l, r);
}

struct json_node *typed_merge(const struct schema_type *type, struct json_node *value,
                              struct json_node *over)
{
    struct place root = place_of_type(type);

    return merge(&root, value, over);
}
