/* admit: what stands between a body and the store: the checks of its envelope, defaults, rules, stamps, and what single
 * kinds want besides.
 *
 * Owns:     nothing. On trees that can be changed, of one operation.
 * Used by:  op_*.c.
 */
#ifndef SILICA_APISERVER_ADMIT_H
#define SILICA_APISERVER_ADMIT_H

#include "apiserver/op.h"
#include "base/time.h"
#include "kube/apply.h"

/* It is an object of this kind and version. Changes nothing. */
int admit_type(struct op *op, struct json_node *body, struct status *st);
/* All three: type, fields, then members that were given twice once, namespace and name as the path has them. was: the object
 * as the path's version shows it now, or NULL; what is still its member was checked when it was written. */
int admit_body(struct op *op, struct json_node *body, const struct object *was, struct status *st);
/* Namespace and name agree with the path. */
int admit_envelope(struct op *op, struct json_node *body, struct status *st);
/* Unknown and duplicate fields, by op->fields. was: as above. */
int admit_fields(struct op *op, struct json_node *body, const struct object *was,
                 struct status *st);
/* A new object in the path's version: name made up, members of others' emptied, defaults. */
int admit_new(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st);
/* What its kind gets when it is created: accounts, addresses. */
int admit_kind(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st);
/* The same of a change, after its defaults. */
int admit_kind_updated(struct op *op, struct json_node *body, struct json_node *was,
                       struct status *st);
/* The namespace is there and not on its way out. */
int admit_namespace(struct op *op, const char *namespace, const char *name, struct status *st);
/* The body as an object in the path's version, judged by the rules of the kind. old: what is there, in the same version,
 * or NULL; what did not change is shared with it. */
int admit_rules(struct op *op, struct json_node *body, const struct object *old,
                struct object **ret, struct status *st);

/* The stored object as the path's version shows it. */
int admit_show(struct op *op, struct object *stored, struct object **ret, struct status *st);
/* What is to be stored of an object in the path's version. base: the stored one before it, or NULL. */
int admit_store(struct op *op, struct object *o, const struct object *base, struct object **ret,
                struct status *st);
/* Writes the managedFields of body: who changed what since `old`, or NULL. */
int admit_track(struct op *op, struct json_node *old, struct json_node *body, struct status *st);
/* For apply.h: who writes. now lives as long as the result is used. */
struct apply_by admit_by(const struct op *op, const char *now);
/* Defaults of the kind. was: as default_changed has it. */
int admit_defaults(struct op *op, struct json_node *body, struct json_node *was, struct status *st);

/* A random (version 4) UUID with its terminator. */
void admit_uuid(char text[37]);
/* Letters that make a name one of its own, with their terminator. */
#define ADMIT_SUFFIX_LENGTH 5
void admit_suffix(char text[ADMIT_SUFFIX_LENGTH + 1]);
/* Now, as creationTimestamp has it. */
const char *admit_now(char text[TIME_TEXT_BYTES]);

#endif
