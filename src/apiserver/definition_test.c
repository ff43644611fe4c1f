#include "apiserver/definition.h"

#include "apiserver/testserver.h"
#include "apiserver/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PLURAL "customresourcedefinitions.apiextensions.k8s.io"
#define POOLS  "sandboxwarmpools.extensions.agents.x-k8s.io"
#define GIVEN  "silica.dev/built-in"

static const char pools[] =
    "{\"metadata\":{\"name\":\"" POOLS "\"},\"spec\":{\"group\":\"extensions.agents.x-k8s.io\","
    "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"sandboxwarmpools\",\"kind\":"
    "\"SandboxWarmPool\"},\"versions\":[{\"name\":\"v1beta1\",\"served\":true,\"storage\":true,"
    "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}";

static struct testserver server;
static struct user somebody = USER_INIT;

static struct op op_on(const char *name)
{
    const struct kind *k = testserver_kind(PLURAL);

    return (struct op){ .store = server.server->store,
                        .user = &somebody,
                        .kind = k,
                        .version = &k->versions[0],
                        .namespace = "",
                        .name = name,
                        .manager = "test",
                        .warnings = BUF_INIT(4096) };
}

static int create(const char *json, struct object **ret, struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct op op = op_on("");
    struct err e;
    int rc;

    assert_int_equal(json_parse(span_cstr(json), NULL, &doc, &e), 0);
    rc = op_create(&op, ed, json_edit_doc(ed, doc), ret, st);
    buf_done(&op.warnings);
    return rc;
}

static const struct object *get(void)
{
    return testserver_get(&server, PLURAL, "", POOLS)->object;
}

static void they_are_there(void **state)
{
    static const char *const names[] = { POOLS, "sandboxes.agents.x-k8s.io",
                                         "sandboxclaims.extensions.agents.x-k8s.io",
                                         "sandboxtemplates.extensions.agents.x-k8s.io" };

    EACH(name, names) {
        const struct object *o = testserver_get(&server, PLURAL, "", *name)->object;

        assert_non_null(o);
        assert_true(definition_is_given(o));
        assert_int_equal(json_count(object_at(o, "status.conditions")), 2);
        assert_true(
            span_is(json_str(json_at(object_at(o, "status.storedVersions"), 0)), "v1beta1"));
        assert_null(json_get(object_meta(o), "managedFields"));
    }
}

/* Not at every start: only what an older program had otherwise. */
static void a_start_writes_nothing_new(void **state)
{
    uint64_t before = store_version(server.server->store, STORE_HEAD);
    struct err e;

    assert_int_equal(definition_seed(server.server->store, &e), 0);
    assert_int_equal(store_version(server.server->store, STORE_HEAD), before);
}

static void the_first_create_takes_its_place(void **state)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(object_done) struct object *made = NULL, *again = NULL;
    OWN_MEM char *uid = own_strdup(object_uid(get()));
    struct err e;

    assert_int_equal(create(pools, &made, &st), 0);
    testserver_settle(&server);
    assert_string_equal(object_uid(get()), uid);
    assert_false(definition_is_given(get()));
    assert_int_equal(json_count(object_at(get(), "spec.versions")), 1);
    assert_true(span_is(json_str(json_at(object_at(get(), "status.acceptedNames.shortNames"), 0)),
                        "swp")); /* what is served, not what was said */
    assert_int_equal(create(pools, &again, &st), -1);
    assert_int_equal(st.code, 409);
    assert_int_equal(definition_seed(server.server->store, &e), 0); /* his stays */
    testserver_settle(&server);
    assert_int_equal(json_count(object_at(get(), "spec.versions")), 1);
}

static void what_was_deleted_comes_back(void **state)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(object_done) struct object *last = NULL;
    struct op_delete how = { .grace_s = -1 };
    struct op op = op_on(POOLS);
    bool is_gone = false;
    struct err e;

    assert_int_equal(op_delete(&op, &how, &last, &is_gone, &st), 0);
    assert_true(is_gone);
    assert_non_null(strstr(buf_cstr(&op.warnings), "comes back"));
    buf_done(&op.warnings);
    testserver_settle(&server);
    assert_int_equal(testserver_get(&server, PLURAL, "", POOLS)->code, 404);
    assert_int_equal(definition_seed(server.server->store, &e), 0);
    testserver_settle(&server);
    assert_true(definition_is_given(get()));
    assert_int_equal(json_count(object_at(get(), "spec.versions")), 2);
}

static void other_kinds_are_refused(void **state)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(object_done) struct object *made = NULL;
    char text[1024];

    (void)snprintf(text, sizeof text, "%s", pools);
    memcpy(strstr(text, "sandboxwarmpools"), "sandboxwarmpoolz", 16); /* the name alone */
    assert_int_equal(create(text, &made, &st), -1);
    assert_int_equal(st.code, 403);
    assert_non_null(strstr(buf_cstr(&st.message), "serves a fixed set of kinds"));
}

static int begin(void **state)
{
    struct err e;

    testserver_begin(&server, NULL);
    testserver_settle(&server);
    return user_set_name(&somebody, SPAN("nora"), &e);
}

static int end(void **state)
{
    testserver_end(&server);
    user_done(&somebody);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_there),
        cmocka_unit_test(a_start_writes_nothing_new),
        cmocka_unit_test(the_first_create_takes_its_place),
        cmocka_unit_test(what_was_deleted_comes_back),
        cmocka_unit_test(other_kinds_are_refused),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
