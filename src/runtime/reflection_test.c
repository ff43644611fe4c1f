#include "runtime/reflection.h"

#include "proto/pb.h"
#include "proto/descriptors.h"
#include "proto/reflection_v1.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

enum { BY_NAME = 3, BY_SYMBOL = 4, BY_EXTENSION = 5, EXTENSIONS = 6, LIST = 7 };

static void put_field(struct buf *out, int number, struct span bytes)
{
    struct err e;

    assert_true(bytes.n < 128);
    assert_int_equal(buf_addc(out, (uint8_t)(number << 3 | 2), &e), 0);
    assert_int_equal(buf_addc(out, (uint8_t)bytes.n, &e), 0);
    assert_int_equal(buf_add(out, bytes, &e), 0);
}

/* host "h", then the question. */
static void ask(struct buf *out, int kind, const char *name)
{
    OWN(buf_done) struct buf inner = BUF_INIT(1024);

    if (kind == BY_EXTENSION)
        put_field(&inner, 1, span_cstr(name));
    put_field(out, 1, SPAN("h"));
    put_field(out, kind, kind == BY_EXTENSION ? buf_span(&inner) : span_cstr(name));
}

static void add_name(struct buf *text, ProtobufCBinaryData file)
{
    struct span rest = span_of(file.data, file.len);
    struct pb_field f;
    struct err e;

    assert_int_equal(pb_next(&rest, &f, &e), 1); /* the name comes first */
    assert_int_equal(f.number, 1);
    assert_int_equal(buf_addf(text, &e, "%.*s ", SPAN_ARG(f.bytes)), 0);
}

/* The answer as text: file names, service names, or an error. */
static void tell(const Grpc__Reflection__V1__ServerReflectionResponse *r, struct buf *text)
{
    struct err e;

    switch ((int)r->message_response_case) {
    case 4:
        for (size_t i = 0; i < r->file_descriptor_response->n_file_descriptor_proto; i++)
            add_name(text, r->file_descriptor_response->file_descriptor_proto[i]);
        break;
    case 5:
        assert_int_equal(r->all_extension_numbers_response->n_extension_number, 0);
        assert_int_equal(
            buf_addf(text, &e, "none of %s ", r->all_extension_numbers_response->base_type_name),
            0);
        break;
    case 6:
        for (size_t i = 0; i < r->list_services_response->n_service; i++)
            assert_int_equal(buf_addf(text, &e, "%s ", r->list_services_response->service[i]->name),
                             0);
        break;
    case 7:
        assert_int_equal(buf_addf(text, &e, "%d %s", r->error_response->error_code,
                                  r->error_response->error_message),
                         0);
        break;
    default:
        fail_msg("no answer");
    }
}

#define PROCESS "process/v1/process.proto google/protobuf/empty.proto "
#define V1      "grpc/reflection/v1/reflection.proto "
#define ALPHA   "grpc/reflection/v1alpha/reflection.proto "
#define SERVICES                                                                                   \
    "grpc.reflection.v1.ServerReflection grpc.reflection.v1alpha.ServerReflection "                \
    "process.v1.ProcessService "

static void test_answers(void **state)
{
    static const struct row {
        int kind;
        const char *name;
        const char *want;
    } rows[] = {
        { LIST, "", SERVICES },
        { LIST, "*", SERVICES },
        { BY_NAME, "process/v1/process.proto", PROCESS },
        { BY_NAME, "google/protobuf/empty.proto", "google/protobuf/empty.proto " },
        { BY_NAME, "process.proto", "5 file not found: process.proto" },
        { BY_NAME, "", "5 file not found: " },
        { BY_SYMBOL, "process.v1.ProcessService", PROCESS },
        { BY_SYMBOL, "process.v1.ProcessService.Execute", PROCESS },
        { BY_SYMBOL, "process.v1.StartRequest", PROCESS },
        { BY_SYMBOL, "process.v1.StartRequest.pty", PROCESS },
        { BY_SYMBOL, "process.v1.ProcessConfig.EnvVarsEntry", PROCESS },
        { BY_SYMBOL, "process.v1.ProcessConfig.EnvVarsEntry.key", PROCESS },
        { BY_SYMBOL, "process.v1.StartResponse.event", PROCESS },
        { BY_SYMBOL, "process.v1.Signal", PROCESS },
        { BY_SYMBOL, "process.v1.SIGNAL_SIGKILL", PROCESS },
        { BY_SYMBOL, "google.protobuf.Empty", "google/protobuf/empty.proto " },
        { BY_SYMBOL, "grpc.reflection.v1.ServerReflection", V1 },
        { BY_SYMBOL, "grpc.reflection.v1alpha.ServerReflection", ALPHA },
        { BY_SYMBOL, "grpc.reflection.v1alpha.ErrorResponse", ALPHA },
        { BY_SYMBOL, "process.v1", "5 symbol not found: process.v1" },
        { BY_SYMBOL, "process.v1.", "5 symbol not found: process.v1." },
        { BY_SYMBOL, "process.v1.Start", "5 symbol not found: process.v1.Start" },
        { BY_SYMBOL, "process.v1.StartRequest.", "5 symbol not found: process.v1.StartRequest." },
        { BY_SYMBOL, "process.v1.ProcessService.Nope",
          "5 symbol not found: process.v1.ProcessService.Nope" },
        { BY_SYMBOL, "process.v1.Signal.SIGNAL_SIGKILL",
          "5 symbol not found: process.v1.Signal.SIGNAL_SIGKILL" },
        { BY_SYMBOL, ".process.v1.Signal", "5 symbol not found: .process.v1.Signal" },
        { BY_SYMBOL, "", "5 symbol not found: " },
        { BY_EXTENSION, "process.v1.PTY", "5 extension not found: process.v1.PTY" },
        { EXTENSIONS, "process.v1.PTY", "none of process.v1.PTY " },
        { EXTENSIONS, "process.v1.None", "5 type not found: process.v1.None" },
    };
    struct span set = span_of(proto_descriptors, proto_descriptors_bytes);
    struct err e;

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf question = BUF_INIT(1024);
        OWN(buf_done) struct buf answer = BUF_INIT(REFLECTION_MAX_BYTES);
        OWN(buf_done) struct buf text = BUF_INIT(4096);
        OWN(pb_done) Grpc__Reflection__V1__ServerReflectionResponse *got = NULL;

        ask(&question, r->kind, r->name);
        assert_int_equal(reflection_answer(set, buf_span(&question), &answer, &e), 0);
        got = (void *)pb_unpack(&grpc__reflection__v1__server_reflection_response__descriptor,
                                buf_span(&answer), &e);
        assert_non_null(got);
        tell(got, &text);
        assert_string_equal(buf_cstr(&text), r->want);
        assert_string_equal(got->valid_host, "h");
        assert_int_equal(got->original_request->message_request_case, r->kind);
    }
}

static void test_bad_questions(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        enum err_code code;
    } rows[] = {
        { "nothing", BYTES(""), ERR_INVALID },
        { "only a host", BYTES("\n\1h"), ERR_INVALID },
        { "cut short",
          BYTES("\x22\5"
                "abc"),
          ERR_PROTOCOL },
        { "not UTF-8", BYTES("\x22\1\xff"), ERR_PROTOCOL },
        { "a number for a name", BYTES("\x20\1"), ERR_PROTOCOL },
    };
    struct span set = span_of(proto_descriptors, proto_descriptors_bytes);

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf answer = BUF_INIT(1024);
        struct err e = { 0 };

        if (reflection_answer(set, r->in, &answer, &e) == 0 || e.code != r->code || answer.n != 0)
            fail_msg("%s: %d %s", r->name, e.code, e.msg);
    }
}

/* A long name is cut in the message, between characters. */
static void test_long_name(void **state)
{
    OWN(buf_done)
    struct buf name = BUF_INIT(1024), question = BUF_INIT(1024), answer = BUF_INIT(4096);
    OWN(pb_done) Grpc__Reflection__V1__ServerReflectionResponse *got = NULL;
    struct err e;

    (void)state;
    assert_int_equal(buf_addc(&name, 'x', &e), 0);
    for (int i = 0; i < 60; i++)
        assert_int_equal(buf_add(&name, SPAN("\xc3\xbc"), &e), 0);
    ask(&question, BY_SYMBOL, buf_cstr(&name));
    assert_int_equal(reflection_answer(span_of(proto_descriptors, proto_descriptors_bytes),
                                       buf_span(&question), &answer, &e),
                     0);
    got = (void *)pb_unpack(&grpc__reflection__v1__server_reflection_response__descriptor,
                            buf_span(&answer), &e);
    assert_non_null(got);
    assert_int_equal(strlen(got->error_response->error_message), strlen("symbol not found: ") + 99);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bad_questions),
        cmocka_unit_test(test_long_name),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
