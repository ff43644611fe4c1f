/* What operators set, and what time brings about. */
#include "controller/suite_impl.h"

#include "base/time.h"
#include "controller/faults.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A          "agents.x-k8s.io/"
#define SANDBOXES  "sandbox-controller"
#define CONTAINERS "'podTemplate':{'spec':{'containers':[{'name':'c','image':'i'}]}}"

static const struct kind *sandbox(void)
{
    return known_kinds()->sandbox;
}

static const struct kind *pod(void)
{
    return known_kinds()->pod;
}

/* The controllers begin anew with what w->config says. */
static void restart(struct world *w)
{
    world_stop(w);
    world_start(w);
}

/* ---- labels that may wait ---- */

static const struct fault *count_pod_patches(struct world *w)
{
    return faults_add(w->faults, &(struct fault){ .verb = KUBE_PATCH,
                                                  .kind = pod(),
                                                  .manager = SANDBOXES,
                                                  .times = 1000,
                                                  .what = FAULT_FIRST });
}

static bool is_out_of_the_pool(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && !object_label(o, A "warm-pool-sandbox");
}

static const char *claimed(struct world *w)
{
    suite_make_claim(w, "c", "");
    return object_name(suite_sandbox_of(
        w, world_until_condition(w, known_kinds()->claim, "c", "Ready", SUITE_READY)));
}

/* TestWriteBehindDisabledIsSynchronous: one write, and none later. */
static void labels_are_written_at_once(void **state)
{
    struct world *w = *state;
    const struct fault *patches;

    suite_open_pool(w, 1, "");
    patches = count_pod_patches(w);
    (void)world_until(w, pod(), claimed(w), "out of the pool", is_out_of_the_pool, NULL);
    world_idle(w, 50);
    assert_int_equal(1000 - patches->times, 1);
}

/* TestRequeueDeferralCoalescesAdoptionPodPatch: ready does not wait for it; several changes are one write. */
static void labels_wait_for_more_of_them(void **state)
{
    struct world *w = *state;
    const struct fault *patches;
    const char *name;
    uint64_t began_ms;
    bool is_labelled;

    w->config.write_behind_ms = 1000;
    restart(w);
    suite_open_pool(w, 1, "");
    patches = count_pod_patches(w);
    began_ms = time_mono_ms();
    name = claimed(w);
    (void)world_patch(w, sandbox(), name, NULL,
                      "{'spec':{'podTemplate':{'metadata':{'annotations':{'more':'1'}}}}}");
    is_labelled = object_label(world_get(w, pod(), name), A "warm-pool-sandbox");
    if (time_mono_ms() - began_ms > 800) /* a slow machine: its time may be over already */
        skip();
    assert_true(is_labelled);
    (void)world_until(w, pod(), name, "out of the pool", is_out_of_the_pool, NULL);
    world_idle(w, 50);
    assert_int_equal(1000 - patches->times, 1);
}

/* TestRequeueDeferralCrashRecovery: whoever comes next begins to wait again, and writes. */
static void labels_that_waited_are_written_by_others(void **state)
{
    struct world *w = *state;
    const char *name;

    w->config.write_behind_ms = 500;
    restart(w);
    suite_open_pool(w, 1, "");
    name = claimed(w);
    restart(w);
    (void)world_until(w, pod(), name, "out of the pool", is_out_of_the_pool, NULL);
}

/* ---- members that do not become ready ---- */

static void on_told(void *ctx, const struct object *o)
{
    const char *reason = object_text(o, "reason");
    size_t *counts = ctx;

    counts[0] += reason && strcmp(reason, "WarmPoolNotProgressing") == 0;
    counts[1] += reason && strcmp(reason, "WarmPoolProgressing") == 0;
}

static void until_told(struct world *w, size_t stuck, size_t free)
{
    size_t counts[2];

    for (int i = 0; i < 10000; i++) {
        counts[0] = counts[1] = 0;
        world_each(w, known_kinds()->event, on_told, counts);
        if (counts[0] == stuck && counts[1] == free)
            return;
        world_idle(w, 2);
    }
    fail_msg("%zu warnings and %zu good news, not %zu and %zu", counts[0], counts[1], stuck, free);
}

static struct object *member_of(struct world *w, const char *hash)
{
    struct object *o = NULL;
    char labels[96];

    (void)snprintf(labels, sizeof labels, A "warm-pool-sandbox=%s", hash);
    for (int i = 0; i < 5000 && !o; i++) {
        (void)world_count(w, sandbox(), labels, &o);
        world_idle(w, 2);
    }
    assert_non_null(o);
    return o;
}

/* NameHash("p"), NameHash("q") */
#define OF_P "f50c43ef"
#define OF_Q "f40c425c"

static bool has_pod(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o != NULL;
}

/* TestReconcilePool_UnschedulableStuckGC, _QuietClusterSelfScheduledGraceEvaluation, _YoungNotReadyArmsGraceRequeue,
 * _ConfigurableGraceAndRecheck: with no event at all, one that is stuck is replaced after its grace; one that waits for a node is
 * kept, and people are told, once. */
static void members_have_their_grace(void **state)
{
    struct world *w = *state;
    struct object *held, *stuck;

    world_hold_pods(w, true);
    suite_make_template(w, "");
    suite_make_pool(w, 1);
    (void)world_create(
        w, known_kinds()->pool,
        "{'metadata':{'name':'q'},'spec':{'replicas':1,'sandboxTemplateRef':{'name':'t'}}}");
    held = member_of(w, OF_P);
    stuck = member_of(w, OF_Q);
    (void)world_until(w, pod(), object_name(held), "there", has_pod, NULL);
    (void)world_patch(w, pod(), object_name(held), "status",
                      "{'status':{'conditions':[{'type':'PodScheduled','status':'False','reason':"
                      "'Unschedulable','message':'0/3 nodes'}]}}");
    w->config.pool_grace_ms = 1000;
    w->config.pool_recheck_ms = 100;
    restart(w);
    world_until_gone(w, sandbox(), object_name(stuck));
    until_told(w, 1, 0);
    assert_string_equal(object_name(member_of(w, OF_P)), object_name(held));
    (void)member_of(w, OF_Q);
    world_hold_pods(w, false);
    until_told(w, 1, 1);
    suite_until_full(w, 1);
}

/* ---- templates ---- */

static bool comes_from_u(struct world *w, const struct object *o, const void *first)
{
    struct object *now;
    const char *from;

    (void)o;
    if (world_count(w, sandbox(), A "warm-pool-sandbox=" OF_P, &now) != 1)
        return false;
    from = object_annotation(now, A "sandbox-template-ref");
    return from && strcmp(from, "u") == 0 && strcmp(object_uid(now), first) != 0;
}

/* TestWarmPoolRolloutSwitchTemplate, TestReconcilePool_TemplateRefUpdate_SameSpec; TestWarmPoolRolloutMultiTemplateIsolation: what
 * is changed for one pool is nothing to another. */
static void pools_change_their_template(void **state)
{
    struct world *w = *state;
    struct object *of_p, *of_q;

    suite_open_pool(w, 1, "");
    (void)world_create(w, known_kinds()->template,
                       "{'metadata':{'name':'u'},'spec':{" CONTAINERS "}}");
    (void)world_create(w, known_kinds()->pool,
                       "{'metadata':{'name':'q'},'spec':{'replicas':1,'sandboxTemplateRef':{'name':"
                       "'t'},'updateStrategy':{'type':'Recreate'}}}");
    suite_until_size(w, "q", 1);
    of_p = member_of(w, OF_P);
    of_q = member_of(w, OF_Q);
    (void)world_patch(w, known_kinds()->pool, "p", NULL,
                      "{'spec':{'sandboxTemplateRef':{'name':'u'},'updateStrategy':{'type':"
                      "'Recreate'}}}");
    (void)world_until(w, known_kinds()->pool, "p", "of the other template", comes_from_u,
                      object_uid(of_p));
    (void)world_patch(
        w, known_kinds()->template, "u", NULL,
        "{'spec':{'podTemplate':{'spec':{'containers':[{'name':'c','image':'j'}]}}}}");
    world_idle(w, 50);
    suite_until_full(w, 1);
    assert_string_equal(object_uid(member_of(w, OF_Q)), object_uid(of_q));
}

/* ---- copies of a part ---- */

/* TestBuildCacheOptionsScopedToTrackingLabel: what has not our label is not in the copy, and is found all the same. */
static void pods_without_our_label_are_looked_up(void **state)
{
    struct world *w = *state;

    w->config.is_cache_selected = true;
    restart(w);
    (void)world_create(w, pod(),
                       "{'metadata':{'name':'s','labels':{'" A "adoptable':'true'}},'spec':{"
                       "'containers':[{'name':'c','image':'i'}]}}");
    (void)world_create(
        w, pod(), "{'metadata':{'name':'x'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    (void)world_create(w, sandbox(), "{'metadata':{'name':'s'},'spec':{" CONTAINERS "}}");
    (void)world_create(w, sandbox(), "{'metadata':{'name':'x'},'spec':{" CONTAINERS "}}");
    (void)world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY);
    (void)world_until_condition(w, sandbox(), "x", "Ready",
                                "False ReconcilerError Error seen: pod \"x\" exists");
    world_delete(w, pod(), "x");
    (void)world_until_condition(w, sandbox(), "x", "Ready", SUITE_READY);
}

/* TestSandboxClaimReconcile: custom allowed domain. */
static void labels_of_other_domains(void **state)
{
    static const char *const domains[] = { "example.org", NULL };
    struct world *w = *state;

    w->config.label_domains = domains;
    restart(w);
    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", ",'additionalPodMetadata':{'labels':{'a.example.org/x':'y'}}");
    (void)world_until_condition(w, known_kinds()->claim, "c", "Ready", SUITE_READY);
    suite_make_claim(w, "d", ",'additionalPodMetadata':{'labels':{'sandbox.users.io/x':'y'}}");
    (void)world_until_condition(w, known_kinds()->claim, "d", "Ready", "False InvalidMetadata");
}

int suite_config_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(labels_are_written_at_once),
        SUITE_TEST(labels_wait_for_more_of_them),
        SUITE_TEST(labels_that_waited_are_written_by_others),
        SUITE_TEST(members_have_their_grace),
        SUITE_TEST(pools_change_their_template),
        SUITE_TEST(pods_without_our_label_are_looked_up),
        SUITE_TEST(labels_of_other_domains),
    };

    return cmocka_run_group_tests_name("controller/config", tests, NULL, NULL);
}
