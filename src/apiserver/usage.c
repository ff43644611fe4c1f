#include "apiserver/usage.h"

#include <string.h>

struct usage {
    struct keymap rows;
    struct usage_row *last; /* writes of one namespace come one after the other */
    struct usage_amount max;
    const struct kind *quota;
    quota_reserved_fn is_reserved;
};

struct usage *usage_new(void)
{
    struct usage *u = NEW(struct usage);

    u->quota = kind_find("", "v1", "resourcequotas");
    return u;
}

static void free_row(struct keymap_node *node, void *ctx)
{
    struct usage_row *row = CONTAINER(node, struct usage_row, node);

    (void)ctx;
    quota_book_free(row->book);
    free(row);
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

void usage_set_reserved(struct usage *u, quota_reserved_fn is_reserved)
{
    u->is_reserved = is_reserved;
}

quota_reserved_fn usage_reserved(const struct usage *u)
{
    return u->is_reserved;
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

static void drop_book(struct usage_row *row)
{
    quota_book_free(row->book);
    row->book = NULL;
}

static void change_quotas(struct usage *u, struct usage_row *row, const struct object *before,
                          const struct object *now)
{
    if (object_kind(now ? now : before) == u->quota) {
        row->quotas += (now != NULL) - (before != NULL);
        if (quota_book_is_other(before, now))
            drop_book(row);
    }
    if (row->book)
        quota_book_change(row->book, before, now);
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
    change_quotas(u, row, before, now);
}

static void clear_row(struct keymap_node *node, void *ctx)
{
    struct usage_row *row = CONTAINER(node, struct usage_row, node);

    (void)ctx;
    row->now = (struct usage_amount){ 0 };
    row->quotas = 0;
    drop_book(row);
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
