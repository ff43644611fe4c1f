/* downward: what a Pod may know of itself: fieldRef and resourceFieldRef, for variables and for files.
 *
 * Owns:     nothing; texts are appended to the caller's buf. Does no I/O.
 * Used by:  env.c, volume_content.c.
 * Texts:    errors are worded as the kubelet words them: they become a container's waiting message.
 */
#ifndef SILICA_NODE_DOWNWARD_H
#define SILICA_NODE_DOWNWARD_H

#include "kube/object.h"
#include "kube/quantity.h"

struct downward {
    const struct object *pod;
    const char *pod_ip;  /* NULL: it has none yet, and the value is empty */
    const char *host_ip; /* the same */
    /* What the node can give: the limit of a container that has none. */
    uint64_t cpu_milli, memory_bytes, storage_bytes;
};

/* metadata.name, .namespace, .uid, .labels, .annotations, .labels['key'], .annotations['key'], spec.nodeName,
 * spec.serviceAccountName, status.hostIP(s), status.podIP(s). A key that is not there has an empty value. ERR_INVALID:
 * another path. */
int downward_field(const struct downward *d, const char *path, struct buf *out, struct err *e);
/* limits or requests of cpu, memory or ephemeral-storage in units of the divisor, rounded up. `container` is whose when
 * the reference names none. ERR_INVALID, ERR_NOT_FOUND: a container of that name. */
int downward_resource(const struct downward *d, const struct json *container,
                      const struct json *ref, struct buf *out, struct err *e);
/* An amount of a resource, as a text or a number. */
bool downward_amount(const struct json *v, struct quantity *ret);
/* The container or init container of that name, or NULL. */
const struct json *downward_container(const struct object *pod, const char *name);

#endif
