/* apply: server-side apply, and the book-keeping of managedFields for all other writes.
 *
 * Every write says who makes it. A create, update or patch takes over the fields it changes; an apply
 * says which fields its manager wants, and conflicts with others who own one of them with another
 * value, unless it is forced. Fields that a manager no longer applies go, if nobody else owns them.
 *
 * Trees:    whole objects in the version of the request, of one edit. `live` is NULL for a create; it
 *           stays as it is. managedFields of `object` is replaced.
 * Used by:  the API server, between the change and validation.
 * Errors:   ERR_CONFLICT: causes has the fields, apply_conflict_text their text (409).
 *           ERR_PROTOCOL: the configuration is not one (400). ERR_INVALID: a list in it has elements
 *           without or with the same keys (500 at the public server). ERR_LIMIT: it grew too large.
 */
#ifndef SILICA_KUBE_APPLY_H
#define SILICA_KUBE_APPLY_H

#include "base/json_edit.h"
#include "kube/cause.h"
#include "kube/kind.h"

/* Who writes, and how. */
struct apply_by {
    const struct kind *kind;
    const char *version;     /* of the request and its trees: "v1beta1" */
    const char *subresource; /* "status", "scale"; "" for the object itself */
    const char *manager;     /* fieldManager, or the first part of User-Agent; "": "unknown" */
    const char *now;         /* RFC 3339, whole seconds */
    bool is_forced;          /* apply: takes fields over instead of conflicting */
};

/* After a create, update or patch made `object` of `live`: writes its managedFields. An object whose
 * managedFields were cleared before stays without. */
int apply_track(const struct apply_by *by, struct json_node *live, struct json_node *object,
                struct err *e);
/* Applies `config`, which the call uses up. *ret is the object with its managedFields. */
int apply_config(const struct apply_by *by, struct json_node *live, struct json_node *config,
                 struct causes *conflicts, struct json_node **ret, struct err *e);
/* "Apply failed with 1 conflict: conflict with "kubectl" using v1: .spec.replicas" */
int apply_conflict_text(const struct causes *conflicts, struct buf *out, struct err *e);

#endif
