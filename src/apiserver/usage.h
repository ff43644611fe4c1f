/* usage: how much each namespace has in the store, objects and bytes, and how much it may have.
 *
 *     store_write -> usage_add -> namespace_limit_check reads usage_find
 *
 * Owns:     a row for each namespace that has or had something.
 * Used by:  store.c keeps it up with each write; after a start, and after a commit that failed, it is counted anew.
 * Threads:  the loop's.
 * Costs:    O(1) per write, and what its book costs in a namespace that has quotas.
 */
#ifndef SILICA_APISERVER_USAGE_H
#define SILICA_APISERVER_USAGE_H

#include "apiserver/quota_book.h"
#include "kube/keymap.h"

struct usage;

struct usage_amount {
    uint64_t objects, bytes; /* bytes: about those of their JSON */
};

struct usage_row {
    struct keymap_node node;
    struct usage_amount now;
    struct usage_amount max; /* of this namespace; namespace_limit.c's, as is: */
    uint64_t max_version;    /* the version of the Namespace that it was read from; 0: not yet */
    size_t quotas;           /* ResourceQuotas in it */
    struct quota_book *book; /* of them, where it was asked for since one changed; else NULL */
    char namespace[];
};

struct usage *usage_new(void);
void usage_free(struct usage *u); /* tolerates NULL */
/* What a namespace may have of which nothing else is said. 0: any number. */
void usage_set_max(struct usage *u, const struct usage_amount *max);
const struct usage_amount *usage_max(const struct usage *u);
/* Which objects are the system's, for the books of quotas; before the first is made. */
void usage_set_reserved(struct usage *u, quota_reserved_fn is_reserved);
quota_reserved_fn usage_reserved(const struct usage *u);
struct usage_row *usage_find(struct usage *u, const char *namespace);
/* One write: the object before it and the object after it, or NULL. */
void usage_change(struct usage *u, const struct object *before, const struct object *now);
void usage_recount(struct usage *u, const struct shelf *s);

#endif
