#include "apiserver/authz.h"

#include "apiserver/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RBAC    ".rbac.authorization.k8s.io"
#define USER(n) "{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"User\",\"name\":\"" n "\"}"
#define GROUP_OF(n)                                                                                \
    "{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Group\",\"name\":\"" n "\"}"
#define ACCOUNT(n, s) "{\"kind\":\"ServiceAccount\",\"name\":\"" n "\",\"namespace\":\"" s "\"}"

/* What is there when the questions are asked. */
static const struct {
    const char *plural, *namespace, *json;
} given[] = {
    { "clusterroles" RBAC, "",
      "{\"metadata\":{\"name\":\"reader\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"pods\","
      "\"pods/log\"],\"verbs\":[\"get\",\"list\"]}]}" },
    { "clusterroles" RBAC, "",
      "{\"metadata\":{\"name\":\"paths\"},\"rules\":[{\"nonResourceURLs\":[\"/metrics\",\"/debug/*\"],"
      "\"verbs\":[\"get\"]}]}" },
    { "clusterroles" RBAC, "",
      "{\"metadata\":{\"name\":\"status-writer\"},\"rules\":[{\"apiGroups\":[\"*\"],\"resources\":["
      "\"*/status\"],\"verbs\":[\"*\"]}]}" },
    { "roles" RBAC, "default",
      "{\"metadata\":{\"name\":\"one-secret\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":["
      "\"secrets\"],\"resourceNames\":[\"mine\"],\"verbs\":[\"get\"]}]}" },
    { "clusterrolebindings" RBAC, "",
      "{\"metadata\":{\"name\":\"anna\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"ClusterRole\",\"name\":\"reader\"},\"subjects\":[" USER("anna") "]}" },
    { "clusterrolebindings" RBAC, "",
      "{\"metadata\":{\"name\":\"paths\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"ClusterRole\",\"name\":\"paths\"},\"subjects\":[" GROUP_OF("ops") "]}" },
    { "rolebindings" RBAC, "default",
      "{\"metadata\":{\"name\":\"bert\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"ClusterRole\",\"name\":\"reader\"},\"subjects\":[" USER("bert") "," ACCOUNT(
          "robot", "kube-system") "]}" },
    { "rolebindings" RBAC, "default",
      "{\"metadata\":{\"name\":\"secret\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"Role\",\"name\":\"one-secret\"},\"subjects\":[" USER("bert") "]}" },
    { "rolebindings" RBAC, "default",
      "{\"metadata\":{\"name\":\"status\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"ClusterRole\",\"name\":\"status-writer\"},\"subjects\":[" USER("bert") "]}" },
    { "rolebindings" RBAC, "kube-system",
      "{\"metadata\":{\"name\":\"dangling\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"ClusterRole\",\"name\":\"nowhere\"},\"subjects\":[" USER("bert") "]}" },
};

#define ROBOT "system:serviceaccount:kube-system:robot"

/* clang-format off */
static const struct row {
    const char *who, *group, *verb, *api_group, *resource, *sub, *name, *namespace, *path;
    bool is_allowed;
} rows[] = {
    /* who     in      verb      API group  resource   part      name     namespace      path */
    { "anna",  "",     "get",    "",        "pods",    "",       "",      "default",     NULL, true },
    { "anna",  "",     "list",   "",        "pods",    "",       "",      "",            NULL, true },
    { "anna",  "",     "get",    "",        "pods",    "log",    "p",     "default",     NULL, true },
    { "anna",  "",     "get",    "",        "pods",    "exec",   "p",     "default",     NULL, false },
    { "anna",  "",     "delete", "",        "pods",    "",       "p",     "default",     NULL, false },
    { "anna",  "",     "get",    "apps",    "pods",    "",       "p",     "default",     NULL, false },
    { "anna",  "",     "get",    "",        "secrets", "",       "s",     "default",     NULL, false },
    { "bert",  "",     "get",    "",        "pods",    "",       "p",     "default",     NULL, true },
    { "bert",  "",     "get",    "",        "pods",    "",       "p",     "kube-system", NULL, false },
    { "bert",  "",     "list",   "",        "pods",    "",       "",      "",            NULL, false },
    { "bert",  "",     "get",    "",        "secrets", "",       "mine",  "default",     NULL, true },
    { "bert",  "",     "get",    "",        "secrets", "",       "other", "default",     NULL, false },
    { "bert",  "",     "list",   "",        "secrets", "",       "",      "default",     NULL, false },
    { "bert",  "",     "patch",  "a.io",    "things",  "status", "t",     "default",     NULL, true },
    { "bert",  "",     "patch",  "a.io",    "things",  "",       "t",     "default",     NULL, false },
    { ROBOT,   "",     "get",    "",        "pods",    "",       "p",     "default",     NULL, true },
    { "robot", "",     "get",    "",        "pods",    "",       "p",     "default",     NULL, false },
    { "carla", "ops",  "get",    "",        "",        "",       "",      "",            "/metrics", true },
    { "carla", "ops",  "get",    "",        "",        "",       "",      "",            "/debug/pprof", true },
    { "carla", "ops",  "get",    "",        "",        "",       "",      "",            "/debug", false },
    { "carla", "ops",  "post",   "",        "",        "",       "",      "",            "/metrics", false },
    { "carla", "",     "get",    "",        "",        "",       "",      "",            "/metrics", false },
    { "carla", "system:masters", "delete", "a.io", "things", "", "t",     "default",     NULL, true },
    { "carla", "ops",  "get",    "",        "pods",    "",       "p",     "default",     NULL, false },
};
/* clang-format on */

static void make_user(struct user *u, const char *name, const char *group)
{
    struct err e;

    assert_int_equal(user_set_name(u, span_cstr(name), &e), 0);
    if (*group)
        assert_int_equal(user_add_group(u, span_cstr(group), &e), 0);
}

static bool ask(struct testserver *t, const struct row *r)
{
    OWN(user_done) struct user u = USER_INIT;
    struct authz_ask a = { r->verb, r->api_group, r->resource, r->sub,
                           r->name, r->namespace, r->path };

    make_user(&u, r->who, r->group);
    return authz_allows(t->server->store, &u, &a);
}

static int set_up(void **state)
{
    struct testserver *t = NEW(struct testserver);

    testserver_begin(t, NULL);
    EACH(g, given) {
        const struct testanswer *a = testserver_create(t, g->plural, g->namespace, g->json);

        if (a->code)
            fail_msg("%s", a->message);
    }
    testserver_settle(t); /* rules count when they are on disk */
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    testserver_end(*state);
    free(*state);
    return 0;
}

static void test_each_question(void **state)
{
    EACH(r, rows) {
        if (ask(*state, r) != r->is_allowed)
            fail_msg("%s (%s): %s %s/%s/%s \"%s\" in \"%s\"%s", r->who, r->group, r->verb,
                     r->api_group, r->resource, r->sub, r->name, r->namespace,
                     r->path ? r->path : "");
    }
}

static void test_a_right_goes_with_its_binding_and_with_its_role(void **state)
{
    struct testserver *t = *state;
    struct row anna = rows[0], bert = rows[7];

    assert_true(ask(t, &anna) && ask(t, &bert));
    (void)testserver_delete(t, "rolebindings" RBAC, "default", "bert", KUBE_BACKGROUND);
    testserver_settle(t);
    assert_true(ask(t, &anna));
    assert_false(ask(t, &bert));
    (void)testserver_delete(t, "clusterroles" RBAC, "", "reader", KUBE_BACKGROUND);
    testserver_settle(t);
    assert_false(ask(t, &anna));
}

static void test_a_refusal_says_who_what_and_where(void **state)
{
    static const struct {
        struct authz_ask ask;
        const char *message;
    } refusals[] = {
        { { "get", "", "pods", "", "p", "default", NULL },
          "pods \"p\" is forbidden: User \"dora\" cannot get resource \"pods\" in API group \"\" in the "
          "namespace \"default\"" },
        { { "list", "a.io", "things", "status", "", "", NULL },
          "things.a.io is forbidden: User \"dora\" cannot list resource \"things/status\" in API "
          "group \"a.io\" at the cluster scope" },
        { { "get", "", "", "", "", "", "/metrics" },
          "forbidden: User \"dora\" cannot get path \"/metrics\"" },
    };
    struct testserver *t = *state;
    OWN(user_done) struct user u = USER_INIT;

    make_user(&u, "dora", "");
    EACH(r, refusals) {
        OWN(status_done) struct status st = STATUS_INIT;

        assert_int_equal(authz_question(t->server->store, &u, &r->ask, &st), -1);
        assert_int_equal(st.code, 403);
        assert_string_equal(buf_cstr(&st.message), r->message);
    }
}

static void count_rule(void *ctx, const struct json *rule)
{
    size_t *n = ctx;

    (void)rule;
    ++*n;
}

static void test_the_rules_of_a_user_are_told(void **state)
{
    struct testserver *t = *state;
    OWN(user_done) struct user u = USER_INIT;
    size_t here = 0, there = 0;

    make_user(&u, "bert", "");
    authz_rules(t->server->store, &u, "default", count_rule, &here);
    authz_rules(t->server->store, &u, "kube-system", count_rule, &there);
    assert_int_equal(here, 3);
    assert_int_equal(there, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_question, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_right_goes_with_its_binding_and_with_its_role,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_refusal_says_who_what_and_where, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_rules_of_a_user_are_told, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
