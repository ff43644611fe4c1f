/* default: from what a client sent to what is stored.
 *
 * Core kinds go through what a typed decoder and encoder would do to them (unknown members and empty
 * values go, quantities and times take their canonical form, what is always written is added) and get
 * their defaults; custom kinds lose what their schema does not know and get the schema's defaults.
 *
 * Owns:     nothing; changes the tree it is given. The body passed check_object, so values have the types
 *           of their fields, except below custom kinds, where nothing is assumed.
 * Used by:  create, update and patch, after the body was read and before it is validated.
 */
#ifndef SILICA_KUBE_DEFAULT_H
#define SILICA_KUBE_DEFAULT_H

#include "base/json_edit.h"
#include "kube/kind.h"

/* The whole object, apiVersion and kind included. ERR_LIMIT: the edit is full. */
int default_object(const struct kind *k, const struct kind_version *v, struct json_node *root,
                   struct err *e);
/* The same of a change. was: the object as it is, in the same version and edit, or NULL; members that are still views of it
 * got their defaults when they were written, and are passed over. */
int default_changed(const struct kind *k, const struct kind_version *v, struct json_node *root,
                    struct json_node *was, struct err *e);
/* The same for bodies that are no kind: DeleteOptions, Scale, Eviction, TokenRequest. */
int default_body(const struct schema_type *t, struct json_node *root, struct err *e);
/* What the server itself adds when an object is created, after default_object: phases of Pods and
 * Namespaces, a Pod's tolerations and priority, finalizers. Addresses, uids and times are the caller's. */
void default_created(const struct kind *k, struct json_node *root);

/* What an update may leave out because the server chose it: a Service's addresses. After default_object; `was` is the
 * object as it is, in the same version. */
void default_updated(const struct kind *k, struct json_node *root, struct json_node *was);

/* The member is a view of the same value in both: nobody has changed it. False when `was` is NULL. */
bool default_is_kept(struct json_node *root, struct json_node *was, const char *member);

/* A default's JSON text as a node. */
struct json_node *default_text_node(struct json_edit *ed, const char *json);

#endif
