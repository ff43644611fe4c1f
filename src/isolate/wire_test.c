#include "isolate/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *const words[] = { "sh", "-c", "echo \"ä\" \\ \n", NULL };
static const char *const env[] = { "A=1", "EMPTY=", NULL };
static const struct box_bind binds[] = { { "/a b", "/in", true }, { "/c", "/d", false, "e/f" } };

static struct spec full_spec(void)
{
    return (struct spec){
        .box = { .name = "full.spec_1-x",
                 .command = words,
                 .env = env,
                 .binds = binds,
                 .bind_count = LEN(binds),
                 .host_paths = env,
                 .cwd = "/w",
                 .uid = 7,
                 .gid = 8,
                 .groups = { 9, 65535 },
                 .group_count = 2,
                 .wants_range = true,
                 .root_bytes = 1ull << 40,
                 .is_read_only = true,
                 .limits = { .memory_bytes = UINT64_MAX, .pids = 5, .cpu_milli = 1500 },
                 .is_best_effort = true,
                 .runtime_args = words },
        .is_kept = true,
        .timeout_ms = 1234,
        .join = "other",
    };
}

static void assert_list(const char *const *got, const char *const *want)
{
    for (; *want; got++, want++)
        assert_string_equal(*got, *want);
    assert_null(*got);
}

static void a_spec_comes_back(void **state)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    OWN(wire_ask_done) struct wire_ask ask = { 0 };
    struct spec want = full_spec();
    const struct box_spec *got;
    struct err e;

    (void)state;
    assert_int_equal(wire_write_create(&want, &packet, &e), 0);
    assert_int_equal(wire_read_ask(buf_span(&packet), &ask, &e), 0);
    got = &ask.spec.box;
    assert_int_equal(ask.op, WIRE_CREATE);
    assert_string_equal(ask.name, "full.spec_1-x");
    assert_list(got->command, words);
    assert_list(got->env, env);
    assert_list(got->host_paths, env);
    assert_list(got->runtime_args, words);
    assert_null(got->layers);
    assert_int_equal(got->bind_count, 2);
    assert_string_equal(got->binds[0].source, "/a b");
    assert_true(got->binds[0].is_writable && !got->binds[1].is_writable);
    assert_null(got->binds[0].sub);
    assert_string_equal(got->binds[1].sub, "e/f");
    assert_string_equal(got->cwd, "/w");
    assert_true(got->uid == 7 && got->gid == 8 && got->wants_range && got->is_read_only &&
                got->is_best_effort && got->root_bytes == 1ull << 40);
    assert_true(got->group_count == 2 && got->groups[0] == 9 && got->groups[1] == 65535);
    assert_true(got->limits.memory_bytes == UINT64_MAX && got->limits.pids == 5 &&
                got->limits.cpu_milli == 1500);
    assert_true(ask.spec.is_kept && ask.spec.timeout_ms == 1234);
    assert_string_equal(ask.spec.join, "other");
}

static void what_json_cannot_carry_is_refused(void **state)
{
    static const char *const bad[] = { "X=\xff", NULL };
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct spec spec = full_spec();
    struct err e;

    (void)state;
    spec.box.env = bad;
    assert_int_equal(wire_write_create(&spec, &packet, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(packet.n, 0);
}

static void a_spec_has_a_ceiling(void **state)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    OWN_MEM char *large = own_new(SPEC_MAX_BYTES + 1);
    const char *const list[] = { large, NULL };
    struct spec spec = full_spec();
    struct err e;

    (void)state;
    memset(large, 'x', SPEC_MAX_BYTES);
    spec.box.env = list;
    assert_int_equal(wire_write_create(&spec, &packet, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void requests_that_are_none(void **state)
{
    static const struct row {
        const char *name, *packet;
        enum err_code code;
    } rows[] = {
        { "not JSON", "x", ERR_INVALID },
        { "cut short", "{\"v\":1,\"op\":\"wait\"", ERR_INVALID },
        { "no version", "{\"op\":\"wait\",\"name\":\"a\"}", ERR_PROTOCOL },
        { "another version", "{\"v\":2,\"op\":\"wait\",\"name\":\"a\"}", ERR_UNSUPPORTED },
        { "no request", "{\"v\":1}", ERR_PROTOCOL },
        { "an array", "[1]", ERR_PROTOCOL },
        { "unknown request", "{\"v\":1,\"op\":\"fly\",\"name\":\"a\"}", ERR_PROTOCOL },
        { "no name", "{\"v\":1,\"op\":\"wait\"}", ERR_INVALID },
        { "a name that leads out", "{\"v\":1,\"op\":\"wait\",\"name\":\"../a\"}", ERR_INVALID },
        { "a name with a NUL", "{\"v\":1,\"op\":\"wait\",\"name\":\"a\\u0000\"}", ERR_INVALID },
        { "no spec", "{\"v\":1,\"op\":\"create\"}", ERR_PROTOCOL },
        { "spec without name", "{\"v\":1,\"op\":\"create\",\"spec\":{}}", ERR_INVALID },
        { "command of nothing",
          "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"command\":[]}}", ERR_INVALID },
        { "command of numbers",
          "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"command\":[1]}}", ERR_INVALID },
        { "list that is none", "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"env\":{}}}",
          ERR_INVALID },
        { "volume of nothing",
          "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"volumes\":[{}]}}", ERR_INVALID },
        { "negative limit", "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"pids\":-1}}",
          ERR_INVALID },
        { "name given twice",
          "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"name\":\"b\"}}", ERR_INVALID },
        { "joins what has no name",
          "{\"v\":1,\"op\":\"create\",\"spec\":{\"name\":\"a\",\"join\":\"/\"}}", ERR_INVALID },
    };

    (void)state;
    EACH(r, rows) {
        struct wire_ask ask;
        struct err e = { 0 };

        if (wire_read_ask(span_cstr(r->packet), &ask, &e) == 0)
            fail_msg("%s: taken", r->name);
        if (e.code != r->code)
            fail_msg("%s: %s, want %s (%s)", r->name, err_map(e.code)->name, err_map(r->code)->name,
                     e.msg);
    }
}

static void answers_come_back(void **state)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct wire_answer a = { .name = "x",
                             .unenforced = "cpu",
                             .is_error = true,
                             .has_exit = true,
                             .exit = { .end = STATE_TIMED_OUT, .code = 124, .ended_ms = 99 } };
    struct wire_answer b;
    struct err e;

    (void)state;
    (void)err_set(&a.e, ERR_NO_SPACE, "no \"room\"");
    err_hint(&a.e, "make some");
    assert_int_equal(wire_write_answer(&a, &packet, &e), 0);
    assert_int_equal(wire_read_answer(buf_span(&packet), &b, &e), 0);
    assert_true(b.is_error && b.has_exit && !b.is_hello);
    assert_string_equal(b.name, "x");
    assert_string_equal(b.unenforced, "cpu");
    assert_int_equal(b.e.code, ERR_NO_SPACE);
    assert_string_equal(b.e.msg, "no \"room\"");
    assert_string_equal(b.e.hint, "make some");
    assert_true(b.exit.end == STATE_TIMED_OUT && b.exit.code == 124 && b.exit.ended_ms == 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_comes_back),    cmocka_unit_test(what_json_cannot_carry_is_refused),
        cmocka_unit_test(a_spec_has_a_ceiling), cmocka_unit_test(requests_that_are_none),
        cmocka_unit_test(answers_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
