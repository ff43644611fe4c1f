/* owners: who depends on whom, by the uid of the owner, who need not exist.
 *
 * Owns:     the places of dependents, each with the uid it had there: a later object of the same name is another.
 * Used by:  collect*.c, which keep it in step with the head.
 * Costs:    an owner is found at once, and so is one of its dependents: a pool has thousands.
 */
#ifndef SILICA_APISERVER_OWNERS_H
#define SILICA_APISERVER_OWNERS_H

#include "kube/keymap.h"
#include "kube/object.h"

/* An object by its place. */
struct ref {
    unsigned kind;
    char *namespace, *name, *uid;
};
void ref_init(struct ref *r, unsigned kind, const struct object *o);
void ref_done(struct ref *r);

/* An object as one owner knows it. */
struct dependent {
    struct keymap_node node; /* by the uids of both */
    struct ref ref;
    size_t at; /* in the owner's list */
};

/* Gone when its last dependent is. */
struct owner {
    struct keymap_node node;
    char *uid;
    struct dependent **dependents;
    size_t n, cap;
};

struct owners {
    struct keymap by_uid, by_pair;
};

void owners_done(struct owners *w);
/* All owners that o names have it as a dependent, or have it no more. */
void owners_add(struct owners *w, unsigned kind, const struct object *o);
void owners_remove(struct owners *w, const struct object *o);
/* Both name the same owners. */
bool owners_are_same(const struct object *a, const struct object *b);
/* NULL: nobody depends on it. */
struct owner *owners_find(const struct owners *w, const char *uid);
/* One dependent less. The owner may be gone afterwards. */
void owners_drop(struct owners *w, struct owner *owner, size_t i);

#endif
