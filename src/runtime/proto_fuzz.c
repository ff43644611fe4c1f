/* Any bytes as any request message: what the check lets through, protobuf-c must decode into strings
 * that are whole, and what we write of it must read back the same. */
#include "base/str.h"
#include "proto/pb.h"
#include "proto/descriptors.h"
#include "proto/process.pb-c.h"
#include "proto/reflection_v1.pb-c.h"
#include "runtime/reflection.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (64 * 1024)

static const ProtobufCMessageDescriptor *const types[] = {
    &process__v1__start_request__descriptor,
    &process__v1__execute_request__descriptor,
    &process__v1__write_stdin_request__descriptor,
    &process__v1__send_signal_request__descriptor,
    &process__v1__resize_ttyrequest__descriptor,
    &grpc__reflection__v1__server_reflection_request__descriptor,
};

/* Decoded, written, decoded and written again: the second text equals the first. */
static void round_trip(const ProtobufCMessageDescriptor *type, const ProtobufCMessage *m)
{
    OWN(buf_done) struct buf one = BUF_INIT(8 * INPUT_MAX_BYTES);
    OWN(buf_done) struct buf two = BUF_INIT(8 * INPUT_MAX_BYTES);
    OWN(pb_done) ProtobufCMessage *again = NULL;
    struct err e;

    if (pb_pack(m, &one, &e) < 0)
        abort();
    again = pb_unpack(type, buf_span(&one), &e);
    if (!again || pb_pack(again, &two, &e) < 0)
        abort();
    assert(span_eq(buf_span(&one), buf_span(&two)));
}

static void look_at_strings(const Process__V1__ProcessConfig *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->n_command; i++)
        assert(str_utf8_valid(span_cstr(config->command[i])));
    for (size_t i = 0; i < config->n_env_vars; i++) {
        assert(str_utf8_valid(span_cstr(config->env_vars[i]->key)));
        assert(str_utf8_valid(span_cstr(config->env_vars[i]->value)));
    }
    assert(str_utf8_valid(span_cstr(config->cwd)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf answer = BUF_INIT(REFLECTION_MAX_BYTES + INPUT_MAX_BYTES);
    const ProtobufCMessageDescriptor *type;
    OWN(pb_done) ProtobufCMessage *m = NULL;
    struct span in;
    struct err e;

    if (size < 1 || size > INPUT_MAX_BYTES)
        return 0;
    type = types[data[0] % LEN(types)];
    in = span_of(data + 1, size - 1);
    m = pb_unpack(type, in, &e);
    if (!m) {
        assert(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
        return 0;
    }
    round_trip(type, m);
    if (type == types[0])
        look_at_strings(((Process__V1__StartRequest *)m)->config);
    if (type == types[1])
        look_at_strings(((Process__V1__ExecuteRequest *)m)->config);
    if (type == types[5] && reflection_answer(span_of(proto_descriptors, proto_descriptors_bytes),
                                              in, &answer, &e) == 0)
        assert(pb_check(&grpc__reflection__v1__server_reflection_response__descriptor,
                        buf_span(&answer), &e) == 0);
    return 0;
}
