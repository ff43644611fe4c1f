/* names: how the controllers name, mark and recognise what belongs to an object.
 *
 * Owns:     nothing.
 * Used by:  all four reconcilers. Does no I/O.
 * Owners:   an owner is compared by uid, or by group and kind; never by version: references written by an older
 *           controller keep v1alpha1 for ever.
 */
#ifndef SILICA_CONTROLLER_NAMES_H
#define SILICA_CONTROLLER_NAMES_H

#include "kube/kind.h"
#include "kube/object.h"

#define NAME_HASH_BYTES 9

/* FNV-1a of the bytes as eight hexadecimal digits. 32 bits: two names may share one. */
const char *name_hash(char text[NAME_HASH_BYTES], struct span bytes);

/* Keys of labels and annotations that only controllers write. */
bool key_is_reserved(struct span key);
/* Who made it, as one of the few names that Pods and metrics show: "unknown" for all others. */
const char *created_by_known(const char *said);

enum ownership {
    OWNED,   /* its controller is the parent */
    UNOWNED, /* it has none */
    FOREIGN, /* it has another */
};
enum ownership ownership_of(const struct object *child, const struct object *parent);
/* Its controller is of this group and kind, whatever the version. kind NULL: any of the group. */
bool owner_is(const struct object *o, const char *group, const char *kind);
/* An unowned object that its maker, or an earlier life of the sandbox, left for this one. */
bool may_adopt(const struct object *child, const char *hash);

/* The reference that makes parent the controller. */
struct json_node *owner_reference(struct json_edit *ed, const struct object *parent);
/* What the child has, and that one. The child is unowned. */
struct json_node *owner_references_with(struct json_edit *ed, const struct object *child,
                                        const struct object *parent);
/* "pod "x" is owned by Kind/name (UID: u), not by sandbox "y"": for a child that is FOREIGN. */
int err_foreign(struct err *e, const char *what, const struct object *child,
                const struct object *parent);
/* The same for one that is UNOWNED and may not be adopted. */
int err_unowned(struct err *e, const char *what, const struct object *child,
                const struct object *parent);

/* Trees are made a member at a time: the object under a name, made when it is not there. */
struct json_node *tree_object(struct json_node *parent, const char *name);
void tree_text(struct json_node *object, const char *name, const char *text);
/* Two values of documents say the same; NULL equals NULL. */
bool value_is_same(const struct json *a, const struct json *b);

#endif
