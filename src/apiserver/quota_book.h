/* quota_book: the ResourceQuotas of one namespace, and how much of each of their resources is used on the head.
 *
 * Owns:     references to the quotas. A namespace without quotas has no book.
 * Used by:  usage.c keeps it up with each write and throws it away when a quota's spec changes, or a commit failed; quota.c
 *           makes it again when it is asked for.
 * Threads:  the loop's.
 * Costs:    to make it, a look at each object of the kinds that are counted; to keep it up, a look at the object written.
 */
#ifndef SILICA_APISERVER_QUOTA_BOOK_H
#define SILICA_APISERVER_QUOTA_BOOK_H

#include "apiserver/shelf.h"
#include "kube/quota.h"

/* Does this object stand for a part of the system? Then it is no tenant's, and takes nothing of a quota. */
typedef bool (*quota_reserved_fn)(const struct kind *kind, const char *namespace, const char *name);

struct quota_entry {
    struct span name;
    struct quota_measure measure;
    bool is_known; /* its use is told */
    struct quantity hard, used;
};

struct quota_row {
    struct object *quota;
    struct quota_entry *entries;
    size_t n;
};

struct quota_book {
    struct quota_row *rows;
    size_t n;
    quota_reserved_fn is_reserved; /* or NULL */
    bool is_told;                  /* the quotas' statuses say what is here */
};

struct quota_book *quota_book_new(const struct shelf *s, const char *namespace,
                                  quota_reserved_fn is_reserved);
void quota_book_free(struct quota_book *b); /* tolerates NULL */
/* One write: the object before it and the object after it, or NULL. */
void quota_book_change(struct quota_book *b, const struct object *before, const struct object *now);
/* What this entry has of the object. */
struct quantity quota_row_amount(const struct quota_row *r, const struct quota_entry *entry,
                                 const struct object *o);
/* Is it a quota that limits something else now than before? Either may be NULL. */
bool quota_book_is_other(const struct object *before, const struct object *now);

#endif
