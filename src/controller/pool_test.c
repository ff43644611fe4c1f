#include "controller/pool.h"

#include "controller/blueprint.h"
#include "controller/gate.h"
#include "controller/template.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A "agents.x-k8s.io/"

/* ---- expectations ---- */

/* TestWarmPoolExpectations_CreateLifecycle, _TryExpectRejectsNonPositive, _LowerCreationsForFailedCreates */
static void expectations_of_creates(void **state)
{
    struct expect x = { 0 };

    assert_false(expect_creates(&x, 0, 1));
    assert_true(expect_is_met(&x, 1));
    assert_true(expect_creates(&x, 3, 1));
    assert_false(expect_creates(&x, 1, 2));
    expect_created(&x, 1);
    expect_created(&x, 1);
    assert_false(expect_is_met(&x, 2));
    expect_created(&x, 1);
    assert_true(expect_is_met(&x, 2));
    expect_created(&x, 5); /* never below nothing */
    assert_true(expect_creates(&x, 1, 3));
    assert_false(expect_is_met(&x, 3));
    expect_done(&x);
}

/* TestWarmPoolExpectations_DeleteLifecycle, _EmptyUIDIgnored */
static void expectations_of_deletes(void **state)
{
    struct expect x = { 0 };

    expect_delete(&x, "", 1);
    assert_true(expect_is_met(&x, 1));
    for (char uid[] = "a"; uid[0] < 'm'; uid[0]++)
        expect_delete(&x, uid, 1);
    expect_delete(&x, "a", 1);
    assert_true(expect_is_going(&x, "c"));
    assert_false(expect_creates(&x, 1, 1));
    expect_deleted(&x, "unknown");
    for (char uid[] = "a"; uid[0] < 'm'; uid[0]++) {
        assert_false(expect_is_met(&x, 1));
        expect_deleted(&x, uid);
    }
    assert_true(expect_creates(&x, 1, 1));
    expect_done(&x);
}

/* TestWarmPoolExpectations_Timeout, _TimeoutRefreshedByNewRaises */
static void expectations_end_by_themselves(void **state)
{
    struct expect x = { 0 };

    assert_true(expect_creates(&x, 1, 1000));
    assert_false(expect_is_met(&x, 1000 + EXPECT_MAX_MS));
    assert_true(expect_is_met(&x, 1001 + EXPECT_MAX_MS));
    expect_delete(&x, "a", 2000);
    assert_false(expect_is_met(&x, 2000 + EXPECT_MAX_MS));
    assert_true(expect_creates(&x, 1, 2001 + EXPECT_MAX_MS));
    assert_false(expect_is_going(&x, "a"));
    expect_done(&x);
}

/* ---- how fast ---- */

static void opens(struct gate *g, const struct gate_rules *rules, size_t active, uint64_t now_ms,
                  size_t want, uint64_t want_wait_ms)
{
    uint64_t wait_ms;
    size_t got = gate_open(g, rules, active, 10, 10 - active, now_ms, &wait_ms);

    if (got != want || wait_ms != want_wait_ms)
        fail_msg("%zu members at %llu ms: %zu are made, not %zu; asks again in %llu ms, not %llu",
                 active, (unsigned long long)now_ms, got, want, (unsigned long long)wait_ms,
                 (unsigned long long)want_wait_ms);
}

/* TestReconcilePoolReplenishDelay, TestObserveMembersForReplenish */
static void replenish_delay(void **state)
{
    const struct gate_rules rules = { .delay_ms = 1000 };
    struct gate g = { 0 };

    opens(&g, &rules, 4, 0, 6, 0);      /* the first look never waits */
    opens(&g, &rules, 10, 1, 0, 0);     /* they came */
    opens(&g, &rules, 7, 2, 0, 1000);   /* some left */
    opens(&g, &rules, 7, 502, 0, 500);  /* nothing new */
    opens(&g, &rules, 5, 702, 0, 1000); /* more left: from the beginning */
    opens(&g, &rules, 5, 1702, 5, 0);
    opens(&g, &rules, 9, 1703, 0, 1000); /* those that were made count as seen */
    opens(&g, &rules, 10, 1704, 0, 0);   /* full: nothing is held */
    opens(&g, &(struct gate_rules){ 0 }, 1, 1705, 9, 0);
}

/* TestTakeRefillTokens, TestReconcilePoolMaxRefillRate */
static void refill_rate(void **state)
{
    const struct gate_rules four = { .per_second = 4 }, slow = { .per_second = 0.5 };
    struct gate g = { 0 };

    opens(&g, &four, 0, 0, 4, 0);     /* starts full */
    opens(&g, &four, 4, 0, 0, 250);   /* a quarter of a second for one */
    opens(&g, &four, 4, 500, 2, 0);   /* part of what is missing: events tell of the rest */
    opens(&g, &four, 6, 60000, 4, 0); /* never more than its capacity */
    opens(&g, &four, 9, 60000, 0, 250);
    gate_refund(&g, &four, 1);
    opens(&g, &four, 9, 60000, 1, 0);
    g = (struct gate){ 0 };
    opens(&g, &slow, 0, 0, 1, 0); /* at least one */
    opens(&g, &slow, 1, 0, 0, 2000);
    g = (struct gate){ 0 };
    opens(&g, &(struct gate_rules){ .per_second = 1e300 }, 0, 0, 10, 0);
}

static void yields(struct gate *g, size_t claims, size_t ready, uint64_t now_ms, bool want)
{
    struct gate_demand d = { .claims = claims, .ready = ready, .wish = 80 };

    if (gate_yields(g, &d, now_ms) != want)
        fail_msg("%zu claims, %zu of 80 ready, at %llu ms: %s", claims, ready,
                 (unsigned long long)now_ms, want ? "it goes on" : "it waits");
}

/* Claims that wait go before new members, as long as these are for none of them. */
static void claims_go_first(void **state)
{
    struct gate g = { 0 };

    yields(&g, 0, 60, 1000, false);
    yields(&g, 5, 80, 1000, false); /* nothing is missing */
    yields(&g, 5, 75, 1000, true);
    yields(&g, 70, 80, 1001, false);
    yields(&g, 50, 59, 1002, false); /* too few are left for those who come next */
    yields(&g, 50, 60, 1003, true);
    yields(&g, 1, 60, 1003 + 9999, true);
    yields(&g, 1, 60, 1003 + 10000, false); /* it is the usual load */
    yields(&g, 1, 60, 1003 + 20000, false);
    yields(&g, 0, 60, 30000, false);
    yields(&g, 1, 60, 30001, true); /* from the beginning */
    yields(&g, 1, 80, 35000, false);
    yields(&g, 1, 79, 45000, true);
}

/* ---- sizing ---- */

/* NameHash("t"), NameHash("p") */
#define REF  "f10c3da3"
#define POOL "f50c43ef"
#define NOW  1794823200 /* 2026-11-16T10:00:00Z */
#define MEMBER(name, more)                                                                         \
    "{'metadata':{'namespace':'n','name':'" name "','uid':'" name                                  \
    "','resourceVersion':'5','creationTimestamp':'2026-11-16T09:59:00Z','labels':{'" A             \
    "launch-type':'warm','" A "sandbox-template-ref-hash':'" REF "','" A                           \
    "sandbox-template-hash':'%s'},'ownerReferences':[{'kind':'SandboxWarmPool','uid':'u1',"        \
    "'controller':true}]" more "},'spec':{},'status':{'conditions':[{'type':'Ready','status':'"
#define READY(name)   MEMBER(name, "") "True'}]}}"
#define WAITING(name) MEMBER(name, "") "False'}]}}"
#define LEAVING(name) MEMBER(name, ",'deletionTimestamp':'x'") "True'}]}}"
#define CLAIMED(name)                                                                              \
    "{'metadata':{'namespace':'n','name':'" name                                                   \
    "','labels':{'x':'%s'},'ownerReferences':[{'kind':"                                            \
    "'SandboxClaim','uid':'c','controller':true}]}}"
#define ORPHAN(name, image)                                                                        \
    "{'metadata':{'namespace':'n','name':'" name "','uid':'" name                                  \
    "','resourceVersion':'5','labels':{'" A "sandbox-template-ref-hash':'" REF "','" A             \
    "sandbox-template-hash':'%s'}},'spec':{'podTemplate':{'spec':{'containers':[{'name':'c',"      \
    "'image':'" image "'}],'automountServiceAccountToken':false,'dnsPolicy':'None','dnsConfig':{"  \
    "'nameservers':['8.8.8.8','1.1.1.1']}}}}}"
#define ENDED(name, made)                                                                          \
    "{'metadata':{'namespace':'n','name':'" name "','uid':'" name                                  \
    "','resourceVersion':'5','creationTimestamp':'" made "','labels':{'" A                         \
    "launch-type':'warm','" A "sandbox-template-ref-hash':'" REF "','" A                           \
    "sandbox-template-hash':'%s'},'ownerReferences':[{'kind':'SandboxWarmPool','uid':'u1',"        \
    "'controller':true}]},'spec':{},'status':{'conditions':[{'type':'Finished','status':'True'},{" \
    "'type':'Ready','status':'False'}]}}"
#define OLD_ONE(name)                                                                              \
    "{'metadata':{'namespace':'n','name':'" name "','uid':'" name                                  \
    "','resourceVersion':'5','creationTimestamp':'2026-11-16T09:00:00Z','labels':{'x':'%s','" A    \
    "launch-type':'warm'},'ownerReferences':[{'kind':'SandboxWarmPool','uid':'u1','controller':"   \
    "true}]},'spec':{}}"

static const struct row {
    const char *name;
    const char *spec; /* of the pool, beside its template */
    bool is_template_gone;
    const char *members[4]; /* %s: the template's hash */
    size_t creates;
    const char *steps; /* a line each */
    const char *status;
    bool looks_again;
} rows[] = {
    { "unset replicas are one", "", false, { NULL }, 1, "", "0/0", false },
    { "fills", "'replicas':5", false, { NULL }, 5, "", "0/0", false },
    { "at most a batch at once", "'replicas':50", false, { NULL }, 10, "", "0/0", false },
    { "tops up", "'replicas':3", false, { READY("a"), WAITING("b") }, 1, "", "2/1", true },
    { "steady", "'replicas':2", false, { READY("a"), READY("b") }, 0, "", "2/2", false },
    { "no template, no new member", "'replicas':3", true, { READY("a") }, 0, "", "1/1", false },
    { "trims: not ready first, then the newest",
      "'replicas':1",
      false,
      { READY("a"), WAITING("b"), READY("c") },
      0,
      "delete Sandbox n/b uid=b version=5\ndelete Sandbox n/a uid=a version=5\n",
      "3/2",
      true },
    { "zero",
      "'replicas':0",
      false,
      { READY("a") },
      0,
      "delete Sandbox n/a uid=a version=5\n",
      "1/1",
      false },
    { "those that leave count until they are gone",
      "'replicas':2",
      false,
      { READY("a"), LEAVING("b") },
      0,
      "",
      "1/1",
      false },
    { "others' are nothing",
      "'replicas':2",
      false,
      { READY("a"), CLAIMED("b") },
      1,
      "",
      "1/1",
      false },
    { "takes in an orphan",
      "'replicas':1",
      false,
      { ORPHAN("o", "i") },
      0,
      "patch Sandbox n/o {'metadata':{'resourceVersion':'5','ownerReferences':[{'apiVersion':"
      "'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxWarmPool','name':'p','uid':'u1',"
      "'controller':true,'blockOwnerDeletion':true}],'labels':{'" A "launch-type':'warm'}}}\n",
      "1/0",
      false },
    { "an orphan's hash is not believed",
      "'replicas':1",
      false,
      { ORPHAN("o", "other") },
      1,
      "delete Sandbox n/o uid=o version=5\n",
      "0/0",
      false },
    { "a stuck one goes, its successor comes in a later pass",
      "'replicas':1",
      false,
      { OLD_ONE("a") },
      0,
      "delete Sandbox n/a uid=a version=5\n",
      "0/0",
      false },
    { "one that has ended goes before its time is up",
      "'replicas':2",
      false,
      { ENDED("a", "2026-11-16T09:59:00Z"), ENDED("b", "2026-11-16T09:59:58Z") },
      0,
      "delete Sandbox n/a uid=a version=5\n",
      "1/0",
      true },
    { "OnReplenish keeps what is stale",
      "'replicas':1,'updateStrategy':{'type':'OnReplenish'}",
      false,
      { WAITING("a") },
      0,
      "",
      "1/0",
      true },
};

static struct object *template_of(const char *image)
{
    return test_object(known_kinds()->template,
                       "{'metadata':{'namespace':'n','name':'t','uid':'t1'},'spec':{'podTemplate':"
                       "{'spec':{'containers':[{'name':'c','image':'%s'}]}}}}",
                       image);
}

static struct object *pool_of(const char *spec)
{
    return test_object(known_kinds()->pool,
                       "{'metadata':{'namespace':'n','name':'p','uid':'u1','generation':4},'spec':"
                       "{'sandboxTemplateRef':{'name':'t'}%s%s}}",
                       *spec ? "," : "", spec);
}

static const struct object *no_pod(void *ctx, const struct object *member)
{
    (void)ctx, (void)member;
    return NULL;
}

static const struct pool_config config = {
    .max_batch = 10, .grace_ms = 300000, .recheck_ms = 60000, .is_evictable = true
};

static const char *steps_of(const struct pool_plan *plan)
{
    static char text[8192];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < plan->count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", test_step(&plan->steps[i]));
    return text;
}

static const char *status_of(const struct pool_plan *plan)
{
    static char text[64];
    int64_t all = -1, ready = -1, generation = -1;

    (void)json_node_i64(json_node_get(plan->status, "replicas"), &all);
    (void)json_node_i64(json_node_get(plan->status, "readyReplicas"), &ready);
    (void)json_node_i64(json_node_get(plan->status, "observedGeneration"), &generation);
    assert_int_equal(generation, 4);
    (void)snprintf(text, sizeof text, "%lld/%lld", (long long)all, (long long)ready);
    return text;
}

/* TestReconcilePool, TestReconcilePoolControllerRef, TestReconcilePoolReadyReplicas, TestReconcilePoolGCStuckSandboxes,
 * TestReconcilePoolSetsObservedGeneration, …TerminatingCountsAgainstTarget, TestIsSandboxStale_OrphanedSandboxVetting */
static void reconcile_pool(void **state)
{
    char hash[NAME_HASH_BYTES];

    EACH(r, rows) {
        struct object *template = template_of("i"), *members[4];
        struct expect expect = { 0 };
        struct pool_view view = { .pool = pool_of(r->spec),
                                  .template = r->is_template_gone ? NULL : template,
                                  .members = members,
                                  .expect = &expect,
                                  .now = { .tv_sec = NOW },
                                  .pod_of = no_pod };
        struct pool_plan plan;

        for (; view.member_count < LEN(members) && r->members[view.member_count];
             view.member_count++)
            members[view.member_count] =
                test_object(known_kinds()->sandbox, r->members[view.member_count],
                            blueprint_hash(hash, template));
        pool_decide(&view, &config, test_edit(), &plan);
        test_same(r->name, "list of steps", steps_of(&plan), r->steps);
        test_same(r->name, "status", status_of(&plan), r->status);
        if (plan.creates != r->creates || (plan.look_again_ms > 0) != r->looks_again)
            fail_msg("%s: %zu are made, looks again in %llu ms", r->name, plan.creates,
                     (unsigned long long)plan.look_again_ms);
        pool_plan_done(&plan);
    }
    test_objects_free();
}

/* Numbers alone decide as a look at each member does, where they may. */
static void numbers_are_enough(void **state)
{
    static const struct count_row {
        const char *name, *spec;
        bool is_template_gone;
        struct member_counts counts;
        size_t expected; /* creations that were not seen yet */
        size_t creates;
        const char *status;
        bool is_held;
    } count_rows[] = {
        { "fills", "'replicas':5", false, { 0 }, 0, 5, "0/0", false },
        { "at most a batch at once", "'replicas':50", false, { 0 }, 0, 10, "0/0", false },
        { "tops up", "'replicas':3", false, { .ready = 1, .unready = 1 }, 0, 1, "2/1", false },
        { "steady", "'replicas':2", false, { .ready = 2 }, 0, 0, "2/2", false },
        { "no template", "'replicas':3", true, { .ready = 1 }, 0, 0, "1/1", false },
        { "those that leave count",
          "'replicas':2",
          false,
          { .ready = 1, .going = 1 },
          0,
          0,
          "1/1",
          false },
        { "what was asked for comes first",
          "'replicas':3",
          false,
          { .ready = 1 },
          1,
          0,
          "1/1",
          true },
    };

    EACH(r, count_rows) {
        struct expect expect = { 0 };
        struct pool_view view = { .pool = pool_of(r->spec),
                                  .template = r->is_template_gone ? NULL : template_of("i"),
                                  .expect = &expect };
        struct pool_plan plan;

        (void)expect_creates(&expect, r->expected, 0);
        pool_decide_counts(&view, &r->counts, &config, test_edit(), &plan);
        test_same(r->name, "list of steps", steps_of(&plan), "");
        test_same(r->name, "status", status_of(&plan), r->status);
        if (plan.creates != r->creates || plan.is_held != r->is_held)
            fail_msg("%s: %zu are made, held %d", r->name, plan.creates, plan.is_held);
        pool_plan_done(&plan);
        expect_done(&expect);
    }
    test_objects_free();
}

/* TestReconcilePool_NoOverCreationWithStaleCache: the copy does not show what was asked for. */
static void no_over_creation_with_a_stale_copy(void **state)
{
    struct expect expect = { 0 };
    struct pool_view view = { .pool = pool_of("'replicas':3"),
                              .template = template_of("i"),
                              .expect = &expect,
                              .now_ms = 10,
                              .pod_of = no_pod };
    struct pool_plan plan;
    size_t made = 0;

    for (int i = 0; i < 5; i++) {
        pool_decide(&view, &config, test_edit(), &plan);
        if (plan.creates && expect_creates(&expect, plan.creates, 10))
            made += plan.creates;
        assert_true(i == 0 || plan.is_held);
        assert_true(i == 0 || plan.look_again_ms > 0);
        pool_plan_done(&plan);
    }
    assert_int_equal(made, 3);
    expect_done(&expect);
    test_objects_free();
}

static const struct object *stuck_pod(void *ctx, const struct object *member)
{
    (void)ctx, (void)member;
    return test_object(known_kinds()->pod,
                       "{'status':{'conditions':[{'type':'PodScheduled','status':'False','reason':"
                       "'Unschedulable'}]}}");
}

/* TestReconcilePool_UnschedulableStuckGC: held. */
static void unschedulable_members_are_held(void **state)
{
    struct object *member = test_object(known_kinds()->sandbox, OLD_ONE("a"), "");
    struct expect expect = { 0 };
    struct pool_view view = { .pool = pool_of(""),
                              .members = &member,
                              .member_count = 1,
                              .expect = &expect,
                              .now = { .tv_sec = NOW },
                              .pod_of = stuck_pod };
    struct pool_plan plan;

    pool_decide(&view, &config, test_edit(), &plan);
    assert_int_equal(plan.stuck, 1);
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.look_again_ms, config.recheck_ms);
    pool_plan_done(&plan);
    test_objects_free();
}

/* TestReconcilePool_TemplateUpdateRollout, _TemplateRefUpdate_SameSpec */
static void recreate_replaces_what_is_stale(void **state)
{
    char hash[NAME_HASH_BYTES];
    struct object *old = template_of("old");
    struct object *member =
        test_object(known_kinds()->sandbox, READY("a"), blueprint_hash(hash, old));
    struct expect expect = { 0 };
    struct pool_view view = { .pool = pool_of("'updateStrategy':{'type':'Recreate'}"),
                              .template = old,
                              .members = &member,
                              .member_count = 1,
                              .expect = &expect,
                              .now = { .tv_sec = NOW },
                              .pod_of = no_pod };
    struct pool_plan plan;

    pool_decide(&view, &config, test_edit(), &plan);
    assert_int_equal(plan.count, 0);
    pool_plan_done(&plan);
    view.template = template_of("new");
    pool_decide(&view, &config, test_edit(), &plan);
    assert_string_equal(steps_of(&plan), "delete Sandbox n/a uid=a version=5\n");
    assert_int_equal(plan.creates, 0);
    pool_plan_done(&plan);
    view.template = test_object(known_kinds()->template,
                                "{'metadata':{'name':'other'},'spec':{'podTemplate':{'spec':{"
                                "'containers':[{'name':'c','image':'old'}]}}}}");
    pool_decide(&view, &config, test_edit(), &plan);
    assert_int_equal(plan.count, 1);
    pool_plan_done(&plan);
    test_objects_free();
}

/* No more are made than there is room for; those that are not ready may still need theirs. */
static void as_many_as_there_is_room_for(void **state)
{
    static const struct {
        size_t room, unready, ready, creates;
        bool is_crowded;
    } cases[] = { { 100, 0, 0, 10, false }, { 3, 0, 0, 3, false },  { 3, 2, 0, 1, false },
                  { 3, 3, 0, 0, true },     { 3, 9, 0, 0, true },   { 0, 0, 5, 0, true },
                  { 1, 0, 5, 1, false },    { 0, 0, 30, 0, false }, { 5, 0, 28, 2, false } };
    struct object *pool = pool_of("'replicas':30"), *template = template_of("i");
    struct expect expect = { 0 };

    EACH(r, cases) {
        struct pool_config bounded = config;
        struct member_counts counts = { .ready = r->ready, .unready = r->unready };
        struct pool_view view = {
            .pool = pool, .template = template, .expect = &expect, .pod_of = no_pod
        };
        struct pool_plan plan;

        bounded.is_bounded = true;
        bounded.room = r->room;
        pool_decide_counts(&view, &counts, &bounded, test_edit(), &plan);
        assert_int_equal(plan.creates, r->creates);
        assert_int_equal(plan.is_crowded, r->is_crowded);
        assert_int_equal(plan.look_again_ms > 0, r->is_crowded);
        pool_plan_done(&plan);
    }
    test_objects_free();
}

/* TestPoolLabelValueInIntegration, TestCreatePoolSandboxAppliesSecureDefaults, …PropagatesVolumeClaimTemplates,
 * TestReconcilePool_EvictionOverride */
static void a_new_member(void **state)
{
    struct object *pool = pool_of(""), *template = template_of("i");
    struct step step = pool_member(pool, template, "p-x", &config, test_edit());
    const char *text = test_step(&step);
    struct pool_config firm = config;
    char name[POOL_NAME_BYTES];

    assert_non_null(strstr(text, "'generateName':'p-'"));
    assert_non_null(strstr(text, "'labels':{'" A "warm-pool-sandbox':'" POOL "','" A
                                 "sandbox-template-ref-hash':'" REF "','"));
    assert_non_null(strstr(text, "'" A "launch-type':'warm','" A "created-by':'controller'}"));
    assert_non_null(
        strstr(text, "'annotations':{'" A "sandbox-template-ref':'t','" A "pod-name':'p-x'}"));
    pool_member_name(pool, name);
    assert_int_equal(strlen(name), 7);
    assert_memory_equal(name, "p-", 2);
    assert_non_null(strstr(text, "'automountServiceAccountToken':false,'dnsPolicy':'None',"
                                 "'dnsConfig':{'nameservers':['8.8.8.8','1.1.1.1']}"));
    assert_non_null(strstr(text, "'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'"));
    firm.is_evictable = false;
    step = pool_member(pool, template, "p-x", &firm, test_edit());
    assert_null(strstr(test_step(&step), "safe-to-evict"));
    template = test_object(
        known_kinds()->template,
        "{'metadata':{'name':'t'},'spec':{'networkPolicyManagement':'Unmanaged','service':true,"
        "'volumeClaimTemplates':[{'metadata':{'name':'d'}}],'podTemplate':{'metadata':{"
        "'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}},'spec':{"
        "'automountServiceAccountToken':true}}}}");
    step = pool_member(pool, template, "p-x", &config, test_edit());
    text = test_step(&step);
    assert_non_null(strstr(text, "safe-to-evict':'false'"));
    assert_non_null(strstr(text, "'spec':{'automountServiceAccountToken':true}"));
    assert_non_null(
        strstr(text, "'volumeClaimTemplates':[{'metadata':{'name':'d'}}],'service':true"));
    test_objects_free();
}

/* ---- blueprints ---- */

/* TestCompareSandboxBlueprint, TestComparePodSpecsNormalization, TestReconcilePool_TemplateUpdateRecreate */
static void compare_sandbox_blueprint(void **state)
{
    static const struct {
        const char *name, *sandbox, *template;
        bool is_same;
    } cases[] = {
        { "the same", "'podTemplate':{'spec':{'hostname':'h'}}",
          "'podTemplate':{'spec':{'hostname':'h'}}", true },
        { "an image", "'podTemplate':{'spec':{'containers':[{'name':'c','image':'a'}]}}",
          "'podTemplate':{'spec':{'containers':[{'name':'c','image':'b'}]}}", false },
        { "labels and annotations do not count",
          "'podTemplate':{'metadata':{'labels':{'a':'1'}},'spec':{}}", "'podTemplate':{'spec':{}}",
          true },
        { "nothing and empty", "'podTemplate':{'spec':{'nodeSelector':{},'tolerations':[]}}",
          "'podTemplate':{'spec':{}}", true },
        { "amounts by value",
          "'podTemplate':{'spec':{'containers':[{'name':'c','resources':{'limits':{'cpu':'1'}}}]}}",
          "'podTemplate':{'spec':{'containers':[{'name':'c','resources':{'limits':{'cpu':'1000m'}}"
          "}]}}",
          true },
        { "another amount",
          "'podTemplate':{'spec':{'containers':[{'name':'c','resources':{'limits':{'cpu':'1'}}}]}}",
          "'podTemplate':{'spec':{'containers':[{'name':'c','resources':{'limits':{'cpu':'2'}}}]}}",
          false },
        { "another order", "'podTemplate':{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
          "'podTemplate':{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}", false },
        { "a service", "'podTemplate':{'spec':{}}", "'podTemplate':{'spec':{}},'service':true",
          false },
        { "a volume claim more", "'podTemplate':{'spec':{}}",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'d'}}]", false },
        { "a volume claim's name",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'e'}}]",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'d'}}]", false },
        { "a volume claim's size",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'d'},'spec':{"
          "'resources':{'requests':{'storage':'1Gi'}}}}]",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'d'},'spec':{"
          "'resources':{'requests':{'storage':'1024Mi'}}}}]",
          true },
        { "a volume claim's labels do not count",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'d','labels':{'a':"
          "'1'}}}]",
          "'podTemplate':{'spec':{}},'volumeClaimTemplates':[{'metadata':{'name':'d'}}]", true },
    };

    EACH(r, cases) {
        /* As it was made from the template: with the secure defaults. */
        struct object *from = test_object(known_kinds()->template, "{'spec':{%s}}", r->sandbox);
        struct object *template =
            test_object(known_kinds()->template, "{'spec':{%s}}", r->template);
        struct object *sandbox = test_object(known_kinds()->sandbox, "{'spec':%s}",
                                             test_text(blueprint_spec(test_edit(), from)));

        if (blueprint_is_same(sandbox, template) != r->is_same)
            fail_msg("%s: the answer is %d", r->name, !r->is_same);
    }
    test_objects_free();
}

/* ---- templates ---- */

#define TEMPLATE_META "'metadata':{'namespace':'n','name':'t','uid':'t1'}"
#define OWNER                                                                                      \
    "{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxTemplate','name':'t','uid'" \
    ":'t1','controller':true,'blockOwnerDeletion':true}"
#define POLICY_META(owners)                                                                        \
    "'metadata':{'namespace':'n','name':'t-network-policy','uid':'n1','resourceVersion':'7',"      \
    "'ownerReferences':[" owners "]}"
#define SELECTS                                                                                    \
    "'podSelector':{'matchLabels':{'" A "sandbox-template-ref-hash':'" REF                         \
    "'}},'policyTypes':['Ingress','Egress']"
#define RULE  "'networkPolicy':{'ingress':[{'ports':[{'port':80}]}]}"
#define RULED SELECTS ",'ingress':[{'ports':[{'port':80,'protocol':'TCP'}]}]"

/* TestSandboxTemplateReconcileNetworkPolicy, TestSandboxTemplateReconcile_Vulnerability */
static void template_network_policy(void **state)
{
    static const struct {
        const char *name, *spec, *have, *step, *fault;
    } cases[] = {
        { "the default", "", NULL,
          "create NetworkPolicy n/t-network-policy {'metadata':{'name':'t-network-policy',"
          "'namespace':'n','ownerReferences':[" OWNER "]},'spec':{" SELECTS
          ",'ingress':[{'from':[{'namespaceSelector':{'matchLabels':{'kubernetes.io/metadata.name':"
          "'agent-sandbox-system'}},'podSelector':{'matchLabels':{'app':'sandbox-router'}}}]}],"
          "'egress':[{'to':[{'ipBlock':{'cidr':'0.0.0.0/0','except':['10.0.0.0/8','172.16.0.0/12',"
          "'192.168.0.0/16','169.254.0.0/16']}},{'ipBlock':{'cidr':'::/0','except':['fc00::/7',"
          "'fe80::/10']}}]}]}}",
          NULL },
        { "rules of its own", RULE, NULL,
          "create NetworkPolicy n/t-network-policy {'metadata':{'name':'t-network-policy',"
          "'namespace':'n','ownerReferences':[" OWNER "]},'spec':{" SELECTS
          ",'ingress':[{'ports':[{'port':80}]}]}}",
          NULL },
        { "nothing to do: the server's defaults are no difference", RULE,
          "{" POLICY_META(OWNER) ",'spec':{" RULED "}}", "", NULL },
        { "drift is put right", "'networkPolicy':{}", "{" POLICY_META(OWNER) ",'spec':{" RULED "}}",
          "update NetworkPolicy n/t-network-policy {'metadata':{'namespace':'n','name':"
          "'t-network-policy','uid':'n1','ownerReferences':[" OWNER
          "],'resourceVersion':'7'},'spec':{" SELECTS "}}",
          NULL },
        { "unmanaged: none", "'networkPolicyManagement':'Unmanaged'", NULL, "", NULL },
        { "unmanaged: its own goes", "'networkPolicyManagement':'Unmanaged'",
          "{" POLICY_META(OWNER) ",'spec':{}}", "delete NetworkPolicy n/t-network-policy uid=n1",
          NULL },
        { "unmanaged: others' stay", "'networkPolicyManagement':'Unmanaged'",
          "{" POLICY_META("") ",'spec':{}}", "", NULL },
        { "others' are not overwritten", "", "{" POLICY_META("") ",'spec':{}}", NULL,
          "NetworkPolicy \"t-network-policy\" exists and is not controlled by SandboxTemplate "
          "\"t\": it is left alone" },
    };

    EACH(r, cases) {
        struct object *template =
            test_object(known_kinds()->template, "{" TEMPLATE_META ",'spec':{%s}}", r->spec);
        struct object *have = r->have ? test_object(known_kinds()->policy, "%s", r->have) : NULL;
        struct step step;
        struct err e;
        int rc = template_decide_policy(template, have, test_edit(), &step, &e);

        test_same(r->name, "fault", rc < 0 ? e.msg : NULL, r->fault);
        test_same(r->name, "step", rc < 0 ? NULL : test_step(&step), r->step);
    }
    test_objects_free();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectations_of_creates),
        cmocka_unit_test(expectations_of_deletes),
        cmocka_unit_test(expectations_end_by_themselves),
        cmocka_unit_test(replenish_delay),
        cmocka_unit_test(refill_rate),
        cmocka_unit_test(claims_go_first),
        cmocka_unit_test(reconcile_pool),
        cmocka_unit_test(numbers_are_enough),
        cmocka_unit_test(no_over_creation_with_a_stale_copy),
        cmocka_unit_test(unschedulable_members_are_held),
        cmocka_unit_test(recreate_replaces_what_is_stale),
        cmocka_unit_test(as_many_as_there_is_room_for),
        cmocka_unit_test(a_new_member),
        cmocka_unit_test(compare_sandbox_blueprint),
        cmocka_unit_test(template_network_policy),
    };

    return cmocka_run_group_tests_name("controller/pool", tests, NULL, NULL);
}
