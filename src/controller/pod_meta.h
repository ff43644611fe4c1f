/* pod_meta: the labels and annotations that a sandbox gives its Pod.
 *
 * Owns:     nothing. What the template says is copied, but for reserved keys; which keys were copied is written on the
 *           Pod, so that a key that leaves the template leaves the Pod, and others' keys stay.
 * Used by:  pod.c.
 */
#ifndef SILICA_CONTROLLER_POD_META_H
#define SILICA_CONTROLLER_POD_META_H

#include "controller/step.h"

/* Fills the metadata of a Pod that is made. */
void pod_meta_make(const struct object *sandbox, const char *hash, struct json_node *meta);
/* Adds what must change to a merge patch of the Pod; false: nothing. */
bool pod_meta_patch(const struct object *sandbox, const char *hash, const struct object *pod,
                    struct json_node *patch);

#endif
