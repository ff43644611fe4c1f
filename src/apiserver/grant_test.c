#include "apiserver/grant.h"

#include "apiserver/testserver.h"
#include "apiserver/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GROUP "rbac.authorization.k8s.io"

/* Nora may write roles and bindings in "default", read Pods there, and escalate the role "free" and bind "view". */
static const struct {
    const char *plural, *namespace, *json;
} given[] = {
    { "roles." GROUP, "default",
      "{\"metadata\":{\"name\":\"nora\"},\"rules\":["
      "{\"apiGroups\":[\"" GROUP "\"],\"resources\":[\"roles\",\"rolebindings\"],\"verbs\":[\"*\"],"
      "\"resourceNames\":[\"unused\"]},"
      "{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"get\",\"list\"]},"
      "{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"resourceNames\":[\"mine\"],\"verbs\":["
      "\"get\"]},"
      "{\"apiGroups\":[\"" GROUP "\"],\"resources\":[\"roles\"],\"resourceNames\":[\"free\"],"
      "\"verbs\":[\"escalate\"]},"
      "{\"apiGroups\":[\"" GROUP
      "\"],\"resources\":[\"clusterroles\"],\"resourceNames\":[\"view\"],"
      "\"verbs\":[\"bind\"]}]}" },
    { "roles." GROUP, "default",
      "{\"metadata\":{\"name\":\"pods\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],"
      "\"verbs\":[\"get\"]}]}" },
    { "roles." GROUP, "default",
      "{\"metadata\":{\"name\":\"secrets\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":["
      "\"secrets\"],\"verbs\":[\"get\"]}]}" },
    { "rolebindings." GROUP, "default",
      "{\"metadata\":{\"name\":\"nora\"},\"roleRef\":{\"apiGroup\":\"" GROUP "\",\"kind\":\"Role\","
      "\"name\":\"nora\"},\"subjects\":[{\"apiGroup\":\"" GROUP "\",\"kind\":\"User\",\"name\":"
      "\"nora\"}]}" },
};

#define RULES(name, rules) "{\"metadata\":{\"name\":\"" name "\"},\"rules\":[" rules "]}"
#define RULE(groups, resources, verbs)                                                             \
    "{\"apiGroups\":[" groups "],\"resources\":[" resources "],\"verbs\":[" verbs "]}"
#define TO(kind, name)                                                                             \
    "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"apiGroup\":\"" GROUP "\",\"kind\":\"" kind      \
    "\",\"name\":\"" name "\"},\"subjects\":[{\"apiGroup\":\"" GROUP                               \
    "\",\"kind\":\"User\",\"name\":\"x\"}]}"

/* clang-format off */
static const struct row {
    const char *name, *plural, *namespace, *json;
    int code;
    const char *missing; /* in the refusal */
} rows[] = {
    { "what she has",            "roles", "default", RULES("r", RULE("\"\"", "\"pods\"", "\"get\",\"list\"")), 0, NULL },
    { "less than she has",       "roles", "default", RULES("r", RULE("\"\"", "\"pods\"", "\"get\"")), 0, NULL },
    { "no rule at all",          "roles", "default", RULES("r", ""), 0, NULL },
    { "another verb",            "roles", "default", RULES("r", RULE("\"\"", "\"pods\"", "\"get\",\"delete\"")), 403,
      "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}" },
    { "all verbs",               "roles", "default", RULES("r", RULE("\"\"", "\"pods\"", "\"*\"")), 403, "Verbs:[\"*\"]" },
    { "a part of what she has",  "roles", "default", RULES("r", RULE("\"\"", "\"pods/log\"", "\"get\"")), 403, "\"pods/log\"" },
    { "another group",           "roles", "default", RULES("r", RULE("\"apps\"", "\"pods\"", "\"get\"")), 403, "\"apps\"" },
    { "all groups",              "roles", "default", RULES("r", RULE("\"*\"", "\"pods\"", "\"get\"")), 403, "APIGroups:[\"*\"]" },
    { "in another namespace",    "roles", "kube-system", RULES("r", RULE("\"\"", "\"pods\"", "\"get\"")), 403, "\"pods\"" },
    { "for all namespaces",      "clusterroles", "", RULES("r", RULE("\"\"", "\"pods\"", "\"get\"")), 403, "\"pods\"" },
    { "one of a name",           "roles", "default",
      RULES("r", "{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"resourceNames\":[\"mine\"],\"verbs\":[\"get\"]}"), 0, NULL },
    { "one of another name",     "roles", "default",
      RULES("r", "{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"resourceNames\":[\"yours\"],\"verbs\":[\"get\"]}"), 403,
      "ResourceNames:[\"yours\"]" },
    { "all of which she has one", "roles", "default", RULES("r", RULE("\"\"", "\"secrets\"", "\"get\"")), 403, "\"secrets\"" },
    { "a path",                  "clusterroles", "", RULES("r", "{\"nonResourceURLs\":[\"/metrics\"],\"verbs\":[\"get\"]}"), 403,
      "NonResourceURLs:[\"/metrics\"]" },
    { "a role she may escalate", "roles", "default", RULES("free", RULE("\"*\"", "\"*\"", "\"*\"")), 0, NULL },
    { "what others write later", "clusterroles", "",
      "{\"metadata\":{\"name\":\"r\"},\"aggregationRule\":{\"clusterRoleSelectors\":[{\"matchLabels\":{\"a\":\"b\"}}]}}", 403,
      "must have cluster-admin privileges to use the aggregationRule" },
    { "a role like her own",     "rolebindings", "default", TO("Role", "pods"), 0, NULL },
    { "a role beyond her own",   "rolebindings", "default", TO("Role", "secrets"), 403, "\"secrets\"" },
    { "a role she may bind",     "rolebindings", "default", TO("ClusterRole", "view"), 0, NULL },
    { "one she may not",         "rolebindings", "default", TO("ClusterRole", "cluster-admin"), 403, "\"*\"" },
    { "one that is not there",   "rolebindings", "default", TO("Role", "none"), 404, "roles.rbac.authorization.k8s.io \"none\" not found" },
};
/* clang-format on */

static struct testserver t;

static int write_as(const char *user, const char *group, const struct row *r, bool is_dry,
                    struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    OWN(user_done) struct user u = USER_INIT;
    const struct kind *kind = kind_find(GROUP, "v1", r->plural);
    struct op op = { .store = t.server->store,
                     .user = &u,
                     .kind = kind,
                     .version = &kind->versions[0],
                     .namespace = r->namespace,
                     .name = "",
                     .manager = "test",
                     .is_dry_run = is_dry };
    struct err e;

    assert_int_equal(user_set_name(&u, span_cstr(user), &e), 0);
    assert_int_equal(user_add_group(&u, span_cstr(group), &e), 0);
    assert_int_equal(json_parse(span_cstr(r->json), NULL, &doc, &e), 0);
    return op_create(&op, ed, json_edit_doc(ed, doc), &o, st);
}

static void test_nobody_gives_what_he_does_not_have(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(status_done) struct status st = STATUS_INIT;
        int rc = write_as("nora", "people", r, true, &st);

        if (st.code != r->code || (rc == 0) != (r->code == 0))
            fail_msg("%s: %d %s", r->name, st.code, buf_cstr(&st.message));
        if (r->missing && !strstr(buf_cstr(&st.message), r->missing))
            fail_msg("%s: %s", r->name, buf_cstr(&st.message));
    }
}

static void test_the_refusal_is_the_public_servers(void **state)
{
    OWN(status_done) struct status st = STATUS_INIT;

    (void)state;
    assert_int_equal(write_as("nora", "people", &rows[3], true, &st), -1);
    assert_string_equal(
        buf_cstr(&st.message),
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"nora\" (groups=[\"people\"]) is "
        "attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], "
        "Resources:[\"pods\"], Verbs:[\"delete\"]}");
}

static void test_masters_give_everything(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(status_done) struct status st = STATUS_INIT;

        if (r->code == 403 && write_as("root", "system:masters", r, true, &st) < 0)
            fail_msg("%s: %s", r->name, buf_cstr(&st.message));
    }
}

/* A role with more rules than can be compared is not let through for that. */
static void test_too_many_rules_are_refused(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(4 << 20);
    OWN(status_done) struct status st = STATUS_INIT;
    struct row row = { .plural = "roles", .namespace = "default" };
    struct err e;

    (void)state;
    assert_int_equal(buf_addf(&text, &e, "{\"metadata\":{\"name\":\"r\"},\"rules\":["), 0);
    for (int i = 0; i < 9000; i++)
        assert_int_equal(
            buf_addf(&text, &e, "%s" RULE("\"\"", "\"pods\"", "\"get\""), i ? "," : ""), 0);
    assert_int_equal(buf_addf(&text, &e, "]}"), 0);
    row.json = buf_cstr(&text);
    assert_int_equal(write_as("nora", "people", &row, true, &st), -1);
    assert_int_equal(st.code, 403);
    assert_non_null(strstr(buf_cstr(&st.message), "more than can be compared"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_gives_what_he_does_not_have),
        cmocka_unit_test(test_the_refusal_is_the_public_servers),
        cmocka_unit_test(test_masters_give_everything),
        cmocka_unit_test(test_too_many_rules_are_refused),
    };
    int failed;

    testserver_begin(&t, NULL);
    EACH(g, given) {
        const struct testanswer *a = testserver_create(&t, g->plural, g->namespace, g->json);

        if (a->code) {
            (void)fprintf(stderr, "%s\n", a->message);
            return 1;
        }
    }
    testserver_settle(&t);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    testserver_end(&t);
    return failed;
}
