#include "apiserver/shelf.h"

#include <string.h>

/* A weight-balanced tree (Nievergelt and Reingold; the parameters 3 and 2 are those proven sound by Hirai and Yamamoto):
 * neither subtree has more than DELTA times the weight of the other. */
#define DELTA 3
#define RATIO 2

struct shelf {
    struct shelf *left, *right;
    struct object *object;
    uint32_t refs;
    uint32_t kind;
    size_t count;
};

struct shelf *shelf_ref(struct shelf *s)
{
    if (s)
        s->refs++;
    return s;
}

void shelf_unref(struct shelf *s)
{
    /* The depth of the recursion is the tree's; the right side is the loop's. */
    while (s && --s->refs == 0) {
        struct shelf *right = s->right;

        shelf_unref(s->left);
        object_unref(s->object);
        free(s);
        s = right;
    }
}

size_t shelf_count(const struct shelf *s)
{
    return s ? s->count : 0;
}

/* Takes left and right; the object gets a reference more. */
static struct shelf *node(struct shelf *left, unsigned kind, struct object *o, struct shelf *right)
{
    struct shelf *s = NEW(struct shelf);

    *s = (struct shelf){ .left = left,
                         .right = right,
                         .object = object_ref(o),
                         .refs = 1,
                         .kind = kind,
                         .count = shelf_count(left) + shelf_count(right) + 1 };
    return s;
}

static size_t weight(const struct shelf *s)
{
    return shelf_count(s) + 1;
}

static struct shelf *recount(struct shelf *s)
{
    s->count = shelf_count(s->left) + shelf_count(s->right) + 1;
    return s;
}

/* Takes s; the same node where nobody else holds it, else a copy: it may be changed. */
static struct shelf *mine(struct shelf *s)
{
    struct shelf *copy;

    if (s->refs == 1)
        return s;
    copy = node(shelf_ref(s->left), s->kind, s->object, shelf_ref(s->right));
    s->refs--;
    return copy;
}

/* Both take a node that is ours, and return who stands in its place. */
static struct shelf *rotate_right(struct shelf *s)
{
    struct shelf *left = mine(s->left), *inner = left->right;

    if (weight(inner) < RATIO * weight(left->left)) {
        s->left = inner;
        left->right = recount(s);
        return recount(left);
    }
    inner = mine(inner);
    left->right = inner->left;
    s->left = inner->right;
    inner->left = recount(left);
    inner->right = recount(s);
    return recount(inner);
}

static struct shelf *rotate_left(struct shelf *s)
{
    struct shelf *right = mine(s->right), *inner = right->left;

    if (weight(inner) < RATIO * weight(right->right)) {
        s->right = inner;
        right->left = recount(s);
        return recount(right);
    }
    inner = mine(inner);
    right->left = inner->right;
    s->right = inner->left;
    inner->right = recount(right);
    inner->left = recount(s);
    return recount(inner);
}

/* Takes a node that is ours, whose sides differ from a balanced pair by one object at most. */
static struct shelf *balance(struct shelf *s)
{
    if (weight(s->left) > DELTA * weight(s->right))
        return rotate_right(s);
    if (weight(s->right) > DELTA * weight(s->left))
        return rotate_left(s);
    return recount(s);
}

int shelf_compare(const struct shelf_key *a, const struct shelf_key *b)
{
    int order;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    order = strcmp(a->namespace, b->namespace);
    return order ? order : strcmp(a->name, b->name);
}

static int compare(const struct shelf_key *key, const struct shelf *s)
{
    struct shelf_key there = { s->kind, object_namespace(s->object), object_name(s->object) };

    return shelf_compare(key, &there);
}

struct object *shelf_get(const struct shelf *s, const struct shelf_key *key)
{
    while (s) {
        int order = compare(key, s);

        if (order == 0)
            return s->object;
        s = order < 0 ? s->left : s->right;
    }
    return NULL;
}

static struct shelf *put(struct shelf *s, const struct shelf_key *key, struct object *o)
{
    struct object *was;
    int order;

    if (!s)
        return node(NULL, key->kind, o, NULL);
    order = compare(key, s);
    s = mine(s);
    if (order == 0) {
        was = s->object;
        s->object = object_ref(o);
        object_unref(was);
        return s;
    }
    if (order < 0)
        s->left = put(s->left, key, o);
    else
        s->right = put(s->right, key, o);
    return balance(s);
}

struct shelf *shelf_set(struct shelf *s, unsigned kind, struct object *o)
{
    struct shelf_key key = { kind, object_namespace(o), object_name(o) };

    return put(s, &key, o);
}

struct shelf *shelf_put(struct shelf *s, unsigned kind, struct object *o)
{
    return shelf_set(shelf_ref(s), kind, o);
}

/* Takes s; returns it without its first node, which goes to *ret_first: ours, without sides. */
static struct shelf *without_first(struct shelf *s, struct shelf **ret_first)
{
    struct shelf *rest;

    s = mine(s);
    if (s->left) {
        s->left = without_first(s->left, ret_first);
        return balance(s);
    }
    rest = take_ptr(&s->right);
    *ret_first = s;
    return rest;
}

/* Takes s, which goes; its sides become one. */
static struct shelf *glue(struct shelf *s)
{
    struct shelf *gone = mine(s), *left = take_ptr(&gone->left), *right = take_ptr(&gone->right);
    struct shelf *first, *rest;

    shelf_unref(gone);
    if (!left || !right)
        return left ? left : right;
    rest = without_first(right, &first);
    first->left = left;
    first->right = rest;
    return balance(first);
}

/* Takes s, in which the key is. */
static struct shelf *take_out(struct shelf *s, const struct shelf_key *key)
{
    int order = compare(key, s);

    if (order == 0)
        return glue(s);
    s = mine(s);
    if (order < 0)
        s->left = take_out(s->left, key);
    else
        s->right = take_out(s->right, key);
    return balance(s);
}

struct shelf *shelf_drop(struct shelf *s, const struct shelf_key *key)
{
    return shelf_get(s, key) ? take_out(s, key) : s;
}

struct shelf *shelf_remove(struct shelf *s, const struct shelf_key *key)
{
    return shelf_drop(shelf_ref(s), key);
}

size_t shelf_rank(const struct shelf *s, const struct shelf_key *key)
{
    size_t before = 0;

    while (s) {
        if (compare(key, s) <= 0) {
            s = s->left;
        } else {
            before += shelf_count(s->left) + 1;
            s = s->right;
        }
    }
    return before;
}

/* The path holds the nodes that are still to come, the nearest on top. */
void shelf_walk_init(struct shelf_walk *w, const struct shelf *s, const struct shelf_key *from,
                     bool is_after)
{
    w->depth = 0;
    while (s) {
        int order = compare(from, s);

        if (order < 0 || (order == 0 && !is_after)) {
            assert(w->depth < SHELF_DEPTH_MAX);
            w->path[w->depth++] = s;
            s = s->left;
        } else {
            s = s->right;
        }
    }
}

struct object *shelf_walk_next(struct shelf_walk *w, unsigned *ret_kind)
{
    const struct shelf *s, *below;

    if (w->depth == 0)
        return NULL;
    s = w->path[--w->depth];
    for (below = s->right; below; below = below->left) {
        assert(w->depth < SHELF_DEPTH_MAX);
        w->path[w->depth++] = below;
    }
    if (ret_kind)
        *ret_kind = s->kind;
    return s->object;
}
