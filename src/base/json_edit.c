#include "base/json_edit.h"

#include "base/hash.h"
#include "base/json_edit_impl.h"
#include "base/json_num.h"

#define FIRST_CHUNK_BYTES  (6 * 1024) /* a change of a usual object ends in here: one allocation */
#define CHUNK_MAX_BYTES    (512 * 1024)
#define INDEX_FROM_MEMBERS 16 /* below, comparing is quicker than hashing */

struct chunk {
    struct chunk *next;
};

struct json_edit {
    uint8_t *p, *end; /* what is free of the newest chunk */
    struct chunk *chunks;
    size_t chunk_bytes; /* of the next chunk */
    size_t left_bytes;  /* until the ceiling */
    uint64_t moved_bytes;
    bool is_full;
    struct json_node spill; /* stands for every node that could not be made: null for ever */
    struct json_doc **held;
    uint32_t held_n;
    uint8_t first[FIRST_CHUNK_BYTES] __attribute__((aligned(16)));
};

/* Open addressing; a slot is an item's number plus one. Never deleted from: a hole's slot leads on. */
struct json_index {
    uint32_t mask;
    uint32_t slots[];
};

struct json_edit *json_edit_new(size_t max_bytes)
{
    struct json_edit *ed = malloc(sizeof *ed); /* not zeroed: the first chunk is large */

    if (!ed)
        abort();
    memset(ed, 0, offsetof(struct json_edit, first));
    ed->p = ed->first;
    ed->end = ed->first + sizeof ed->first;
    ed->chunk_bytes = 2 * FIRST_CHUNK_BYTES;
    ed->left_bytes = max_bytes ? max_bytes : JSON_EDIT_MAX_BYTES;
    ed->spill.v.type = JSON_NULL;
    ed->spill.ed = ed;
    return ed;
}

void json_edit_free(struct json_edit *ed)
{
    if (!ed)
        return;
    for (struct chunk *c = ed->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    for (uint32_t i = 0; i < ed->held_n; i++)
        json_doc_unref(ed->held[i]);
    free(ed->held);
    free(ed);
}

void json_edit_done(struct json_edit **ed)
{
    json_edit_free(*ed);
    *ed = NULL;
}

struct json_doc *json_edit_hold(struct json_edit *ed, struct json_doc *doc)
{
    if (!doc)
        return NULL;
    if ((ed->held_n & (ed->held_n - 1)) == 0) /* full at the powers of two */
        ed->held = own_resize(ed->held, ed->held_n ? 2 * (size_t)ed->held_n : 1, sizeof *ed->held);
    ed->held[ed->held_n++] = json_doc_ref(doc);
    return doc;
}

bool json_edit_is_full(const struct json_edit *ed)
{
    return ed->is_full;
}

void json_edit_fill(struct json_edit *ed)
{
    ed->is_full = true;
}

struct json_doc *json_edit_doc_of(const struct json_edit *ed, const struct json *root)
{
    for (uint32_t i = 0; i < ed->held_n; i++)
        if (json_doc_root(ed->held[i]) == root)
            return ed->held[i];
    return NULL;
}

static __attribute__((noinline)) void *alloc_chunk(struct json_edit *ed, size_t n)
{
    size_t bytes = MAX(ed->chunk_bytes, n + sizeof(struct chunk));
    struct chunk *c;

    if (bytes > ed->left_bytes)
        bytes = n + sizeof(struct chunk);
    if (bytes > ed->left_bytes) {
        ed->is_full = true;
        return NULL;
    }
    ed->left_bytes -= bytes;
    ed->chunk_bytes = MIN(2 * ed->chunk_bytes, (size_t)CHUNK_MAX_BYTES);
    c = malloc(bytes);
    if (!c)
        abort();
    c->next = ed->chunks;
    ed->chunks = c;
    if ((size_t)(ed->end - ed->p) < bytes - n) { /* the emptier one serves on */
        ed->p = (uint8_t *)(c + 1) + n;
        ed->end = (uint8_t *)c + bytes;
    }
    return c + 1;
}

/* NULL when the edit is full. Aligned for pointers, not zeroed. */
static void *alloc(struct json_edit *ed, size_t n)
{
    uint8_t *p = ed->p;

    if (ed->is_full)
        return NULL;
    n = (n + 7) & ~(size_t)7;
    if ((size_t)(ed->end - p) < n)
        return alloc_chunk(ed, n);
    ed->p = p + n;
    return p;
}

struct span json_edit_join(struct json_edit *ed, struct span a, struct span b)
{
    size_t n = a.n + b.n;
    uint8_t *p = a.n < UINT32_MAX && n < UINT32_MAX ? alloc(ed, n + 1) : NULL;

    if (!p)
        return SPAN("");
    if (a.n)
        memcpy(p, a.p, a.n);
    if (b.n)
        memcpy(p + a.n, b.p, b.n);
    p[n] = '\0';
    return span_of(p, n);
}

struct span json_edit_text(struct json_edit *ed, struct span s)
{
    return json_edit_join(ed, s, SPAN_NONE);
}

static struct json_node *node_new(struct json_edit *ed, struct json v, const struct json *view)
{
    struct json_node *node = alloc(ed, sizeof *node);

    if (!node)
        return &ed->spill;
    *node = (struct json_node){ .v = v, .view = view, .ed = ed };
    return node;
}

struct json_node *json_edit_view(struct json_edit *ed, const struct json *v)
{
    return v ? node_new(ed, *v, v) : NULL;
}

struct json_node *json_edit_doc(struct json_edit *ed, struct json_doc *doc)
{
    return json_edit_view(ed, json_doc_root(json_edit_hold(ed, doc)));
}

struct json_node *json_edit_object(struct json_edit *ed)
{
    return node_new(ed, (struct json){ .type = JSON_OBJECT }, NULL);
}

struct json_node *json_edit_array(struct json_edit *ed)
{
    return node_new(ed, (struct json){ .type = JSON_ARRAY }, NULL);
}

struct json_node *json_edit_room(struct json_edit *ed, enum json_type type, uint32_t n)
{
    struct json_item *items = alloc(ed, ((size_t)n + 1) * sizeof *items);
    struct json_node *node =
        node_new(ed, (struct json){ .type = (uint8_t)type, .n = items ? n : 0 }, NULL);

    if (ed->is_full)
        return &ed->spill;
    node->items = items;
    node->cap = n + 1;
    return node;
}

struct json_node *json_edit_str(struct json_edit *ed, struct span s)
{
    struct span text = json_edit_text(ed, s);

    return node_new(
        ed, (struct json){ .type = JSON_STRING, .n = (uint32_t)text.n, .u.text = text.p }, NULL);
}

struct json_node *json_edit_cstr(struct json_edit *ed, const char *s)
{
    return json_edit_str(ed, span_cstr(s));
}

struct json_node *json_edit_number(struct json_edit *ed, struct span spelled)
{
    struct span text = json_edit_text(ed, spelled);
    struct json v = { .type = JSON_NUMBER, .n = (uint32_t)text.n, .u.text = text.p };

    if (!memchr(text.p, '.', text.n) && !memchr(text.p, 'e', text.n) &&
        !memchr(text.p, 'E', text.n))
        v.flags = JSON_FLAG_INT;
    return node_new(ed, v, NULL);
}

struct json_node *json_edit_i64(struct json_edit *ed, int64_t v)
{
    char text[JSON_NUM_TEXT_BYTES];

    return json_edit_number(ed, span_of(text, json_num_write_i64(v, text)));
}

struct json_node *json_edit_bool(struct json_edit *ed, bool v)
{
    return node_new(ed, (struct json){ .type = JSON_BOOL, .n = v }, NULL);
}

struct json_node *json_edit_null(struct json_edit *ed)
{
    return node_new(ed, (struct json){ .type = JSON_NULL }, NULL);
}

static bool is_name(const struct json_item *item, struct span name)
{
    return item->name_n == name.n && item->name &&
           (name.n == 0 || memcmp(item->name, name.p, name.n) == 0);
}

/* The slot where the name is, or where it would go. */
static uint32_t *slot_of(const struct json_node *node, struct span name)
{
    struct json_index *x = node->index;
    uint32_t at = (uint32_t)hash_add(0, name) & x->mask;

    while (x->slots[at] && !is_name(&node->items[x->slots[at] - 1], name))
        at = (at + 1) & x->mask;
    return &x->slots[at];
}

/* Also finds duplicates: the earlier one becomes a hole. False when the edit is full. */
static bool make_index(struct json_node *node)
{
    uint32_t size = 64;

    while (size < 4 * (uint64_t)node->v.n && size < 1u << 30)
        size *= 2;
    node->index = alloc(node->ed, sizeof *node->index + size * sizeof(uint32_t));
    if (!node->index)
        return false;
    node->index->mask = size - 1;
    memset(node->index->slots, 0, size * sizeof(uint32_t));
    for (uint32_t i = 0; i < node->v.n; i++) {
        struct json_item *item = &node->items[i];
        uint32_t *slot;

        if (!item->name)
            continue;
        slot = slot_of(node, span_of(item->name, item->name_n));
        if (*slot)
            node->items[*slot - 1].name = NULL, node->holes++;
        *slot = i + 1;
    }
    return true;
}

static void drop_duplicates(struct json_node *node)
{
    if (node->v.n > INDEX_FROM_MEMBERS) {
        (void)make_index(node);
        return;
    }
    for (uint32_t i = 0; i < node->v.n; i++)
        for (uint32_t k = i + 1; k < node->v.n; k++)
            if (is_name(&node->items[k], span_of(node->items[i].name, node->items[i].name_n))) {
                node->items[i].name = NULL, node->holes++;
                break;
            }
}

bool json_node_open(struct json_node *node)
{
    const struct json *view = node->view;
    struct json_item *item;

    if (node->v.type < JSON_ARRAY)
        return false;
    if (!view)
        return true;
    item = alloc(node->ed, ((size_t)view->n + 1) * sizeof *item);
    if (!item)
        return false;
    node->items = item;
    node->cap = view->n + 1;
    node->view = NULL;
    JSON_EACH(v, view)
    {
        *item++ = (struct json_item){ .u.view = v };
    }
    JSON_MEMBERS(name, value, view)
    {
        *item++ = (struct json_item){ .name = name->u.text,
                                      .name_n = name->n,
                                      .is_plain = name->flags & JSON_FLAG_PLAIN,
                                      .u.view = value };
    }
    if (view->type == JSON_OBJECT && !(view->flags & JSON_FLAG_UNIQUE))
        drop_duplicates(node);
    return true;
}

void json_node_compact(struct json_node *node)
{
    uint32_t kept = 0;

    if (node->holes == 0)
        return;
    for (uint32_t i = 0; i < node->v.n; i++)
        if (node->items[i].name)
            node->items[kept++] = node->items[i];
    node->v.n = kept;
    node->holes = 0;
    node->index = NULL;
}

struct json_node *json_node_of(struct json_edit *ed, struct json_item *item)
{
    if (!item->is_node) {
        item->u.node = json_edit_view(ed, item->u.view);
        item->is_node = true;
    }
    return item->u.node;
}

static struct json_item *find(struct json_node *object, struct span name)
{
    if (!object || object->v.type != JSON_OBJECT || !json_node_open(object))
        return NULL;
    if (object->v.n > INDEX_FROM_MEMBERS && (object->index || make_index(object))) {
        uint32_t slot = *slot_of(object, name);

        return slot ? &object->items[slot - 1] : NULL;
    }
    for (uint32_t i = 0; i < object->v.n; i++)
        if (is_name(&object->items[i], name))
            return &object->items[i];
    return NULL;
}

struct json_node *json_node_get_span(struct json_node *object, struct span name)
{
    struct json_item *item = find(object, name);

    return item ? json_node_of(object->ed, item) : NULL;
}

/* One more item at the end, or NULL. */
static struct json_item *grow(struct json_node *node)
{
    uint32_t cap = node->cap < 4 ? 4 : 2 * node->cap;
    struct json_item *items;

    if (node->v.n < node->cap)
        return &node->items[node->v.n++];
    if (node->cap > UINT32_MAX / 2)
        json_edit_fill(node->ed);
    items = alloc(node->ed, cap * sizeof *items);
    if (!items)
        return NULL;
    if (node->v.n)
        memcpy(items, node->items, node->v.n * sizeof *items);
    node->items = items;
    node->cap = cap;
    return &node->items[node->v.n++];
}

static void add_member(struct json_node *object, struct span name, struct json_node *child)
{
    struct span kept = json_edit_text(object->ed, name);
    struct json_item *item = grow(object);

    if (!item)
        return;
    *item = (struct json_item){ .name = kept.p,
                                .name_n = (uint32_t)kept.n,
                                .is_node = true,
                                .is_plain = json_scan_span(kept) == kept.n,
                                .u.node = child };
    if (object->index && object->index->mask / 2 < object->v.n)
        object->index = NULL; /* too small by now; the next lookup makes a larger one */
    if (object->index)
        *slot_of(object, kept) = object->v.n;
}

struct json_node *json_node_set_span(struct json_node *object, struct span name,
                                     struct json_node *child)
{
    struct json_item *item;

    if (!child) {
        (void)json_node_remove_span(object, name);
        return NULL;
    }
    if (!object || object->v.type != JSON_OBJECT || object->ed->is_full || child->ed->is_full)
        return child;
    item = find(object, name);
    if (item)
        item->is_node = true, item->u.node = child;
    else
        add_member(object, name, child);
    return child;
}

struct json_node *json_node_set(struct json_node *object, const char *name, struct json_node *child)
{
    return json_node_set_span(object, span_cstr(name), child);
}

bool json_node_remove_span(struct json_node *object, struct span name)
{
    struct json_item *item = find(object, name);

    if (!item)
        return false;
    item->name = NULL;
    object->holes++;
    return true;
}

bool json_node_remove(struct json_node *object, const char *name)
{
    return json_node_remove_span(object, span_cstr(name));
}

static bool may_move(struct json_edit *ed, size_t items)
{
    ed->moved_bytes += items * sizeof(struct json_item);
    if (ed->moved_bytes > JSON_EDIT_MOVE_MAX_BYTES)
        ed->is_full = true;
    return !ed->is_full;
}

void json_node_insert(struct json_node *array, size_t i, struct json_node *child)
{
    size_t behind;

    if (json_node_type(array) != JSON_ARRAY || !child || !json_node_open(array) || i > array->v.n ||
        !may_move(array->ed, array->v.n - i) || !grow(array))
        return;
    behind = array->v.n - 1 - i;
    if (behind)
        memmove(&array->items[i + 1], &array->items[i], behind * sizeof *array->items);
    array->items[i] = (struct json_item){ .is_node = true, .u.node = child };
}

void json_node_append(struct json_node *array, struct json_node *child)
{
    json_node_insert(array, array ? array->v.n : 0, child);
}

void json_node_replace_at(struct json_node *array, size_t i, struct json_node *child)
{
    if (json_node_type(array) == JSON_ARRAY && child && json_node_open(array) && i < array->v.n)
        array->items[i] = (struct json_item){ .is_node = true, .u.node = child };
}

void json_node_remove_at(struct json_node *array, size_t i)
{
    if (json_node_type(array) != JSON_ARRAY || !json_node_open(array) || i >= array->v.n ||
        !may_move(array->ed, array->v.n - i))
        return;
    array->v.n--;
    memmove(&array->items[i], &array->items[i + 1], (array->v.n - i) * sizeof *array->items);
}
