/* managed: metadata.managedFields: who last set which field of an object.
 *
 * Owns:     nothing: entries and sets live in an edit.
 * Used by:  apply.c. The API server uses apply.h.
 */
#ifndef SILICA_KUBE_MANAGED_H
#define SILICA_KUBE_MANAGED_H

#include "kube/fieldset.h"

/* An object with more entries has its managedFields started anew: each writer adds at most one, and
 * updates beyond MANAGED_UPDATERS_MAX are merged. */
#define MANAGED_MAX 256
/* The public server's number; older ones become "ancient-changes". */
#define MANAGED_UPDATERS_MAX 10

struct manager {
    struct span name, api_version, subresource, time; /* time: SPAN_NONE when there is none */
    bool is_applied;                                  /* operation Apply, else Update */
    const struct json *entry; /* all of it as it stands in the document; NULL: it is new */
    const struct json *wire;  /* the set as it stands in the document, while nobody changed it */
    struct json_node *wired;  /* the same after a change */
    struct json_node *set;    /* else */
};

struct managed {
    struct json_edit *ed;
    size_t n;
    struct manager rows[MANAGED_MAX];
};

/* Of metadata.managedFields, which may be NULL, and becomes a view. ERR_INVALID: it cannot be understood. is_ours: it was
 * encoded here, so its sets are sets. */
int managed_decode(struct json_edit *ed, struct json_node *list, bool is_ours, struct managed *ret,
                   struct err *e);
/* The list, in the public server's order; NULL when nobody manages anything. */
struct json_node *managed_encode(struct managed *m);

/* The entry of the same manager (of updates also of the same version), or NULL. */
struct manager *managed_find(struct managed *m, const struct manager *like);
/* The set to be changed; decoded at the first call. */
struct json_node *managed_open(struct managed *m, struct manager *row);
/* Puts a set's fields into the row, or takes them away. */
void managed_put(struct managed *m, struct manager *row, struct json_node *set);
void managed_take(struct managed *m, struct manager *row, struct json_node *set);
/* What is in the row and in `set`; a new set. */
struct json_node *managed_common(struct managed *m, struct manager *row, struct json_node *set);
/* Adds an entry; NULL when there is no room. */
struct manager *managed_add(struct managed *m, const struct manager *row);
void managed_drop(struct managed *m, struct manager *row);
/* Drops entries that manage nothing. */
void managed_drop_empty(struct managed *m);
/* Merges the oldest updates until few enough are left. */
void managed_cap(struct managed *m);

#endif
