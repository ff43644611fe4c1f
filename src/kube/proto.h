/* proto: Kubernetes' protobuf bodies, read into JSON values by the table of types.
 *
 *     struct proto_envelope env;
 *     if (proto_envelope_read(body, &env, e) < 0)
 *         ...
 *     t = kind_of(env.api_version, env.kind) ...
 *     proto_object_read(t, &env, ed, &root, e)
 *
 * A body is the magic "k8s\0" and a runtime.Unknown: apiVersion, kind, and the object's own message.
 * Empty values come out as they are on the wire; default_object takes them away, as it does for JSON.
 *
 * Owns:     nothing. Values live in the caller's edit, whose ceiling bounds them; the envelope's spans
 *           point into the body.
 * Used by:  requests with Content-Type application/vnd.kubernetes.protobuf. Answers are JSON.
 */
#ifndef SILICA_KUBE_PROTO_H
#define SILICA_KUBE_PROTO_H

#include "base/json_edit.h"
#include "kube/schema.h"

#define PROTO_DEPTH_MAX 64 /* messages in messages; a Pod has about ten */

struct proto_envelope {
    struct span api_version, kind;
    struct span raw; /* the object's message */
};

/* ERR_INVALID: no magic, not protobuf, or an encoding inside that is not this one. */
int proto_envelope_read(struct span body, struct proto_envelope *ret, struct err *e);
/* ERR_INVALID: not a message of that type; ERR_LIMIT: the edit is full, or too deep. ERR_UNSUPPORTED:
 * a custom kind, which has no protobuf form. apiVersion and kind come from the envelope. */
int proto_object_read(const struct schema_type *t, const struct proto_envelope *env,
                      struct json_edit *ed, struct json_node **ret, struct err *e);

#endif
