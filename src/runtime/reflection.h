/* reflection: answers questions about our services, as gRPC's server reflection asks them (v1
 * and v1alpha are the same on the wire).
 *
 * Owns:     nothing. Looks through the descriptor set at each question: it is small, and
 *           questions are rare.
 * Used by:  the gRPC routes /grpc.reflection.{v1,v1alpha}.ServerReflection/ServerReflectionInfo:
 *           one call here per message of the stream, one response for each. Does no I/O.
 */
#ifndef SILICA_RUNTIME_REFLECTION_H
#define SILICA_RUNTIME_REFLECTION_H

#include "base/buf.h"

#define REFLECTION_FILES_MAX    16 /* in a set; ours has four */
#define REFLECTION_SERVICES_MAX 32
#define REFLECTION_MAX_BYTES    (64 * 1024) /* of a response; ours stay below 8 KiB */

/* Adds a serialised ServerReflectionResponse to out. `set` is a serialised FileDescriptorSet
 * that we made, see proto/descriptors.h. What the client asks for and we do not have is
 * an answer, too (error_response, 5). -1: the request is malformed (ERR_PROTOCOL) or asks
 * nothing (ERR_INVALID), and the call ends with that. */
int reflection_answer(struct span set, struct span request, struct buf *out, struct err *e);

#endif
