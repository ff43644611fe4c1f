/* Strategic merge patch. The schema says which lists are merged, and by which key; directives in the
 * patch say the rest:
 *
 *     "$patch": "replace" | "delete"          of an object, or of an element of a merged list
 *     "$retainKeys": [...]                    members that are not named go
 *     "$deleteFromPrimitiveList/x": [...]     these elements of x go
 *     "$setElementOrder/x": [...]             the order of x after the merge
 *
 * Elements are found by name through an object of the edit, which is a hash table when it is wide: the
 * obvious double loop would let one request of 3 MB take minutes. */
#include "kube/patch.h"

#include <stdio.h>

#define DELETE_PREFIX "$deleteFromPrimitiveList"
#define ORDER_PREFIX  "$setElementOrder"

static struct json_node *merge_map(struct json_node *into, struct json_node *patch,
                                   const struct schema_type *type, struct err *e);

/* The name of a directive's list: what is behind "/". SPAN_NONE: it has none. */
static struct span list_name(struct span directive, const char *prefix)
{
    size_t n = strlen(prefix);

    if (directive.n <= n || directive.p[n] != '/')
        return SPAN_NONE;
    return span_skip(directive, n + 1);
}

/* What tells an element from the others, as a text: itself, or its member `key`. SPAN_NONE: it has
 * none. */
static struct span identity(struct json_node *element, const char *key)
{
    struct json_node *v = key ? json_node_get(element, key) : element;
    struct json_edit *ed = json_node_edit(element);
    char number[32];
    int64_t i;
    bool b;

    if (json_node_i64(v, &i)) {
        (void)snprintf(number, sizeof number, "#%lld", (long long)i);
        return json_edit_text(ed, span_cstr(number));
    }
    if (json_node_bool(v, &b))
        return b ? SPAN("=true") : SPAN("=false");
    if (json_node_type(v) == JSON_NUMBER)
        return json_node_number(v);
    return json_node_type(v) == JSON_STRING ? json_node_str(v) : SPAN_NONE;
}

/* Identity to position, the first of equal ones. NULL: an element without identity. */
static struct json_node *positions(struct json_node *list, const char *key, struct json_edit *ed)
{
    struct json_node *map = json_edit_object(ed);

    for (size_t i = 0; i < json_node_count(list); i++) {
        struct span id = identity(json_node_at(list, i), key);

        if (!id.p)
            return NULL;
        if (!json_node_get_span(map, id))
            (void)json_node_set_span(map, id, json_edit_i64(ed, (int64_t)i));
    }
    return map;
}

static int64_t position(struct json_node *map, struct span id)
{
    int64_t at;

    return json_node_i64(json_node_get_span(map, id), &at) ? at : -1;
}

static int no_key(const char *key, struct err *e)
{
    return err_set(e, ERR_INVALID, "an element of a list does not contain declared merge key: %s",
                   key ? key : "");
}

struct arranged {
    struct json_node *node;
    int64_t wanted; /* position in the order that the patch wants, or -1 */
    int64_t server; /* position in the list as it was, or -1 */
    size_t at;      /* keeps the sort stable */
};

static int compare_wanted(const void *pa, const void *pb)
{
    const struct arranged *a = pa, *b = pb;

    if (a->wanted != b->wanted)
        return a->wanted < b->wanted ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static int compare_server(const void *pa, const void *pb)
{
    const struct arranged *a = pa, *b = pb;

    if (a->server != b->server)
        return a->server < b->server ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Those that the patch names come in its order, the others in their own; an element of the server goes
 * before one of the patch only if it stood before it. */
static struct json_node *weave(struct json_edit *ed, struct arranged *items, size_t patch_n,
                               size_t n)
{
    struct arranged *mine = items, *mine_end = items + patch_n, *theirs = mine_end,
                    *end = items + n;
    struct json_node *out = json_edit_array(ed);

    qsort(mine, patch_n, sizeof *mine, compare_wanted);
    qsort(theirs, n - patch_n, sizeof *theirs, compare_server);
    while (mine < mine_end || theirs < end) {
        bool is_theirs = mine == mine_end || (theirs < end && theirs->server >= 0 &&
                                              mine->server >= 0 && theirs->server < mine->server);

        json_node_append(out, is_theirs ? (theirs++)->node : (mine++)->node);
    }
    return out;
}

static struct json_node *arrange(struct json_node *merged, struct json_node *order,
                                 struct json_node *server, const char *key, struct err *e)
{
    struct json_edit *ed = json_node_edit(merged);
    struct json_node *wanted = positions(order, key, ed), *was = positions(server, key, ed);
    size_t n = json_node_count(merged), patch_n = 0, rest_n = 0;
    OWN_MEM struct arranged *items = NULL;

    if (!wanted || !was) {
        (void)no_key(key, e);
        return NULL;
    }
    items = own_array(2 * n + 1, sizeof *items);
    for (size_t i = 0; i < n; i++) {
        struct json_node *node = json_node_at(merged, i);
        struct span id = identity(node, key);
        struct arranged item = { node, position(wanted, id), position(was, id), i };

        if (!id.p) {
            (void)no_key(key, e);
            return NULL;
        }
        if (item.wanted >= 0)
            items[patch_n++] = item;
        else
            items[n + rest_n++] = item;
    }
    memmove(items + patch_n, items + n, rest_n * sizeof *items);
    return weave(ed, items, patch_n, n);
}

/* All elements of both lists are of one type, and none is a list. JSON_NONE: there are none. */
static int element_type(struct json_node *a, struct json_node *b, enum json_type *ret,
                        struct err *e)
{
    struct json_node *lists[] = { a, b };

    *ret = JSON_NONE;
    EACH(list, lists) {
        for (size_t i = 0; i < json_node_count(*list); i++) {
            enum json_type t = json_node_type(json_node_at(*list, i));

            if (t == JSON_ARRAY)
                return err_set(e, ERR_INVALID, "lists of lists are not supported");
            if ((*ret != JSON_NONE && *ret != t) || t == JSON_NULL)
                return err_set(e, ERR_INVALID, "list element types are not identical");
            *ret = t;
        }
    }
    return 0;
}

/* Elements of the patch that are no directives; "delete" is done on the way. NULL is a failure. */
static struct json_node *do_directives(struct json_node **list, struct json_node *patch,
                                       const char *key, struct err *e)
{
    struct json_edit *ed = json_node_edit(patch);
    struct json_node *plain = json_edit_array(ed), *gone = json_edit_object(ed), *kept;
    bool is_replaced = false;

    for (size_t i = 0; i < json_node_count(patch); i++) {
        struct json_node *element = json_node_at(patch, i),
                         *directive = json_node_get(element, "$patch");
        struct span what = json_node_str(directive), id = identity(element, key);

        if (!directive) {
            json_node_append(plain, element);
        } else if (span_is(what, "delete") && id.p) {
            (void)json_node_set_span(gone, id, json_edit_null(ed));
        } else if (span_is(what, "delete")) {
            (void)no_key(key, e);
            return NULL;
        } else if (span_is(what, "replace")) {
            is_replaced = true;
        } else {
            (void)err_set(e, ERR_INVALID,
                          span_is(what, "merge")
                              ? "merging lists cannot yet be specified in the patch"
                              : "unknown patch type in map");
            return NULL;
        }
    }
    if (is_replaced) {
        *list = plain;
        return json_edit_array(ed);
    }
    if (json_node_count(gone)) {
        kept = json_edit_array(ed);
        for (size_t i = 0; i < json_node_count(*list); i++) {
            struct json_node *element = json_node_at(*list, i);

            if (!json_node_get_span(gone, identity(element, key)))
                json_node_append(kept, element);
        }
        *list = kept;
    }
    return plain;
}

/* Merges elements with those of their key, and appends the others; a new list. */
static struct json_node *merge_elements(struct json_node *list, struct json_node *patch,
                                        const struct schema_field *field, struct err *e)
{
    struct json_edit *ed = json_node_edit(patch);
    struct json_node *merged = json_edit_array(ed), *there = positions(list, field->merge_key, ed);

    for (size_t i = 0; i < json_node_count(list); i++)
        json_node_append(merged, json_node_at(list, i));
    for (size_t i = 0; i < json_node_count(patch); i++) {
        struct json_node *element = json_node_at(patch, i), *made;
        struct span id = identity(element, field->merge_key);
        int64_t at = there ? position(there, id) : -1;

        if (!id.p || !there) {
            (void)no_key(field->merge_key, e);
            return NULL;
        }
        if (at < 0) {
            (void)json_node_set_span(there, id,
                                     json_edit_i64(ed, (int64_t)json_node_count(merged)));
            json_node_append(merged, element);
            continue;
        }
        made = merge_map(json_node_at(merged, (size_t)at), element, field->ref, e);
        if (!made)
            return NULL;
        json_node_replace_at(merged, (size_t)at, made);
    }
    return merged;
}

static struct json_node *without(struct json_node *list, struct json_node *gone_list)
{
    struct json_edit *ed = json_node_edit(list);
    struct json_node *gone = json_edit_object(ed), *kept = json_edit_array(ed);

    for (size_t i = 0; i < json_node_count(gone_list); i++)
        (void)json_node_set_span(gone, identity(json_node_at(gone_list, i), NULL),
                                 json_edit_null(ed));
    for (size_t i = 0; i < json_node_count(list); i++) {
        struct json_node *element = json_node_at(list, i);

        if (!json_node_get_span(gone, identity(element, NULL)))
            json_node_append(kept, element);
    }
    return kept;
}

/* Both in one, each value once. */
static struct json_node *unite(struct json_node *list, struct json_node *patch)
{
    struct json_edit *ed = json_node_edit(list);
    struct json_node *seen = json_edit_object(ed), *merged = json_edit_array(ed);
    struct json_node *lists[] = { list, patch };

    EACH(l, lists) {
        for (size_t i = 0; i < json_node_count(*l); i++) {
            struct json_node *element = json_node_at(*l, i);
            struct span id = identity(element, NULL);

            if (json_node_get_span(seen, id))
                continue;
            (void)json_node_set_span(seen, id, json_edit_null(ed));
            json_node_append(merged, element);
        }
    }
    return merged;
}

static struct json_node *merge_list(struct json_node *list, struct json_node *patch,
                                    const struct schema_field *field, bool is_delete, struct err *e)
{
    bool is_merged = field && field->flags & SCHEMA_PATCH_MERGE;
    struct json_node *merged;
    enum json_type type;

    if (!is_merged && !is_delete)
        return patch;
    if (element_type(list, patch, &type, e) < 0)
        return NULL;
    if (type == JSON_NONE)
        return list;
    if (type != JSON_OBJECT) {
        if (is_delete)
            return without(list, patch);
        return arrange(unite(list, patch), patch, list, NULL, e);
    }
    if (!field || !field->merge_key) {
        (void)err_set(e, ERR_INVALID, "cannot merge lists without merge key for %s",
                      field ? field->name : "an unknown field");
        return NULL;
    }
    patch = do_directives(&list, patch, field->merge_key, e);
    merged = patch ? merge_elements(list, patch, field, e) : NULL;
    return merged ? arrange(merged, patch, list, field->merge_key, e) : NULL;
}

static int apply_retain_keys(struct json_node *into, struct json_node *patch, struct err *e)
{
    struct json_node *list = json_node_get(patch, "$retainKeys"), *keep;
    struct json_edit *ed = json_node_edit(patch);

    if (!list)
        return 0;
    if (json_node_type(list) != JSON_ARRAY)
        return err_set(e, ERR_PROTOCOL, "invalid patch format of retainKeys");
    keep = json_edit_object(ed);
    for (size_t i = 0; i < json_node_count(list); i++)
        (void)json_node_set_span(keep, json_node_str(json_node_at(list, i)), json_edit_null(ed));
    (void)json_node_remove(patch, "$retainKeys");
    for (size_t i = 0; i < json_node_count(patch); i++) {
        struct span name = json_node_name_at(patch, i);

        if (json_node_type(json_node_value_at(patch, i)) != JSON_NULL &&
            !span_starts(name, DELETE_PREFIX) && !span_starts(name, ORDER_PREFIX) &&
            !json_node_get_span(keep, name))
            return err_set(e, ERR_PROTOCOL, "invalid patch format of retainKeys");
    }
    for (size_t i = json_node_count(into); i-- > 0;)
        if (!json_node_get_span(keep, json_node_name_at(into, i)))
            (void)json_node_set_span(into, json_node_name_at(into, i), json_edit_null(ed));
    json_node_prune(into);
    return 0;
}

/* Elements of the patch stand in the order that the directive gives. */
static int judge_order(struct json_node *patch, struct json_node *order, const char *key,
                       struct err *e)
{
    size_t p = 0, o = 0, patch_n = json_node_count(patch), order_n = json_node_count(order);

    if (patch_n == 0 || order_n == 0)
        return 0;
    while (p < patch_n && o < order_n) {
        struct json_node *element = json_node_at(patch, p);

        if (json_node_get(element, "$patch")) {
            p++;
            continue;
        }
        p += span_eq(identity(element, key), identity(json_node_at(order, o), key));
        o++;
    }
    while (p < patch_n && json_node_get(json_node_at(patch, p), "$patch"))
        p++;
    if (p < patch_n)
        return err_set(e, ERR_INVALID, "The order in patch list doesn't match %s list",
                       ORDER_PREFIX);
    return 0;
}

/* Makes null of members that are directives or hold one, in a value that is not merged but taken; the
 * caller prunes them. NULL: it is one itself. */
static struct json_node *without_directives(struct json_node *v)
{
    if (json_node_type(v) == JSON_ARRAY) {
        for (size_t i = json_node_count(v); i-- > 0;)
            if (!without_directives(json_node_at(v, i)))
                json_node_remove_at(v, i);
        return v;
    }
    if (json_node_type(v) != JSON_OBJECT)
        return v;
    if (json_node_get(v, "$patch"))
        return NULL;
    for (size_t i = 0; i < json_node_count(v); i++) {
        struct span name = json_node_name_at(v, i);
        bool is_directive = span_is(name, "$retainKeys") || span_starts(name, DELETE_PREFIX "/") ||
                            span_starts(name, ORDER_PREFIX "/");

        if (is_directive || !without_directives(json_node_value_at(v, i)))
            (void)json_node_set_span(v, name, json_edit_null(json_node_edit(v)));
    }
    return v;
}

/* Most values have no directive: they stay views of the patch. */
static bool has_directive(const struct json *v)
{
    for (size_t i = 0; v && i < json_skip(v); i++)
        if (v[i].type == JSON_STRING && v[i].n && v[i].u.text[0] == '$')
            return true;
    return false;
}

/* A value of the patch as it is put into the object, or NULL. */
static struct json_node *plain_value(struct json_node *v)
{
    if (!json_node_view(v) || has_directive(json_node_view(v)))
        v = without_directives(v);
    json_node_prune(v);
    return v;
}

/* One "$setElementOrder/x": merges x, and puts it in order. */
static int merge_in_order(struct json_node *into, struct json_node *patch,
                          const struct schema_type *type, struct span directive, struct err *e)
{
    struct span name = list_name(directive, ORDER_PREFIX);
    const struct schema_field *field = type ? schema_field(type, name) : NULL;
    const char *key = field ? field->merge_key : NULL;
    struct json_node *order = json_node_get_span(patch, directive),
                     *list = json_node_get_span(into, name),
                     *change = json_node_get_span(patch, name), *merged = list;
    enum json_type element;

    if (!name.p)
        return err_set(e, ERR_PROTOCOL, "invalid patch format of setElementOrder list");
    if (json_node_type(order) != JSON_ARRAY || (list && json_node_type(list) != JSON_ARRAY) ||
        (change && json_node_type(change) != JSON_ARRAY))
        return err_set(e, ERR_INVALID, "expected a list for '%.*s'",
                       SPAN_ARG(span_slice(directive, 0, 128)));
    (void)json_node_remove_span(patch, directive);
    if (judge_order(change, order, key, e) < 0)
        return -1;
    if (!list && !change)
        return 0;
    if (!list)
        merged = plain_value(change);
    else if (change)
        merged = merge_list(list, change, field, false, e);
    if (!merged || element_type(list, change, &element, e) < 0)
        return -1;
    if (element != JSON_NONE)
        merged = arrange(merged, order, list, key, e);
    if (!merged)
        return -1;
    (void)json_node_set_span(into, name, merged);
    (void)json_node_remove_span(patch, name);
    return 0;
}

static int merge_orders(struct json_node *into, struct json_node *patch,
                        const struct schema_type *type, struct err *e)
{
    struct json_node *names = NULL;

    for (size_t i = 0; i < json_node_count(patch); i++) {
        struct json_edit *ed = json_node_edit(patch);

        if (!span_starts(json_node_name_at(patch, i), ORDER_PREFIX))
            continue;
        names = names ? names : json_edit_array(ed);
        json_node_append(names, json_edit_str(ed, json_node_name_at(patch, i)));
    }
    for (size_t i = 0; i < json_node_count(names); i++)
        if (merge_in_order(into, patch, type, json_node_str(json_node_at(names, i)), e) < 0)
            return -1;
    return 0;
}

static int merge_member(struct json_node *into, struct span name, struct json_node *change,
                        const struct schema_type *type, struct err *e)
{
    bool is_delete = span_starts(name, DELETE_PREFIX);
    const struct schema_field *field;
    struct json_node *there, *made = NULL;

    if (is_delete)
        name = list_name(name, DELETE_PREFIX);
    if (!name.p)
        return err_set(e, ERR_PROTOCOL, "invalid patch format of primitive list");
    if (json_node_type(change) == JSON_NULL) {
        (void)json_node_remove_span(into, name);
        return 0;
    }
    there = json_node_get_span(into, name);
    field = type ? schema_field(type, name) : NULL;
    if (json_node_type(there) != json_node_type(change) || json_node_type(change) < JSON_ARRAY) {
        if (!is_delete)
            (void)json_node_set_span(into, name, plain_value(change));
        return 0;
    }
    if (json_node_type(change) == JSON_ARRAY)
        made = merge_list(there, change, field, is_delete, e);
    else if (field && field->flags & SCHEMA_PATCH_REPLACE)
        made = change;
    else
        made =
            merge_map(there, change, field && field->shape == SCHEMA_SINGLE ? field->ref : NULL, e);
    if (!made)
        return -1;
    (void)json_node_set_span(into, name, made);
    return 0;
}

static struct json_node *merge_map(struct json_node *into, struct json_node *patch,
                                   const struct schema_type *type, struct err *e)
{
    struct json_node *directive = json_node_get(patch, "$patch");

    if (directive && span_is(json_node_str(directive), "replace")) {
        (void)json_node_remove(patch, "$patch");
        return patch;
    }
    if (directive && span_is(json_node_str(directive), "delete"))
        return json_edit_object(json_node_edit(patch));
    if (directive) {
        (void)err_set(e, ERR_INVALID, "unknown patch type in map");
        return NULL;
    }
    if (apply_retain_keys(into, patch, e) < 0 || merge_orders(into, patch, type, e) < 0)
        return NULL;
    for (size_t i = 0; i < json_node_count(patch); i++)
        if (merge_member(into, json_node_name_at(patch, i), json_node_value_at(patch, i), type, e) <
            0)
            return NULL;
    return into;
}

int patch_strategic(struct json_node *root, const struct schema_type *type,
                    const struct json *patch, struct err *e)
{
    struct json_edit *ed = json_node_edit(root);
    struct json_node *made;

    if (json_is_null(patch))
        return 0;
    if (json_type(patch) != JSON_OBJECT)
        return err_set(e, ERR_PROTOCOL,
                       "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                       json_type(patch) == JSON_BOOL ? "bool" : json_type_name(patch));
    made = merge_map(root, json_edit_view(ed, patch), type, e);
    if (json_edit_is_full(ed) || (made && json_node_is_deeper(made, JSON_DEPTH_MAX)))
        return err_set(e, ERR_LIMIT, "the patch makes more of the object than there can be");
    if (!made)
        return -1;
    if (made == root)
        return 0;
    /* "$patch" at the top: nothing of the object stays but what the patch brings. */
    for (size_t i = json_node_count(root); i-- > 0;)
        (void)json_node_remove_span(root, json_node_name_at(root, i));
    for (size_t i = 0; i < json_node_count(made); i++)
        (void)json_node_set_span(root, json_node_name_at(made, i), json_node_value_at(made, i));
    return 0;
}
