/* shelf: objects in the order of kind, namespace and name, as a tree that does not change for those who hold it. A write makes
 * a new shelf that shares everything but the path to the change, so a snapshot of the whole store is one reference, a list can
 * be written out in slices while writes go on, and a failed commit is undone by going back to the shelf before it. What
 * nobody else holds is changed in its place.
 *
 * Owns:     a reference to each object on it. NULL is the empty shelf.
 * Used by:  store.c; readers walk a shelf they hold a reference to.
 * Threads:  the loop's: reference counts are plain.
 * Costs:    get, put, remove, rank O(log n); a put copies about log2(n) nodes of 48 bytes, a set those that are shared.
 */
#ifndef SILICA_APISERVER_SHELF_H
#define SILICA_APISERVER_SHELF_H

#include "kube/object.h"

struct shelf;

#define SHELF_DEPTH_MAX 64 /* a weight-balanced tree of 2^32 objects has at most 55 levels */

/* Where an object stands. An empty name sorts before all names: it begins a namespace, or a kind. */
struct shelf_key {
    unsigned kind;
    const char *namespace, *name;
};

struct shelf *shelf_ref(struct shelf *s);
void shelf_unref(struct shelf *s);
size_t shelf_count(const struct shelf *s);
/* Borrowed from the shelf; NULL when absent. */
struct object *shelf_get(const struct shelf *s, const struct shelf_key *key);
/* A new shelf, the caller's, where o stands under kind and its own names, instead of what was there. s stays. */
struct shelf *shelf_put(struct shelf *s, unsigned kind, struct object *o);
/* A new shelf, the caller's, without it; the same with one more reference when it was not there. */
struct shelf *shelf_remove(struct shelf *s, const struct shelf_key *key);
/* The same two, which take s: what only that reference held is changed, not copied. */
struct shelf *shelf_set(struct shelf *s, unsigned kind, struct object *o);
struct shelf *shelf_drop(struct shelf *s, const struct shelf_key *key);
/* Objects that sort before the key. */
size_t shelf_rank(const struct shelf *s, const struct shelf_key *key);
int shelf_compare(const struct shelf_key *a, const struct shelf_key *b);

/* A walk in order. The shelf must be held as long. */
struct shelf_walk {
    const struct shelf *path[SHELF_DEPTH_MAX];
    unsigned depth;
};

/* Stands before the first object that is not less than the key, or greater than it when is_after. */
void shelf_walk_init(struct shelf_walk *w, const struct shelf *s, const struct shelf_key *from,
                     bool is_after);
/* The next, borrowed; NULL at the end. */
struct object *shelf_walk_next(struct shelf_walk *w, unsigned *ret_kind);

#endif
