#include "apiserver/usage.h"

#include <string.h>

struct usage {
    struct keymap rows;
    struct usage_row *last; /* writes of one namespace come one after the other */
    struct usage_amount max;
};

struct usage *usage_new(void)
{
    return NEW(struct usage);
}

static void free_row(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    free(CONTAINER(node, struct usage_row, node));
}

void usage_free(struct usage *u)
{
    if (!u)
        return;
    keymap_each(&u->rows, free_row, NULL);
    keymap_done(&u->rows);
    free(u);
}

void usage_set_max(struct usage *u, const struct usage_amount *max)
{
    u->max = *max;
}

const struct usage_amount *usage_max(const struct usage *u)
{
    return &u->max;
}

struct usage_row *usage_find(struct usage *u, const char *namespace)
{
    struct keymap_node *found;
    struct usage_row *row;

    if (u->last && strcmp(u->last->namespace, namespace) == 0)
        return u->last;
    found = keymap_get(&u->rows, namespace, "");
    if (found) {
        row = CONTAINER(found, struct usage_row, node);
    } else {
        row = own_new(sizeof *row + strlen(namespace) + 1);
        memcpy(row->namespace, namespace, strlen(namespace) + 1);
        keymap_add(&u->rows, &row->node, row->namespace, "");
    }
    return u->last = row;
}

void usage_change(struct usage *u, const struct object *before, const struct object *now)
{
    const struct object *o = now ? now : before;
    struct usage_row *row = usage_find(u, object_namespace(o));

    if (before) {
        row->now.objects--;
        row->now.bytes -= object_text_size(before);
    }
    if (now) {
        row->now.objects++;
        row->now.bytes += object_text_size(now);
    }
}

static void clear_row(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    CONTAINER(node, struct usage_row, node)->now = (struct usage_amount){ 0 };
}

void usage_recount(struct usage *u, const struct shelf *s)
{
    struct shelf_key from = { 0, "", "" };
    struct shelf_walk walk;
    struct object *o;
    unsigned kind;

    keymap_each(&u->rows, clear_row, NULL);
    shelf_walk_init(&walk, s, &from, false);
    while ((o = shelf_walk_next(&walk, &kind)))
        usage_change(u, NULL, o);
}
