/* fieldset: sets of fields of an object, as managedFields knows them (FieldsV1).
 *
 *     {"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}
 *
 * Owns:     nothing: a set is a tree of an edit. A node stands for a path; it is in the set when it has
 *           the member ".". Nodes on the way to others, and nodes that were emptied, are not in it. On
 *           the wire "." is left out where nothing else is below; decode and encode do that.
 * Elements: of a path are "f:name", "k:{...}" of a list's element with keys, "v:value" of a set's
 *           element, "i:number".
 * Used by:  typed.c, managed.c, apply.c.
 */
#ifndef SILICA_KUBE_FIELDSET_H
#define SILICA_KUBE_FIELDSET_H

#include "base/json_edit.h"

struct json_node *fieldset_new(struct json_edit *ed);
/* From the wire; the tree is copied. NULL and ERR_INVALID: it is no such set. */
struct json_node *fieldset_decode(struct json_edit *ed, struct json_node *fields, struct err *e);
/* For the wire; a new tree. */
struct json_node *fieldset_encode(struct json_node *set);

/* Sets as they stand in a document are read without decoding them: most writes touch few fields of few
 * managers. */

/* It is a set. */
bool fieldset_wire_is_valid(const struct json *wire);
/* What is in both; a new set. */
struct json_node *fieldset_wire_common(const struct json *wire, struct json_node *set);
/* All of `set` is in it. */
bool fieldset_wire_has(const struct json *wire, struct json_node *set);

/* The same on a tree that is as the wire has it: what is not on the way to a change stays a view. */

/* Puts all of `more` into it. */
void fieldset_wire_add(struct json_node *wire, struct json_node *more);
/* Takes all of `less` away. */
void fieldset_wire_subtract(struct json_node *wire, struct json_node *less);

void fieldset_mark(struct json_node *set);
bool fieldset_is_marked(struct json_node *set);
/* The node below; made when it is not there. */
struct json_node *fieldset_child(struct json_node *set, struct span element);
/* The same, or NULL. */
struct json_node *fieldset_find(struct json_node *set, struct span element);
/* "f:" and the name, in the arena. */
struct span fieldset_field(struct json_edit *ed, struct span name);
/* Nothing below is in it. NULL is empty. */
bool fieldset_is_empty(struct json_node *set);

/* Changes the first set; the second stays as it is. */
void fieldset_add(struct json_node *set, struct json_node *more);
void fieldset_subtract(struct json_node *set, struct json_node *less);
/* Also takes away everything below what is in `less`. */
void fieldset_subtract_below(struct json_node *set, struct json_node *less);
/* What is in both; a new set. */
struct json_node *fieldset_common(struct json_node *a, struct json_node *b);

/* Calls with each path in order, as people read it: `.spec.containers[name="a"].image`. */
typedef void (*fieldset_path_fn)(void *ctx, struct span path);
void fieldset_each(struct json_node *set, fieldset_path_fn fn, void *ctx);

#endif
