/* Whom a claim gets, and what is written until it has it. */
#include "controller/suite_impl.h"

#include "controller/faults.h"
#include "controller/names.h"
#include "controller/testobject.h"
#include "kube/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A      "agents.x-k8s.io/"
#define CLAIMS "sandboxclaim-controller"

static const struct kind *claim(void)
{
    return known_kinds()->claim;
}

static const struct kind *sandbox(void)
{
    return known_kinds()->sandbox;
}

static struct object *until_ready(struct world *w)
{
    return world_until_condition(w, claim(), "c", "Ready", SUITE_READY);
}

/* The claim of a waiting member, by whatever says so. */
static struct object *claim_member(struct world *w, const char *where)
{
    struct object *member;

    suite_until_count(w, sandbox(), 1);
    (void)world_count(w, sandbox(), NULL, &member);
    (void)world_create(w, claim(),
                       "{'metadata':{'name':'c','%s':{'" A "sandbox-name':'%s'}},'spec':{"
                       "'warmPoolRef':{'name':'p'}}}",
                       where, object_name(member));
    return member;
}

static bool is_its_own(struct world *w, const struct object *s, const void *arg)
{
    const struct object *c = world_get(w, claim(), "c");

    (void)arg;
    return s && ownership_of(s, c) == OWNED;
}

/* TestSandboxClaimPreservesAssignedWarmPoolSandboxWithoutPodIPs: what was assigned is completed, though it has no address. */
static void an_assignment_is_completed_without_an_address(void **state)
{
    struct world *w = *state;
    struct object *member;

    suite_make_template(w, "");
    world_hold_pods(w, true);
    suite_make_pool(w, 1);
    member = claim_member(w, "annotations");
    (void)world_until(w, sandbox(), object_name(member), "the claim's", is_its_own, NULL);
    world_hold_pods(w, false);
    assert_string_equal(object_text(until_ready(w), "status.sandbox.name"), object_name(member));
    assert_int_equal(world_count(w, sandbox(), A "claim-uid", NULL), 1);
}

static bool is_migrated(struct world *w, const struct object *c, const void *name)
{
    const char *note = c ? object_annotation(c, A "sandbox-name") : NULL;

    (void)w;
    return note && strcmp(note, name) == 0 && !object_label(c, A "sandbox-name");
}

/* TestSandboxClaimLegacyLabelMigration */
static void the_older_label_becomes_an_annotation(void **state)
{
    struct world *w = *state;
    struct object *member;

    suite_open_pool(w, 1, "");
    member = claim_member(w, "labels");
    assert_string_equal(object_text(until_ready(w), "status.sandbox.name"), object_name(member));
    (void)world_until(w, claim(), "c", "moved to the annotation", is_migrated, object_name(member));
}

static bool is_warm(struct world *w, const struct object *s, const void *arg)
{
    const char *launch = s ? object_label(s, A "launch-type") : NULL;

    (void)w, (void)arg;
    return launch && strcmp(launch, "warm") == 0;
}

/* TestSandboxClaimNoReAdoption, TestInitializeSandboxLaunchTypeLabel: it has one and takes no other; what says nothing of its
 * start is told. */
static void a_bound_claim_takes_no_other(void **state)
{
    struct world *w = *state;
    struct object *s;

    suite_open_pool(w, 2, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until_ready(w));
    (void)world_patch(w, sandbox(), object_name(s), NULL,
                      "{'metadata':{'labels':{'" A "launch-type':null}}}");
    (void)world_patch(w, claim(), "c", NULL, "{'metadata':{'labels':{'look':'again'}}}");
    (void)world_until(w, sandbox(), object_name(s), "started warm", is_warm, NULL);
    suite_until_count(w, sandbox(), 3);
    assert_string_equal(object_name(suite_sandbox_of(w, until_ready(w))), object_name(s));
}

/* TestVerifySandboxCandidate_NamespaceIsolation, TestGetNamespacedWarmPoolName: a pool of the same name elsewhere is another. */
static void other_namespaces_have_pools_of_their_own(void **state)
{
    struct world *w = *state;
    char here[sizeof w->namespace];
    struct object *s;

    (void)snprintf(here, sizeof here, "%s", w->namespace);
    (void)snprintf(w->namespace, sizeof w->namespace, "%.50s-b", here);
    (void)world_create(w, kind_find("", "v1", "namespaces"), "{'metadata':{'name':'%s'}}",
                       w->namespace);
    suite_make_template(w, "");
    suite_make_pool(w, 2);
    suite_until_count(w, sandbox(), 2);
    (void)snprintf(w->namespace, sizeof w->namespace, "%s", here);
    suite_open_pool(w, 0, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until_ready(w));
    assert_string_equal(object_name(s), "c");
    (void)snprintf(w->namespace, sizeof w->namespace, "%.50s-b", here);
    assert_int_equal(world_count(w, sandbox(), A "warm-pool-sandbox", NULL), 2);
    world_delete(w, known_kinds()->pool, "p");
    (void)snprintf(w->namespace, sizeof w->namespace, "%s", here);
}

/* TestWarmPoolEventHandler_Delete_RemovesEntireQueue: nothing of a pool that is gone is given away. */
static void a_pool_that_is_gone_gives_nothing(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 3, "");
    world_delete(w, known_kinds()->pool, "p");
    suite_until_count(w, sandbox(), 0);
    suite_make_pool(w, 0);
    suite_make_claim(w, "c", "");
    assert_string_equal(object_name(suite_sandbox_of(w, until_ready(w))), "c");
}

/* ---- what is written ---- */

static const struct fault *count_patches(struct world *w, const struct kind *kind, const char *sub)
{
    return faults_add(w->faults, &(struct fault){ .verb = KUBE_PATCH,
                                                  .kind = kind,
                                                  .sub = sub,
                                                  .manager = CLAIMS,
                                                  .times = 1000,
                                                  .what = FAULT_FIRST });
}

static bool is_noted(struct world *w, const struct object *c, const void *arg)
{
    (void)w, (void)arg;
    return c && object_annotation(c, A "claim-first-ready-at");
}

/* TestDisableFlagsWarmAdoptionClaimWrites, TestInitializeAnnotationsRawPayload: no more writes than there is to say. */
static void a_warm_claim_is_few_writes(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        const struct fault *of_claim, *of_status, *of_sandbox;
        struct object *c;

        world_stop(w);
        w->config.has_no_claim_times = w->config.has_no_claim_events = i == 1;
        world_start(w);
        if (i == 0)
            suite_open_pool(w, 1, "");
        suite_until_full(w, 1);
        of_claim = count_patches(w, claim(), NULL);
        of_status = count_patches(w, claim(), "status");
        of_sandbox = count_patches(w, sandbox(), NULL);
        suite_make_claim(w, "c", "");
        c = until_ready(w);
        (void)world_until(w, claim(), "c", "noted", is_noted, NULL);
        world_idle(w, 20);
        assert_true(1000 - of_claim->times <= 2); /* the lock, the note of the first readiness */
        assert_true(1000 - of_status->times <= 2);
        assert_int_equal(1000 - of_sandbox->times, 1);
        assert_int_equal(object_annotation(c, A "controller-first-observed-at") != NULL, i == 0);
        suite_until_count(w, known_kinds()->event, 1); /* of the first one */
        world_delete(w, claim(), "c");
        world_until_gone(w, claim(), "c");
        faults_clear(w->faults);
    }
}

static bool is_tracked(const struct object *o)
{
    return json_get(object_meta(o), "managedFields") != NULL;
}

static struct object *apply_claim(struct world *w, const char *name)
{
    char body[256];

    (void)snprintf(body, sizeof body,
                   "{'apiVersion':'extensions." A
                   "v1beta1','kind':'SandboxClaim','metadata':{'name':"
                   "'%s'},'spec':{'warmPoolRef':{'name':'p'}}}",
                   name);
    return world_call(w,
                      &(struct kube_request){ .verb = KUBE_PATCH,
                                              .kind = claim(),
                                              .namespace = w->namespace,
                                              .name = name,
                                              .patch = KUBE_PATCH_APPLY,
                                              .manager = "tester",
                                              .body = span_cstr(test_quoted(body)) },
                      NULL);
}

/* Nobody asks who wrote which field of what only we write; whoever applies a claim goes on applying it. */
static void only_who_applies_is_kept_book_of(void **state)
{
    struct world *w = *state;
    struct object *c;

    world_stop(w);
    w->config.forgets_fields = true;
    world_start(w);
    suite_open_pool(w, 2, "");
    suite_until_full(w, 2);
    suite_make_claim(w, "c", "");
    (void)until_ready(w);
    c = world_until(w, claim(), "c", "noted", is_noted, NULL);
    assert_false(is_tracked(c));
    assert_false(is_tracked(suite_sandbox_of(w, c)));

    (void)apply_claim(w, "d");
    (void)world_until_condition(w, claim(), "d", "Ready", SUITE_READY);
    c = world_until(w, claim(), "d", "noted", is_noted, NULL);
    assert_true(is_tracked(c));
    assert_false(is_tracked(suite_sandbox_of(w, c)));
    (void)apply_claim(w, "d"); /* and meets nobody in its way */
}

/* What the claims' queue was given so far. */
static uint64_t looks(struct world *w)
{
    struct queue_stats stats;

    for (size_t i = 0; controller_queue(w->controller, i); i++) {
        queue_stats(controller_queue(w->controller, i), &stats);
        if (strcmp(stats.name, "sandboxclaim") == 0)
            return stats.adds;
    }
    fail_msg("there is no queue of claims");
    return 0;
}

/* Until nobody has looked at a claim, nor written one or a pool, for a while. */
static void until_quiet(struct world *w)
{
    uint64_t before = 0, now = 1;

    for (int i = 0; i < 100 && now != before; i++) {
        before = now;
        world_idle(w, 150); /* the pool's status may come late */
        now = looks(w) + object_version(world_get(w, claim(), "c")) +
              object_version(world_get(w, known_kinds()->pool, "p"));
    }
}

/* TestSandboxStatusRelevantChange: a claim looks at what it shows of its sandbox, and at nothing else. */
static void only_what_it_shows_wakes_a_claim(void **state)
{
    struct world *w = *state;
    struct object *s;
    uint64_t before;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until_ready(w));
    (void)world_until(w, claim(), "c", "noted", is_noted, NULL);
    suite_until_full(w, 1);
    until_quiet(w);
    before = looks(w);
    (void)world_patch(w, sandbox(), object_name(s), NULL, "{'metadata':{'labels':{'x':'y'}}}");
    world_idle(w, 50);
    assert_int_equal(looks(w), before);
    (void)world_patch(
        w, known_kinds()->pod, object_name(s), "status",
        "{'status':{'podIP':'127.1.0.1','podIPs':[{'ip':'127.1.0.1'},{'ip':'fd00::1'}]}}");
    for (int i = 0; i < 5000 && looks(w) == before; i++)
        world_idle(w, 2);
    assert_true(looks(w) > before);
}

/* Until the gauge of all sandboxes has so many that are this. */
static void until_stock(struct world *w, const char *rest, uint64_t want)
{
    char name[512];

    (void)snprintf(name, sizeof name, "agent_sandboxes{namespace=\"%s\",%s", w->namespace, rest);
    for (int i = 0; i < 5000 && world_metric(w, name) != want; i++)
        world_idle(w, 2);
    assert_int_equal(world_metric(w, name), want);
}

/* TestSandboxClaimCreationMetric; the collector's cases: each sandbox is counted once, by what it is now. */
static void sandboxes_are_counted_by_what_they_are(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 2, "");
    suite_make_claim(w, "c", "");
    (void)until_ready(w);
    suite_until_full(w, 2);
    (void)world_create(
        w, sandbox(),
        "{'metadata':{'name':'s','labels':{'" A "created-by':'somebody'}},'spec':{"
        "'operatingMode':'Suspended','podTemplate':{'spec':{'containers':[{'name':'c',"
        "'image':'i'}]}}}}");
    (void)world_until_condition(w, sandbox(), "s", "Ready", "False SandboxSuspended");
    until_stock(w,
                "ready_condition=\"true\",expired=\"false\",launch_type=\"warm\","
                "sandbox_template=\"t\",owned_by=\"SandboxWarmPool\",created_by="
                "\"controller\"}",
                2);
    until_stock(w,
                "ready_condition=\"true\",expired=\"false\",launch_type=\"warm\","
                "sandbox_template=\"t\",owned_by=\"SandboxClaim\",created_by="
                "\"unknown\"}",
                1);
    until_stock(w,
                "ready_condition=\"false\",expired=\"false\",launch_type=\"cold\","
                "sandbox_template=\"unknown\",owned_by=\"None\",created_by=\"unknown\"}",
                1);
    assert_int_equal(world_metric(w, "agent_sandbox_claim_creation_total"), 1);
}

/* TestSandboxClaimAdoptionCacheLagPreservesFinalizedStatus, …FreshAdoptionStaleCacheKeepsFinalizedStatus: who looks at it first
 * after a restart finds nothing to write. */
static void a_second_look_writes_nothing(void **state)
{
    struct world *w = *state;
    uint64_t version, pool;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", "");
    (void)until_ready(w);
    (void)world_until(w, claim(), "c", "noted", is_noted, NULL);
    suite_until_full(w, 1);
    until_quiet(w);
    version = object_version(world_get(w, claim(), "c"));
    pool = object_version(world_get(w, known_kinds()->pool, "p"));
    world_stop(w);
    world_start(w);
    world_idle(w, 50);
    assert_int_equal(object_version(world_get(w, claim(), "c")), version);
    assert_int_equal(object_version(world_get(w, known_kinds()->pool, "p")), pool);
}

int suite_adopt_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(an_assignment_is_completed_without_an_address),
        SUITE_TEST(the_older_label_becomes_an_annotation),
        SUITE_TEST(a_bound_claim_takes_no_other),
        SUITE_TEST(other_namespaces_have_pools_of_their_own),
        SUITE_TEST(a_pool_that_is_gone_gives_nothing),
        SUITE_TEST(a_warm_claim_is_few_writes),
        SUITE_TEST(only_who_applies_is_kept_book_of),
        SUITE_TEST(only_what_it_shows_wakes_a_claim),
        SUITE_TEST(a_second_look_writes_nothing),
        SUITE_TEST(sandboxes_are_counted_by_what_they_are),
    };

    return cmocka_run_group_tests_name("controller/adoption", tests, NULL, NULL);
}
