/* pb: protobuf messages in and out, for bytes that strangers send. protobuf-c does the coding;
 * this adds what it does not check: strings must be UTF-8 and hold no NUL (its strings end at
 * one, so a path would be cut in silence), and the number of fields has a ceiling (two bytes can
 * cost it a hundred).
 *
 * Owns:     nothing; pb_unpack returns a message for the caller's pb_free.
 * Used by:  the process service and reflection. Does no I/O.
 */
#ifndef SILICA_PROTO_PB_H
#define SILICA_PROTO_PB_H

#include "base/buf.h"

#include <protobuf-c/protobuf-c.h>

/* In one message, nested ones included; then ERR_LIMIT. argv has less */
#define PB_FIELDS_MAX 65536
#define PB_DEPTH_MAX  16 /* our deepest message has 3 levels */

/* One field on the wire. */
struct pb_field {
    uint32_t number;
    uint8_t wire;      /* 0 varint, 1 eight bytes, 2 bytes with a length, 5 four bytes */
    uint64_t varint;   /* of wire 0 */
    struct span bytes; /* of wire 2 */
};

/* Cuts the next field off *rest. 1: there it is, 0: the end, -1: malformed (groups are, too). */
int pb_next(struct span *rest, struct pb_field *ret, struct err *e);
/* The rules above, for a message of this type and all in it. ERR_PROTOCOL or ERR_LIMIT. */
int pb_check(const ProtobufCMessageDescriptor *type, struct span in, struct err *e);

/* Checked and decoded, or NULL with *e: ERR_PROTOCOL says what is wrong with it, as INTERNAL
 * does in gRPC. */
ProtobufCMessage *pb_unpack(const ProtobufCMessageDescriptor *type, struct span in, struct err *e);
/* Tolerates NULL. For OWN(pb_done), the variable is a pointer to any message. */
void pb_free(ProtobufCMessage *m);
void pb_done(void *pointer_to_message);

/* Adds the message's bytes. */
int pb_pack(const ProtobufCMessage *m, struct buf *out, struct err *e);
/* The same behind its gRPC prefix: what one DATA frame carries. */
int pb_pack_framed(const ProtobufCMessage *m, struct buf *out, struct err *e);

#endif
