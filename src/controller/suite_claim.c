#include "controller/suite_impl.h"

#include "controller/condition.h"
#include "controller/names.h"
#include "controller/testobject.h"
#include "kube/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define A   "agents.x-k8s.io/"
#define POD "'podTemplate':{'spec':{'containers':[{'name':'c','image':'i'}]}}"

static const struct kind *claim(void)
{
    return known_kinds()->claim;
}

static struct object *until(struct world *w, const char *name, const char *text)
{
    return world_until_condition(w, claim(), name, "Ready", text);
}

static void until_events(struct world *w, size_t n)
{
    suite_until_count(w, known_kinds()->event, n);
}

static void until_sandboxes(struct world *w, size_t n)
{
    suite_until_count(w, known_kinds()->sandbox, n);
}

static bool is_out_of_the_pool(struct world *w, const struct object *pod, const void *arg)
{
    (void)w, (void)arg;
    return pod && !object_label(pod, A "warm-pool-sandbox");
}

/* TestSandboxClaimSandboxAdoption; TestWarmPoolSandboxWatcher; TestSandboxProvisionEvent: adopted, the pool is refilled. */
static void claim_takes_a_waiting_sandbox(void **state)
{
    struct world *w = *state;
    struct object *c, *s, *pod;

    suite_open_pool(w, 2, "");
    suite_make_claim(w, "c", "");
    c = until(w, "c", SUITE_READY);
    s = suite_sandbox_of(w, c);
    assert_string_equal(object_label(s, A "launch-type"), "warm");
    assert_string_equal(object_label(s, A "claim-uid"), object_uid(c));
    assert_null(object_label(s, A "warm-pool-sandbox"));
    assert_null(object_label(s, A "sandbox-template-hash"));
    assert_null(object_label(s, A "created-by"));
    assert_string_equal(object_annotation(s, A "pod-name"), object_name(s));
    assert_string_equal(object_annotation(c, A "sandbox-name"), object_name(s));
    assert_non_null(object_annotation(c, A "controller-first-observed-at"));
    assert_int_equal(json_count(object_at(c, "status.sandbox.podIPs")), 1);
    pod = world_until(w, known_kinds()->pod, object_name(s), "out of the pool", is_out_of_the_pool,
                      NULL);
    assert_null(object_annotation(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict"));
    suite_until_full(w, 2);
    until_sandboxes(w, 3);
    until_events(w, 1);
    world_delete(w, claim(), "c");
    world_until_gone(w, known_kinds()->sandbox, object_name(s));
}

/* TestSandboxClaimReconcile: cold create, secure defaults. */
static void claim_gets_a_new_sandbox(void **state)
{
    struct world *w = *state;
    struct object *s, *pod;

    suite_open_pool(w, 0, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    assert_string_equal(object_name(s), "c");
    assert_string_equal(object_label(s, A "launch-type"), "cold");
    assert_string_equal(object_annotation(s, A "sandbox-template-ref"), "t");
    assert_string_equal(object_text(s, "spec.podTemplate.spec.dnsPolicy"), "None");
    pod = world_get(w, known_kinds()->pod, "c");
    assert_null(object_label(pod, A "claim-uid"));
    assert_string_equal(object_label(pod, A "sandbox-template-ref-hash"), "f10c3da3");
}

/* TestSandboxClaimReconcile: TemplateNotFound, WarmPoolNotFound; TestSandboxClaimRecoveryWhenTemplateCreated. */
static void claim_waits_for_pool_and_template(void **state)
{
    struct world *w = *state;

    suite_make_claim(w, "c", "");
    (void)until(w, "c", "False WarmPoolNotFound SandboxWarmPool \"p\" not found");
    until_events(w, 1);
    (void)world_patch(w, claim(), "c", NULL, "{'metadata':{'labels':{'x':'y'}}}");
    until_events(w, 1); /* once */
    suite_make_pool(w, 0);
    (void)until(w, "c", "False TemplateNotFound SandboxTemplate \"t\" not found");
    until_events(w, 3); /* the pool's too */
    suite_make_template(w, "");
    (void)until(w, "c", SUITE_READY);
}

/* Older claims: sandboxTemplateRef, with and without pools. */
static void older_claims(void **state)
{
    struct world *w = *state;
    const struct kind *k = claim();
    static const char *const wishes[] = { "", ",'warmpool':'none'" };
    struct object *s;

    if (w->suite->has_one_version)
        skip();
    suite_open_pool(w, 1, "");
    for (size_t i = 0; i < LEN(wishes); i++) {
        char name[8] = { 'o', (char)('0' + i), '\0' };
        struct kube_request rq = {
            .verb = KUBE_CREATE,
            .kind = k,
            .version = "v1alpha1",
            .namespace = w->namespace,
            .object = test_object(k,
                                  "{'metadata':{'name':'%s'},'spec':{'sandboxTemplateRef':{'name':"
                                  "'t'}%s}}",
                                  name, wishes[i]),
        };

        (void)world_call(w, &rq, NULL);
        s = suite_sandbox_of(w, until(w, name, SUITE_READY));
        assert_string_equal(object_label(s, A "launch-type"), i == 0 ? "warm" : "cold");
    }
    (void)world_call(w,
                     &(struct kube_request){
                         .verb = KUBE_CREATE,
                         .kind = k,
                         .version = "v1alpha1",
                         .namespace = w->namespace,
                         .object = test_object(k, "{'metadata':{'name':'x'},'spec':{"
                                                  "'sandboxTemplateRef':{'name':'gone'}}}"),
                     },
                     NULL);
    (void)until(w, "x", "False TemplateNotFound SandboxTemplate \"gone\" not found");
}

/* TestSandboxClaimReconcile: variables, and what the template allows. */
static void claim_with_variables(void **state)
{
    struct world *w = *state;
    struct object *s;

    suite_open_pool(w, 1, ",'envVarsInjectionPolicy':'Allowed'");
    suite_make_claim(w, "c", ",'env':[{'name':'A','value':'1'}]");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    assert_string_equal(object_name(s), "c");
    assert_non_null(
        strstr(test_text(object_thaw(s, NULL, test_edit())), "'env':[{'name':'A','value':'1'}]"));
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'envVarsInjectionPolicy':'Disallowed'}}");
    suite_make_claim(w, "d", ",'env':[{'name':'A','value':'1'}]");
    (void)until(w, "d", "False EnvVarsInjectionRejected environment variable injection rejected: ");
    assert_null(world_get(w, known_kinds()->sandbox, "d"));
}

/* TestSandboxClaimReconcile: additional metadata; invalid ones are final. */
static void claim_with_metadata(void **state)
{
    struct world *w = *state;
    struct object *s, *pod;

    suite_open_pool(w, 1, "");
    suite_make_claim(
        w, "c",
        ",'additionalPodMetadata':{'labels':{'sandbox.users.io/team':'x'},'annotations':{"
        "'note':'y'}}");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    pod = world_until(w, known_kinds()->pod, object_name(s), "out of the pool", is_out_of_the_pool,
                      NULL);
    assert_string_equal(object_label(pod, "sandbox.users.io/team"), "x");
    assert_string_equal(object_annotation(pod, "note"), "y");
    suite_make_claim(w, "d", ",'additionalPodMetadata':{'labels':{'team':'x'}}");
    (void)until(w, "d", "False InvalidMetadata invalid additionalPodMetadata: label \"team\"");
}

/* TestSandboxClaimReconcile: a sandbox of its name that is not its own. */
static void claim_does_not_take_a_stranger(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, "");
    (void)world_create(w, known_kinds()->sandbox, "{'metadata':{'name':'c'},'spec':{" POD "}}");
    suite_make_claim(w, "c", "");
    (void)until(w, "c",
                "False ReconcilerError Error seen: sandbox \"c\" is not controlled by claim \"c\". "
                "Please use a different claim name or delete the sandbox manually");
    world_delete(w, known_kinds()->sandbox, "c");
    (void)until(w, "c", SUITE_READY);
}

/* Every claim has one sandbox, every sandbox at most one claim. */
static void assert_one_each(struct world *w, unsigned claims)
{
    OWN_MEM char **seen = own_array(claims, sizeof *seen);
    char name[16];

    for (unsigned i = 0; i < claims; i++) {
        struct object *s;

        (void)snprintf(name, sizeof name, "c%u", i);
        s = suite_sandbox_of(w, until(w, name, SUITE_READY));
        for (unsigned j = 0; j < i; j++)
            assert_true(strcmp(seen[j], object_name(s)) != 0);
        seen[i] = (char *)(uintptr_t)object_name(s);
    }
}

static void make_claims(struct world *w, unsigned n)
{
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "c%u", i);
        suite_make_claim(w, name, "");
    }
}

static size_t count_owned(struct world *w, const char *launch)
{
    char labels[96];

    (void)snprintf(labels, sizeof labels, A "claim-uid," A "launch-type=%s", launch);
    return world_count(w, known_kinds()->sandbox, labels, NULL);
}

/* TestParallelSandboxClaimsWithSufficientWarmPool, …Insufficient; TestWarmPoolPodExclusivity. */
static void parallel_claims_with_enough(void **state)
{
    struct world *w = *state;
    unsigned wish = 25;

    suite_open_pool(w, wish, "");
    make_claims(w, 20);
    assert_one_each(w, 20);
    assert_int_equal(count_owned(w, "warm"), 20);
    suite_until_full(w, wish);
    until_sandboxes(w, 45);
}

static void parallel_claims_with_too_few(void **state)
{
    struct world *w = *state;
    unsigned wish = 5;

    suite_open_pool(w, wish, "");
    make_claims(w, 20);
    assert_one_each(w, 20);
    assert_true(count_owned(w, "warm") >= 5);
    suite_until_full(w, wish);
    until_sandboxes(w, 25);
}

/* The controllers end in the middle of adoptions, again and again. */
static void claims_survive_restarts(void **state)
{
    struct world *w = *state;
    unsigned wish = 10;

    suite_open_pool(w, wish, "");
    for (unsigned i = 0; i < 5; i++) {
        char name[16];

        for (unsigned j = 0; j < 4; j++) {
            (void)snprintf(name, sizeof name, "c%u", i * 4 + j);
            suite_make_claim(w, name, "");
        }
        world_stop(w);
        world_start(w);
    }
    assert_one_each(w, 20);
    suite_until_full(w, wish);
    until_sandboxes(w, 30);
}

static void set_lifecycle(struct world *w, const char *policy, int seconds)
{
    char text[TIME_TEXT_BYTES];

    (void)world_patch(w, claim(), "c", NULL,
                      "{'spec':{'lifecycle':{'shutdownPolicy':'%s','shutdownTime':'%s'}}}", policy,
                      kube_time_text(text, time(NULL) + seconds));
}

static bool is_going(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && object_is_deleting(o);
}

static bool has_no_sandbox(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && !object_at(o, "status.sandbox");
}

/* TestSandboxClaimCleanupPolicy */
static void claim_cleanup_policy(void **state)
{
    struct world *w = *state;
    struct object *s;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    set_lifecycle(w, "Retain", -1);
    (void)until(w, "c", "False ClaimExpired Claim expired. Sandbox cleanup initiated.");
    world_until_gone(w, known_kinds()->sandbox, object_name(s));
    (void)world_until(w, claim(), "c", "without a sandbox", has_no_sandbox, NULL);
    set_lifecycle(w, "Delete", -1);
    world_until_gone(w, claim(), "c");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    set_lifecycle(w, "DeleteForeground", -1);
    world_until_gone(w, claim(), "c");
    assert_null(world_get(w, known_kinds()->sandbox, object_name(s)));
}

/* TestSandboxClaimTTLAfterFinished, …TTLZeroRetainPreservesFinishedConditionDuringCleanup, …FinishedWithoutTTLIsRetained. */
static void claim_ttl_after_finished(void **state)
{
    struct world *w = *state;
    struct object *c, *s;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    (void)world_patch(w, known_kinds()->pod, object_name(s), "status",
                      "{'status':{'phase':'Succeeded'}}");
    c = world_until_condition(w, claim(), "c", "Finished", "True PodSucceeded");
    assert_true(suite_has_condition(c, "Ready", "False PodSucceeded Pod completed successfully"));
    world_idle(w, 30);
    assert_non_null(world_get(w, known_kinds()->sandbox, object_name(s)));
    (void)world_patch(w, claim(), "c", NULL,
                      "{'spec':{'lifecycle':{'ttlSecondsAfterFinished':0}}}");
    (void)until(w, "c", "False ClaimExpired");
    world_until_gone(w, known_kinds()->sandbox, object_name(s));
    c = world_until(w, claim(), "c", "without a sandbox", has_no_sandbox, NULL);
    assert_true(suite_has_condition(c, "Finished", "True PodSucceeded"));
}

/* TestSandboxClaimTTLDeleteForegroundAfterFinished, TestSandboxClaimDeleteForeground: the claim stays until its Pod is gone. */
static void claim_ttl_foreground(void **state)
{
    struct world *w = *state;
    struct object *s, *c;

    suite_open_pool(w, 1, "");
    suite_make_claim(
        w, "c", ",'lifecycle':{'shutdownPolicy':'DeleteForeground','ttlSecondsAfterFinished':0}");
    s = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    (void)world_patch(w, known_kinds()->pod, object_name(s), NULL,
                      "{'metadata':{'finalizers':['test/hold']}}");
    (void)world_patch(w, known_kinds()->pod, object_name(s), "status",
                      "{'status':{'phase':'Failed'}}");
    c = world_until(w, claim(), "c", "going", is_going, NULL);
    assert_true(suite_has_condition(c, "Ready", "False ClaimExpired"));
    assert_true(suite_has_condition(c, "Finished", "True PodFailed"));
    (void)world_until(w, known_kinds()->pod, object_name(s), "going", is_going, NULL);
    assert_non_null(world_get(w, claim(), "c"));
    (void)world_patch(w, known_kinds()->pod, object_name(s), NULL,
                      "{'metadata':{'finalizers':null}}");
    world_until_gone(w, claim(), "c");
    assert_null(world_get(w, known_kinds()->sandbox, object_name(s)));
}

/* A sandbox that is lost is replaced by another. */
static void claim_outlives_its_sandbox(void **state)
{
    struct world *w = *state;
    struct object *first, *c;

    suite_open_pool(w, 2, "");
    suite_make_claim(w, "c", "");
    first = suite_sandbox_of(w, until(w, "c", SUITE_READY));
    world_delete(w, known_kinds()->sandbox, object_name(first));
    world_until_gone(w, known_kinds()->sandbox, object_name(first));
    for (int i = 0; i < 2000; i++) {
        c = until(w, "c", SUITE_READY);
        if (strcmp(object_text(c, "status.sandbox.name"), object_name(first)) != 0)
            break;
        world_idle(w, 5);
    }
    assert_true(strcmp(object_name(suite_sandbox_of(w, c)), object_name(first)) != 0);
}

/* TestSandboxClaimClearsAssignedSandboxOwnedByAnotherClaim: a lock that says what is not. */
static void claim_forgets_a_wrong_assignment(void **state)
{
    struct world *w = *state;
    struct object *s, *c;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c0", "");
    s = suite_sandbox_of(w, until(w, "c0", SUITE_READY));
    (void)world_create(w, claim(),
                       "{'metadata':{'name':'c1','annotations':{'" A "sandbox-name':'%s'}},'spec':"
                       "{'warmPoolRef':{'name':'p'}}}",
                       object_name(s));
    c = until(w, "c1", SUITE_READY);
    assert_true(strcmp(object_text(c, "status.sandbox.name"), object_name(s)) != 0);
    assert_one_each(w, 2);
}

/* TestSandboxClaimPreventsAdoptionFromWrongWarmPool */
static void claim_keeps_to_its_pool(void **state)
{
    struct world *w = *state;
    struct object *other;

    suite_open_pool(w, 1, "");
    (void)world_create(
        w, known_kinds()->pool,
        "{'metadata':{'name':'q'},'spec':{'replicas':1,'sandboxTemplateRef':{'name':'t'}}}");
    suite_until_size(w, "q", 1);
    /* NameHash("q") */
    assert_int_equal(world_count(w, known_kinds()->sandbox, A "warm-pool-sandbox=f40c425c", &other),
                     1);
    (void)world_create(w, claim(),
                       "{'metadata':{'name':'c','annotations':{'" A "sandbox-name':'%s'}},'spec':{"
                       "'warmPoolRef':{'name':'p'}}}",
                       object_name(other));
    assert_true(strcmp(object_name(suite_sandbox_of(w, until(w, "c", SUITE_READY))),
                       object_name(other)) != 0);
    other = world_get(w, known_kinds()->sandbox, object_name(other));
    assert_non_null(object_label(other, A "warm-pool-sandbox"));
}

/* TestSandboxClaimWarmCandidateGrace, TestSandboxClaimAdoptsCandidateThatBecomesNetworkReadyDuringGrace */
static void claim_waits_for_a_member_without_address(void **state)
{
    struct world *w = *state;
    struct object *c;

    suite_make_template(w, "");
    world_hold_pods(w, true);
    suite_make_pool(w, 1);
    for (int i = 0; i < 2000 && world_count(w, known_kinds()->pod, NULL, NULL) < 1; i++)
        world_idle(w, 2);
    suite_make_claim(w, "c", "");
    world_idle(w, 20);
    c = world_get(w, claim(), "c");
    assert_null(object_member(c, "status"));
    world_hold_pods(w, false);
    c = until(w, "c", SUITE_READY);
    assert_string_equal(object_label(suite_sandbox_of(w, c), A "launch-type"), "warm");
}

/* The same past its time: a new one. */
static void claim_does_not_wait_for_ever(void **state)
{
    struct world *w = *state;

    suite_make_template(w, "");
    world_hold_pods(w, true);
    suite_make_pool(w, 1);
    suite_make_claim(w, "c", "");
    (void)world_until_there(w, known_kinds()->sandbox, "c");
    world_hold_pods(w, false);
    assert_string_equal(
        object_label(suite_sandbox_of(w, until(w, "c", SUITE_READY)), A "launch-type"), "cold");
}

/* TestSandboxClaimReconcile: the policy an older controller made for a claim goes, a person's stays. */
static void claim_removes_its_old_policy(void **state)
{
    struct world *w = *state;
    struct object *c;

    suite_open_pool(w, 1, "");
    (void)world_create(w, known_kinds()->policy,
                       "{'metadata':{'name':'d-network-policy'},'spec':{'podSelector':{}}}");
    suite_make_claim(w, "d", "");
    (void)until(w, "d", SUITE_READY);
    assert_non_null(world_get(w, known_kinds()->policy, "d-network-policy"));
    world_stop(w);
    suite_make_claim(w, "c", "");
    c = world_get(w, claim(), "c");
    (void)world_create(w, known_kinds()->policy,
                       "{'metadata':{'name':'c-network-policy','ownerReferences':[{'apiVersion':"
                       "'extensions.agents.x-k8s.io/v1alpha1','kind':'SandboxClaim','name':'c',"
                       "'uid':'%s','controller':true}]},'spec':{'podSelector':{}}}",
                       object_uid(c));
    world_start(w);
    world_until_gone(w, known_kinds()->policy, "c-network-policy");
    (void)until(w, "c", SUITE_READY);
}

int suite_claim_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(claim_takes_a_waiting_sandbox),
        SUITE_TEST(claim_gets_a_new_sandbox),
        SUITE_TEST(claim_waits_for_pool_and_template),
        SUITE_TEST(older_claims),
        SUITE_TEST(claim_with_variables),
        SUITE_TEST(claim_with_metadata),
        SUITE_TEST(claim_does_not_take_a_stranger),
        SUITE_TEST(parallel_claims_with_enough),
        SUITE_TEST(parallel_claims_with_too_few),
        SUITE_TEST(claims_survive_restarts),
        SUITE_TEST(claim_cleanup_policy),
        SUITE_TEST(claim_ttl_after_finished),
        SUITE_TEST(claim_ttl_foreground),
        SUITE_TEST(claim_outlives_its_sandbox),
        SUITE_TEST(claim_forgets_a_wrong_assignment),
        SUITE_TEST(claim_keeps_to_its_pool),
        SUITE_TEST(claim_waits_for_a_member_without_address),
        SUITE_TEST(claim_does_not_wait_for_ever),
        SUITE_TEST(claim_removes_its_old_policy),
    };

    return cmocka_run_group_tests_name("controller/claims", tests, NULL, NULL);
}
