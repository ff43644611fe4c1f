#include "controller/suite_impl.h"

#include "base/time.h"
#include "controller/faults.h"
#include "controller/testobject.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POD(image) "'podTemplate':{'spec':{'containers':[{'name':'c','image':'" image "'}]}}"

static void make_template(struct world *w, const char *name, const char *spec)
{
    (void)world_create(w, known_kinds()->template, "{'metadata':{'name':'%s'},'spec':{%s}}", name,
                       spec);
}

static void make_pool(struct world *w, const char *name, const char *template, const char *more)
{
    (void)world_create(w, known_kinds()->pool,
                       "{'metadata':{'name':'%s'},'spec':{'sandboxTemplateRef':{'name':'%s'}%s}}",
                       name, template, more);
}

struct size {
    int64_t all, ready;
};

static bool has_size(struct world *w, const struct object *o, const void *arg)
{
    const struct size *want = arg;
    int64_t all = -1, ready = -1;

    (void)w;
    return o && json_i64(object_at(o, "status.replicas"), &all) &&
           json_i64(object_at(o, "status.readyReplicas"), &ready) && all == want->all &&
           ready == want->ready;
}

static struct object *until_size(struct world *w, const char *pool, int64_t all, int64_t ready)
{
    char what[64];

    (void)snprintf(what, sizeof what, "%lld members, %lld ready", (long long)all, (long long)ready);
    return world_until(w, known_kinds()->pool, pool, what, has_size, &(struct size){ all, ready });
}

static size_t count_sandboxes(struct world *w, struct object **ret_first)
{
    return world_count(w, known_kinds()->sandbox, NULL, ret_first);
}

static void until_count(struct world *w, size_t n)
{
    suite_until_count(w, known_kinds()->sandbox, n);
}

/* TestReconcilePool: fill, top up, trim, zero. */
static void pool_fills_tops_up_and_trims(void **state)
{
    struct world *w = *state;
    struct object *first, *pool;

    make_template(w, "t", POD("i"));
    make_pool(w, "p", "t", ",'replicas':5");
    pool = until_size(w, "p", 5, 5);
    assert_string_equal(object_text(pool, "status.selector"),
                        "agents.x-k8s.io/warm-pool-sandbox=f50c43ef");
    assert_int_equal(count_sandboxes(w, &first), 5);
    assert_string_equal(object_label(first, "agents.x-k8s.io/launch-type"), "warm");
    world_delete(w, known_kinds()->sandbox, object_name(first));
    world_until_gone(w, known_kinds()->sandbox, object_name(first));
    until_count(w, 5);
    (void)until_size(w, "p", 5, 5);
    (void)world_patch(w, known_kinds()->pool, "p", NULL, "{'spec':{'replicas':2}}");
    until_count(w, 2);
    (void)until_size(w, "p", 2, 2);
    (void)world_patch(w, known_kinds()->pool, "p", NULL, "{'spec':{'replicas':0}}");
    until_count(w, 0);
    (void)until_size(w, "p", 0, 0);
    assert_int_equal(world_count(w, known_kinds()->pod, NULL, NULL), 0);
}

/* The Pods of members carry the labels of pool and template, so that the policy finds them and the router does not. */
static void pods_of_members_carry_their_labels(void **state)
{
    struct world *w = *state;
    struct object *pod;

    make_template(w, "t", POD("i"));
    make_pool(w, "p", "t", "");
    (void)until_size(w, "p", 1, 1);
    assert_int_equal(world_count(w, known_kinds()->pod,
                                 "agents.x-k8s.io/warm-pool-sandbox=f50c43ef,"
                                 "agents.x-k8s.io/sandbox-template-ref-hash=f10c3da3,"
                                 "agents.x-k8s.io/created-by=controller",
                                 &pod),
                     1);
    assert_null(object_label(pod, "agents.x-k8s.io/sandbox-template-hash"));
    assert_string_equal(object_annotation(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict"),
                        "true");
}

/* A template that comes later fills the pool. */
static void pool_waits_for_its_template(void **state)
{
    struct world *w = *state;

    make_pool(w, "p", "t", ",'replicas':2");
    (void)until_size(w, "p", 0, 0);
    make_template(w, "t", POD("i"));
    (void)until_size(w, "p", 2, 2);
}

static bool has_image(struct world *w, const struct object *o, const void *image)
{
    char want[64];

    (void)snprintf(want, sizeof want, "'image':'%s'", (const char *)image);
    return o && strstr(test_text(object_thaw(o, NULL, test_edit())), want) &&
           suite_has_condition(o, "Ready", "True") && w;
}

static void until_all_have(struct world *w, const char *image)
{
    for (int i = 0; i < 2000; i++) {
        struct object *first;

        if (count_sandboxes(w, &first) == 1 && has_image(w, first, image))
            return;
        world_idle(w, 5);
    }
    fail_msg("no member with image %s", image);
}

/* TestWarmPoolRollout: recreate, onreplenish; TestWarmPoolRolloutMetadataUpdate. */
static void pool_rollout(void **state)
{
    struct world *w = *state;
    struct object *first, *later;

    make_template(w, "t", POD("old"));
    make_pool(w, "p", "t", ",'updateStrategy':{'type':'Recreate'}");
    until_all_have(w, "old");
    (void)count_sandboxes(w, &first);
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'podTemplate':{'metadata':{'labels':{'a':'b'}}}}}");
    world_idle(w, 50);
    (void)count_sandboxes(w, &later);
    assert_string_equal(object_uid(first), object_uid(later));
    (void)world_patch(w, known_kinds()->template, "t", NULL, "{'spec':{" POD("new") "}}");
    until_all_have(w, "new");
    (void)world_patch(w, known_kinds()->pool, "p", NULL,
                      "{'spec':{'updateStrategy':{'type':'OnReplenish'}}}");
    (void)world_patch(w, known_kinds()->template, "t", NULL, "{'spec':{" POD("newer") "}}");
    world_idle(w, 50);
    until_all_have(w, "new");
    (void)count_sandboxes(w, &first);
    world_delete(w, known_kinds()->sandbox, object_name(first));
    until_all_have(w, "newer");
}

/* TestReconcilePool_NoOverCreationConcurrent, over restarts: never more than wished for. */
static void pool_never_has_too_many(void **state)
{
    struct world *w = *state;

    make_template(w, "t", POD("i"));
    make_pool(w, "p", "t", ",'replicas':40");
    for (int i = 0; i < 5; i++) {
        world_idle(w, (uint64_t)(2 * i));
        assert_true(count_sandboxes(w, NULL) <= 40);
        world_stop(w);
        world_start(w);
    }
    (void)until_size(w, "p", 40, 40);
    until_count(w, 40);
}

/* Its members go with a pool. */
static void pool_takes_its_members_with_it(void **state)
{
    struct world *w = *state;

    make_template(w, "t", POD("i"));
    make_pool(w, "p", "t", ",'replicas':3");
    (void)until_size(w, "p", 3, 3);
    world_delete(w, known_kinds()->pool, "p");
    until_count(w, 0);
}

/* Writes of the controllers: the test's own have no manager. */
struct calls {
    unsigned all, pools;
};

static void count_call(void *ctx, const struct kube_request *rq)
{
    struct calls *calls = ctx;

    if (!rq->manager)
        return;
    calls->all++;
    if (rq->kind == known_kinds()->pool)
        calls->pools++;
}

static bool is_stamped(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && object_annotation(o, "agents.x-k8s.io/claim-first-ready-at");
}

/* A server of a cluster has little time for each call: a warm claim takes five, its sandbox two, and the next member three. A pool
 * whose numbers change all the time says so about once a second. */
static void claims_take_few_calls(void **state)
{
    static const struct {
        enum kube_verb verb;
        const char *sub;
    } writes[] = { { KUBE_CREATE, NULL }, { KUBE_UPDATE, NULL }, { KUBE_UPDATE, "status" },
                   { KUBE_PATCH, NULL },  { KUBE_DELETE, NULL }, { KUBE_PATCH, "status" } };
    const unsigned claims = 10;
    struct world *w = *state;
    struct calls calls = { 0 };
    uint64_t began_ms;
    char name[16];

    suite_open_pool(w, 5, "");
    world_idle(w, 10);
    EACH(it, writes) {
        (void)faults_add(w->faults, &(struct fault){ .verb = it->verb,
                                                     .sub = it->sub,
                                                     .times = UINT_MAX,
                                                     .what = FAULT_FIRST,
                                                     .first = count_call,
                                                     .ctx = &calls });
    }
    began_ms = time_mono_ms();
    for (unsigned i = 0; i < claims; i++) {
        (void)snprintf(name, sizeof name, "c%u", i);
        suite_make_claim(w, name, "");
        (void)world_until_condition(w, known_kinds()->claim, name, "Ready", "True");
        (void)world_until(w, known_kinds()->claim, name, "a stamp", is_stamped, NULL);
    }
    until_count(w, 5 + claims);
    suite_until_full(w, 5);
    suite_until_count(w, known_kinds()->event, claims);
    world_idle(w, 50); /* what else would come */
    faults_clear(w->faults);
    assert_true(calls.all - calls.pools >= 9 * claims);
    assert_true(calls.all - calls.pools <= 10 * claims);
    assert_true(calls.pools <= 2 * ((time_mono_ms() - began_ms) / 1000 + 1));
}

static bool has_no_egress(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && !object_at(o, "spec.egress");
}

/* TestSandboxTemplateReconcileNetworkPolicy */
static void template_keeps_its_policy(void **state)
{
    struct world *w = *state;
    const struct kind *policy = known_kinds()->policy;
    struct object *o;
    uint64_t version;

    make_template(w, "t", POD("i"));
    (void)world_until_there(w, policy, "t-network-policy");
    world_idle(w, 20);
    o = world_get(w, known_kinds()->template, "t");
    assert_string_equal(object_label(o, "agents.x-k8s.io/sandbox-template-ref-hash"), "f10c3da3");
    version = object_version(world_get(w, policy, "t-network-policy"));
    world_stop(w); /* a second look writes nothing */
    world_start(w);
    world_idle(w, 50);
    assert_int_equal(object_version(world_get(w, policy, "t-network-policy")), version);
    assert_int_equal(object_version(world_get(w, known_kinds()->template, "t")), object_version(o));
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'networkPolicy':{'ingress':[{'ports':[{'port':80}]}]}}}");
    (void)world_until(w, policy, "t-network-policy", "rules of its own", has_no_egress, NULL);
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'networkPolicyManagement':'Unmanaged'}}");
    world_until_gone(w, policy, "t-network-policy");
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'networkPolicyManagement':'Managed'}}");
    (void)world_until_there(w, policy, "t-network-policy");
    world_delete(w, policy, "t-network-policy"); /* by whomever: it comes back */
    (void)world_until_there(w, policy, "t-network-policy");
}

/* On a cluster a pool is not filled while somebody waits for a claim, and each of them has a member to take. */
static void claims_go_before_new_members(void **state)
{
    struct world *w = *state;
    const struct fault late = { .verb = KUBE_PATCH,
                                .kind = known_kinds()->claim,
                                .sub = "status",
                                .manager = "sandboxclaim-controller",
                                .times = 1,
                                .what = FAULT_LATE };

    if (!w->suite->is_remote)
        skip();
    suite_open_pool(w, 8, "");
    (void)faults_add(w->faults, &late);
    suite_make_claim(w, "c", "");
    (void)world_until_condition(w, known_kinds()->claim, "c", "Ready", SUITE_READY);
    world_idle(w, 500); /* for the controller it is not ready yet */
    assert_int_equal(count_sandboxes(w, NULL), 8);
    faults_release(w->faults);
    until_count(w, 9);
    suite_until_full(w, 8);
}

int suite_pool_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(pool_fills_tops_up_and_trims), SUITE_TEST(pods_of_members_carry_their_labels),
        SUITE_TEST(pool_waits_for_its_template),  SUITE_TEST(pool_rollout),
        SUITE_TEST(pool_never_has_too_many),      SUITE_TEST(pool_takes_its_members_with_it),
        SUITE_TEST(claims_take_few_calls),        SUITE_TEST(template_keeps_its_policy),
        SUITE_TEST(claims_go_before_new_members),
    };

    return cmocka_run_group_tests_name("controller/pools", tests, NULL, NULL);
}
