#include "apiserver/owners.h"

void ref_init(struct ref *r, unsigned kind, const struct object *o)
{
    *r = (struct ref){ kind, own_strdup(object_namespace(o)), own_strdup(object_name(o)),
                       own_strdup(object_uid(o)) };
}

void ref_done(struct ref *r)
{
    free(r->namespace);
    free(r->name);
    free(r->uid);
}

struct owner *owners_find(const struct owners *w, const char *uid)
{
    struct keymap_node *node = keymap_get(&w->by_uid, "", uid);

    return node ? CONTAINER(node, struct owner, node) : NULL;
}

static struct owner *need(struct owners *w, const char *uid)
{
    struct owner *o = owners_find(w, uid);

    if (o)
        return o;
    o = NEW(struct owner);
    o->uid = own_strdup(uid);
    keymap_add(&w->by_uid, &o->node, "", o->uid);
    return o;
}

static void dependent_free(struct dependent *d)
{
    ref_done(&d->ref);
    free(d);
}

static void owner_free(struct keymap_node *node, void *ctx)
{
    struct owner *o = CONTAINER(node, struct owner, node);

    (void)ctx;
    for (size_t i = 0; i < o->n; i++)
        dependent_free(o->dependents[i]);
    free(o->dependents);
    free(o->uid);
    free(o);
}

void owners_drop(struct owners *w, struct owner *o, size_t i)
{
    struct dependent *d = o->dependents[i];

    o->dependents[i] = o->dependents[--o->n];
    o->dependents[i]->at = i;
    keymap_remove(&w->by_pair, &d->node);
    dependent_free(d);
    if (o->n > 0)
        return;
    keymap_remove(&w->by_uid, &o->node);
    owner_free(&o->node, NULL);
}

static struct dependent *find(const struct owners *w, const char *owner, const struct object *o)
{
    struct keymap_node *node = keymap_get(&w->by_pair, owner, object_uid(o));

    return node ? CONTAINER(node, struct dependent, node) : NULL;
}

static void add(struct owners *w, struct owner *owner, unsigned kind, const struct object *o)
{
    struct dependent *d = NEW(struct dependent);

    if (owner->n == owner->cap) {
        owner->cap = owner->cap ? owner->cap * 2 : 1; /* most own one thing */
        owner->dependents = own_resize(owner->dependents, owner->cap, sizeof(struct dependent *));
    }
    ref_init(&d->ref, kind, o);
    d->at = owner->n;
    owner->dependents[owner->n++] = d;
    keymap_add(&w->by_pair, &d->node, owner->uid, d->ref.uid);
}

void owners_add(struct owners *w, unsigned kind, const struct object *o)
{
    JSON_EACH(ref, json_get(object_meta(o), "ownerReferences"))
    {
        const char *uid = json_cstr(json_get(ref, "uid"));

        if (uid && !find(w, uid, o))
            add(w, need(w, uid), kind, o);
    }
}

void owners_remove(struct owners *w, const struct object *o)
{
    JSON_EACH(ref, json_get(object_meta(o), "ownerReferences"))
    {
        const char *uid = json_cstr(json_get(ref, "uid"));
        struct dependent *d = uid ? find(w, uid, o) : NULL;

        if (d)
            owners_drop(w, owners_find(w, uid), d->at);
    }
}

bool owners_are_same(const struct object *a, const struct object *b)
{
    static const char *const names[] = { "uid", "name", "kind", "apiVersion" };
    const struct json *x, *y;

    if (!object_has_owners(a) && !object_has_owners(b)) /* without a look into them */
        return true;
    x = json_get(object_meta(a), "ownerReferences");
    y = json_get(object_meta(b), "ownerReferences");
    if (x == y || json_count(x) != json_count(y))
        return x == y;
    for (size_t i = 0; i < json_count(x); i++) {
        EACH(name, names) {
            if (!span_eq(json_str(json_get(json_at(x, i), *name)),
                         json_str(json_get(json_at(y, i), *name))))
                return false;
        }
    }
    return true;
}

void owners_done(struct owners *w)
{
    keymap_done(&w->by_pair);
    keymap_each(&w->by_uid, owner_free, NULL);
    keymap_done(&w->by_uid);
}
