#include "kube/proto.h"

#include "base/fd.h"
#include "kube/default.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void read_file(const char *path, struct buf *out)
{
    OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct err e;

    if (fd < 0 || fd_read_all(fd, out, &e) < 0)
        fail_msg("cannot read '%s'", path);
}

static const struct schema_type *type_of(const struct proto_envelope *env)
{
    const struct kind *k = kind_of(env->api_version, env->kind);
    OWN_MEM char *api = span_dup(env->api_version), *name = span_dup(env->kind);
    char *slash = strchr(api, '/');

    if (k)
        return k->versions[0].type;
    if (slash)
        *slash = '\0';
    return kind_body_type(slash ? api : "", slash ? slash + 1 : api, name);
}

/* The public encoder's bytes, beside what the same objects are in its JSON (proto_vectors.txt). */
static void vectors(void **state)
{
    OWN(buf_done) struct buf lines = BUF_INIT(65536);
    struct span rest, line;
    size_t n = 0;

    read_file("src/kube/proto_vectors.txt", &lines);
    for (rest = buf_span(&lines); span_cut(&rest, '\n', &line); n++) {
        OWN(buf_done) struct buf body = BUF_INIT(65536), got = BUF_INIT(65536);
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        OWN(json_doc_done) struct json_doc *want = NULL;
        struct json_node *root = NULL, *wanted;
        size_t blank = span_find(line, ' ');
        struct proto_envelope env;
        char path[200];
        struct err e;

        snprintf(path, sizeof path, "tests/corpus/kube_proto/%.*s", (int)blank,
                 (const char *)line.p);
        read_file(path, &body);
        assert_int_equal(json_parse(span_skip(line, blank + 1), NULL, &want, &e), 0);
        assert_int_equal(proto_envelope_read(buf_span(&body), &env, &e), 0);
        if (!type_of(&env))
            fail_msg("%s: no type", path);
        if (proto_object_read(type_of(&env), &env, ed, &root, &e) < 0)
            fail_msg("%s: %s", path, e.msg);
        wanted = json_edit_doc(ed, want);
        /* The wire has zeros where JSON has nothing; both come to the same. */
        assert_int_equal(default_body(type_of(&env), root, &e), 0);
        assert_int_equal(default_body(type_of(&env), wanted, &e), 0);
        assert_int_equal(json_node_write(root, &got, &e), 0);
        if (!json_node_equal(root, wanted))
            fail_msg("%s: got %s", path, buf_cstr(&got));
    }
    assert_int_equal(n, 15);
}

#define MAGIC "k8s\0"
static const struct row {
    const char *name;
    struct span body;
    enum err_code code;
} rows[] = {
    { "nothing", BYTES(""), ERR_INVALID },
    { "no magic", BYTES("{}"), ERR_INVALID },
    { "magic alone", BYTES(MAGIC), ERR_NONE },
    { "length beyond the end", BYTES(MAGIC "\x0a\x7f"), ERR_INVALID },
    { "varint without end", BYTES(MAGIC "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
      ERR_INVALID },
    { "field 0", BYTES(MAGIC "\x02\x00"), ERR_INVALID },
    { "a group", BYTES(MAGIC "\x0b"), ERR_INVALID },
    { "another encoding", BYTES(MAGIC "\x1a\x04gzip"), ERR_INVALID },
    { "another content",
      BYTES(MAGIC "\x22\x10"
                  "application/json"),
      ERR_INVALID },
};

static void envelopes(void **state)
{
    EACH(r, rows) {
        struct proto_envelope env;
        struct err e = { .code = ERR_NONE };
        int status = proto_envelope_read(r->body, &env, &e);

        if ((status == 0) != (r->code == ERR_NONE) || e.code != r->code)
            fail_msg("%s: %s", r->name, e.msg);
    }
}

static const struct row messages[] = {
    { "empty", BYTES(""), ERR_NONE },
    { "unknown field", BYTES("\xf8\x07\x01"), ERR_NONE },
    { "metadata is no message", BYTES("\x08\x01"), ERR_INVALID },
    { "metadata cut short", BYTES("\x0a\x05\x0a\x01x"), ERR_INVALID },
    { "map entry without a value",
      BYTES("\x12\x03\x0a\x01"
            "a"),
      ERR_NONE },
    { "map entry that is a number", BYTES("\x10\x01"), ERR_INVALID },
    { "a time in year 300000", BYTES("\x0a\x08\x42\x06\x08\x80\x80\x80\x80\x80\x40"), ERR_INVALID },
    { "a time with too many nanoseconds", BYTES("\x0a\x0a\x42\x08\x08\x01\x10\x80\x94\xeb\xdc\x03"),
      ERR_INVALID },
    { "embedded JSON that is none", BYTES("\x0a\x0a\x8a\x01\x07\x3a\x05\x0a\x03xyz"), ERR_INVALID },
};

static void broken_messages(void **state)
{
    const struct schema_type *t = kind_find("", "v1", "configmaps")->versions[0].type;

    EACH(r, messages) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct proto_envelope env = { .raw = r->body };
        struct json_node *root = NULL;
        struct err e = { .code = ERR_NONE };

        (void)proto_object_read(t, &env, ed, &root, &e);
        if (e.code != r->code)
            fail_msg("%s: %d %s", r->name, e.code, e.msg);
    }
}

static void custom_kinds_have_none(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct proto_envelope env = { 0 };
    struct json_node *root = NULL;
    struct err e;

    assert_int_equal(
        proto_object_read(kind_find("agents.x-k8s.io", NULL, "sandboxes")->versions[0].type, &env,
                          ed, &root, &e),
        -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(envelopes),
        cmocka_unit_test(broken_messages),
        cmocka_unit_test(custom_kinds_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
