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
#define READY     "True DependenciesReady Pod is Ready"

static const struct kind *claim(void)
{
    return known_kinds()->claim;
}

static const struct kind *sandbox(void)
{
    return known_kinds()->sandbox;
}

static bool is_full(struct world *w, const struct object *o, const void *arg)
{
    const int64_t *want = arg;
    int64_t ready;

    (void)w;
    return o && json_i64(object_at(o, "status.readyReplicas"), &ready) && ready == *want;
}

static void until_full(struct world *w, int64_t n)
{
    (void)world_until(w, known_kinds()->pool, "p", "full", is_full, &n);
}

static void open_pool(struct world *w, int64_t n)
{
    (void)world_create(w, known_kinds()->template,
                       "{'metadata':{'name':'t'},'spec':{'podTemplate':{'spec':{'containers':[{"
                       "'name':'c','image':'i'}]}}}}");
    (void)world_create(w, known_kinds()->pool,
                       "{'metadata':{'name':'p'},'spec':{'replicas':%d,'sandboxTemplateRef':{"
                       "'name':'t'}}}",
                       (int)n);
    until_full(w, n);
}

static void make_claim(struct world *w)
{
    (void)world_create(w, claim(), "{'metadata':{'name':'c'},'spec':{'warmPoolRef':{'name':'p'}}}");
}

/* Ready, with a sandbox that is there, is its own and is not the one that `arg` names. */
static bool is_served(struct world *w, const struct object *c, const void *arg)
{
    const char *name = c ? object_text(c, "status.sandbox.name") : NULL;
    struct object *s;

    if (!name || !suite_has_condition(c, "Ready", READY) || (arg && strcmp(arg, name) == 0))
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

/* The same, and all that was to go wrong has. */
static const char *until_served_after_all(struct world *w, const char *other_than)
{
    const char *name = until_served(w, other_than);

    assert_int_equal(faults_left(w->faults), 0);
    return name;
}

/* ---- what others do meanwhile ---- */

static void on_done(void *ctx, const struct kube_answer *answer)
{
    (void)ctx, (void)answer;
}

struct meddler {
    struct world *w;
    char name[64]; /* of the object that was met first */
};

static void meet(struct meddler *m, const struct kube_request *rq)
{
    if (!m->name[0])
        (void)snprintf(m->name, sizeof m->name, "%s", rq->name);
}

/* Somebody writes the same object first: the call behind it meets a real conflict. */
static void write_first(void *ctx, const struct kube_request *rq)
{
    static unsigned serial;
    struct meddler *m = ctx;
    char body[96];

    meet(m, rq);
    (void)snprintf(body, sizeof body, "{\"metadata\":{\"annotations\":{\"meddled\":\"%u\"}}}",
                   ++serial);
    (void)kube_call_start(m->w->client,
                          &(struct kube_request){ .verb = KUBE_PATCH,
                                                  .kind = rq->kind,
                                                  .namespace = rq->namespace,
                                                  .name = rq->name,
                                                  .patch = KUBE_PATCH_MERGE,
                                                  .body = span_cstr(body) },
                          on_done, NULL);
}

static void delete_first(void *ctx, const struct kube_request *rq)
{
    struct meddler *m = ctx;

    meet(m, rq);
    (void)kube_call_start(
        m->w->client,
        &(struct kube_request){
            .verb = KUBE_DELETE, .kind = rq->kind, .namespace = rq->namespace, .name = rq->name },
        on_done, NULL);
}

static void add_patch_fault(struct world *w, const struct kind *kind, const char *manager,
                            struct fault f)
{
    f.verb = KUBE_PATCH;
    f.kind = kind;
    f.manager = manager;
    faults_add(w->faults, &f);
}

/* TestSandboxClaimAdoptionConflictRetriedInPass: the lock meets a conflict. */
static void the_lock_meets_a_conflict(void **state)
{
    struct world *w = *state;
    struct meddler m = { .w = w };

    open_pool(w, 2);
    add_patch_fault(
        w, claim(), CLAIMS,
        (struct fault){ .times = 2, .what = FAULT_FIRST, .first = write_first, .ctx = &m });
    make_claim(w);
    (void)until_served_after_all(w, NULL);
    until_full(w, 2);
}

/* TestSandboxClaimAdoptionCompletionConflictDoesNotSwitchCandidates */
static void the_adoption_meets_a_conflict(void **state)
{
    struct world *w = *state;
    struct meddler m = { .w = w };

    open_pool(w, 2);
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 1, .what = FAULT_FIRST, .first = write_first, .ctx = &m });
    make_claim(w);
    assert_string_equal(until_served_after_all(w, NULL), m.name);
    until_full(w, 2);
}

/* TestSandboxClaimAdoptionCompletionExhaustedContentionKeepsReference */
static void the_adoption_meets_many_conflicts(void **state)
{
    struct world *w = *state;
    struct meddler m = { .w = w };

    open_pool(w, 2);
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 7, .what = FAULT_FIRST, .first = write_first, .ctx = &m });
    make_claim(w);
    /* Over a network some of the writes come too late to be in the way. */
    assert_string_equal(until_served(w, NULL), m.name);
    assert_true(w->suite->is_remote || faults_left(w->faults) == 0);
    until_full(w, 2);
}

/* TestSandboxClaimAssignedSandboxDeletedTerminalCleanup */
static void the_candidate_is_deleted_meanwhile(void **state)
{
    struct world *w = *state;
    struct meddler m = { .w = w };

    open_pool(w, 2);
    add_patch_fault(
        w, sandbox(), CLAIMS,
        (struct fault){ .times = 1, .what = FAULT_FIRST, .first = delete_first, .ctx = &m });
    make_claim(w);
    (void)until_served_after_all(w, m.name);
    until_full(w, 2);
}

/* TestSandboxClaimAdoptionCacheLagRepatchesIdempotently: it was done, and nobody heard of it. */
static void answers_to_an_adoption_are_lost(void **state)
{
    struct world *w = *state;

    open_pool(w, 3);
    add_patch_fault(w, claim(), CLAIMS, (struct fault){ .times = 1, .what = FAULT_LOST });
    add_patch_fault(w, sandbox(), CLAIMS, (struct fault){ .times = 1, .what = FAULT_LOST });
    add_patch_fault(w, claim(), CLAIMS,
                    (struct fault){ .times = 1, .what = FAULT_LOST, .sub = "status" });
    make_claim(w);
    (void)until_served_after_all(w, NULL);
    suite_until_count(w, sandbox(), 4);
}

/* TestSandboxClaimReconcile_PatchErrorPreservesStatus */
static void refusals_are_told_and_overcome(void **state)
{
    struct world *w = *state;

    open_pool(w, 1);
    add_patch_fault(w, sandbox(), CLAIMS,
                    (struct fault){ .times = 3, .what = FAULT_REFUSED, .code = 500 });
    make_claim(w);
    (void)world_until_condition(w, claim(), "c", "Ready",
                                "False ReconcilerError Error seen: cannot patch");
    (void)until_served_after_all(w, NULL);
}

/* TestCreateSandboxToleratesAlreadyExists: a cold sandbox was made, and nobody heard of it. */
static void the_answer_to_a_create_is_lost(void **state)
{
    struct world *w = *state;

    open_pool(w, 0);
    faults_add(w->faults, &(struct fault){ .verb = KUBE_CREATE,
                                           .kind = sandbox(),
                                           .manager = CLAIMS,
                                           .times = 1,
                                           .what = FAULT_LOST });
    make_claim(w);
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

    faults_add(w->faults, &f);
    f.what = FAULT_REFUSED;
    f.code = 500;
    f.times = 2;
    faults_add(w->faults, &f);
    for (int i = 0; i < 2; i++) {
        (void)world_create(w, sandbox(),
                           "{'metadata':{'name':'s%d'},'spec':{'podTemplate':{'spec':{'containers':"
                           "[{'name':'c','image':'i'}]}}}}",
                           i);
        (void)world_until_condition(w, sandbox(), i ? "s1" : "s0", "Ready", READY);
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
    struct meddler m = { .w = w };

    faults_add(w->faults, &f);
    f.what = FAULT_LOST;
    faults_add(w->faults, &f);
    open_pool(w, 8);
    suite_until_count(w, sandbox(), 8);
    f = (struct fault){ .verb = KUBE_DELETE,
                        .kind = sandbox(),
                        .manager = POOLS,
                        .times = 2,
                        .what = FAULT_FIRST,
                        .first = delete_first,
                        .ctx = &m };
    faults_add(w->faults, &f);
    f.what = FAULT_REFUSED;
    f.code = 500;
    faults_add(w->faults, &f);
    (void)world_patch(w, known_kinds()->pool, "p", NULL, "{'spec':{'replicas':2}}");
    suite_until_count(w, sandbox(), 2);
    until_full(w, 2);
    assert_int_equal(faults_left(w->faults), 0);
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
    };

    return cmocka_run_group_tests_name("controller/faults", tests, NULL, NULL);
}
