#include "controller/names.h"

#include "controller/condition.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void name_hash_correctness(void **state)
{
    static const struct row {
        const char *name, *want;
    } rows[] = {
        { "", "811c9dc5" },
        { "a", "e40c292c" },
        { "my-sandbox", "374de8f5" },
        { "pool", "91dd7983" },
        { "test-template", "69155462" },
        { "test-pool", "59733166" },
        { "sandbox-name", "ab179450" },
    };
    char hash[NAME_HASH_BYTES];

    EACH(r, rows)
        assert_string_equal(name_hash(hash, span_cstr(r->name)), r->want);
}

static void reserved_keys(void **state)
{
    assert_true(key_is_reserved(SPAN("agents.x-k8s.io/claim-uid")));
    assert_true(key_is_reserved(SPAN("extensions.agents.x-k8s.io/x")));
    assert_true(key_is_reserved(SPAN("opentelemetry.io/trace-context")));
    assert_false(key_is_reserved(SPAN("agents.x-k8s.io")));
    assert_false(key_is_reserved(SPAN("my.agents.x-k8s.io/x")));
    assert_false(key_is_reserved(SPAN("app")));
}

static void created_by_is_one_of_few(void **state)
{
    assert_string_equal(created_by_known("go-client"), "go-client");
    assert_string_equal(created_by_known("python-client"), "python-client");
    assert_string_equal(created_by_known("controller"), "controller");
    assert_string_equal(created_by_known("me"), "unknown");
    assert_string_equal(created_by_known(NULL), "unknown");
}

#define OWNER(api, kind, uid, is_controller)                                                       \
    "{'apiVersion':'" api "','kind':'" kind "','name':'o','uid':'" uid                             \
    "','controller':" is_controller "}"

static void check_ownership(void **state)
{
    static const struct row {
        const char *name, *owners;
        enum ownership want;
    } rows[] = {
        { "no owner", "", UNOWNED },
        { "its own", OWNER("agents.x-k8s.io/v1beta1", "Sandbox", "u1", "true"), OWNED },
        { "its own, written by an older version",
          OWNER("agents.x-k8s.io/v1alpha1", "Sandbox", "u1", "true"), OWNED },
        { "an earlier life of the same name",
          OWNER("agents.x-k8s.io/v1beta1", "Sandbox", "u0", "true"), FOREIGN },
        { "somebody else's", OWNER("apps/v1", "ReplicaSet", "r", "true"), FOREIGN },
        { "an owner that is no controller", OWNER("v1", "ConfigMap", "c", "false"), UNOWNED },
    };
    const struct known_kinds *k = known_kinds();
    const struct kind *kinds[] = { k->pod, k->service };
    struct object *sandbox =
        test_object(k->sandbox, "{'metadata':{'namespace':'n','name':'s','uid':'u1'}}");

    EACH(r, rows) {
        EACH(kind, kinds) {
            struct object *child =
                test_object(*kind, "{'metadata':{'name':'c','ownerReferences':[%s]}}", r->owners);

            if (ownership_of(child, sandbox) != r->want)
                fail_msg("%s", r->name);
        }
    }
    test_objects_free();
}

static void owners_are_known_by_group_and_kind(void **state)
{
    const struct known_kinds *k = known_kinds();
    struct object *o =
        test_object(k->sandbox, "{'metadata':{'ownerReferences':[%s]}}",
                    OWNER("extensions.agents.x-k8s.io/v1alpha1", "SandboxWarmPool", "p", "true"));
    struct object *bare = test_object(k->sandbox, "{'metadata':{}}");

    assert_true(owner_is(o, "extensions.agents.x-k8s.io", "SandboxWarmPool"));
    assert_true(owner_is(o, "extensions.agents.x-k8s.io", NULL));
    assert_false(owner_is(o, "extensions.agents.x-k8s.io", "SandboxClaim"));
    assert_false(owner_is(o, "agents.x-k8s.io", "SandboxWarmPool"));
    assert_false(owner_is(bare, "extensions.agents.x-k8s.io", NULL));
    test_objects_free();
}

static void conditions_keep_their_time_until_they_flip(void **state)
{
    struct json_edit *ed = test_edit();
    struct json_node *list = json_edit_array(ed);
    struct condition c = { "Ready", "False", "A", "one", 1, NULL };

    condition_set(list, &c, "t1");
    c.reason = "B", c.message = "two", c.generation = 2;
    condition_set(list, &c, "t2");
    assert_string_equal(test_text(list),
                        "[{'type':'Ready','status':'False','observedGeneration':2,"
                        "'lastTransitionTime':'t1','reason':'B','message':'two'}]");
    c.status = "True";
    condition_set(list, &c, "t3");
    c.status = "False", c.since = "t0";
    condition_set(list, &c, "t4");
    assert_string_equal(test_text(list),
                        "[{'type':'Ready','status':'False','observedGeneration':2,"
                        "'lastTransitionTime':'t0','reason':'B','message':'two'}]");
    c.since = "t9"; /* the source's time counts on a flip only */
    condition_set(list, &c, "t9");
    c.type = "Other", c.since = NULL;
    condition_set(list, &c, "t5");
    condition_remove(list, "Ready");
    condition_remove(list, "None");
    assert_string_equal(test_text(list),
                        "[{'type':'Other','status':'False','observedGeneration':2,"
                        "'lastTransitionTime':'t5','reason':'B','message':'two'}]");
    test_objects_free();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_hash_correctness),
        cmocka_unit_test(reserved_keys),
        cmocka_unit_test(created_by_is_one_of_few),
        cmocka_unit_test(check_ownership),
        cmocka_unit_test(owners_are_known_by_group_and_kind),
        cmocka_unit_test(conditions_keep_their_time_until_they_flip),
    };

    return cmocka_run_group_tests_name("controller/names", tests, NULL, NULL);
}
