#include "proto/pb.h"

#include "base/str.h"
#include "http/grpc_frame.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static int read_varint(struct span *rest, uint64_t *ret, struct err *e)
{
    uint64_t v = 0;

    for (size_t i = 0; i < 10 && i < rest->n; i++) {
        v |= (uint64_t)(rest->p[i] & 0x7f) << (7 * i);
        if (rest->p[i] & 0x80)
            continue;
        *rest = span_skip(*rest, i + 1);
        *ret = v;
        return 0;
    }
    return err_set(e, ERR_PROTOCOL, "a number is cut short or too long");
}

static int take(struct span *rest, uint64_t n, struct span *ret, struct err *e)
{
    if (n > rest->n)
        return err_set(e, ERR_PROTOCOL, "a field is cut short");
    *ret = span_slice(*rest, 0, (size_t)n);
    *rest = span_skip(*rest, (size_t)n);
    return 0;
}

int pb_next(struct span *rest, struct pb_field *ret, struct err *e)
{
    struct pb_field f = { 0 };
    struct span skipped;
    uint64_t tag, n;

    if (rest->n == 0)
        return 0;
    if (read_varint(rest, &tag, e) < 0)
        return -1;
    if (tag > UINT32_MAX || tag >> 3 == 0)
        return err_set(e, ERR_PROTOCOL, "field number out of range");
    f.number = (uint32_t)(tag >> 3);
    f.wire = tag & 7;
    switch (f.wire) {
    case WIRE_VARINT:
        if (read_varint(rest, &f.varint, e) < 0)
            return -1;
        break;
    case WIRE_64:
        if (take(rest, 8, &skipped, e) < 0)
            return -1;
        break;
    case WIRE_BYTES:
        if (read_varint(rest, &n, e) < 0 || take(rest, n, &f.bytes, e) < 0)
            return -1;
        break;
    case WIRE_32:
        if (take(rest, 4, &skipped, e) < 0)
            return -1;
        break;
    default: /* groups, which proto3 does not have, and two numbers nobody assigned */
        return err_set(e, ERR_PROTOCOL, "field %u has wire type %u", f.number, f.wire);
    }
    *ret = f;
    return 1;
}

static int check_string(const ProtobufCFieldDescriptor *field, struct span s, struct err *e)
{
    if (!str_utf8_valid(s))
        return err_set(e, ERR_PROTOCOL, "string field '%s' contains invalid UTF-8", field->name);
    if (span_find(s, 0) != SIZE_MAX)
        return err_set(e, ERR_PROTOCOL, "string field '%s' contains a NUL byte", field->name);
    return 0;
}

static int check(const ProtobufCMessageDescriptor *type, struct span in, unsigned depth,
                 size_t *left, struct err *e)
{
    struct pb_field f;
    int r;

    if (depth > PB_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "messages inside messages: more than %d", PB_DEPTH_MAX);
    while ((r = pb_next(&in, &f, e)) > 0) {
        const ProtobufCFieldDescriptor *field;

        if ((*left)-- == 0)
            return err_set(e, ERR_LIMIT, "more than %d fields", PB_FIELDS_MAX);
        field = protobuf_c_message_descriptor_get_field(type, f.number);
        if (!field || f.wire != WIRE_BYTES)
            continue;
        if (field->type == PROTOBUF_C_TYPE_STRING && check_string(field, f.bytes, e) < 0)
            return -1;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
            check(field->descriptor, f.bytes, depth + 1, left, e) < 0)
            return -1;
    }
    return r;
}

int pb_check(const ProtobufCMessageDescriptor *type, struct span in, struct err *e)
{
    size_t left = PB_FIELDS_MAX;

    if (check(type, in, 1, &left, e) < 0)
        return err_wrap(e, "cannot read %s", type->name);
    return 0;
}

ProtobufCMessage *pb_unpack(const ProtobufCMessageDescriptor *type, struct span in, struct err *e)
{
    ProtobufCMessage *m;

    if (pb_check(type, in, e) < 0)
        return NULL;
    m = protobuf_c_message_unpack(type, NULL, in.n, in.p);
    if (!m)
        err_set(e, ERR_PROTOCOL, "cannot read %s: a field has another type", type->name);
    return m;
}

void pb_free(ProtobufCMessage *m)
{
    if (m)
        protobuf_c_message_free_unpacked(m, NULL);
}

void pb_done(void *pointer_to_message)
{
    ProtobufCMessage **m = pointer_to_message;

    pb_free(take_ptr(m));
}

static int add_packed(const ProtobufCMessage *m, size_t n, struct buf *out, struct err *e)
{
    if (buf_reserve(out, n, e) < 0)
        return -1;
    buf_grown(out, protobuf_c_message_pack(m, out->p + out->n));
    return 0;
}

int pb_pack(const ProtobufCMessage *m, struct buf *out, struct err *e)
{
    return add_packed(m, protobuf_c_message_get_packed_size(m), out, e);
}

int pb_pack_framed(const ProtobufCMessage *m, struct buf *out, struct err *e)
{
    size_t n = protobuf_c_message_get_packed_size(m);

    if (grpc_frame_add_prefix(out, n, e) < 0) /* reserves for both */
        return -1;
    return add_packed(m, n, out, e);
}
