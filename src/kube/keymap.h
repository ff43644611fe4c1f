/* keymap: a table of things that are known by a namespace and a name.
 *
 *     struct item { struct keymap_node node; ... };
 *     struct keymap_node *found = keymap_get(&map, "default", "demo");
 *     struct item *item = found ? CONTAINER(found, struct item, node) : NULL;
 *
 * Owns:     its slots. A node is embedded in its owner, who also keeps the texts alive; a node may be given the same
 *           texts at another place of memory at any time (keymap_texts).
 * Used by:  informers (objects, and the keys of their indexes), work queues, controllers.
 * Costs:    get, add, remove O(1), whoever chose the names (base/hash.h). No allocation for a node.
 */
#ifndef SILICA_KUBE_KEYMAP_H
#define SILICA_KUBE_KEYMAP_H

#include "base/own.h"

struct keymap_node {
    struct keymap_node *next;
    const char *namespace, *name;
    uint32_t hash;
};

struct keymap {
    struct keymap_node **slots;
    size_t cap; /* a power of two, or 0 */
    size_t count;
};

#define KEYMAP_INIT                                                                                \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

/* NULL when it is not there. */
struct keymap_node *keymap_get(const struct keymap *m, const char *namespace, const char *name);
/* The key must not be there yet. */
void keymap_add(struct keymap *m, struct keymap_node *node, const char *namespace,
                const char *name);
/* It must be there. */
void keymap_remove(struct keymap *m, struct keymap_node *node);
void keymap_texts(struct keymap_node *node, const char *namespace, const char *name);
/* All of them, in no order. fn may free the node; the map must not change meanwhile but through keymap_done. */
void keymap_each(const struct keymap *m, void (*fn)(struct keymap_node *node, void *ctx),
                 void *ctx);
/* Frees the slots; the nodes are left alone. */
void keymap_done(struct keymap *m);

#endif
