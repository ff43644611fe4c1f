/* security: who a container runs as and what it may have: securityContext and resources become numbers of a sandbox.
 *
 * A sandbox has no capabilities, no way to more rights and a filter of system calls whatever a Pod says (isolate). So what asks
 * for less is fulfilled already, and what asks for more is not given: that is a note (served.h), never silence.
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  the lifecycle, for each container.
 */
#ifndef SILICA_NODE_SECURITY_H
#define SILICA_NODE_SECURITY_H

#include "isolate/box.h"
#include "kube/object.h"
#include "node/notes.h"
#include "node/volume_write.h"

#define SECURITY_ID_MAX 65535 /* a sandbox has 65,536 ids where the host can give them */

struct security {
    uid_t uid;
    gid_t gid;
    gid_t groups[BOX_GROUPS_MAX]; /* besides: supplementalGroups and fsGroup */
    size_t group_count;
    bool is_read_only;         /* the root: readOnlyRootFilesystem */
    struct volume_owner owner; /* of the Pod's volumes; empty where ids cannot be given away */
    struct box_limits limits;
    uint64_t root_bytes; /* limits.ephemeral-storage; 0: the default */
};

/* has_ids: the host can give a sandbox more than one id (root, and an account with a range). Else all containers of the Pod run as the first one's user.
 * -1: for CreateContainerConfigError: an id that cannot be, or runAsNonRoot of one that would be root. */
int security_make(const struct object *pod, const struct json *container, bool has_ids,
                  struct security *ret, struct notes *notes, struct err *e);

#endif
