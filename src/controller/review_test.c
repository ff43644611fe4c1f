#include "controller/review.h"

#include "base/json.h"
#include "controller/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ANSWER_MAX_BYTES (1 << 20)
#define BETA             "extensions.agents.x-k8s.io/v1beta1"
#define ALPHA            "extensions.agents.x-k8s.io/v1alpha1"
#define SANDBOX_ALPHA                                                                                 \
    "{\"apiVersion\":\"agents.x-k8s.io/v1alpha1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"s\"," \
    "\"namespace\":\"n\",\"uid\":\"7\"},\"spec\":{\"replicas\":0}}"
#define CLAIM_ALPHA                                                                                \
    "{\"apiVersion\":\"" ALPHA "\",\"kind\":\"SandboxClaim\",\"metadata\":{\"name\":\"c\"},"       \
    "\"spec\":{\"sandboxTemplateRef\":{\"name\":\"t\"}}}"
#define BAD_TEMPLATE                                                                               \
    "{\"apiVersion\":\"" ALPHA                                                                     \
    "\",\"kind\":\"SandboxTemplate\",\"metadata\":{\"name\":\"bad\",\"namespace\":\"n\","          \
    "\"annotations\":{\"api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy\":\"Sometimes\"}},\"spec\":{}}"
#define REVIEW(wanted, objects)                                                                    \
    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\",\"request\":{"      \
    "\"uid\":\"u-1\",\"desiredAPIVersion\":\"" wanted "\",\"objects\":[" objects "]}}"

struct answer {
    struct buf text;
    struct json_doc *doc;
    const struct json *response;
    struct review_verdict verdict;
};

static void ask(const char *body, bool has_extensions, struct answer *a)
{
    struct err e;

    *a = (struct answer){ .text = BUF_INIT(ANSWER_MAX_BYTES) };
    if (review_answer(span_cstr(body), &(struct review_config){ has_extensions }, &a->text,
                      &a->verdict, &e) < 0 ||
        json_parse(buf_span(&a->text), NULL, &a->doc, &e) < 0)
        fail_msg("%s", e.msg);
    a->response = json_get(json_doc_root(a->doc), "response");
    assert_true(span_is(json_str(json_get(json_doc_root(a->doc), "kind")), "ConversionReview"));
    assert_true(span_is(json_str(json_get(a->response, "uid")), "u-1"));
}

static void answer_done(struct answer *a)
{
    json_doc_unref(a->doc);
    buf_done(&a->text);
}

static const struct json *object_at_place(const struct answer *a, size_t i)
{
    return json_at(json_get(a->response, "convertedObjects"), i);
}

static void test_converts_in_order(void **state)
{
    OWN(answer_done) struct answer a = { 0 };
    const struct json *first, *second;

    ask(REVIEW(BETA,
               CLAIM_ALPHA ",{\"apiVersion\":\"" BETA "\",\"kind\":\"SandboxClaim\",\"metadata\":"
                           "{\"name\":\"same\"},\"spec\":{\"warmPoolRef\":{\"name\":\"p\"}}}"),
        true, &a);
    first = object_at_place(&a, 0);
    second = object_at_place(&a, 1);
    assert_false(a.verdict.is_failure);
    assert_int_equal(a.verdict.objects, 2);
    assert_int_equal(json_count(json_get(a.response, "convertedObjects")), 2);
    assert_true(span_is(json_str(json_get(json_get(a.response, "result"), "status")), "Success"));
    assert_true(span_is(json_str(json_get(first, "apiVersion")), BETA));
    assert_true(
        span_is(json_str(json_get(json_get(json_get(first, "spec"), "warmPoolRef"), "name")),
                "shadow-pool-t"));
    assert_true(span_is(json_str(json_get(json_get(second, "metadata"), "name")), "same"));
}

static void test_core_kinds_need_no_extensions(void **state)
{
    OWN(answer_done) struct answer a = { 0 };

    ask(REVIEW("agents.x-k8s.io/v1beta1", SANDBOX_ALPHA), false, &a);
    assert_false(a.verdict.is_failure);
    assert_true(
        span_is(json_str(json_get(json_get(object_at_place(&a, 0), "spec"), "operatingMode")),
                "Suspended"));
}

static void test_older_reviews_are_answered_in_their_version(void **state)
{
    OWN(answer_done) struct answer a = { 0 };

    ask("{\"apiVersion\":\"apiextensions.k8s.io/v1beta1\",\"kind\":\"ConversionReview\",\"request\":"
        "{\"uid\":\"u-1\",\"desiredAPIVersion\":\"" BETA "\"}}",
        true, &a);
    assert_true(span_is(json_str(json_get(json_doc_root(a.doc), "apiVersion")),
                        "apiextensions.k8s.io/v1beta1"));
    assert_int_equal(json_count(json_get(a.response, "convertedObjects")), 0);
}

static const struct failure {
    const char *name, *body, *why;
    bool has_no_extensions;
} failures[] = {
    { "an object that cannot be converted, behind one that can",
      REVIEW(BETA, CLAIM_ALPHA "," BAD_TEMPLATE),
      "cannot convert object 2 of 2, SandboxTemplate 'n/bad', to '" BETA "': ", false },
    { "a kind that is not ours",
      REVIEW("v1", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}"),
      "cannot convert object 1 of 1, Pod 'p', to 'v1': version 'v1' of this kind is not one of ours",
      false },
    { "a version that is not ours",
      REVIEW(BETA, "{\"apiVersion\":\"extensions.agents.x-k8s.io/v2\",\"kind\":\"SandboxClaim\"}"),
      "cannot convert object 1 of 1, SandboxClaim '', to '" BETA
      "': version 'extensions.agents.x-k8s.io/v2' of this kind is not one of ours",
      false },
    { "another group's version is wanted", REVIEW("agents.x-k8s.io/v1beta1", CLAIM_ALPHA),
      "cannot convert object 1 of 1, SandboxClaim 'c', to 'agents.x-k8s.io/v1beta1': there is no such version of this kind",
      false },
    { "nothing is wanted", REVIEW("", CLAIM_ALPHA),
      "cannot convert object 1 of 1, SandboxClaim 'c', to '': there is no such version of this kind",
      false },
    { "no object", REVIEW(BETA, "3"),
      "cannot convert object 1 of 1,  '', to '" BETA "': it is no object", false },
    { "extensions are off", REVIEW(BETA, CLAIM_ALPHA),
      "cannot convert object 1 of 1, SandboxClaim 'c', to '" BETA
      "': this controller runs without --extensions",
      true },
};

static void test_failures_name_the_object(void **state)
{
    EACH(f, failures) {
        OWN(answer_done) struct answer a = { 0 };
        const struct json *result;

        ask(f->body, !f->has_no_extensions, &a);
        result = json_get(a.response, "result");
        if (!a.verdict.is_failure || strncmp(a.verdict.why, f->why, strlen(f->why)) != 0)
            fail_msg("%s: '%s'", f->name, a.verdict.why);
        assert_int_equal(json_count(json_get(a.response, "convertedObjects")), 0);
        assert_true(span_is(json_str(json_get(result, "status")), "Failure"));
        assert_true(span_is(json_str(json_get(result, "message")), a.verdict.why));
    }
}

static const struct refusal {
    const char *name, *body, *why;
} refusals[] = {
    { "no JSON", "{", NULL },
    { "another kind", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}",
      "the body is no ConversionReview of apiextensions.k8s.io/v1 or v1beta1" },
    { "no request", "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\"}",
      "the ConversionReview has no request" },
};

static void test_what_is_no_review_gets_no_answer(void **state)
{
    EACH(r, refusals) {
        OWN(buf_done) struct buf out = BUF_INIT(ANSWER_MAX_BYTES);
        struct review_verdict v;
        struct err e;

        assert_int_equal(
            review_answer(span_cstr(r->body), &(struct review_config){ true }, &out, &v, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        if (r->why)
            assert_string_equal(e.msg, r->why);
        assert_int_equal(out.n, 0);
    }
}

static void test_an_answer_has_a_ceiling(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(200);
    struct review_verdict v;
    struct err e;

    assert_int_equal(review_answer(SPAN(REVIEW(BETA, CLAIM_ALPHA)), &(struct review_config){ true },
                                   &out, &v, &e),
                     -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(out.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converts_in_order),
        cmocka_unit_test(test_core_kinds_need_no_extensions),
        cmocka_unit_test(test_older_reviews_are_answered_in_their_version),
        cmocka_unit_test(test_failures_name_the_object),
        cmocka_unit_test(test_what_is_no_review_gets_no_answer),
        cmocka_unit_test(test_an_answer_has_a_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
