#include "kube/openapi.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct openapi_info info = { "v1.36.3" };

static struct json_doc *parsed(const struct buf *b)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(buf_span(b), NULL, &doc, &e) < 0)
        fail_msg("%s", e.msg);
    return doc;
}

/* Every reference in a document leads somewhere. */
static void check_refs(const struct json *v, const struct json *schemas, const char *prefix)
{
    struct span ref = json_str(json_get(v, "$ref"));

    if (ref.n) {
        assert_true(span_starts(ref, prefix));
        if (!json_get_span(schemas, span_skip(ref, strlen(prefix))))
            fail_msg("no such type: %.*s", SPAN_ARG(ref));
    }
    JSON_MEMBERS(name, value, v)
    {
        if (name)
            check_refs(value, schemas, prefix);
    }
    JSON_EACH(item, v)
    {
        check_refs(item, schemas, prefix);
    }
}

static void every_document_is_whole(void **state)
{
    size_t n;
    const struct kind *k = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k[i].version_count; j++) {
            OWN(buf_done) struct buf out = BUF_INIT(OPENAPI_MAX_BYTES);
            OWN(json_doc_done) struct json_doc *doc = NULL;
            const struct json *schemas, *root;
            struct err e;

            assert_int_equal(openapi_v3(&info, k[i].group, k[i].versions[j].name, &out, &e), 0);
            doc = parsed(&out);
            root = json_doc_root(doc);
            schemas = json_get(json_get(root, "components"), "schemas");
            assert_non_null(json_get(schemas, k[i].versions[j].type->openapi));
            check_refs(root, schemas, "#/components/schemas/");
        }
}

static void the_old_document_is_whole(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(OPENAPI_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    assert_int_equal(openapi_v2(&info, &out, &e), 0);
    doc = parsed(&out);
    check_refs(json_doc_root(doc), json_get(json_doc_root(doc), "definitions"), "#/definitions/");
    assert_string_equal(json_cstr(json_get(json_doc_root(doc), "swagger")), "2.0");
}

/* Fields of a protobuf message of this number, all of them texts or messages; *ret_last is the last. */
static size_t count_parts(struct span message, unsigned number, struct span *ret_last)
{
    size_t found = 0;

    while (message.n) {
        size_t n = 0, i = 1;
        unsigned shift = 0;

        if (message.p[0] & 0x80)
            i = 2; /* numbers up to 31 take two bytes from 16 on */
        do {
            n |= (size_t)(message.p[i] & 0x7f) << shift;
            shift += 7;
        } while (message.p[i++] & 0x80);
        assert_true(i + n <= message.n);
        if (message.p[0] == (uint8_t)(number << 3 | 2)) {
            found++;
            *ret_last = span_slice(message, i, i + n);
        }
        message = span_skip(message, i + n);
    }
    return found;
}

static void protobuf_has_every_type(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(OPENAPI_MAX_BYTES), out = BUF_INIT(OPENAPI_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct span definitions = SPAN_NONE, last;
    struct err e;

    assert_int_equal(openapi_v2(&info, &text, &e), 0);
    assert_int_equal(openapi_v2_proto(&info, &out, &e), 0);
    doc = parsed(&text);
    assert_memory_equal(out.p,
                        "\x0a\x03"
                        "2.0",
                        5);
    assert_int_equal(count_parts(buf_span(&out), 9, &definitions), 1);
    assert_int_equal(count_parts(definitions, 1, &last),
                     json_count(json_get(json_doc_root(doc), "definitions")));
}

static void the_index_names_them_all(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(65536), again = BUF_INIT(65536);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *paths;
    struct err e;

    assert_int_equal(openapi_v3_index(&info, &out, &e), 0);
    assert_int_equal(openapi_v3_index(&info, &again, &e), 0);
    assert_string_equal(buf_cstr(&out), buf_cstr(&again));
    doc = parsed(&out);
    paths = json_get(json_doc_root(doc), "paths");
    assert_non_null(json_get(paths, "api/v1"));
    assert_non_null(json_get(paths, "apis/agents.x-k8s.io/v1alpha1"));
    assert_true(
        span_starts(json_str(json_get(json_get(paths, "apis/apps/v1"), "serverRelativeURL")),
                    "/openapi/v3/apis/apps/v1?hash="));
    assert_int_equal(openapi_v3(&info, "apps", "v9", &out, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static bool has_parameter(const struct json *operation, const char *name)
{
    JSON_EACH(p, json_get(operation, "parameters"))
    {
        if (span_is(json_str(json_get(p, "name")), name))
            return true;
    }
    return false;
}

/* What kubectl looks for before it lets a server validate. */
static void patches_take_field_validation(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(OPENAPI_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *patch;
    struct err e;

    assert_int_equal(openapi_v3(&info, "agents.x-k8s.io", "v1beta1", &out, &e), 0);
    doc = parsed(&out);
    patch =
        json_get(json_get(json_get(json_doc_root(doc), "paths"),
                          "/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes/{name}"),
                 "patch");
    assert_true(has_parameter(patch, "fieldValidation"));
    assert_string_equal(
        json_cstr(json_get(json_get(patch, "x-kubernetes-group-version-kind"), "kind")), "Sandbox");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_document_is_whole),
        cmocka_unit_test(the_old_document_is_whole),
        cmocka_unit_test(protobuf_has_every_type),
        cmocka_unit_test(the_index_names_them_all),
        cmocka_unit_test(patches_take_field_validation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
