#include "kube/fieldset.h"

#define PATH_MAX_BYTES (16 * 1024) /* a longer path is told cut */

struct json_node *fieldset_new(struct json_edit *ed)
{
    return json_edit_object(ed);
}

void fieldset_mark(struct json_node *set)
{
    if (!json_node_get(set, "."))
        json_node_set(set, ".", json_edit_object(json_node_edit(set)));
}

bool fieldset_is_marked(struct json_node *set)
{
    return json_node_get(set, ".") != NULL;
}

struct json_node *fieldset_find(struct json_node *set, struct span element)
{
    return json_node_get_span(set, element);
}

struct json_node *fieldset_child(struct json_node *set, struct span element)
{
    struct json_node *child = json_node_get_span(set, element);

    return child ? child : json_node_set_span(set, element, fieldset_new(json_node_edit(set)));
}

struct span fieldset_field(struct json_edit *ed, struct span name)
{
    return json_edit_join(ed, SPAN("f:"), name);
}

static bool is_dot(struct span element)
{
    return element.n == 1 && element.p[0] == '.';
}

static bool is_element(struct span element)
{
    return is_dot(element) ||
           (element.n > 1 && element.p[1] == ':' && memchr("fkvi", element.p[0], 4) &&
            (element.n > 2 || *element.p == 'f'));
}

struct json_node *fieldset_decode(struct json_edit *ed, struct json_node *fields, struct err *e)
{
    struct json_node *set = fieldset_new(ed);

    if (json_node_type(fields) != JSON_OBJECT) {
        (void)err_set(e, ERR_INVALID, "a set of fields is a JSON %s, not an object",
                      json_node_type_name(fields));
        return NULL;
    }
    for (size_t i = 0; i < json_node_count(fields); i++) {
        struct span element = json_node_name_at(fields, i);
        struct json_node *below, *child = json_node_value_at(fields, i);

        if (!is_element(element)) {
            (void)err_set(e, ERR_INVALID, "'%.*s' is no element of a path of fields",
                          SPAN_ARG(span_slice(element, 0, 128)));
            return NULL;
        }
        if (is_dot(element)) {
            fieldset_mark(set);
            continue;
        }
        below = fieldset_decode(ed, child, e);
        if (!below)
            return NULL;
        if (json_node_count(child) == 0)
            fieldset_mark(below);
        (void)json_node_set_span(set, element, below);
    }
    return set;
}

bool fieldset_is_empty(struct json_node *set)
{
    for (size_t i = 0; i < json_node_count(set); i++)
        if (is_dot(json_node_name_at(set, i)) || !fieldset_is_empty(json_node_value_at(set, i)))
            return false;
    return true;
}

static struct json_node *encode(struct json_node *set, bool *ret_is_empty)
{
    struct json_edit *ed = json_node_edit(set);
    struct json_node *out = json_edit_object(ed);
    bool is_marked = fieldset_is_marked(set), has_more = false;

    for (size_t i = 0; i < json_node_count(set); i++) {
        struct span element = json_node_name_at(set, i);
        struct json_node *below;
        bool is_empty;

        if (is_dot(element))
            continue;
        below = encode(json_node_value_at(set, i), &is_empty);
        if (is_empty)
            continue;
        if (!has_more && is_marked)
            json_node_set(out, ".", json_edit_object(ed));
        has_more = true;
        (void)json_node_set_span(out, element, below);
    }
    *ret_is_empty = !is_marked && !has_more;
    return out;
}

struct json_node *fieldset_encode(struct json_node *set)
{
    bool is_empty;

    return encode(set, &is_empty);
}

void fieldset_add(struct json_node *set, struct json_node *more)
{
    for (size_t i = 0; i < json_node_count(more); i++) {
        struct span element = json_node_name_at(more, i);

        if (is_dot(element))
            fieldset_mark(set);
        else
            fieldset_add(fieldset_child(set, element), json_node_value_at(more, i));
    }
}

static void subtract(struct json_node *set, struct json_node *less, bool is_below)
{
    for (size_t i = 0; i < json_node_count(less); i++) {
        struct span element = json_node_name_at(less, i);
        struct json_node *mine = fieldset_find(set, element), *theirs = json_node_value_at(less, i);

        if (!mine)
            continue;
        if (is_dot(element) || (is_below && fieldset_is_marked(theirs)))
            (void)json_node_remove_span(set, element);
        else
            subtract(mine, theirs, is_below);
    }
}

void fieldset_subtract(struct json_node *set, struct json_node *less)
{
    subtract(set, less, false);
}

void fieldset_subtract_below(struct json_node *set, struct json_node *less)
{
    subtract(set, less, true);
}

struct json_node *fieldset_common(struct json_node *a, struct json_node *b)
{
    struct json_node *out = fieldset_new(json_node_edit(a));

    for (size_t i = 0; i < json_node_count(a); i++) {
        struct span element = json_node_name_at(a, i);
        struct json_node *mine = json_node_value_at(a, i), *theirs = fieldset_find(b, element);

        if (theirs && is_dot(element))
            fieldset_mark(out);
        else if (theirs)
            (void)json_node_set_span(out, element, fieldset_common(mine, theirs));
    }
    return out;
}

bool fieldset_wire_is_valid(const struct json *wire)
{
    if (json_type(wire) != JSON_OBJECT)
        return false;
    JSON_MEMBERS(name, value, wire)
    {
        if (!is_element(json_str(name)) || !fieldset_wire_is_valid(value))
            return false;
    }
    return true;
}

/* A leaf, or a node that says so. */
static bool wire_is_marked(const struct json *wire)
{
    return json_count(wire) == 0 || json_get(wire, ".");
}

struct json_node *fieldset_wire_common(const struct json *wire, struct json_node *set)
{
    struct json_node *out = fieldset_new(json_node_edit(set));

    for (size_t i = 0; i < json_node_count(set); i++) {
        struct span element = json_node_name_at(set, i);
        const struct json *theirs;
        struct json_node *below, *mine;

        if (is_dot(element) || !(theirs = json_get_span(wire, element)))
            continue;
        mine = json_node_value_at(set, i);
        below = fieldset_wire_common(theirs, mine);
        if (wire_is_marked(theirs) && fieldset_is_marked(mine))
            fieldset_mark(below);
        if (json_node_count(below))
            (void)json_node_set_span(out, element, below);
    }
    return out;
}

bool fieldset_wire_has(const struct json *wire, struct json_node *set)
{
    for (size_t i = 0; i < json_node_count(set); i++) {
        struct span element = json_node_name_at(set, i);
        struct json_node *mine = json_node_value_at(set, i);
        const struct json *theirs = json_get_span(wire, element);

        if (is_dot(element))
            continue;
        if (!theirs && !fieldset_is_empty(mine))
            return false;
        if (theirs && ((fieldset_is_marked(mine) && !wire_is_marked(theirs)) ||
                       !fieldset_wire_has(theirs, mine)))
            return false;
    }
    return true;
}

/* "." comes first, as encode() writes it: the members follow in a new object. */
static struct json_node *with_mark(struct json_node *node)
{
    struct json_edit *ed = json_node_edit(node);
    struct json_node *out = json_edit_object(ed);

    json_node_set(out, ".", json_edit_object(ed));
    for (size_t i = 0; i < json_node_count(node); i++)
        (void)json_node_set_span(out, json_node_name_at(node, i), json_node_value_at(node, i));
    return out;
}

/* One node that is in both; returns who stands in its place. */
static struct json_node *wire_join(struct json_node *mine, struct json_node *more)
{
    bool is_leaf = json_node_count(mine) == 0;
    bool is_marked = is_leaf || json_node_get(mine, "."), has_below = false;

    for (size_t i = 0; i < json_node_count(more) && !has_below; i++)
        has_below =
            !is_dot(json_node_name_at(more, i)) && !fieldset_is_empty(json_node_value_at(more, i));
    if ((is_leaf && has_below) || (!is_marked && fieldset_is_marked(more)))
        mine = with_mark(mine);
    if (has_below)
        fieldset_wire_add(mine, more);
    return mine;
}

void fieldset_wire_add(struct json_node *wire, struct json_node *more)
{
    for (size_t i = 0; i < json_node_count(more); i++) {
        struct span element = json_node_name_at(more, i);
        struct json_node *mine, *theirs = json_node_value_at(more, i), *joined;

        if (is_dot(element) || fieldset_is_empty(theirs))
            continue;
        mine = json_node_get_span(wire, element);
        joined = mine ? wire_join(mine, theirs) : fieldset_encode(theirs);
        if (joined != mine)
            (void)json_node_set_span(wire, element, joined);
    }
}

/* False: nothing is left of it. */
static bool wire_leave(struct json_node *mine, struct json_node *less)
{
    bool is_leaf = json_node_count(mine) == 0;
    bool has_mark = json_node_get(mine, ".") != NULL;
    bool is_marked = (is_leaf || has_mark) && !fieldset_is_marked(less);

    if (!is_leaf)
        fieldset_wire_subtract(mine, less);
    if (has_mark && (!is_marked || json_node_count(mine) == 1)) /* a leaf does not say it */
        (void)json_node_remove(mine, ".");
    return is_marked || json_node_count(mine) > 0;
}

void fieldset_wire_subtract(struct json_node *wire, struct json_node *less)
{
    for (size_t i = 0; i < json_node_count(less); i++) {
        struct span element = json_node_name_at(less, i);
        struct json_node *mine = is_dot(element) ? NULL : json_node_get_span(wire, element);

        if (mine && !wire_leave(mine, json_node_value_at(less, i)))
            (void)json_node_remove_span(wire, element);
    }
}

struct walk {
    struct buf path;
    fieldset_path_fn fn;
    void *ctx;
};

static int compare_names(const void *pa, const void *pb)
{
    const struct span *a = pa, *b = pb;
    int order = memcmp(a->p, b->p, MIN(a->n, b->n));

    return order ? order : (a->n > b->n) - (a->n < b->n);
}

/* `name="a",port=80` of the JSON that a "k:" holds. */
static void tell_key(struct buf *path, struct span json)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;
    bool is_first = true;

    if (json_parse(json, NULL, &doc, &e) < 0)
        return;
    JSON_MEMBERS(name, value, json_doc_root(doc))
    {
        buf_addf_capped(path, "%s%.*s=", is_first ? "" : ",", SPAN_ARG(json_str(name)));
        (void)json_write(value, path, &e);
        is_first = false;
    }
}

/* A path that is too long is cut: the text is for people, and the ceiling is far away. */
static void tell_element(struct buf *path, struct span element)
{
    struct span rest = span_skip(element, 2);

    switch (element.p[0]) {
    case 'f':
        buf_addf_capped(path, ".%.*s", SPAN_ARG(rest));
        break;
    case 'k':
        buf_addc_capped(path, '[');
        tell_key(path, rest);
        buf_addc_capped(path, ']');
        break;
    case 'v':
        buf_addf_capped(path, "[=%.*s]", SPAN_ARG(rest));
        break;
    default:
        buf_addf_capped(path, "[%.*s]", SPAN_ARG(rest));
        break;
    }
}

static void each(struct walk *w, struct json_node *set)
{
    size_t n = json_node_count(set), start = w->path.n;
    OWN_MEM struct span *names = own_array(n, sizeof *names);

    for (size_t i = 0; i < n; i++)
        names[i] = json_node_name_at(set, i);
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++) {
        if (is_dot(names[i]) || !fieldset_is_marked(fieldset_find(set, names[i])))
            continue;
        tell_element(&w->path, names[i]);
        w->fn(w->ctx, buf_span(&w->path));
        buf_truncate(&w->path, start);
    }
    for (size_t i = 0; i < n; i++) {
        if (is_dot(names[i]))
            continue;
        tell_element(&w->path, names[i]);
        each(w, fieldset_find(set, names[i]));
        buf_truncate(&w->path, start);
    }
}

void fieldset_each(struct json_node *set, fieldset_path_fn fn, void *ctx)
{
    struct walk w = { .path = BUF_INIT(PATH_MAX_BYTES), .fn = fn, .ctx = ctx };

    each(&w, set);
    buf_done(&w.path);
}
