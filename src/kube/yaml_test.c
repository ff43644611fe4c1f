#include "kube/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* want: compact JSON, or the error when it begins with '!'. */
static const struct row {
    const char *in, *want;
} rows[] = {
    { "", "null" },
    { "# nothing\n", "null" },
    { "a: 1\nb: [x, 'y', \"z\"]\nc:\n- d: e\n",
      "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"],\"c\":[{\"d\":\"e\"}]}" },
    { "[yes, No, ON, off, y, N, true, FALSE, 'yes', maybe]",
      "[true,false,true,false,true,false,true,false,\"yes\",\"maybe\"]" },
    { "[~, null, NULL, '', , ]", "!" },
    { "[~, null, Null, '']", "[null,null,null,\"\"]" },
    { "[0, 12, -5, +7, 010, 0o10, 0x1F, -0x1F, 0b11, 1_000]", "[0,12,-5,7,8,8,31,-31,3,1000]" },
    { "[1.5, .5, 1e3, -1.5e-3, 09, 1., 123456789012345678901234567890]",
      "[1.5,0.5,1000,-0.0015,9,1,1.2345678901234568e+29]" },
    { "[18446744073709551615, -9223372036854775808]",
      "[18446744073709551615,-9223372036854775808]" },
    { "[2001-01-01, 12:30:45, 1.2.3, 0x, '1', \"2\", 0o9, --1, 1e, .]",
      "[\"2001-01-01\",\"12:30:45\",\"1.2.3\",\"0x\",\"1\",\"2\",\"0o9\",\"--1\",\"1e\",\".\"]" },
    { "[!!str 5, !foo 6, !!int '7', !!binary aGk=]", "[\"5\",\"6\",7,\"hi\"]" },
    { ".inf", "!json: unsupported value: .inf" },
    { "1e400", "!json: unsupported value: 1e400" },
    { "{1: a, true: b, 1.5: c}", "{\"1\":\"a\",\"true\":\"b\",\"1.5\":\"c\"}" },
    { "~: a", "!unsupported map key of type: null" },
    { "? [a]\n: 1\n", "!yaml: invalid map key: a array" },
    { "a: &x {b: 1}\nc: *x\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}" },
    { "a: &x {b: 1, z: 9}\nc:\n  b: 2\n  <<: *x\n  d: 3\n",
      "{\"a\":{\"b\":1,\"z\":9},\"c\":{\"b\":2,\"d\":3,\"z\":9}}" },
    { "a: &x {b: 1}\nk: &y {b: 2, c: 3}\nm: {<<: [*x, *y]}\n",
      "{\"a\":{\"b\":1},\"k\":{\"b\":2,\"c\":3},\"m\":{\"b\":1,\"c\":3}}" },
    { "a: {<<: 5}", "!yaml: map merge requires map or sequence of maps as the value" },
    { "a: &x [*x]\n", "!yaml: anchor 'x' value contains itself" },
    { "a: *x\n", "!yaml: unknown anchor 'x' referenced" },
    { "a: b: c\n", "!yaml: mapping values are not allowed in this context" },
    { "metadata: {name: x\ndata:\n  a: b\n", "!yaml: line 1: did not find expected ',' or '}'" },
    { "\tx: 1\n", "!yaml: found character that cannot start any token" },
    { "%YAML 9.9\n---\na: 1\n", "!yaml: found incompatible YAML document" },
    { "a: 1\na: 2\n", "{\"a\":2}" },
    { "a: |\n  two\n  lines\nb: >\n  one\n  line\n",
      "{\"a\":\"two\\nlines\\n\",\"b\":\"one line\\n\"}" },
    { "a: \"\\u00e9\\0\"", "{\"a\":\"\xc3\xa9\\u0000\"}" },
    { "first: 1\n---\nsecond: 2\n", "{\"first\":1}" },
    { "{\"json\": [1, 2.50, null, \"x\"]}", "{\"json\":[1,2.5,null,\"x\"]}" },
};

static void each(void **state)
{
    EACH(r, rows) {
        OWN(json_doc_done) struct json_doc *doc = NULL;
        struct err e = { .msg = "" };
        int status = kube_yaml_to_doc(span_cstr(r->in), NULL, &doc, &e);

        if (r->want[0] == '!') {
            if (status == 0 || (r->want[1] && strcmp(e.msg, r->want + 1) != 0))
                fail_msg("'%s': got '%s', want '%s'", r->in, status ? e.msg : "success",
                         r->want + 1);
            continue;
        }
        if (status < 0 || !span_is(json_doc_bytes(doc), r->want))
            fail_msg("'%s': got '%s%.*s', want '%s'", r->in, e.msg,
                     SPAN_ARG(status ? SPAN_NONE : json_doc_bytes(doc)), r->want);
    }
}

static void documents_come_one_by_one(void **state)
{
    OWN(kube_yaml_done)
    struct kube_yaml *y = kube_yaml_new(SPAN("a: 1\na: 2\n---\n---\nb: 2\n...\n"));
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *node = NULL;
    struct err e;

    assert_int_equal(kube_yaml_next(y, ed, &node, &e), 1);
    assert_string_equal(kube_yaml_repeats(y),
                        "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map");
    assert_int_equal(kube_yaml_next(y, ed, &node, &e), 1);
    assert_int_equal(json_node_type(node), JSON_NULL);
    assert_null(kube_yaml_repeats(y));
    assert_int_equal(kube_yaml_next(y, ed, &node, &e), 1);
    assert_non_null(json_node_get(node, "b"));
    assert_int_equal(kube_yaml_next(y, ed, &node, &e), 0);
    assert_int_equal(kube_yaml_next(y, ed, &node, &e), 0);
}

/* Nine lists of nine aliases each: a billion laughs. */
static void aliases_do_not_explode(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(65536);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    (void)buf_addf(&text, &e, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (int i = 1; i < 12; i++) {
        (void)buf_addf(&text, &e, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++)
            (void)buf_addf(&text, &e, "%s*a%d", j ? ", " : "", i - 1);
        (void)buf_addf(&text, &e, "]\n");
    }
    assert_int_equal(kube_yaml_to_doc(buf_span(&text), NULL, &doc, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void depth_has_an_end(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(65536);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    for (int i = 0; i < 900; i++)
        (void)buf_addc(&text, '[', &e);
    for (int i = 0; i < 900; i++)
        (void)buf_addc(&text, ']', &e);
    assert_int_equal(kube_yaml_to_doc(buf_span(&text), NULL, &doc, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static const struct line_row {
    const char *path[4];
    size_t want;
} line_rows[] = {
    { { "listen" }, 2 },
    { { "pools" }, 3 },
    { { "pools", "0" }, 4 },
    { { "pools", "0", "name" }, 4 },
    { { "pools", "1" }, 6 },
    { { "pools", "1", "replicas" }, 7 },
    { { "pools", "1", "none" }, 6 },
    { { "pools", "2" }, 3 },
    { { "pools", "x" }, 3 },
    { { "flow" }, 8 },
    { { "flow", "c" }, 9 },
    { { "alias", "c" }, 10 },
    { { "listen", "deeper" }, 2 },
    { { "none" }, 0 },
    { { NULL }, 0 },
};

static void lines(void **state)
{
    static const char text[] =
        "# first\nlisten: a\npools:\n- name: x\n  labels: {name: y}\n- name: z\n"
        "  replicas: 3\nflow: &f {a: [1, {b: 2}],\n  c: 3}\nalias: *f\n";
    const char *const deep[] = { "a", "b", NULL };

    (void)state;
    EACH(r, line_rows) {
        const char *path[5] = { r->path[0], r->path[1], r->path[2], r->path[3] };
        size_t got = kube_yaml_line(SPAN(text), path);

        if (got != r->want)
            fail_msg("%s/%s: line %zu, not %zu", path[0], path[1] ? path[1] : "", got, r->want);
    }
    assert_int_equal(kube_yaml_line(SPAN("a: [1"), deep), 1);
    assert_int_equal(kube_yaml_line(SPAN("\t"), deep), 0);
    assert_int_equal(kube_yaml_line(SPAN_NONE, deep), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each),
        cmocka_unit_test(documents_come_one_by_one),
        cmocka_unit_test(aliases_do_not_explode),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
