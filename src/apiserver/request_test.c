#include "apiserver/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *name, *method, *path;
    bool is_watch;
    bool is_read;
    enum request_verb verb;
    const char *group, *version, *namespace, *resource, *object, *sub;
} rows[] = {
    /* clang-format off */
    { "a core list",            "GET",    "/api/v1/namespaces/a/pods",                 false, true, VERB_LIST,   "", "v1", "a", "pods", "", "" },
    { "all namespaces",         "GET",    "/api/v1/pods",                              false, true, VERB_LIST,   "", "v1", "", "pods", "", "" },
    { "a watch",                "GET",    "/api/v1/pods",                              true,  true, VERB_WATCH,  "", "v1", "", "pods", "", "" },
    { "a watch by its path",    "GET",    "/api/v1/watch/namespaces/a/pods",           false, true, VERB_WATCH,  "", "v1", "a", "pods", "", "" },
    { "one, watch or not",      "GET",    "/api/v1/namespaces/a/pods/p",               true,  true, VERB_GET,    "", "v1", "a", "pods", "p", "" },
    { "HEAD reads too",         "HEAD",   "/api/v1/namespaces/a/pods/p",               false, true, VERB_GET,    "", "v1", "a", "pods", "p", "" },
    { "a subresource",          "PUT",    "/apis/x.io/v1/namespaces/a/things/t/status", false, true, VERB_UPDATE, "x.io", "v1", "a", "things", "t", "status" },
    { "a namespace",            "DELETE", "/api/v1/namespaces/a",                      false, true, VERB_DELETE, "", "v1", "", "namespaces", "a", "" },
    { "its status",             "PATCH",  "/api/v1/namespaces/a/status",               false, true, VERB_PATCH,  "", "v1", "", "namespaces", "a", "status" },
    { "its finalizers",         "PUT",    "/api/v1/namespaces/a/finalize",             false, true, VERB_UPDATE, "", "v1", "", "namespaces", "a", "finalize" },
    { "a collection's end",     "DELETE", "/apis/x.io/v1/namespaces/a/things",         false, true, VERB_DELETE_COLLECTION, "x.io", "v1", "a", "things", "", "" },
    { "an escaped name",        "GET",    "/apis/x.io/v1/things/a%3Ab",                false, true, VERB_GET,    "x.io", "v1", "", "things", "a:b", "" },
    { "discovery",              "GET",    "/apis/x.io/v1",                             false, true, VERB_NONE,   "", "", "", "", "", "" },
    { "no resource",            "GET",    "/healthz",                                  false, true, VERB_NONE,   "", "", "", "", "", "" },
    { "an escaped slash",       "GET",    "/api/v1/namespaces/a/pods/p%2Fstatus",      false, false, VERB_NONE, "", "", "", "", "", "" },
    { "an escaped NUL",         "GET",    "/api/v1/namespaces/a/pods/p%00",            false, false, VERB_NONE, "", "", "", "", "", "" },
    { "an empty part",          "GET",    "/api/v1/namespaces//pods",                  false, false, VERB_NONE, "", "", "", "", "", "" },
    { "too deep",               "GET",    "/api/v1/namespaces/a/pods/p/log/more",      false, false, VERB_NONE, "", "", "", "", "", "" },
    { "no slash in front",      "GET",    "api/v1/pods",                               false, false, VERB_NONE, "", "", "", "", "", "" },
    { "nothing",                "GET",    "",                                          false, false, VERB_NONE, "", "", "", "", "", "" },
    /* clang-format on */
};

static void test_paths_become_requests(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct request q;
        bool is_read = request_read(span_cstr(r->method), span_cstr(r->path), r->is_watch, &q);

        if (is_read != r->is_read)
            fail_msg("%s: read %d", r->name, is_read);
        if (!is_read)
            continue;
        if (q.verb != r->verb || strcmp(q.group, r->group) || strcmp(q.version, r->version) ||
            strcmp(q.namespace, r->namespace) || strcmp(q.resource, r->resource) ||
            strcmp(q.name, r->object) || strcmp(q.subresource, r->sub))
            fail_msg(
                "%s: %s group '%s' version '%s' namespace '%s' resource '%s' name '%s' sub '%s'",
                r->name, request_verb_name(q.verb), q.group, q.version, q.namespace, q.resource,
                q.name, q.subresource);
    }
}

static void test_a_method_nobody_knows_is_told_apart(void **state)
{
    struct request q;

    (void)state;
    assert_true(request_read(SPAN("BREW"), SPAN("/api/v1/pods"), false, &q));
    assert_true(q.has_bad_method);
    assert_true(request_read(SPAN("BREW"), SPAN("/healthz"), false, &q));
    assert_false(q.has_bad_method);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_become_requests),
        cmocka_unit_test(test_a_method_nobody_knows_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
