#include "kube/yaml_write.h"

#include "kube/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *name, *json, *want;
} rows[] = {
    { "members sorted, lists below their name",
      "{\"kind\":\"L\",\"apiVersion\":\"v1\",\"items\":[\"x\",{\"b\":1,\"a\":[]}],\"m\":{\"o\":{}}}",
      "apiVersion: v1\nitems:\n- x\n- a: []\n  b: 1\nkind: L\nm:\n  o: {}\n" },
    { "lists of lists", "{\"a\":[[1,[2]],[]]}", "a:\n- - 1\n  - - 2\n- []\n" },
    { "a list alone", "[{\"a\":{\"b\":true}},null]", "- a:\n    b: true\n- null\n" },
    { "nothing in it", "{}", "{}\n" },
    { "a text alone", "\"x\"", "x\n" },
    { "a text of two lines alone", "\"x\\ny\"", "\"x\\ny\"\n" },
    { "words that are something else",
      "[\"true\",\"No\",\"y\",\"null\",\"~\",\"\",\".inf\",\"<<\",\"=\"]",
      "- \"true\"\n- \"No\"\n- \"y\"\n- \"null\"\n- \"~\"\n- \"\"\n- \".inf\"\n- \"<<\"\n- \"=\"\n" },
    { "numbers as texts", "[\"1\",\"010\",\"0x1F\",\"1e3\",\"1_0\",\"-.5\",\"+7\"]",
      "- \"1\"\n- \"010\"\n- \"0x1F\"\n- \"1e3\"\n- \"1_0\"\n- \"-.5\"\n- \"+7\"\n" },
    { "times as texts", "[\"2026-01-02T03:04:05Z\",\"2026-1-2\",\"12:30\",\"1:2:3.5\",\"a:b\"]",
      "- \"2026-01-02T03:04:05Z\"\n- \"2026-1-2\"\n- \"12:30\"\n- \"1:2:3.5\"\n- a:b\n" },
    { "numbers", "[0,-1,1.50,1e5,1E-7,1.5e+3,12345678901234567890]",
      "- 0\n- -1\n- 1.50\n- 1.0e+5\n- 1.0e-7\n- 1.5e+3\n- 12345678901234567890\n" },
    { "indicators",
      "[\"- a\",\"-a\",\"a: b\",\"a:\",\"a #b\",\"a#b\",\"[x\",\"*x\",\"'x'\",\"@x\",\"%x\",\" x\",\"x \",\"?\",\"? x\",\"---\"]",
      "- '- a'\n- -a\n- 'a: b'\n- 'a:'\n- 'a #b'\n- a#b\n- '[x'\n- '*x'\n- '''x'''\n- '@x'\n- '%x'\n"
      "- ' x'\n- 'x '\n- '?'\n- '? x'\n- '---'\n" },
    { "lines",
      "{\"a\":\"x\\ny\\n\",\"b\":\"x\\n\\ny\",\"c\":\"x\\n\\n\\n\",\"d\":[\"x\\n  y\"],\"e\":\"\\nx\",\"f\":\"x \\ny\"}",
      "a: |\n  x\n  y\nb: |-\n  x\n\n  y\nc: |+\n  x\n\n\nd:\n- |-\n  x\n    y\ne: \"\\nx\"\nf: \"x \\ny\"\n" },
    { "bytes that are not shown",
      "[\"\\t\",\"\\u0000\\u007f\\u0085\",\"\\u2028\\ufeff\",\"\\\"\\\\\\r\"]",
      "- \"\\t\"\n- \"\\x00\\x7F\\x85\"\n- \"\\u2028\\uFEFF\"\n- \"\\\"\\\\\\r\"\n" },
    { "letters of others", "[\"\xc3\xa9\xf0\x9f\x98\x80\"]", "- \xc3\xa9\xf0\x9f\x98\x80\n" },
    { "names are texts too", "{\"no\":1,\"a: b\":2,\"1\":3,\"x\\ny\":4}",
      "\"1\": 3\n'a: b': 2\n\"no\": 1\n\"x\\ny\": 4\n" },
};

static void each(void **state)
{
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(65536);
        OWN(json_doc_done) struct json_doc *doc = NULL, *back = NULL;
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct err e;

        assert_int_equal(json_parse(span_cstr(r->json), NULL, &doc, &e), 0);
        assert_int_equal(kube_yaml_write(json_doc_root(doc), &out, &e), 0);
        if (strcmp(buf_cstr(&out), r->want) != 0)
            fail_msg("%s: got\n%s\nwant\n%s", r->name, buf_cstr(&out), r->want);
        if (kube_yaml_to_doc(buf_span(&out), NULL, &back, &e) < 0 ||
            !json_node_equal_value(json_edit_doc(ed, back), json_doc_root(doc)))
            fail_msg("%s: does not read back equal", r->name);
    }
}

static void long_names_are_marked(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(65536), out = BUF_INIT(65536);
    OWN(json_doc_done) struct json_doc *doc = NULL, *back = NULL;
    struct err e;

    (void)buf_addf(&text, &e, "{\"a\":{\"%0*d\":[1],\"z\":2}}", 2000, 0);
    assert_int_equal(json_parse(buf_span(&text), NULL, &doc, &e), 0);
    assert_int_equal(kube_yaml_write(json_doc_root(doc), &out, &e), 0);
    assert_int_equal(kube_yaml_to_doc(buf_span(&out), NULL, &back, &e), 0);
    assert_true(span_eq(json_doc_bytes(doc), json_doc_bytes(back)));
}

static void items(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(256);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    assert_int_equal(json_parse(SPAN("{\"b\":[1],\"a\":\"x\\ny\"}"), NULL, &doc, &e), 0);
    assert_int_equal(kube_yaml_write_item(json_doc_root(doc), &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "- a: |-\n    x\n    y\n  b:\n  - 1\n");
}

static void the_ceiling_is_told(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(12);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    assert_int_equal(buf_add(&out, SPAN("before"), &e), 0);
    assert_int_equal(json_parse(SPAN("{\"name\":\"value\"}"), NULL, &doc, &e), 0);
    assert_int_equal(kube_yaml_write(json_doc_root(doc), &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_string_equal(buf_cstr(&out), "before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each),
        cmocka_unit_test(long_names_are_marked),
        cmocka_unit_test(items),
        cmocka_unit_test(the_ceiling_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
