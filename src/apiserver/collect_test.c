#include "apiserver/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct testserver t;
static char space[32]; /* each test has its own namespace */

static const struct object *create(const char *plural, const char *fmt, ...)
{
    const struct testanswer *a;
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a = testserver_create(&t, plural, kind_is_namespaced(testserver_kind(plural)) ? space : "",
                          text);
    if (a->code)
        fail_msg("%s: %s", text, a->message);
    return a->object;
}

#define REF                                                                                        \
    "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\",\"blockOwnerDeletion\":%s}"

static const struct object *map(const char *name)
{
    return create("configmaps", "{\"metadata\":{\"name\":\"%s\"}}", name);
}

static const struct object *owned(const char *name, const struct object *owner, bool is_blocking)
{
    return create("configmaps", "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[" REF "]}}",
                  name, object_kind(owner)->name, object_name(owner), object_uid(owner),
                  is_blocking ? "true" : "false");
}

static void delete (const char *plural, const char *name, enum kube_propagation how)
{
    const struct testanswer *a = testserver_delete(
        &t, plural, kind_is_namespaced(testserver_kind(plural)) ? space : "", name, how);

    if (a->code)
        fail_msg("%s", a->message);
    testserver_settle(&t);
}

static const struct object *get(const char *name)
{
    const struct testanswer *a = testserver_get(&t, "configmaps", space, name);

    return a->code ? NULL : a->object;
}

static size_t count_owners(const char *name)
{
    return json_count(json_get(object_meta(get(name)), "ownerReferences"));
}

/* Takes the finalizer "x.io/hold" away. */
static void let_go(const char *name)
{
    const struct testanswer *a = testserver_ask(
        &t, &(struct kube_request){ .verb = KUBE_PATCH,
                                    .kind = testserver_kind("configmaps"),
                                    .namespace = space,
                                    .name = name,
                                    .patch = KUBE_PATCH_JSON,
                                    .body = SPAN("[{\"op\":\"remove\",\"path\":\"/metadata/"
                                                 "finalizers/0\"}]") });

    if (a->code)
        fail_msg("%s", a->message);
    testserver_settle(&t);
}

static int set_up(void **state)
{
    static int number;
    char text[96];

    (void)state;
    (void)snprintf(space, sizeof space, "collect-%d", ++number);
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", space);
    assert_int_equal(testserver_create(&t, "namespaces", "", text)->code, 0);
    testserver_settle(&t);
    return 0;
}

/* ---- owners ---- */

static void test_dependents_go_with_their_owner_generation_by_generation(void **state)
{
    const struct object *a = map("a"), *b = owned("b", a, false);

    (void)state;
    (void)owned("c", b, false);
    (void)map("d");
    delete ("configmaps", "a", KUBE_BACKGROUND);
    assert_null(get("b"));
    assert_null(get("c"));
    assert_non_null(get("d"));
}

static void test_one_of_two_owners_is_enough(void **state)
{
    const struct object *a = map("a"), *b = map("b");

    (void)state;
    (void)create(
        "configmaps", "{\"metadata\":{\"name\":\"c\",\"ownerReferences\":[" REF "," REF "]}}",
        "ConfigMap", "a", object_uid(a), "false", "ConfigMap", "b", object_uid(b), "false");
    delete ("configmaps", "a", KUBE_BACKGROUND);
    assert_non_null(get("c"));
    assert_int_equal(count_owners("c"), 1);
    delete ("configmaps", "b", KUBE_BACKGROUND);
    assert_null(get("c"));
}

static void test_an_owner_that_never_was_is_none(void **state)
{
    const struct object *a = map("a");

    (void)state;
    (void)create("configmaps", "{\"metadata\":{\"name\":\"b\",\"ownerReferences\":[" REF "]}}",
                 "ConfigMap", "nobody", "00000000-0000-4000-8000-000000000000", "false");
    (void)create("configmaps", "{\"metadata\":{\"name\":\"c\",\"ownerReferences\":[" REF "]}}",
                 "ConfigMap", "a", "00000000-0000-4000-8000-000000000000", "false");
    (void)owned("d", a, false);
    testserver_settle(&t);
    assert_null(get("b"));
    assert_null(get("c")); /* of the name, but another */
    assert_non_null(get("d"));
}

static void test_an_owner_outside_of_namespaces(void **state)
{
    const struct object *node = create("nodes", "{\"metadata\":{\"name\":\"%s\"}}", space);

    (void)state;
    (void)owned("a", node, false);
    testserver_settle(&t);
    assert_non_null(get("a"));
    delete ("nodes", space, KUBE_BACKGROUND);
    assert_null(get("a"));
}

static void test_orphans_stay_and_name_their_owner_no_more(void **state)
{
    const struct object *a = map("a");

    (void)state;
    (void)owned("b", a, true);
    delete ("configmaps", "a", KUBE_ORPHAN);
    assert_null(get("a"));
    assert_non_null(get("b"));
    assert_int_equal(count_owners("b"), 0);
}

static void test_in_the_foreground_the_owner_waits_for_who_blocks_it(void **state)
{
    const struct object *a = map("a");

    (void)state;
    (void)create(
        "configmaps",
        "{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"x.io/hold\"],\"ownerReferences\":[" REF
        "]}}",
        "ConfigMap", "a", object_uid(a), "true");
    delete ("configmaps", "a", KUBE_FOREGROUND);
    assert_true(object_is_deleting(get("a")));
    assert_true(object_has_finalizer(get("a"), "foregroundDeletion"));
    assert_true(object_is_deleting(get("b")));
    let_go("b");
    assert_null(get("b"));
    assert_null(get("a"));
}

static void test_in_the_foreground_nobody_waits_for_who_does_not_block(void **state)
{
    const struct object *a = map("a");

    (void)state;
    (void)create(
        "configmaps",
        "{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"x.io/hold\"],\"ownerReferences\":[" REF
        "]}}",
        "ConfigMap", "a", object_uid(a), "false");
    delete ("configmaps", "a", KUBE_FOREGROUND);
    assert_null(get("a"));
    assert_true(object_is_deleting(get("b")));
}

static void test_a_dependent_that_comes_too_late_goes_too(void **state)
{
    char uid[64];

    (void)state;
    (void)snprintf(uid, sizeof uid, "%s", object_uid(map("a")));
    delete ("configmaps", "a", KUBE_BACKGROUND);
    (void)create("configmaps", "{\"metadata\":{\"name\":\"b\",\"ownerReferences\":[" REF "]}}",
                 "ConfigMap", "a", uid, "false");
    testserver_settle(&t);
    assert_null(get("b"));
}

static void test_many_dependents(void **state)
{
    const struct object *a = map("a");

    (void)state;
    for (int i = 0; i < 300; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "n%d", i);
        (void)owned(name, a, false);
    }
    delete ("configmaps", "a", KUBE_BACKGROUND);
    assert_int_equal(
        testserver_ask(&t, &(struct kube_request){ .verb = KUBE_LIST,
                                                   .kind = testserver_kind("configmaps"),
                                                   .namespace = space })
            ->item_count,
        1); /* the namespace's own */
}

/* ---- namespaces ---- */

static void test_a_namespace_is_furnished(void **state)
{
    const char *ca;

    (void)state;
    ca = json_cstr(json_get(object_member(get("kube-root-ca.crt"), "data"), "ca.crt"));
    assert_non_null(strstr(ca, "BEGIN CERTIFICATE"));
    assert_int_equal(testserver_get(&t, "serviceaccounts", space, "default")->code, 0);
    delete ("configmaps", "kube-root-ca.crt", KUBE_BACKGROUND);
    assert_non_null(get("kube-root-ca.crt")); /* again */
    delete ("serviceaccounts", "default", KUBE_BACKGROUND);
    assert_int_equal(testserver_get(&t, "serviceaccounts", space, "default")->code, 0);
}

static void test_a_namespace_takes_along_what_is_in_it(void **state)
{
    const struct testanswer *a;

    (void)state;
    (void)create("configmaps", "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x.io/hold\"]}}");
    (void)create("pods", "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\","
                         "\"image\":\"i\"}]}}");
    delete ("namespaces", space, KUBE_BACKGROUND);
    a = testserver_get(&t, "namespaces", "", space);
    assert_int_equal(a->code, 0); /* somebody holds it */
    assert_string_equal(object_text(a->object, "status.phase"), "Terminating");
    assert_true(object_is_deleting(get("a")));
    assert_int_equal(testserver_get(&t, "pods", space, "p")->code, 404);
    a = testserver_create(&t, "configmaps", space, "{\"metadata\":{\"name\":\"late\"}}");
    assert_int_equal(a->code, 403);
    let_go("a");
    assert_int_equal(testserver_get(&t, "namespaces", "", space)->code, 404);
}

/* ---- volume claims ---- */

static const struct object *claim(const char *name)
{
    return create("persistentvolumeclaims",
                  "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                  "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
                  name);
}

static bool has_claim(const char *name)
{
    return testserver_get(&t, "persistentvolumeclaims", space, name)->code == 0;
}

static void user_of(const char *name, const char *node)
{
    (void)create("pods",
                 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s\"containers\":[{\"name\":\"c\","
                 "\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
                 "\"claimName\":\"%s\"}}]}}",
                 name, node, name);
}

static void test_a_volume_claim_stays_while_a_pod_uses_it(void **state)
{
    (void)state;
    (void)claim("free");
    (void)claim("wished");
    user_of("wished", "");
    (void)claim("used");
    user_of("used", "\"nodeName\":\"n\",");
    delete ("persistentvolumeclaims", "free", KUBE_BACKGROUND);
    assert_false(has_claim("free"));
    delete ("persistentvolumeclaims", "wished", KUBE_BACKGROUND);
    assert_false(has_claim("wished"));
    delete ("persistentvolumeclaims", "used", KUBE_BACKGROUND);
    assert_true(has_claim("used"));
    (void)testserver_ask(&t, &(struct kube_request){ .verb = KUBE_DELETE,
                                                     .kind = testserver_kind("pods"),
                                                     .namespace = space,
                                                     .name = "used",
                                                     .grace_s = &(int64_t){ 0 } });
    testserver_settle(&t);
    assert_false(has_claim("used"));
}

static void test_some_namespaces_stay(void **state)
{
    static const char *const names[] = { "default", "kube-system", "kube-public" };

    (void)state;
    EACH(name, names) {
        assert_int_equal(testserver_delete(&t, "namespaces", "", *name, KUBE_BACKGROUND)->code,
                         403);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_dependents_go_with_their_owner_generation_by_generation,
                               set_up),
        cmocka_unit_test_setup(test_one_of_two_owners_is_enough, set_up),
        cmocka_unit_test_setup(test_an_owner_that_never_was_is_none, set_up),
        cmocka_unit_test_setup(test_an_owner_outside_of_namespaces, set_up),
        cmocka_unit_test_setup(test_orphans_stay_and_name_their_owner_no_more, set_up),
        cmocka_unit_test_setup(test_in_the_foreground_the_owner_waits_for_who_blocks_it, set_up),
        cmocka_unit_test_setup(test_in_the_foreground_nobody_waits_for_who_does_not_block, set_up),
        cmocka_unit_test_setup(test_a_dependent_that_comes_too_late_goes_too, set_up),
        cmocka_unit_test_setup(test_many_dependents, set_up),
        cmocka_unit_test_setup(test_a_namespace_is_furnished, set_up),
        cmocka_unit_test_setup(test_a_namespace_takes_along_what_is_in_it, set_up),
        cmocka_unit_test_setup(test_a_volume_claim_stays_while_a_pod_uses_it, set_up),
        cmocka_unit_test_setup(test_some_namespaces_stay, set_up),
    };
    int failed;

    testserver_begin(&t, NULL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    testserver_end(&t);
    return failed;
}
