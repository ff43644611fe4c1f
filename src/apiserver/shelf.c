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

/* A new node in the place of `s`, whose left side becomes `left` (taken); s is borrowed. */
static struct shelf *rotate_right(unsigned kind, struct object *o, struct shelf *left,
                                  struct shelf *right)
{
    struct shelf *inner = left->right, *made;

    if (weight(inner) < RATIO * weight(left->left)) {
        made = node(shelf_ref(left->left), left->kind, left->object,
                    node(shelf_ref(inner), kind, o, right));
    } else {
        made = node(node(shelf_ref(left->left), left->kind, left->object, shelf_ref(inner->left)),
                    inner->kind, inner->object, node(shelf_ref(inner->right), kind, o, right));
    }
    shelf_unref(left);
    return made;
}

static struct shelf *rotate_left(unsigned kind, struct object *o, struct shelf *left,
                                 struct shelf *right)
{
    struct shelf *inner = right->left, *made;

    if (weight(inner) < RATIO * weight(right->right)) {
        made = node(node(left, kind, o, shelf_ref(inner)), right->kind, right->object,
                    shelf_ref(right->right));
    } else {
        made = node(
            node(left, kind, o, shelf_ref(inner->left)), inner->kind, inner->object,
            node(shelf_ref(inner->right), right->kind, right->object, shelf_ref(right->right)));
    }
    shelf_unref(right);
    return made;
}

/* Takes left and right, which differ from a balanced pair by one object at most. */
static struct shelf *join(struct shelf *left, unsigned kind, struct object *o, struct shelf *right)
{
    if (weight(left) > DELTA * weight(right))
        return rotate_right(kind, o, left, right);
    if (weight(right) > DELTA * weight(left))
        return rotate_left(kind, o, left, right);
    return node(left, kind, o, right);
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
    int order;

    if (!s)
        return node(NULL, key->kind, o, NULL);
    order = compare(key, s);
    if (order == 0)
        return node(shelf_ref(s->left), key->kind, o, shelf_ref(s->right));
    if (order < 0)
        return join(put(s->left, key, o), s->kind, s->object, shelf_ref(s->right));
    return join(shelf_ref(s->left), s->kind, s->object, put(s->right, key, o));
}

struct shelf *shelf_put(struct shelf *s, unsigned kind, struct object *o)
{
    struct shelf_key key = { kind, object_namespace(o), object_name(o) };

    return put(s, &key, o);
}

/* s without its first node, which goes to *ret_first, borrowed. */
static struct shelf *without_first(struct shelf *s, struct shelf **ret_first)
{
    if (!s->left) {
        *ret_first = s;
        return shelf_ref(s->right);
    }
    return join(without_first(s->left, ret_first), s->kind, s->object, shelf_ref(s->right));
}

/* Two neighbours whose parent goes. */
static struct shelf *glue(struct shelf *left, struct shelf *right)
{
    struct shelf *first, *rest;

    if (!left || !right)
        return shelf_ref(left ? left : right);
    rest = without_first(right, &first);
    return join(shelf_ref(left), first->kind, first->object, rest);
}

static struct shelf *take_out(struct shelf *s, const struct shelf_key *key)
{
    int order = compare(key, s);

    if (order == 0)
        return glue(s->left, s->right);
    if (order < 0)
        return join(take_out(s->left, key), s->kind, s->object, shelf_ref(s->right));
    return join(shelf_ref(s->left), s->kind, s->object, take_out(s->right, key));
}

struct shelf *shelf_remove(struct shelf *s, const struct shelf_key *key)
{
    return shelf_get(s, key) ? take_out(s, key) : shelf_ref(s);
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
