/* typed: objects seen through their schema, as server-side apply sees them: which of their fields are
 * there, which differ, what a merge makes of two, and what is left when some are taken away.
 *
 * Lists that are sets or maps have elements with an identity; all other lists, and objects that say so,
 * are atomic: one field, whatever is inside.
 *
 * Trees:    of one edit. A tree that is changed must not be used elsewhere.
 * Used by:  managed.c, apply.c.
 */
#ifndef SILICA_KUBE_TYPED_H
#define SILICA_KUBE_TYPED_H

#include "kube/fieldset.h"
#include "kube/schema.h"

/* The fields of a value. ERR_INVALID: an element of a list has no identity, or two have the same and
 * `is_unique` asks for that. */
int typed_fields(const struct schema_type *type, struct json_node *value, bool is_unique,
                 struct json_node **ret, struct err *e);

struct typed_diff {
    struct json_node *added, *removed, *modified; /* sets of fields */
};
/* What makes `b` of `a`. Elements without identity are passed over. */
void typed_compare(const struct schema_type *type, struct json_node *a, struct json_node *b,
                   struct typed_diff *ret);
/* What a new object has that is nobody's: members of it, and members of its metadata; names ended by NULL. */
struct typed_skip {
    const char *const *members, *const *metadata;
};
/* Appends, as the wire has it, the fields that a new object adds to an empty one of its type, without those that `skip`
 * names. Members of the object, and of its metadata, become views (json_node_settle). False: it has to be found out by
 * comparing; `out` is then undefined. */
bool typed_write_new(const struct schema_type *type, struct json_node *object,
                     const struct typed_skip *skip, struct buf *out);
/* `over` merged into `value`, which is changed; the result may be either. */
struct json_node *typed_merge(const struct schema_type *type, struct json_node *value,
                              struct json_node *over);
/* Takes the fields of the set away. What loses all its members, and is not in the set itself, stays
 * empty: somebody owns it. (The public library makes it null, and so loses an "emptyDir: {}".) */
void typed_remove(const struct schema_type *type, struct json_node *value, struct json_node *set);
/* Puts each declared field on the way to others into the set: objects go when their fields go. */
void typed_name_parents(const struct schema_type *type, struct json_node *set);

#endif
