#include "apiserver/impersonate.h"

#include "apiserver/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Paul may act for: the user "guest", the group "readers", accounts of "default", the uid "7", the extra "reason: test". */
static const char role[] =
    "{\"metadata\":{\"name\":\"paul\"},\"rules\":["
    "{\"apiGroups\":[\"\"],\"resources\":[\"users\"],\"resourceNames\":[\"guest\",\"system:anonymous\"],"
    "\"verbs\":[\"impersonate\"]},"
    "{\"apiGroups\":[\"\"],\"resources\":[\"groups\"],\"resourceNames\":[\"readers\"],\"verbs\":["
    "\"impersonate\"]},"
    "{\"apiGroups\":[\"authentication.k8s.io\"],\"resources\":[\"uids\"],\"resourceNames\":[\"7\"],"
    "\"verbs\":[\"impersonate\"]},"
    "{\"apiGroups\":[\"authentication.k8s.io\"],\"resources\":[\"userextras/reason\"],"
    "\"resourceNames\":[\"test\"],\"verbs\":[\"impersonate\"]}]}";
static const char account_role[] =
    "{\"metadata\":{\"name\":\"paul\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":["
    "\"serviceaccounts\"],\"verbs\":[\"impersonate\"]}]}";
#define BINDING(kind)                                                                              \
    "{\"metadata\":{\"name\":\"paul\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","   \
    "\"kind\":\"" kind "\",\"name\":\"paul\"},\"subjects\":[{\"apiGroup\":"                        \
    "\"rbac.authorization.k8s.io\",\"kind\":\"User\",\"name\":\"paul\"}]}"

#define ACCOUNT "system:serviceaccount:default:robot"

/* clang-format off */
static const struct row {
    const char *name;
    const char *fields[8]; /* name, value, ... */
    int code;
    const char *becomes, *groups; /* sorted as they were added */
} rows[] = {
    { "nothing is asked for",       { "accept", "*/*" }, 0, "paul", "staff" },
    { "another user",               { "impersonate-user", "guest" }, 0, "guest", "system:authenticated" },
    { "nobody",                     { "impersonate-user", "system:anonymous" }, 0, "system:anonymous", "system:unauthenticated" },
    { "with a group",               { "impersonate-user", "guest", "impersonate-group", "readers" }, 0, "guest", "readers system:authenticated" },
    { "an account",                 { "impersonate-user", ACCOUNT }, 0, ACCOUNT,
      "system:serviceaccounts system:serviceaccounts:default system:authenticated" },
    { "with a uid and an extra",    { "impersonate-user", "guest", "impersonate-uid", "7", "impersonate-extra-reason", "test" }, 0,
      "guest", "system:authenticated" },
    { "a user he may not be",       { "impersonate-user", "root" }, 403, NULL, NULL },
    { "a group he may not give",    { "impersonate-user", "guest", "impersonate-group", "system:masters" }, 403, NULL, NULL },
    { "one of two groups",          { "impersonate-user", "guest", "impersonate-group", "readers", "impersonate-group", "writers" }, 403, NULL, NULL },
    { "an account elsewhere",       { "impersonate-user", "system:serviceaccount:kube-system:robot" }, 403, NULL, NULL },
    { "half an account is a user",  { "impersonate-user", "system:serviceaccount:default:" }, 403, NULL, NULL },
    { "a uid he may not have",      { "impersonate-user", "guest", "impersonate-uid", "8" }, 403, NULL, NULL },
    { "an extra he may not have",   { "impersonate-user", "guest", "impersonate-extra-reason", "fun" }, 403, NULL, NULL },
    { "an extra of another name",   { "impersonate-user", "guest", "impersonate-extra-scopes", "test" }, 403, NULL, NULL },
    { "a group and no user",        { "impersonate-group", "readers" }, 400, NULL, NULL },
    { "an empty user and a group",  { "impersonate-user", "", "impersonate-group", "readers" }, 400, NULL, NULL },
    { "a field nobody knows",       { "impersonate-user", "guest", "impersonate-shoe", "9" }, 400, NULL, NULL },
};
/* clang-format on */

static struct testserver t;

static void check_user(const struct row *r, const struct user *u)
{
    char groups[512] = "";
    size_t n = 0;

    for (size_t i = 0; i < u->group_count; i++)
        n +=
            (size_t)snprintf(groups + n, sizeof groups - n, "%s%s", i ? " " : "", user_group(u, i));
    if (strcmp(user_name(u), r->becomes) != 0 || strcmp(groups, r->groups) != 0)
        fail_msg("%s: %s of %s", r->name, user_name(u), groups);
}

static int run(const char *who, const struct row *r, struct user *u, struct status *st)
{
    struct http_head head;
    struct err e;
    int rc;

    http_head_init(&head, 64 * 1024, 64);
    for (size_t i = 0; r->fields[i]; i += 2)
        assert_int_equal(
            http_head_add(&head, span_cstr(r->fields[i]), span_cstr(r->fields[i + 1]), &e), 0);
    assert_int_equal(user_set_name(u, span_cstr(who), &e), 0);
    assert_int_equal(user_add_group(u, SPAN("staff"), &e), 0);
    rc = impersonate(t.server->store, 1, &head, u, st);
    http_head_done(&head);
    return rc;
}

static void test_each_request(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(user_done) struct user u = USER_INIT;
        OWN(status_done) struct status st = STATUS_INIT;
        int rc = run("paul", r, &u, &st);

        if (st.code != r->code || (rc == 0) != (r->code == 0))
            fail_msg("%s: %d %s", r->name, st.code, buf_cstr(&st.message));
        if (r->code == 0)
            check_user(r, &u);
        else /* nothing is done in the own name instead, and he is who he was */
            assert_string_equal(user_name(&u), "paul");
    }
}

static void test_who_may_not_is_refused_everything(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(user_done) struct user u = USER_INIT;
        OWN(status_done) struct status st = STATUS_INIT;

        if (r != rows)
            assert_int_equal(run("mary", r, &u, &st), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_request),
        cmocka_unit_test(test_who_may_not_is_refused_everything),
    };
    int failed;

    testserver_begin(&t, NULL);
    (void)testserver_create(&t, "clusterroles.rbac.authorization.k8s.io", "", role);
    (void)testserver_create(&t, "clusterrolebindings.rbac.authorization.k8s.io", "",
                            BINDING("ClusterRole"));
    (void)testserver_create(&t, "roles.rbac.authorization.k8s.io", "default", account_role);
    (void)testserver_create(&t, "rolebindings.rbac.authorization.k8s.io", "default",
                            BINDING("Role"));
    testserver_settle(&t);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    testserver_end(&t);
    return failed;
}
