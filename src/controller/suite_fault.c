#include "controller/suite_impl.h"

#include "controller/faults.h"
#include "controller/names.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A         "agents.x-k8s.io/"
#define CLAIMS    "sandboxclaim-controller"
#define POOLS     "sandboxwarmpool-controller"
#define SANDBOXES "sandbox-controller"

static const struct kind *claim(void)
{
    return known_kinds()->claim;
}

static const struct kind *sandbox(void)
{
    return known_kinds()->sandbox;
}

/* Ready, with a sandbox that is there, is its own and is not the one that `arg` names. */
static bool is_served(struct world *w, const struct object *c, const void *arg)
{
    const char *name = c ? object_text(c, "status.sandbox.name") : NULL;
    struct object *s;

    if (!name || !suite_has_condition(c, "Ready", SUITE_READY) || (arg && strcmp(arg, name) == 0))
        return false;
    s = world_get(w, sandbox(), name);
    return s && ownership_of(s, c) == OWNED;
}

/* The claim is served, by one sandbox, and no other is its own. Returns the name. */
static const char *until_served(struct world *w, const char *other_than)
{
    struct object *c = world_until(w, claim(), "c", "served", is_served, other_than);

    assert_int_equal(world_count(w, sandbox(), A "claim-uid", NULL), 1);
    return object_text(c, "status.sandbox.name");
}

static bool is_noted(struct world *w, const struct object *c, const void *arg)
{
    (void)w, (void)arg;
    return c && object_annotation(c, A "claim-first-ready-at");
}

/* The same, and all that was to go wrong has. */
static const char *until_served_after_all(struct world *w, const char *other_than)
{
    const char *name = until_served(w, other_than);

    assert_int_equal(faults_left(w->faults), 0);
    return name;
}

static void add_patch_fault(struct world *w, const struct kind *kind, const char *manager,
                            struct fault f)
{
    f.verb = KUBE_PATCH;
    f.kind = kind;
    f.manager = manager;
    (void)faults_add(w->faults, &f);
}

/* TestSandboxClaimAdoptionConflictRetriedInPass: the lock meets a conflict. */
static void the_lock_meets_a_conflict(void **state)
{
    struct world *w = *state;
    struct suite_meddler m = { .w = w };

    suite_open_pool(w, 2, "");
    add_patch_fault(
        w, claim(), CLAIMS,
        (struct fault){ .times = 2, .what = FAULT_FIRST, .first = suite_write_first, .ctx = &m });
    suite_make_claim(w, "c", "");
    (void)until_served_after_all(w, NULL);
    suite_until_full(w, 2);
}

/* TestSandboxClaimAdoptionCompletionConflictDoesNotSwitchCandidates */
static void the_adoption_meets_a_conflict(void **state)
{
    struct world *w = *state;
    struct suite_meddler m = { .w = w };

    suite_open_pool(w, 2, "");
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 1, .what = FAULT_FIRST, .first = suite_write_first, .ctx = &m });
    suite_make_claim(w, "c", "");
    assert_string_equal(until_served_after_all(w, NULL), m.name);
    suite_until_full(w, 2);
}

/* TestSandboxClaimAdoptionCompletionExhaustedContentionKeepsReference */
static void the_adoption_meets_many_conflicts(void **state)
{
    struct world *w = *state;
    struct suite_meddler m = { .w = w };

    suite_open_pool(w, 2, "");
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 7, .what = FAULT_FIRST, .first = suite_write_first, .ctx = &m });
    suite_make_claim(w, "c", "");
    /* Over a network some of the writes come too late to be in the way. */
    assert_string_equal(until_served(w, NULL), m.name);
    assert_true(w->suite->is_remote || faults_left(w->faults) == 0);
    suite_until_full(w, 2);
}

/* TestSandboxClaimAssignedSandboxDeletedTerminalCleanup */
static void the_candidate_is_deleted_meanwhile(void **state)
{
    struct world *w = *state;
    struct suite_meddler m = { .w = w };

    suite_open_pool(w, 2, "");
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 1, .what = FAULT_FIRST, .first = suite_delete_first, .ctx = &m });
    suite_make_claim(w, "c", "");
    (void)until_served_after_all(w, m.name);
    suite_until_full(w, 2);
}

/* TestSandboxClaimAdoptionCacheLagRepatchesIdempotently: it was done, and nobody heard of it. */
static void answers_to_an_adoption_are_lost(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 3, "");
    add_patch_fault(w, claim(), CLAIMS, (struct fault){ .times = 1, .what = FAULT_LOST });
    add_patch_fault(w, sandbox(), CLAIMS, (struct fault){ .times = 1, .what = FAULT_LOST });
    add_patch_fault(w, claim(), CLAIMS,
                    (struct fault){ .times = 1, .what = FAULT_LOST, .sub = "status" });
    suite_make_claim(w, "c", "");
    (void)until_served_after_all(w, NULL);
    suite_until_count(w, sandbox(), 4);
}

/* TestSandboxClaimReconcile_PatchErrorPreservesStatus */
static void refusals_are_told_and_overcome(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, "");
    add_patch_fault(w, sandbox(), CLAIMS,
                    (struct fault){ .times = 3, .what = FAULT_REFUSED, .code = 500 });
    suite_make_claim(w, "c", "");
    (void)world_until_condition(w, claim(), "c", "Ready",
                                "False ReconcilerError Error seen: cannot patch");
    (void)until_served_after_all(w, NULL);
}

/* TestCreateSandboxToleratesAlreadyExists: a cold sandbox was made, and nobody heard of it. */
static void the_answer_to_a_create_is_lost(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 0, "");
    (void)faults_add(w->faults, &(struct fault){ .verb = KUBE_CREATE,
                                                 .kind = sandbox(),
                                                 .manager = CLAIMS,
                                                 .times = 1,
                                                 .what = FAULT_LOST });
    suite_make_claim(w, "c", "");
    assert_string_equal(until_served_after_all(w, NULL), "c");
}

/* A Pod was made, and nobody heard of it; then one could not be made at all. */
static void pods_are_made_once(void **state)
{
    struct world *w = *state;
    struct fault f = { .verb = KUBE_CREATE,
                       .kind = known_kinds()->pod,
                       .manager = SANDBOXES,
                       .times = 1,
                       .what = FAULT_LOST };

    (void)faults_add(w->faults, &f);
    f.what = FAULT_REFUSED;
    f.code = 500;
    f.times = 2;
    (void)faults_add(w->faults, &f);
    for (int i = 0; i < 2; i++) {
        (void)world_create(w, sandbox(),
                           "{'metadata':{'name':'s%d'},'spec':{'podTemplate':{'spec':{'containers':"
                           "[{'name':'c','image':'i'}]}}}}",
                           i);
        (void)world_until_condition(w, sandbox(), i ? "s1" : "s0", "Ready", SUITE_READY);
    }
    assert_int_equal(world_count(w, known_kinds()->pod, NULL, NULL), 2);
    assert_int_equal(faults_left(w->faults), 0);
}

/* TestSlowStartBatch, TestReconcilePool_ExcessDeleteNotFoundLowersExpectation: a server that refuses, and forgets to answer. */
static void pools_get_over_faults(void **state)
{
    struct world *w = *state;
    struct fault f = { .verb = KUBE_CREATE,
                       .kind = sandbox(),
                       .manager = POOLS,
                       .times = 3,
                       .what = FAULT_REFUSED,
                       .code = 500 };
    struct suite_meddler m = { .w = w };

    (void)faults_add(w->faults, &f);
    f.what = FAULT_LOST;
    (void)faults_add(w->faults, &f);
    suite_open_pool(w, 8, "");
    suite_until_count(w, sandbox(), 8);
    f = (struct fault){ .verb = KUBE_DELETE,
                        .kind = sandbox(),
                        .manager = POOLS,
                        .times = 2,
                        .what = FAULT_FIRST,
                        .first = suite_delete_first,
                        .ctx = &m };
    (void)faults_add(w->faults, &f);
    f.what = FAULT_REFUSED;
    f.code = 500;
    (void)faults_add(w->faults, &f);
    (void)world_patch(w, known_kinds()->pool, "p", NULL, "{'spec':{'replicas':2}}");
    suite_until_count(w, sandbox(), 2);
    suite_until_full(w, 2);
    assert_int_equal(faults_left(w->faults), 0);
}

/* ---- what is counted, once ---- */

#define LATENCIES "agent_sandbox_claim_controller_startup_latency_ms_count"

/* TestSandboxClaimStaleStatusPatchConflictDroppedWithoutMetrics: the pass ends there, another tells it, one of them counts. */
static void the_status_meets_a_conflict(void **state)
{
    struct world *w = *state;
    struct suite_meddler m = { .w = w };

    suite_open_pool(w, 1, "");
    add_patch_fault(w, claim(), CLAIMS,
                    (struct fault){ .times = 1,
                                    .what = FAULT_FIRST,
                                    .first = suite_write_first,
                                    .ctx = &m,
                                    .sub = "status" });
    suite_make_claim(w, "c", "");
    (void)until_served_after_all(w, NULL);
    (void)world_until(w, claim(), "c", "noted", is_noted, NULL);
    assert_int_equal(world_metric(w, LATENCIES), 1);
    assert_int_equal(world_metric(w, "agent_sandbox_claim_creation_total"), 1);
}

/* TestReconcilePropagatesAnnotationPatchError, TestRecordCreationLatencyMetric_ClaimFirstReadyAnnotation: counted, not noted;
 * then noted, and not counted again; nor when it is ready once more later. */
static void the_note_of_readiness_fails(void **state)
{
    struct world *w = *state;
    const char *name;

    suite_open_pool(w, 1, "");
    add_patch_fault(w, claim(), CLAIMS, (struct fault){ .times = 1, .what = FAULT_FIRST });
    add_patch_fault(w, claim(), CLAIMS,
                    (struct fault){ .times = 1, .what = FAULT_REFUSED, .code = 500 });
    suite_make_claim(w, "c", "");
    name = until_served(w, NULL);
    (void)world_until(w, claim(), "c", "noted", is_noted, NULL);
    assert_int_equal(faults_left(w->faults), 0);
    (void)world_patch(w, sandbox(), name, NULL, "{'spec':{'operatingMode':'Suspended'}}");
    (void)world_until_condition(w, claim(), "c", "Ready", "False SandboxSuspended");
    (void)world_patch(w, sandbox(), name, NULL, "{'spec':{'operatingMode':'Running'}}");
    (void)until_served(w, NULL);
    world_idle(w, 20);
    assert_int_equal(world_metric(w, LATENCIES), 1);
}

/* TestSandboxClaimAdoptionCleanupFailureKeepsReferenceAndRetries: the candidate is gone, and that cannot be noted at once. */
static void the_cleanup_fails(void **state)
{
    struct world *w = *state;
    struct suite_meddler m = { .w = w };

    suite_open_pool(w, 2, "");
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 1, .what = FAULT_FIRST, .first = suite_delete_first, .ctx = &m });
    add_patch_fault(w, claim(), CLAIMS, (struct fault){ .times = 1, .what = FAULT_FIRST });
    add_patch_fault(w, claim(), CLAIMS,
                    (struct fault){ .times = 1, .what = FAULT_REFUSED, .code = 500 });
    suite_make_claim(w, "c", "");
    (void)until_served_after_all(w, m.name);
    suite_until_full(w, 2);
}

/* TestPodScheduledConditionUnknownWhenPodLookupFails: nobody knows of a Pod, which is not the same as that there is none. */
static void a_pod_that_cannot_be_made_is_unknown(void **state)
{
    struct world *w = *state;
    struct fault f = { .verb = KUBE_CREATE,
                       .kind = known_kinds()->pod,
                       .manager = SANDBOXES,
                       .times = 1000,
                       .what = FAULT_REFUSED,
                       .code = 500 };
    struct object *s = NULL;

    (void)faults_add(w->faults, &f);
    s = world_create(
        w, sandbox(),
        "{'metadata':{'name':'s'},'spec':{'podTemplate':{'spec':{'containers':[{'name':"
        "'c','image':'i'}]}}}}");
    (void)world_until_condition(w, sandbox(), "s", "PodScheduled",
                                "Unknown PodSchedulingUnknown Pod state is unknown. Pod scheduling "
                                "cannot be determined");
    (void)world_until_condition(w, sandbox(), "s", "Ready",
                                "False ReconcilerError Error seen: cannot create Pod");
    assert_int_equal(suite_until_warned(w, s, "ReconcilerError", "cannot create Pod"), 1);
    faults_clear(w->faults);
    (void)world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY);
    (void)world_until_condition(w, sandbox(), "s", "PodScheduled", "True");
}

/* TestSlowStartBatch: one, two, four, ...; the first round with a failure is the last. Of 14 the sixth fails: seven are asked for,
 * six are made. */
static void creates_start_slowly(void **state)
{
    struct world *w = *state;
    struct fault f = { .verb = KUBE_CREATE, .kind = sandbox(), .manager = POOLS, .code = 500 };
    const struct fault *refused;

    f.what = FAULT_FIRST, f.times = 5;
    (void)faults_add(w->faults, &f);
    f.what = FAULT_REFUSED, f.times = 1;
    (void)faults_add(w->faults, &f);
    f.what = FAULT_FIRST, f.times = 1;
    (void)faults_add(w->faults, &f);
    f.what = FAULT_REFUSED, f.times = 1000;
    refused = faults_add(w->faults, &f);
    suite_make_template(w, "");
    suite_make_pool(w, 14);
    suite_until_full(w, 6);
    assert_int_equal(world_count(w, sandbox(), NULL, NULL), 6);
    assert_true(refused->times < 1000); /* later passes try one each */
    faults_clear(w->faults);
    suite_until_full(w, 14);
    suite_until_count(w, sandbox(), 14);
}

int suite_fault_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(the_lock_meets_a_conflict),
        SUITE_TEST(the_adoption_meets_a_conflict),
        SUITE_TEST(the_adoption_meets_many_conflicts),
        SUITE_TEST(the_candidate_is_deleted_meanwhile),
        SUITE_TEST(answers_to_an_adoption_are_lost),
        SUITE_TEST(refusals_are_told_and_overcome),
        SUITE_TEST(the_answer_to_a_create_is_lost),
        SUITE_TEST(pods_are_made_once),
        SUITE_TEST(pools_get_over_faults),
        SUITE_TEST(the_status_meets_a_conflict),
        SUITE_TEST(the_note_of_readiness_fails),
        SUITE_TEST(the_cleanup_fails),
        SUITE_TEST(a_pod_that_cannot_be_made_is_unknown),
        SUITE_TEST(creates_start_slowly),
    };

    return cmocka_run_group_tests_name("controller/faults", tests, NULL, NULL);
}
