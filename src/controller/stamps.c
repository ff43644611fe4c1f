#include "controller/stamps.h"

#include "kube/keymap.h"

#include <string.h>

struct stamp {
    struct keymap_node node;
    struct object *claim; /* the texts are its */
    struct timespec ready;
};

struct stamps {
    struct keymap by_name;
};

struct stamps *stamps_new(void)
{
    return NEW(struct stamps);
}

static struct stamp *find(const struct stamps *s, const char *namespace, const char *name)
{
    struct keymap_node *found = s->by_name.count ? keymap_get(&s->by_name, namespace, name) : NULL;

    return found ? CONTAINER(found, struct stamp, node) : NULL;
}

static void free_stamp(struct keymap_node *node, void *ctx)
{
    struct stamp *stamp = CONTAINER(node, struct stamp, node);

    (void)ctx;
    object_unref(stamp->claim);
    free(stamp);
}

void stamps_free(struct stamps *s)
{
    if (!s)
        return;
    keymap_each(&s->by_name, free_stamp, NULL);
    keymap_done(&s->by_name);
    free(s);
}

void stamps_drop(struct stamps *s, const char *namespace, const char *name)
{
    struct stamp *stamp = find(s, namespace, name);

    if (!stamp)
        return;
    keymap_remove(&s->by_name, &stamp->node);
    free_stamp(&stamp->node, NULL);
}

void stamps_put(struct stamps *s, const struct object *claim, struct timespec ready)
{
    struct stamp *stamp;

    stamps_drop(s, object_namespace(claim), object_name(claim));
    stamp = NEW(struct stamp);
    stamp->claim = object_ref((struct object *)claim);
    stamp->ready = ready;
    keymap_add(&s->by_name, &stamp->node, object_namespace(claim), object_name(claim));
}

bool stamps_get(const struct stamps *s, const struct object *claim, struct timespec *ret)
{
    struct stamp *stamp = find(s, object_namespace(claim), object_name(claim));

    /* Another claim may have got the name meanwhile. */
    if (!stamp || strcmp(object_uid(stamp->claim), object_uid(claim)) != 0)
        return false;
    *ret = stamp->ready;
    return true;
}
