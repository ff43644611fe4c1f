#include "proto/pb.h"

#include "proto/process.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* clang-format off */
#define START   &process__v1__start_request__descriptor
#define EXECUTE &process__v1__execute_request__descriptor
#define STDIN   &process__v1__write_stdin_request__descriptor
#define SIGNAL  &process__v1__send_signal_request__descriptor
/* clang-format on */

static void test_rows(void **state)
{
    static const struct row {
        const char *name;
        const ProtobufCMessageDescriptor *type;
        struct span in;
        enum err_code code;
        const char *text; /* behind "cannot read <type>: "; "" when it is fine */
    } rows[] = {
        { "empty", EXECUTE, BYTES(""), ERR_NONE, "" },
        { "argv", EXECUTE, BYTES("\n\6\n\4true"), ERR_NONE, "" },
        { "unknown fields are skipped", EXECUTE,
          BYTES("\x58\1\x61"
                "12345678\x6a\2hi\x75"
                "1234\n\6\n\4true"),
          ERR_NONE, "" },
        { "UTF-8", EXECUTE, BYTES("\n\4\n\2\xc3\xbc"), ERR_NONE, "" },
        { "not UTF-8", EXECUTE, BYTES("\n\3\n\1\xff"), ERR_PROTOCOL,
          "string field 'command' contains invalid UTF-8" },
        { "a character cut in two", EXECUTE, BYTES("\n\3\n\1\xc3"), ERR_PROTOCOL,
          "string field 'command' contains invalid UTF-8" },
        { "NUL in the working directory", EXECUTE, BYTES("\n\5\x1a\3a\0b"), ERR_PROTOCOL,
          "string field 'cwd' contains a NUL byte" },
        { "map value not UTF-8", EXECUTE, BYTES("\n\10\x12\6\n\1k\x12\1\x80"), ERR_PROTOCOL,
          "string field 'value' contains invalid UTF-8" },
        { "bytes may hold anything", STDIN, BYTES("\10\1\x12\2\xff\0"), ERR_NONE, "" },
        { "field number 0", EXECUTE, BYTES("\2\0"), ERR_PROTOCOL, "field number out of range" },
        { "field number too large", EXECUTE, BYTES("\x80\x80\x80\x80\x10\0"), ERR_PROTOCOL,
          "field number out of range" },
        { "length behind the end", EXECUTE, BYTES("\n\5\n"), ERR_PROTOCOL, "a field is cut short" },
        { "length of ten bytes", EXECUTE, BYTES("\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
          ERR_PROTOCOL, "a field is cut short" },
        { "number without an end", SIGNAL, BYTES("\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
          ERR_PROTOCOL, "a number is cut short or too long" },
        { "group", EXECUTE, BYTES("\x0b\x0c"), ERR_PROTOCOL, "field 1 has wire type 3" },
        { "a number where a message should be", EXECUTE, BYTES("\10\1"), ERR_PROTOCOL,
          "a field has another type" },
        { "fixed cut short", EXECUTE,
          BYTES("\x61"
                "1234"),
          ERR_PROTOCOL, "a field is cut short" },
    };

    (void)state;
    EACH(r, rows) {
        struct err e = { 0 };
        ProtobufCMessage *m = pb_unpack(r->type, r->in, &e);
        char want[200] = "";

        if ((m != NULL) != (r->code == ERR_NONE))
            fail_msg("%s: %s", r->name, m ? "taken" : e.msg);
        if (!m)
            (void)snprintf(want, sizeof want, "cannot read %s: %s", r->type->name, r->text);
        assert_int_equal(e.code, r->code);
        assert_string_equal(e.msg, want);
        pb_free(m);
    }
}

/* The traps of the wire that the contract names. */
static void test_wire_of_process(void **state)
{
    Process__V1__StartResponse event = PROCESS__V1__START_RESPONSE__INIT;
    Process__V1__ExitEvent exit_event = PROCESS__V1__EXIT_EVENT__INIT;
    Process__V1__ExecuteResponse result = PROCESS__V1__EXECUTE_RESPONSE__INIT;
    OWN(buf_done) struct buf out = BUF_INIT(100);
    struct err e;

    (void)state;
    assert_int_equal(pb_pack_framed(&result.base, &out, &e), 0);
    assert_int_equal(out.n, 5); /* a silent success is an empty message */
    assert_memory_equal(out.p, "\0\0\0\0\0", 5);
    buf_clear(&out);
    result.exit_code = -1;
    assert_int_equal(pb_pack_framed(&result.base, &out, &e), 0);
    assert_int_equal(out.n, 16);
    assert_memory_equal(out.p, "\0\0\0\0\13\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 16);
    buf_clear(&out);
    event.event_case = PROCESS__V1__START_RESPONSE__EVENT_EXIT;
    event.exit = &exit_event;
    assert_int_equal(pb_pack(&event.base, &out, &e), 0);
    assert_int_equal(out.n, 2);
    assert_memory_equal(out.p, "\x22\0", 2);
}

static void test_presence(void **state)
{
    struct err e;
    OWN(pb_done)
    Process__V1__StartRequest *start = (void *)pb_unpack(START, SPAN("\x12\0"), &e);
    OWN(pb_done)
    Process__V1__WriteStdinRequest *eof = (void *)pb_unpack(STDIN, SPAN("\x1a\0"), &e);
    OWN(pb_done)
    Process__V1__WriteStdinRequest *none = (void *)pb_unpack(STDIN, SPAN_NONE, &e);
    OWN(pb_done)
    Process__V1__ExecuteRequest *parts = (void *)pb_unpack(EXECUTE, SPAN("\n\3\n\1a\n\3\n\1b"), &e);

    (void)state;
    assert_non_null(start->pty); /* present and empty: a terminal is wanted */
    assert_null(start->config);
    assert_int_equal(eof->payload_case, PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD_EOF);
    assert_int_equal(none->payload_case, PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD__NOT_SET);
    assert_int_equal(parts->config->n_command, 2); /* parts of one message are put together */
    assert_string_equal(parts->config->cwd, "");
}

static void test_field_ceiling(void **state)
{
    OWN(buf_done) struct buf in = BUF_INIT(1 << 20);
    struct err e;

    (void)state;
    assert_int_equal(buf_add(&in, SPAN("\n\xfe\xff\7"), &e), 0); /* a config of 131,070 bytes */
    for (int i = 0; i < PB_FIELDS_MAX - 1; i++)
        assert_int_equal(buf_add(&in, SPAN("\n\0"), &e), 0);
    assert_int_equal(pb_check(EXECUTE, buf_span(&in), &e), 0);
    assert_int_equal(buf_add(&in, SPAN("\n\0"), &e), 0); /* one more */
    assert_int_equal(pb_check(EXECUTE, buf_span(&in), &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_string_equal(e.msg, "cannot read process.v1.ExecuteRequest: more than 65536 fields");
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_wire_of_process),
        cmocka_unit_test(test_presence),
        cmocka_unit_test(test_field_ceiling),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
