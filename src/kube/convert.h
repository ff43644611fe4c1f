/* convert: one object in another version of its API.
 *
 * Served are v1alpha1 and v1beta1 of our four kinds, of which v1beta1 is stored (the hub), and Events
 * of the core group and of events.k8s.io, of which the core's is stored. Other kinds have one version.
 *
 * State:    what v1beta1 has no field for travels in an annotation that holds the whole v1alpha1 object,
 *           and never shows in v1alpha1. A second conversion of the same object does not nest it.
 * Used by:  the API server (requests on their way in, answers on their way out, once per object and
 *           version), the conversion webhook of the controller.
 * Errors:   ERR_INVALID: the object cannot be converted; the text says why.
 */
#ifndef SILICA_KUBE_CONVERT_H
#define SILICA_KUBE_CONVERT_H

#include "kube/kind.h"
#include "kube/object.h"

/* Changes a whole tree (metadata, spec, status, apiVersion) of `kind` in place to its version `to`, from
 * the version that `from` names; apiVersion is written as `to` wants it. The same version: nothing. */
int convert_tree(const struct kind *kind, const char *from, const char *to, struct json_node *root,
                 struct err *e);
/* The stored object as `kind` and `version` show it: `kind` is the object's own, or the one that
 * shows it in another group. Made once and kept with the object, so all watchers share its bytes. The
 * caller unrefs it; it may be the object itself. */
int convert_object(struct object *o, const struct kind *kind, const char *version,
                   struct object **ret, struct err *e);

#endif
