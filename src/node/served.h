/* served: which fields of a Pod have an effect here, field by field; those that have none are reported, never left out in
 * silence.
 *
 * Owns:     nothing: a table, by the names of types and members in kube/tables/pod.types. Every member that a Pod can have
 *           stands in it once; the unit test walks the types and fails over one that does not.
 * Used by:  work.c, once for each Pod.
 */
#ifndef SILICA_NODE_SERVED_H
#define SILICA_NODE_SERVED_H

#include "kube/object.h"
#include "kube/schema.h"
#include "node/notes.h"

enum served {
    SERVED_UNSAID,    /* the table does not have it: a mistake of ours */
    SERVED_YES,       /* it means what it means on any node */
    SERVED_MOOT,      /* nothing on one machine depends on it, whatever it says */
    SERVED_ELSEWHERE, /* whoever reads it refuses it, or has a note of its own */
    SERVED_NOTED,     /* it is not served: asking for it is noted */
};

enum served served_judge(const struct schema_type *type, const struct schema_field *field);
/* What the Pod asks for in vain: one note for the Pod, one for each container. */
void served_note(const struct object *pod, struct notes *notes);

#endif
