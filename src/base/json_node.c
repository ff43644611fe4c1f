/* What is read of nodes, and what takes whole trees: copy, compare, write. Trees may be nested as deep
 * as a hostile patch likes, so every recursion counts. */
#include "base/json_edit_impl.h"
#include "base/json_sink.h"

struct json_edit *json_node_edit(const struct json_node *node)
{
    return node ? node->ed : NULL;
}

enum json_type json_node_type(const struct json_node *node)
{
    return node ? (enum json_type)node->v.type : JSON_NONE;
}

const char *json_node_type_name(const struct json_node *node)
{
    return json_type_name(node ? &node->v : NULL);
}

struct span json_node_str(const struct json_node *node)
{
    return json_str(node ? &node->v : NULL);
}

const char *json_node_cstr(const struct json_node *node)
{
    return json_cstr(node ? &node->v : NULL);
}

struct span json_node_number(const struct json_node *node)
{
    return json_number(node ? &node->v : NULL);
}

bool json_node_i64(const struct json_node *node, int64_t *ret)
{
    return json_i64(node ? &node->v : NULL, ret);
}

bool json_node_double(const struct json_node *node, double *ret)
{
    return json_double(node ? &node->v : NULL, ret);
}

bool json_node_bool(const struct json_node *node, bool *ret)
{
    return json_bool(node ? &node->v : NULL, ret);
}

const struct json *json_node_view(const struct json_node *node)
{
    return node ? node->view : NULL;
}

const struct json *json_node_plain(const struct json_node *node)
{
    if (!node || node->view)
        return node ? node->view : NULL;
    return node->v.type < JSON_ARRAY ? &node->v : NULL;
}

size_t json_node_count(struct json_node *node)
{
    if (json_node_type(node) < JSON_ARRAY)
        return 0;
    /* Of an object whose names were never compared only the items know how many are left. */
    if (node->view && node->v.type == JSON_OBJECT && !(node->v.flags & JSON_FLAG_UNIQUE) &&
        !json_node_open(node))
        return 0;
    return node->v.n - node->holes;
}

static struct json_item *place(struct json_node *node, enum json_type type, size_t i)
{
    if (json_node_type(node) != type || !json_node_open(node))
        return NULL;
    json_node_compact(node);
    return i < node->v.n ? &node->items[i] : NULL;
}

struct json_node *json_node_at(struct json_node *array, size_t i)
{
    struct json_item *item = place(array, JSON_ARRAY, i);

    return item ? json_node_of(array->ed, item) : NULL;
}

struct span json_node_name_at(struct json_node *object, size_t i)
{
    struct json_item *item = place(object, JSON_OBJECT, i);

    return item ? span_of(item->name, item->name_n) : SPAN_NONE;
}

struct json_node *json_node_value_at(struct json_node *object, size_t i)
{
    struct json_item *item = place(object, JSON_OBJECT, i);

    return item ? json_node_of(object->ed, item) : NULL;
}

static struct json_node *copy(struct json_edit *ed, struct json_node *node, unsigned depth)
{
    struct json_node *to;

    if (node->view)
        return json_edit_view(ed, node->view);
    if (depth > JSON_DEPTH_MAX)
        json_edit_fill(ed);
    if (json_edit_is_full(ed))
        return json_edit_null(ed);
    if (node->v.type == JSON_STRING)
        return json_edit_str(ed, json_str(&node->v));
    if (node->v.type == JSON_NUMBER)
        return json_edit_number(ed, json_number(&node->v));
    if (node->v.type < JSON_ARRAY)
        return node->v.type == JSON_BOOL ? json_edit_bool(ed, node->v.n) : json_edit_null(ed);
    json_node_compact(node);
    to = json_edit_room(ed, (enum json_type)node->v.type, node->v.n);
    for (uint32_t i = 0; i < node->v.n && !json_edit_is_full(ed); i++) {
        struct json_item *item = &to->items[i];

        *item = node->items[i];
        if (item->name && ed != node->ed)
            item->name = json_edit_text(ed, span_of(item->name, item->name_n)).p;
        if (item->is_node)
            item->u.node = copy(ed, item->u.node, depth + 1);
    }
    return json_edit_is_full(ed) ? json_edit_null(ed) : to;
}

struct json_node *json_node_copy(struct json_edit *ed, struct json_node *node)
{
    return node ? copy(ed, node, 1) : NULL;
}

/* The same nodes in the same order. Cheap, and usually true of what was not changed; false says nothing. */
static bool is_same_run(const struct json *a, const struct json *b)
{
    size_t n = json_skip(a);

    if (a == b)
        return true;
    if (n != json_skip(b))
        return false;
    for (; n--; a++, b++) {
        if (a->type != b->type || a->n != b->n ||
            (a->type == JSON_OBJECT && !(a->flags & b->flags & JSON_FLAG_UNIQUE)))
            return false;
        if ((a->type == JSON_STRING || a->type == JSON_NUMBER) &&
            memcmp(a->u.text, b->u.text, a->n) != 0)
            return false;
    }
    return true;
}

static bool is_same_scalar(const struct json *a, const struct json *b)
{
    int64_t ia, ib;
    double da, db;

    if (a->type == JSON_NULL)
        return true;
    if (a->type == JSON_BOOL)
        return a->n == b->n;
    if (a->n == b->n && memcmp(a->u.text, b->u.text, a->n) == 0)
        return true;
    if (a->type == JSON_STRING)
        return false;
    if (json_i64(a, &ia) && json_i64(b, &ib))
        return ia == ib;
    return json_double(a, &da) && json_double(b, &db) && da == db;
}

static bool equal(struct json_node *a, struct json_node *b, unsigned depth)
{
    size_t n = json_node_count(a);

    if (json_node_type(a) != json_node_type(b) || n != json_node_count(b) || depth > JSON_DEPTH_MAX)
        return false;
    if (!a || (a->view && b->view && is_same_run(a->view, b->view)))
        return true;
    if (a->v.type < JSON_ARRAY)
        return is_same_scalar(&a->v, &b->v);
    for (size_t i = 0; i < n; i++) {
        struct json_node *x, *y;

        if (a->v.type == JSON_ARRAY) {
            x = json_node_at(a, i);
            y = json_node_at(b, i);
        } else {
            x = json_node_value_at(a, i);
            y = json_node_get_span(b, json_node_name_at(a, i));
        }
        if (!x || !equal(x, y, depth + 1))
            return false;
    }
    return true;
}

bool json_node_equal(struct json_node *a, struct json_node *b)
{
    return a == b || equal(a, b, 1);
}

bool json_node_equal_value(struct json_node *a, const struct json *b)
{
    return a ? json_node_equal(a, json_edit_view(a->ed, b)) : !b;
}

static bool is_deeper_value(const struct json *v, unsigned max)
{
    if (json_type(v) < JSON_ARRAY || json_skip(v) <= max) /* each level is a node */
        return false;
    if (max == 0)
        return true;
    JSON_EACH(item, v)
    {
        if (is_deeper_value(item, max - 1))
            return true;
    }
    JSON_MEMBERS(name, value, v)
    {
        if (is_deeper_value(value, max - 1))
            return true;
    }
    return false;
}

bool json_node_is_deeper(struct json_node *node, unsigned max)
{
    if (json_node_type(node) < JSON_ARRAY)
        return false;
    if (node->view)
        return is_deeper_value(node->view, max);
    if (max == 0)
        return true;
    for (uint32_t i = 0; i < node->v.n; i++) {
        const struct json_item *item = &node->items[i];

        if (node->v.type == JSON_OBJECT && !item->name)
            continue;
        if (item->is_node ? json_node_is_deeper(item->u.node, max - 1)
                          : is_deeper_value(item->u.view, max - 1))
            return true;
    }
    return false;
}

/* No object in it has a name twice, as far as the parser looked. */
static bool is_unique(const struct json *v)
{
    size_t n = json_skip(v);

    for (size_t i = 0; i < n; i++)
        if (v[i].type == JSON_OBJECT && !(v[i].flags & JSON_FLAG_UNIQUE))
            return false;
    return true;
}

static size_t dedupe(struct json_node *node, unsigned depth)
{
    size_t n = node->v.n, gone;

    if (json_node_type(node) < JSON_ARRAY || (node->view && is_unique(node->view)) ||
        depth > JSON_DEPTH_MAX || !json_node_open(node))
        return 0;
    json_node_compact(node);
    gone = n - node->v.n;
    for (uint32_t i = 0; i < node->v.n; i++) {
        struct json_item *item = &node->items[i];

        if (item->is_node || !is_unique(item->u.view))
            gone += dedupe(json_node_of(node->ed, item), depth + 1);
    }
    return gone;
}

size_t json_node_dedupe(struct json_node *node)
{
    return node ? dedupe(node, 1) : 0;
}

static bool has_null(const struct json *v)
{
    for (size_t i = 0; i < json_skip(v); i++)
        if (v[i].type == JSON_NULL)
            return true;
    return false;
}

static void prune(struct json_node *node, unsigned depth)
{
    if (node->v.type < JSON_ARRAY || (node->view && !has_null(node->view)) ||
        depth > JSON_DEPTH_MAX || !json_node_open(node))
        return;
    for (uint32_t i = 0; i < node->v.n; i++) {
        struct json_item *item = &node->items[i];
        struct json_node *child;

        if (node->v.type == JSON_OBJECT && !item->name)
            continue;
        if (!item->is_node && !has_null(item->u.view))
            continue;
        child = json_node_of(node->ed, item);
        if (node->v.type == JSON_OBJECT && child->v.type == JSON_NULL)
            item->name = NULL, node->holes++;
        else
            prune(child, depth + 1);
    }
}

void json_node_prune(struct json_node *node)
{
    if (node)
        prune(node, 1);
}

static bool write_node(struct json_sink *s, struct json_node *node, unsigned depth);

static bool write_name(struct json_sink *s, const struct json_item *item)
{
    if (!item->is_plain)
        return json_sink_string(s, span_of(item->name, item->name_n), 0) && json_sink_byte(s, ':');
    if (!json_sink_room(s, (size_t)item->name_n + 3))
        return false;
    *s->p++ = '"';
    memcpy(s->p, item->name, item->name_n);
    s->p += item->name_n;
    *s->p++ = '"';
    *s->p++ = ':';
    return true;
}

static bool write_items(struct json_sink *s, struct json_node *node, unsigned depth)
{
    bool is_object = node->v.type == JSON_OBJECT;

    for (uint32_t i = 0; i < node->v.n; i++) {
        struct json_item *item = &node->items[i];

        if (i && !json_sink_byte(s, ','))
            return false;
        if (is_object && !write_name(s, item))
            return false;
        if (!(item->is_node ? write_node(s, item->u.node, depth + 1)
                            : json_sink_tree(s, item->u.view, 0)))
            return false;
    }
    return true;
}

static bool write_node(struct json_sink *s, struct json_node *node, unsigned depth)
{
    bool is_object = node->v.type == JSON_OBJECT;

    if (node->view || node->v.type < JSON_STRING)
        return json_sink_tree(s, node->view ? node->view : &node->v, 0);
    if (node->v.type == JSON_STRING)
        return json_sink_string(s, json_str(&node->v), 0);
    if (depth > JSON_DEPTH_MAX) {
        (void)err_set(s->e, ERR_LIMIT, "JSON value nested deeper than %d", JSON_DEPTH_MAX);
        return false;
    }
    json_node_compact(node);
    return json_sink_byte(s, is_object ? '{' : '[') && write_items(s, node, depth) &&
           json_sink_byte(s, is_object ? '}' : ']');
}

#define WRITE_GUESS_BYTES 2048 /* most objects' largest member; beyond, the buf doubles */

int json_node_write(struct json_node *node, struct buf *out, struct err *e)
{
    size_t start = out->n;
    struct json_sink s;

    if (json_edit_is_full(node->ed))
        return err_set(e, ERR_LIMIT, "a JSON value grew past what one change may make");
    if (json_sink_begin(&s, out, WRITE_GUESS_BYTES, e) == 0 && write_node(&s, node, 1)) {
        json_sink_end(&s);
        return 0;
    }
    buf_truncate(out, start);
    return -1;
}

/* The text is the node's compact form, so it is the document's cached one too. */
static int make_doc(struct json_node *node, struct span text, struct json_doc **ret, struct err *e)
{
    struct json_doc *doc = json_build(node, text.n);

    if (!doc && json_parse(text, NULL, &doc, e) < 0)
        return -1;
    doc->other = json_pack(text);
    *ret = doc;
    return 0;
}

int json_node_freeze(struct json_node *node, struct json_doc **ret, struct err *e)
{
    struct json_doc *same = node->view ? json_edit_doc_of(node->ed, node->view) : NULL;
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);

    if (same && !json_edit_is_full(node->ed)) {
        *ret = json_doc_ref(same);
        return 0;
    }
    if (json_node_write(node, &text, e) < 0)
        return -1;
    return make_doc(node, buf_span(&text), ret, e);
}

int json_node_settle(struct json_node *node, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (json_node_plain(node))
        return 0;
    if (json_node_freeze(node, &doc, e) < 0)
        return -1;
    node->v = *json_doc_root(json_edit_hold(node->ed, doc));
    node->view = json_doc_root(doc);
    node->items = NULL;
    node->index = NULL;
    node->cap = node->holes = 0;
    return 0;
}

int json_doc_of(const struct json *v, struct json_doc **ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);

    if (json_write(v, &text, e) < 0)
        return -1;
    return make_doc(&(struct json_node){ .v = *v, .view = v }, buf_span(&text), ret, e);
}
