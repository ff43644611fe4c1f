#include "kube/select.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct json_doc *must_parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    return doc;
}

/* The labels are {"a":"b","n":"5","e":""}. */
static const struct row {
    const char *text;
    const char *again; /* written back */
    bool is_match;
} rows[] = {
    { "", "", true },
    { " ", "", true },
    { "a", "a", true },
    { "!a", "!a", false },
    { "z", "z", false },
    { "! z", "!z", true },
    { "a=b", "a=b", true },
    { "a == b", "a==b", true },
    { "a=c", "a=c", false },
    { "a!=c", "a!=c", true },
    { "z!=c", "z!=c", true },
    { "a in (c, b,b)", "a in (b,c)", true },
    { "a in (c)", "a in (c)", false },
    { "a notin (c,d)", "a notin (c,d)", true },
    { "z notin (c)", "z notin (c)", true },
    { "e in ()", "e in ()", true },
    { "e in (,x)", "e in (,x)", true },
    { "e in (x,)", "e in (,x)", true },
    { "e in (x,,y)", "e in (,x,y)", true },
    { "e=", "e=", true },
    { "e=,a=b", "e=,a=b", true },
    { "n>4", "n>4", true },
    { "n>5", "n>5", false },
    { "n<6,a", "n<6,a", true },
    { "a<6", "a<6", false },
    { "in in (in,notin)", "in in (in,notin)", false },
    { "in", "in", false },
    { "x.io/y=z", "x.io/y=z", false },
};

static void test_match(void **state)
{
    OWN(json_doc_done) struct json_doc *labels = must_parse("{\"a\":\"b\",\"n\":\"5\",\"e\":\"\"}");
    struct err e;

    EACH(r, rows) {
        OWN(selector_done) struct selector *s = NULL;
        OWN(buf_done) struct buf out = BUF_INIT(1000);

        if (selector_parse(span_cstr(r->text), &s, &e) < 0)
            fail_msg("'%s': %s", r->text, e.msg);
        if (selector_matches(s, json_doc_root(labels)) != r->is_match)
            fail_msg("'%s' should %smatch", r->text, r->is_match ? "" : "not ");
        assert_int_equal(selector_write(s, &out, &e), 0);
        assert_string_equal(buf_cstr(&out), r->again);
        assert_int_equal(selector_is_everything(s), r->again[0] == '\0');
    }
    assert_true(selector_matches(NULL, NULL));
}

#define VALUE_SAYS                                                                                  \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "     \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  " \
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

static const struct bad {
    const char *text, *says;
} bad_rows[] = {
    { "a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt" },
    { "a=b c", "found 'c', expected: ',' or 'end of string'" },
    { "a,", "found '', expected: identifier after ','" },
    { ",a", "found ',', expected: !, identifier, or 'end of string'" },
    { "=a", "found '=', expected: !, identifier, or 'end of string'" },
    { "!a=b", "found '=', expected: ',' or 'end of string'" },
    { "!", "unable to parse requirement: found '', expected: identifier" },
    { "a in b", "unable to parse requirement: found 'b' expected: '('" },
    { "a in (b", "unable to parse requirement: found '', expected: ',' or ')'" },
    { "a in (b=", "unable to parse requirement: found '=', expected: ',' or ')'" },
    { "a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier" },
    { "a in (b,", "unable to parse requirement: found '', expected: ',', or identifier" },
    { "a in (,,)", "unable to parse requirement: found ')', expected: ',', or identifier" },
    { "a==(b", "unable to parse requirement: found '(', expected: identifier" },
    { "a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
             "operators, the value must be an integer" },
    { "a=b@", "unable to parse requirement: values[0][a]: Invalid value: \"b@\": " VALUE_SAYS },
    { "/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be "
            "non-empty" },
};

static void test_refused(void **state)
{
    OWN_MEM char *big = own_new(SELECT_TEXT_MAX_BYTES + 1);
    struct selector *s = NULL;
    struct err e;

    EACH(r, bad_rows) {
        if (selector_parse(span_cstr(r->text), &s, &e) == 0)
            fail_msg("'%s' was taken", r->text);
        assert_string_equal(e.msg, r->says);
        assert_int_equal(e.code, ERR_PROTOCOL);
    }
    memset(big, 'a', SELECT_TEXT_MAX_BYTES + 1);
    assert_int_equal(selector_parse(span_of(big, SELECT_TEXT_MAX_BYTES + 1), &s, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void test_of_json(void **state)
{
    static const struct {
        const char *selector, *labels, *text;
        bool is_match;
    } cases[] = {
        { "null", "{}", "", false },
        { "{}", "{}", "", true },
        { "{\"matchLabels\":{\"b\":\"1\",\"a\":\"2\"}}", "{\"a\":\"2\",\"b\":\"1\"}", "a=2,b=1",
          true },
        { "{\"matchLabels\":{\"b\":\"1\"}}", "{\"a\":\"2\"}", "b=1", false },
        { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"z\",\"y\"]},"
          "{\"key\":\"c\",\"operator\":\"DoesNotExist\"}],\"matchLabels\":{\"b\":\"1\"}}",
          "{\"b\":\"1\",\"a\":\"x\"}", "a notin (y,z),b=1,!c", true },
    };
    static const struct bad bad[] = {
        { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Like\"}]}",
          "\"Like\" is not a valid label selector operator" },
        { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}",
          "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty" },
        { "{\"matchLabels\":{\"a\":\"b@\"}}", "values[0][a]: Invalid value: \"b@\": " VALUE_SAYS },
    };
    struct err e;

    EACH(c, cases) {
        OWN(json_doc_done) struct json_doc *doc = must_parse(c->selector);
        OWN(json_doc_done) struct json_doc *labels = must_parse(c->labels);
        OWN(selector_done) struct selector *s = NULL;
        OWN(buf_done) struct buf out = BUF_INIT(1000);

        if (selector_of(json_doc_root(doc), &s, &e) < 0)
            fail_msg("%s", e.msg);
        json_doc_done(&doc); /* the selector has texts of its own */
        if (selector_matches(s, json_doc_root(labels)) != c->is_match)
            fail_msg("%s and %s", c->selector, c->labels);
        assert_int_equal(selector_write(s, &out, &e), 0);
        assert_string_equal(buf_cstr(&out), c->text);
    }
    EACH(c, bad) {
        OWN(json_doc_done) struct json_doc *doc = must_parse(c->text);
        struct selector *s = NULL;

        assert_int_equal(selector_of(json_doc_root(doc), &s, &e), -1);
        assert_string_equal(e.msg, c->says);
    }
}

static void test_of_map(void **state)
{
    OWN(json_doc_done) struct json_doc *map = must_parse("{\"app\":\"x\"}");
    OWN(json_doc_done) struct json_doc *labels = must_parse("{\"app\":\"x\",\"b\":\"y\"}");
    OWN(selector_done) struct selector *s = NULL;
    struct err e;

    assert_int_equal(selector_of_map(json_doc_root(map), &s, &e), 0);
    assert_true(selector_matches(s, json_doc_root(labels)));
    assert_false(selector_matches(s, NULL));
}

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"p,1\",\"namespace\":\"ns\"},\"spec\":{\"nodeName\":\"n1\"},"        \
    "\"status\":{\"phase\":\"Running\"}}"

static void test_fields(void **state)
{
    static const struct {
        const char *text;
        bool is_match;
    } cases[] = {
        { "", true },
        { "metadata.name=p\\,1", true },
        { "metadata.name==p", false },
        { "metadata.namespace=ns,spec.nodeName!=n2", true },
        { "spec.host=n1,,status.phase=Running", true },
        { "status.phase!=Running", false },
        { "spec.hostNetwork=false", true },
        { "status.podIP=", true },
        { "=,!=,==", true },
    };
    const struct kind *pod = kind_find("", "v1", "pods");
    OWN(json_doc_done) struct json_doc *doc = must_parse(POD);
    OWN(object_done) struct object *o = NULL;
    OWN(field_selector_done) struct field_selector *named = NULL;
    struct err e;

    assert_int_equal(object_parse(pod, json_doc_root(doc), &o, &e), 0);
    EACH(c, cases) {
        OWN(field_selector_done) struct field_selector *s = NULL;

        if (field_selector_parse(pod, span_cstr(c->text), &s, &e) < 0)
            fail_msg("'%s': %s", c->text, e.msg);
        if (field_selector_matches(s, o) != c->is_match)
            fail_msg("'%s'", c->text);
    }
    assert_true(field_selector_matches(NULL, o));
    assert_int_equal(field_selector_parse(pod, SPAN("metadata.name=x"), &named, &e), 0);
    assert_string_equal(field_selector_value(named, "metadata.name"), "x");
    assert_null(field_selector_value(named, "status.phase"));
}

static void test_fields_refused(void **state)
{
    static const struct {
        const char *group, *plural, *text, *says;
    } cases[] = {
        { "", "pods", "a", "invalid selector: 'a'; can't understand 'a'" },
        { "", "pods", "spec.x=1", "field label not supported: spec.x" },
        { "", "nodes", "metadata.namespace=1", "field label not supported: metadata.namespace" },
        { "", "configmaps", "data=1",
          "\"data\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"" },
        { "", "pods", "metadata.name=a=b",
          "invalid field selector: unescaped character in value: 61" },
        { "", "pods", "metadata.name=a\\b",
          "invalid field selector: invalid escape sequence: \\b" },
        { "", "pods", "metadata.name=a\\", "invalid field selector: invalid escape sequence: \\" },
        { "agents.x-k8s.io", "sandboxes", "spec.x=1", "field label not supported: spec.x" },
    };
    struct field_selector *s = NULL;
    struct err e;

    EACH(c, cases) {
        const struct kind *kind = kind_find(c->group, NULL, c->plural);

        assert_non_null(kind);
        if (field_selector_parse(kind, span_cstr(c->text), &s, &e) == 0)
            fail_msg("'%s' was taken", c->text);
        assert_string_equal(e.msg, c->says);
        assert_int_equal(e.code, ERR_PROTOCOL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_of_json), cmocka_unit_test(test_of_map),
        cmocka_unit_test(test_fields),  cmocka_unit_test(test_fields_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
