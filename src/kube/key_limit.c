#include "kube/key_limit.h"

#include <assert.h>
#include <string.h>

struct key_limit_row {
    struct keymap_node node;
    uint64_t count;
    char key[];
};

bool key_limit_enter(struct key_limit *l, const char *key, struct key_limit_row **ret)
{
    struct keymap_node *found;
    struct key_limit_row *row;

    *ret = NULL;
    if (!l->max)
        return true;
    found = keymap_get(&l->rows, "", key);
    if (found) {
        row = CONTAINER(found, struct key_limit_row, node);
    } else {
        row = own_new(sizeof *row + strlen(key) + 1);
        memcpy(row->key, key, strlen(key) + 1);
        keymap_add(&l->rows, &row->node, "", row->key);
    }
    if (row->count >= l->max)
        return false;
    row->count++;
    *ret = row;
    return true;
}

void key_limit_leave(struct key_limit *l, struct key_limit_row *row)
{
    if (!row || --row->count)
        return;
    keymap_remove(&l->rows, &row->node);
    free(row);
}

void key_limit_done(struct key_limit *l)
{
    assert(l->rows.count == 0);
    keymap_done(&l->rows);
}
