/* A document made of a tree, node by node. Parsing what was just written would find the same, and costs several times as much. */
#include "base/json_edit_impl.h"
#include "base/str.h"

struct build {
    struct json *nodes, *at;
    uint8_t *text;
};

/* All nodes, names included; SIZE_MAX: too many, or too deep. */
static size_t count(struct json_node *node, unsigned depth)
{
    size_t n = 1;

    if (node->view)
        return json_skip(node->view);
    if (node->v.type < JSON_ARRAY)
        return 1;
    if (depth > JSON_DEPTH_MAX)
        return SIZE_MAX;
    json_node_compact(node);
    for (uint32_t i = 0; i < node->v.n && n < JSON_NODES_MAX; i++) {
        struct json_item *item = &node->items[i];
        size_t below = item->is_node ? count(item->u.node, depth + 1) : json_skip(item->u.view);

        if (below > JSON_NODES_MAX)
            return SIZE_MAX;
        n += below + (node->v.type == JSON_OBJECT);
    }
    return n < JSON_NODES_MAX ? n : SIZE_MAX;
}

/* The text of a document, which is padded: in whole steps, whose rest is written over by what follows. */
static void put_known(struct build *b, const struct json *v)
{
    size_t n = v->n;

    for (size_t i = 0; i < n; i += 16)
        memcpy(b->text + i, v->u.text + i, 16);
    b->text[n] = '\0';
    *b->at = *v;
    b->at++->u.text = b->text;
    b->text += n + 1;
}

static void put_view(struct build *b, const struct json *v)
{
    const struct json *end = v + json_skip(v);

    for (; v < end; v++) {
        if (v->type == JSON_STRING || v->type == JSON_NUMBER)
            put_known(b, v);
        else
            *b->at++ = *v;
    }
}

static bool is_utf8(struct span s)
{
    size_t need, len;

    for (size_t at = 0; at < s.n; at += len) {
        len = str_utf8_len(span_skip(s, at), &need);
        if (len == 0)
            return false;
    }
    return true;
}

/* A text of the edit's. False: it is not UTF-8, so it is written as something else. */
static bool put_made(struct build *b, struct span s, enum json_type type, uint8_t flags)
{
    if (type == JSON_STRING && !(flags & JSON_FLAG_PLAIN)) {
        if (json_scan_span(s) == s.n)
            flags = JSON_FLAG_PLAIN;
        else if (!is_utf8(s))
            return false;
    }
    if (s.n)
        memcpy(b->text, s.p, s.n);
    b->text[s.n] = '\0';
    *b->at++ = (struct json){
        .type = (uint8_t)type, .flags = flags, .n = (uint32_t)s.n, .u.text = b->text
    };
    b->text += s.n + 1;
    return true;
}

static bool put_node(struct build *b, struct json_node *node)
{
    struct json *self = b->at;
    bool is_object = node->v.type == JSON_OBJECT;

    if (node->view) {
        put_view(b, node->view);
        return true;
    }
    if (node->v.type == JSON_STRING || node->v.type == JSON_NUMBER)
        return put_made(b, span_of(node->v.u.text, node->v.n), (enum json_type)node->v.type,
                        node->v.flags);
    *b->at++ = (struct json){ .type = node->v.type,
                              .flags = is_object ? JSON_FLAG_UNIQUE : 0,
                              .n = node->v.n };
    for (uint32_t i = 0; node->v.type >= JSON_ARRAY && i < node->v.n; i++) {
        struct json_item *item = &node->items[i];

        if (is_object && !put_made(b, span_of(item->name, item->name_n), JSON_STRING,
                                   item->is_plain ? JSON_FLAG_PLAIN : 0))
            return false;
        if (!item->is_node)
            put_view(b, item->u.view);
        else if (!put_node(b, item->u.node))
            return false;
    }
    if (node->v.type >= JSON_ARRAY)
        self->u.skip = (uint64_t)(b->at - self);
    return true;
}

struct json_doc *json_build(struct json_node *node, size_t bytes)
{
    size_t n = count(node, 1);
    struct json_doc *doc;
    struct build b;

    if (n == SIZE_MAX || json_node_is_deeper(node, JSON_DEPTH_MAX)) /* a view below may be */
        return NULL;
    doc = malloc(sizeof *doc + bytes + 2 * JSON_PAD_BYTES);
    b.nodes = b.at = malloc(n * sizeof *b.nodes);
    if (!doc || !b.nodes)
        abort(); /* the policy of own.h; not zeroed as own_new would */
    *doc = (struct json_doc){
        .refs = 1, .nodes = b.nodes, .node_count = (uint32_t)n, .text_n = (uint32_t)bytes
    };
    b.text = doc->text;
    if (!put_node(&b, node)) {
        json_doc_unref(doc);
        return NULL;
    }
    assert((size_t)(b.at - b.nodes) == n && (size_t)(b.text - doc->text) <= bytes + 1);
    memset(b.text, 0, (size_t)(doc->text + bytes + 2 * JSON_PAD_BYTES - b.text));
    return doc;
}
