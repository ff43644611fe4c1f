/* informer_copy: the objects an informer holds, by name and by the keys of its indexes. Private to informer*.c.
 *
 * Owns:     a reference to each object.
 */
#ifndef SILICA_KUBE_INFORMER_COPY_H
#define SILICA_KUBE_INFORMER_COPY_H

#include "kube/informer.h"
#include "kube/keymap.h"

/* What stands under one key of one index. */
struct copy_key {
    struct keymap_node node;
    struct informer_place *first;
    size_t count;
    size_t index;
    char texts[]; /* namespace, key */
};

/* One object in one list: under a key, or among all. */
struct informer_place {
    struct informer_place *next, *prev;
    struct copy_entry *entry;
    struct copy_key *key; /* NULL: the list of all */
};

struct copy_entry {
    struct keymap_node node; /* its texts are in the object */
    struct object *object;
    struct informer_place all;
    struct informer_place *places;
    uint32_t place_count;
    uint32_t listed;  /* the last list it was in; its user's */
    uint32_t learned; /* the list that was the last one when it was learnt, or 0; its user's */
};

/* Filled by the functions of the indexes. */
struct informer_keys {
    struct copy_row {
        size_t index, at; /* where its text begins, with a terminator */
    } rows[INFORMER_KEYS_MAX];
    size_t n;
    size_t index;     /* the one that is asked now */
    struct buf texts; /* one behind the other */
    bool is_over;     /* not all had room */
};

struct copy {
    const struct informer_index *indexes;
    size_t index_count;
    struct keymap names;
    struct keymap *keys; /* of each index */
    struct informer_place *first;
    struct informer_walk *walks;
    struct informer_keys scratch;
};

void copy_init(struct copy *c, const struct informer_index *indexes, size_t index_count);
void copy_done(struct copy *c);
struct copy_entry *copy_find(const struct copy *c, const char *namespace, const char *name);
/* Takes the reference to a new object. */
struct copy_entry *copy_add(struct copy *c, struct object *o);
/* Takes the reference; gives that to the object before back. Same namespace and name. */
struct object *copy_replace(struct copy *c, struct copy_entry *entry, struct object *o);
/* Gives the reference back. */
struct object *copy_remove(struct copy *c, struct copy_entry *entry);
struct copy_key *copy_key(const struct copy *c, size_t index, const char *namespace,
                          const char *key);

#endif
