#include "kube/keymap.h"

#include "base/hash.h"

#include <string.h>

#define FIRST_SLOTS 16

static uint32_t hash_of(const char *namespace, const char *name)
{
    return (uint32_t)hash_add(hash_add(0, span_cstr(namespace)), span_cstr(name));
}

static struct keymap_node **slot(const struct keymap *m, uint32_t hash)
{
    return &m->slots[hash & (m->cap - 1)];
}

struct keymap_node *keymap_get(const struct keymap *m, const char *namespace, const char *name)
{
    uint32_t hash = hash_of(namespace, name);
    struct keymap_node *node = m->cap ? *slot(m, hash) : NULL;

    while (node && (node->hash != hash || strcmp(node->name, name) != 0 ||
                    strcmp(node->namespace, namespace) != 0))
        node = node->next;
    return node;
}

static void put(struct keymap *m, struct keymap_node *node)
{
    struct keymap_node **at = slot(m, node->hash);

    node->next = *at;
    *at = node;
}

static void grow(struct keymap *m)
{
    struct keymap old = *m;

    m->cap = old.cap ? old.cap * 2 : FIRST_SLOTS;
    m->slots = own_array(m->cap, sizeof(struct keymap_node *));
    for (size_t i = 0; i < old.cap; i++) {
        for (struct keymap_node *node = old.slots[i], *next; node; node = next) {
            next = node->next;
            put(m, node);
        }
    }
    free(old.slots);
}

void keymap_add(struct keymap *m, struct keymap_node *node, const char *namespace, const char *name)
{
    if (m->count == m->cap)
        grow(m);
    m->count++;
    node->hash = hash_of(namespace, name);
    keymap_texts(node, namespace, name);
    put(m, node);
}

void keymap_remove(struct keymap *m, struct keymap_node *node)
{
    struct keymap_node **at = slot(m, node->hash);

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    m->count--;
}

void keymap_texts(struct keymap_node *node, const char *namespace, const char *name)
{
    node->namespace = namespace;
    node->name = name;
}

void keymap_each(const struct keymap *m, void (*fn)(struct keymap_node *node, void *ctx), void *ctx)
{
    for (size_t i = 0; i < m->cap; i++) {
        for (struct keymap_node *node = m->slots[i], *next; node; node = next) {
            next = node->next;
            fn(node, ctx);
        }
    }
}

void keymap_done(struct keymap *m)
{
    free(m->slots);
    *m = (struct keymap)KEYMAP_INIT;
}
