/* patch: the ways to say a change of an object: JSON patch (RFC 6902), merge patch (RFC 7386) and
 * strategic merge patch. Server-side apply is apply.h.
 *
 *     struct json_node *root = object_thaw(o, "v1", ed);
 *     if (patch_merge(root, json_doc_root(json_edit_hold(ed, body)), e) < 0) ...
 *     object_freeze(kind, o, root, &changed, e);
 *
 * Trees:    the target is changed in place, where it can be: on failure it is half changed, so throw
 *           the edit away. Patches are immutable documents that the edit holds, or that outlive it;
 *           their values are put into the tree as views.
 * Errors:   ERR_PROTOCOL: the patch is malformed (400, BadRequest). ERR_INVALID: it does not apply
 *           (422, Invalid; the public server then says PATCH_REFUSED_TEXT and keeps the reason for
 *           itself). ERR_LIMIT: too many operations, or too much grew out of them (413).
 *           A strategic patch that makes no sense is ERR_INVALID too, where the public server says 500.
 * Result:   is never nested deeper than JSON_DEPTH_MAX, and may hold nulls.
 */
#ifndef SILICA_KUBE_PATCH_H
#define SILICA_KUBE_PATCH_H

#include "base/json_edit.h"
#include "kube/schema.h"

/* The public server has the same ceiling, and tells it in its answer. */
#define PATCH_OPERATIONS_MAX 10000

#define PATCH_REFUSED_TEXT "the server rejected our request due to an error in our request"

/* Replacing the whole document makes another root, so *root is in and out. */
int patch_json(struct json_node **root, const struct json *patch, struct err *e);
int patch_merge(struct json_node *root, const struct json *patch, struct err *e);
/* `type` says how lists are merged. A field it does not know is replaced, as are lists that say
 * nothing; the public server refuses unknown lists and objects, which validation does here. */
int patch_strategic(struct json_node *root, const struct schema_type *type,
                    const struct json *patch, struct err *e);

#endif
