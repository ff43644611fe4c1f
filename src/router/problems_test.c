#include "router/problems.h"

#include "base/json.h"
#include "base/own.h"
#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct object *make(const char *group, const char *plural, const char *text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find(group, NULL, plural), json_doc_root(doc), &o, &e), 0);
    return o;
}

#define CLAIM(sandbox, status, reason, message)                                                       \
    "{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{\"sandbox\":{\"name\":\"" sandbox \
    "\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"" status "\",\"reason\":\"" reason          \
    "\",\"message\":\"" message "\"}]}}"

static const struct claim_row {
    const char *claim, *text, *heal; /* text NULL: no problem */
} claims[] = {
    { CLAIM("s", "False", "PodFailed", "Pod failed"), "PodFailed: Pod failed",
      "kubectl delete pod -n n s" },
    { CLAIM("s", "True", "PodFailed", ""), NULL, NULL },
    { CLAIM("s", "False", "DependenciesNotReady", ""), NULL, NULL },
    { CLAIM("s", "False", "SandboxSuspended", ""), NULL, NULL },
    { CLAIM("", "False", "WarmPoolNotFound", "p"), "WarmPoolNotFound: p",
      "kubectl apply what it names, or kubectl delete sandboxclaim -n n c" },
    { CLAIM("", "False", "InvalidConfiguration", "x\\u001b[2J\\ny"),
      "InvalidConfiguration: x [2J y", "kubectl delete sandboxclaim -n n c" },
    /* Who writes statuses does not write commands. */
    { CLAIM("s; reboot", "False", "PodFailed", ""), NULL, NULL },
    { CLAIM("--all", "False", "PodFailed", ""), NULL, NULL },
    { "{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"}}", NULL, NULL },
};

static void test_claims(void **state)
{
    (void)state;
    EACH(row, claims) {
        OWN(object_done)
        struct object *o = make("extensions.agents.x-k8s.io", "sandboxclaims", row->claim);
        struct problem p;

        assert_int_equal(problem_of_claim(o, &p), row->text != NULL);
        if (row->text) {
            assert_string_equal(p.text, row->text);
            assert_string_equal(p.heal, row->heal);
        }
        assert_int_equal(problem_is_suspended(o), strstr(row->claim, "SandboxSuspended") != NULL);
    }
}

static void test_sandboxes(void **state)
{
    static const char failed[] =
        "{\"metadata\":{\"name\":\"s\",\"namespace\":\"n\"%s},\"status\":{\"conditions\":[{\"type\":"
        "\"Ready\",\"status\":\"False\",\"reason\":\"PodFailed\",\"message\":\"m\"}]}}";
    static const char owner[] =
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"name\":"
        "\"o\",\"uid\":\"u\",\"controller\":true}]";
    static const char *const kinds[] = { "SandboxClaim", "SandboxWarmPool", "Deployment", NULL };
    char text[1024], own[256];

    (void)state;
    for (size_t i = 0; i < LEN(kinds); i++) {
        OWN(object_done) struct object *o = NULL;
        struct problem p;

        (void)snprintf(own, sizeof own, owner, kinds[i] ? kinds[i] : "");
        (void)snprintf(text, sizeof text, failed, kinds[i] ? own : "");
        o = make("agents.x-k8s.io", "sandboxes", text);
        assert_int_equal(problem_is_owned(o), i < 2);
        assert_int_equal(problem_of_sandbox(o, &p), i >= 2);
        if (i >= 2)
            assert_string_equal(p.heal, "kubectl delete pod -n n s");
    }
}

#define RBAC "rbac.authorization.k8s.io"
#define BINDING(name, namespace, kind, role)                                                       \
    "{\"metadata\":{\"name\":\"" name "\"" namespace "},\"roleRef\":{\"apiGroup\":\"" RBAC         \
                                                     "\",\"kind\":\"" kind "\",\"name\":\"" role   \
                                                     "\"}}"
#define IN_N ",\"namespace\":\"n\""

static const struct binding_row {
    const char *plural, *binding, *text, *heal; /* text NULL: no problem */
} bindings[] = {
    { "rolebindings", BINDING("b", IN_N, "ClusterRole", "edit"), NULL, NULL },
    { "rolebindings", BINDING("b", IN_N, "Role", "mine"), NULL, NULL },
    { "rolebindings", BINDING("b", IN_N, "ClusterRole", "edti"),
      "it gives nothing: the ClusterRole 'edti' does not exist: did you mean 'edit'?",
      "kubectl delete rolebinding -n n b, and bind a role that exists" },
    /* A role of its namespace is none of all, and the other way round. */
    { "rolebindings", BINDING("b", IN_N, "Role", "edit"),
      "it gives nothing: the Role 'edit' does not exist",
      "kubectl delete rolebinding -n n b, and bind a role that exists" },
    { "clusterrolebindings", BINDING("b", "", "ClusterRole", "mine"),
      "it gives nothing: the ClusterRole 'mine' does not exist",
      "kubectl delete clusterrolebinding b, and bind a role that exists" },
    { "clusterrolebindings", BINDING("b; reboot", "", "ClusterRole", "nothing-like-it"),
      "it gives nothing: the ClusterRole 'nothing-like-it' does not exist",
      "delete it, and bind a role that exists" },
};

static void test_bindings(void **state)
{
    OWN(buf_done) struct buf roles = BUF_INIT(4096);
    OWN(object_done)
    struct object *edit = make(RBAC, "clusterroles", "{\"metadata\":{\"name\":\"edit\"}}");
    OWN(object_done)
    struct object *mine =
        make(RBAC, "roles", "{\"metadata\":{\"name\":\"mine\",\"namespace\":\"n\"}}");

    (void)state;
    problem_add_name(&roles, edit);
    problem_add_name(&roles, mine);
    EACH(row, bindings) {
        OWN(object_done) struct object *o = make(RBAC, row->plural, row->binding);
        struct problem p;

        assert_int_equal(problem_of_binding(o, &roles, &p), row->text != NULL);
        if (row->text) {
            assert_string_equal(p.text, row->text);
            assert_string_equal(p.heal, row->heal);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_sandboxes),
        cmocka_unit_test(test_bindings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
