#include "controller/pools.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/time.h"
#include "controller/batch.h"
#include "controller/event.h"
#include "controller/gate.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "controller/pass.h"
#include "controller/pod.h"
#include "controller/pool.h"
#include "controller/telling.h"
#include "kube/backoff.h"

#include <stdio.h>
#include <string.h>

#define MANAGER "sandboxwarmpool-controller"
#define SLOTS   256

/* The last time that members were looked at one by one. Numbers are enough as long as all of this is so. */
struct look {
    uint64_t at_ms; /* 0: never */
    char uid[48];   /* of the pool */
    int64_t generation;
    uint64_t template_version; /* 0: there was none */
    uint64_t due_ms; /* a member that is not ready has had its time then; 0: all are ready */
};

/* What is remembered of a pool between passes. */
struct memory {
    struct memory *next; /* of its slot */
    char *namespace, *name;
    struct expect expect;
    struct gate gate;
    /* People were told that it does not get on: */
    bool is_crowded, is_refused, is_stuck, has_no_template;
    struct telling telling;
    struct look look;
};

struct pools {
    struct reconciler base;
    const struct controller_config *config;
    struct memory *slots[SLOTS];
    size_t pods; /* of sandboxes, anywhere */
};

enum state { AT_MEMBERS, AT_CREATES, AT_STATUS, AT_OVER };

struct pool_pass {
    struct pass pass;
    struct pools *r;
    struct memory *memory;
    enum state state;
    struct object *pool, *template; /* ours; the template may be NULL */
    struct object **members;        /* ours, like the list */
    size_t member_count;
    struct pool_config config;
    struct pool_plan plan;
    struct step create; /* the last one that was made */
    struct batch batch;
};

/* ---- memory ---- */

static struct memory **memory_slot(struct pools *r, const char *namespace, const char *name)
{
    uint64_t h = hash_add(hash_add(0, span_cstr(namespace)), span_cstr(name));
    struct memory **at = &r->slots[h % SLOTS];

    while (*at && (strcmp((*at)->name, name) != 0 || strcmp((*at)->namespace, namespace) != 0))
        at = &(*at)->next;
    return at;
}

static struct memory *memory_of(struct pools *r, const char *namespace, const char *name)
{
    struct memory **at = memory_slot(r, namespace, name);

    if (!*at) {
        *at = NEW(struct memory);
        (*at)->namespace = own_strdup(namespace);
        (*at)->name = own_strdup(name);
    }
    return *at;
}

static void forget(struct memory **at)
{
    struct memory *m = *at;

    *at = m->next;
    expect_done(&m->expect);
    free(m->namespace);
    free(m->name);
    free(m);
}

/* ---- members: taken in, thrown away ---- */

static const struct step *member_step(void *ctx, size_t i)
{
    struct pool_pass *p = ctx;
    const struct step *step = &p->plan.steps[i];

    /* Before it is asked for: its event may come before the answer. */
    if (step->verb == STEP_DELETE)
        expect_delete(&p->memory->expect, step->uid, time_mono_ms());
    return step;
}

static bool member_answered(void *ctx, size_t i, const struct kube_answer *answer)
{
    struct pool_pass *p = ctx;
    const struct step *step = &p->plan.steps[i];

    if (outcome_of(answer) != OUTCOME_DONE && step->verb == STEP_DELETE)
        expect_deleted(&p->memory->expect, step->uid);
    switch (outcome_of(answer)) {
    case OUTCOME_DONE:
    case OUTCOME_GONE:
        return true;
    case OUTCOME_EXISTS:
    case OUTCOME_STALE: /* claimed meanwhile, or about to be something else */
        p->pass.is_stale = true;
        return true;
    case OUTCOME_INVALID:
    case OUTCOME_FAILED:
        break;
    }
    (void)step_text(step, p->pass.doing, sizeof p->pass.doing);
    pass_fault_of(&p->pass, answer);
    return false;
}

static void members_finished(void *ctx)
{
    struct pool_pass *p = ctx;

    batch_done(&p->batch);
    p->pass.is_waiting = false;
    p->state = AT_CREATES;
    pass_go(&p->pass);
}

static void run_batch(struct pool_pass *p, size_t count)
{
    p->batch.shared = p->pass.shared;
    p->batch.manager = MANAGER;
    p->batch.ctx = p;
    p->pass.is_waiting = true;
    batch_start(&p->batch, count);
}

static void do_members(struct pool_pass *p)
{
    p->state = AT_CREATES;
    if (!p->plan.count)
        return;
    p->state = AT_MEMBERS;
    p->batch = (struct batch){ .step = member_step,
                               .answered = member_answered,
                               .finished = members_finished };
    run_batch(p, p->plan.count);
}

/* ---- members: made ---- */

static void tell(struct pool_pass *p, bool is_warning, const char *reason, const char *note)
{
    event_emit(p->pass.shared->events, &(struct event){ .about = p->pool,
                                                        .controller = MANAGER,
                                                        .is_warning = is_warning,
                                                        .reason = reason,
                                                        .action = "Reconciling",
                                                        .note = note });
}

/* By a quota, mostly: who has the pool can do something about it, once it is known. */
static void tell_refusal(struct pool_pass *p, const struct kube_answer *answer)
{
    const struct status *st = answer->refusal;
    OWN(buf_done) struct buf note = BUF_INIT(STATUS_TEXT_MAX_BYTES);

    if (!st || st->code != 403 || p->memory->is_refused)
        return;
    p->memory->is_refused = true;
    (void)buf_add_capped(&note, SPAN("Error creating: "));
    (void)buf_add_capped(&note, buf_span(&st->message));
    tell(p, true, "FailedCreate", buf_cstr(&note));
}

static const struct step *create_step(void *ctx, size_t i)
{
    struct pool_pass *p = ctx;
    char name[POOL_NAME_BYTES];

    (void)i;
    pool_member_name(p->pool, name);
    p->create = pool_member(p->pool, p->template,
                            (const char *)json_edit_text(p->pass.ed, span_cstr(name)).p, &p->config,
                            p->pass.ed);
    return &p->create; /* sent before the next one is made */
}

static bool create_answered(void *ctx, size_t i, const struct kube_answer *answer)
{
    struct pool_pass *p = ctx;

    (void)i;
    if (outcome_of(answer) == OUTCOME_DONE) {
        p->memory->is_refused = false;
        return true;
    }
    expect_created(&p->memory->expect, 1);
    tell_refusal(p, answer);
    if (!pass_has_faults(&p->pass)) { /* once is enough: they are all alike */
        (void)step_text(&p->create, p->pass.doing, sizeof p->pass.doing);
        pass_fault_of(&p->pass, answer);
    }
    return false;
}

static struct gate_rules rules_of(const struct pools *r)
{
    return (struct gate_rules){ r->config->pool_delay_ms, r->config->pool_rate };
}

/* Claims wait, and a member that is made now is for none of them. */
static bool create_yields(void *ctx)
{
    struct pool_pass *p = ctx;
    struct shared *s = p->pass.shared;
    struct gate_demand demand = {
        .claims = s->urgent ? queue_pressing(s->urgent) : 0,
        .ready = members_count(s->of[SHARED_SANDBOXES], SANDBOXES_BY_STATE, p->pool).ready,
        .wish = pool_wish(p->pool)
    };

    return p->r->config->is_remote && gate_yields(&p->memory->gate, &demand, time_mono_ms());
}

static void creates_finished(void *ctx)
{
    struct pool_pass *p = ctx;
    struct gate_rules rules = rules_of(p->r);
    size_t unsent = p->batch.count - p->batch.begun;

    expect_created(&p->memory->expect, unsent);
    if (unsent && !p->batch.has_failed) {
        gate_refund(&p->memory->gate, &rules, unsent);
        pass_look_again(&p->pass, POOL_YIELD_MS);
    }
    batch_done(&p->batch);
    p->pass.is_waiting = false;
    p->state = AT_STATUS;
    pass_go(&p->pass);
}

/* How many of those that are missing are made now. */
static size_t grant(struct pool_pass *p)
{
    struct gate_rules rules = rules_of(p->r);
    uint64_t now_ms = time_mono_ms(), wait_ms;
    size_t n;

    if (create_yields(p) && p->plan.creates) {
        pass_look_again(&p->pass, POOL_YIELD_MS);
        return 0;
    }
    n = gate_open(&p->memory->gate, &rules, p->plan.active, pool_wish(p->pool), p->plan.creates,
                  now_ms, &wait_ms);
    if (wait_ms)
        pass_look_again(&p->pass, wait_ms);
    if (n && !expect_creates(&p->memory->expect, n, now_ms)) {
        gate_refund(&p->memory->gate, &rules, n);
        return 0;
    }
    return n;
}

static void do_creates(struct pool_pass *p)
{
    size_t n = grant(p);

    p->state = AT_STATUS;
    if (!n)
        return;
    p->state = AT_CREATES;
    p->batch = (struct batch){ .step = create_step,
                               .answered = create_answered,
                               .finished = creates_finished,
                               .yields = create_yields };
    run_batch(p, n);
}

/* ---- status, and what people are told ---- */

static void tell_stuck(struct pool_pass *p)
{
    bool is_stuck = p->plan.stuck > 0;
    uint64_t grace_s = p->config.grace_ms / 1000;
    char note[256];

    if (is_stuck == p->memory->is_stuck)
        return;
    p->memory->is_stuck = is_stuck;
    (void)snprintf(note, sizeof note,
                   "%zu/%zu sandboxes are unschedulable past the %llum%llus readiness grace "
                   "period; they are kept until they can be scheduled",
                   p->plan.stuck, pool_wish(p->pool), (unsigned long long)grace_s / 60,
                   (unsigned long long)grace_s % 60);
    if (is_stuck)
        tell(p, true, "WarmPoolNotProgressing", note);
    else
        tell(p, false, "WarmPoolProgressing", "Warm pool is progressing again");
}

static void tell_crowded(struct pool_pass *p)
{
    char note[256];

    if (p->memory->is_crowded == p->plan.is_crowded)
        return;
    p->memory->is_crowded = p->plan.is_crowded;
    (void)snprintf(note, sizeof note,
                   "%zu of %zu sandboxes are there; there is no room for more: the node takes %zu "
                   "Pods (--max-pods)",
                   p->plan.active, pool_wish(p->pool), p->r->config->pods_max);
    if (p->plan.is_crowded)
        tell(p, true, "TooManyPods", note);
}

static void tell_template(struct pool_pass *p)
{
    const char *name = object_text(p->pool, "spec.sandboxTemplateRef.name");
    char note[320];

    if (p->memory->has_no_template == !p->template)
        return;
    p->memory->has_no_template = !p->template;
    (void)snprintf(note, sizeof note, "SandboxTemplate \"%s\" not found", name ? name : "");
    if (!p->template)
        tell(p, true, "TemplateNotFound", note);
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct pool_pass *p = ctx;
    enum outcome outcome = outcome_of(answer);

    p->state = AT_OVER;
    if (outcome ==
        OUTCOME_DONE) /* its own write wakes nobody: what else is new is looked at here */
        p->pass.is_stale |= object_generation(answer->object) != object_generation(p->pool);
    else if (outcome != OUTCOME_GONE)
        pass_fault_of(&p->pass, answer);
}

static size_t told(const struct pool_pass *p, const char *path)
{
    int64_t n = 0;

    (void)json_i64(object_at(p->pool, path), &n);
    return n > 0 ? (size_t)n : 0;
}

/* A busy pool changes with every claim: its numbers are written once for many of them, or never if they are again what they
 * were. */
static void do_status(struct pool_pass *p)
{
    struct step step = pool_status_step(p->pool, p->plan.status, p->pass.ed);
    struct telling *telling = &p->memory->telling;
    struct telling_view view = {
        .active = p->plan.active,
        .ready = p->plan.ready,
        .wish = pool_wish(p->pool),
        .told_active = told(p, "status.replicas"),
        .told_ready = told(p, "status.readyReplicas"),
        .is_wish_new = (int64_t)told(p, "status.observedGeneration") != object_generation(p->pool),
    };
    uint64_t now_ms = time_mono_ms(), wait_ms;

    tell_stuck(p);
    tell_crowded(p);
    tell_template(p);
    p->state = AT_OVER;
    telling_see(telling, &view, step.verb != STEP_NONE, now_ms);
    if (step.verb == STEP_NONE)
        return;
    wait_ms = telling_wait_ms(telling, &view, now_ms);
    if (wait_ms) {
        pass_look_again(&p->pass, wait_ms);
        return;
    }
    telling_done(telling, now_ms);
    p->state = AT_STATUS;
    pass_call(&p->pass, &step, on_answer);
}

/* ---- the pass ---- */

static void finish(struct pool_pass *p)
{
    bool has_failed = pass_has_faults(&p->pass);

    pass_say_faults(&p->pass, "pool.pass", "pool");
    if (has_failed || p->pass.is_stale)
        p->pass.again_ms = 0; /* the next try is what it waits for */
    pass_end(&p->pass, has_failed);
    for (size_t i = 0; i < p->member_count; i++)
        object_unref(p->members[i]);
    free(p->members);
    object_unref(p->pool);
    object_unref(p->template);
    pool_plan_done(&p->plan);
    free(p);
}

static bool act(void *self)
{
    struct pool_pass *p = self;

    switch (p->state) {
    case AT_MEMBERS:
        do_members(p);
        break;
    case AT_CREATES:
        do_creates(p);
        break;
    case AT_STATUS:
        do_status(p);
        break;
    case AT_OVER:
        finish(p);
        return false;
    }
    return true;
}

static const struct pass_kind passes = { MANAGER, act };

static const struct object *pod_of(void *ctx, const struct object *member)
{
    struct pool_pass *p = ctx;

    return shared_get(p->pass.shared, SHARED_PODS, object_namespace(member), pod_name_of(member));
}

/* References to all sandboxes with the pool's label: the steps point into them while calls are under way. */
static void collect_members(struct pool_pass *p)
{
    OWN(informer_walk_done) struct informer_walk walk;
    struct informer *sandboxes = p->pass.shared->of[SHARED_SANDBOXES];
    const char *namespace = object_namespace(p->pool);
    char hash[NAME_HASH_BYTES];
    size_t most;
    struct object *o;

    (void)name_hash(hash, span_cstr(object_name(p->pool)));
    most = informer_count_of(sandboxes, SANDBOXES_BY_POOL, namespace, hash);
    p->members = own_array(most + 1, sizeof(struct object *));
    informer_walk(&walk, sandboxes, SANDBOXES_BY_POOL, namespace, hash);
    while (p->member_count < most && (o = informer_walk_next(&walk)))
        p->members[p->member_count++] = object_ref(o);
}

/* Nothing but numbers can have changed since members were looked at one by one. */
static bool are_counts_enough(const struct pool_pass *p, const struct member_counts *counts,
                              uint64_t now_ms)
{
    const struct look *look = &p->memory->look;

    return look->at_ms && now_ms - look->at_ms < POOL_LOOK_MS &&
           look->generation == object_generation(p->pool) &&
           strcmp(look->uid, object_uid(p->pool)) == 0 &&
           look->template_version == (p->template ? object_version(p->template) : 0) &&
           (!look->due_ms || now_ms < look->due_ms) && !p->memory->is_stuck && !counts->odd &&
           !p->memory->expect.going_count && counts->ready + counts->unready <= pool_wish(p->pool);
}

static void note_look(struct pool_pass *p, uint64_t now_ms)
{
    struct look *look = &p->memory->look;

    *look = (struct look){ .at_ms = p->plan.count ? 0 : now_ms, /* what is done may fail */
                           .generation = object_generation(p->pool),
                           .template_version = p->template ? object_version(p->template) : 0 };
    (void)snprintf(look->uid, sizeof look->uid, "%s", object_uid(p->pool));
    if (p->plan.look_again_ms)
        look->due_ms = now_ms + p->plan.look_again_ms;
}

static size_t room_for_pods(const struct pool_pass *p)
{
    size_t max = p->r->config->pods_max;

    return max - MIN(max, p->r->pods);
}

static void decide(struct pool_pass *p)
{
    uint64_t now_ms = time_mono_ms();
    struct member_counts counts =
        members_count(p->pass.shared->of[SHARED_SANDBOXES], SANDBOXES_BY_STATE, p->pool);
    struct pool_view view = { .pool = p->pool,
                              .template = p->template,
                              .expect = &p->memory->expect,
                              .now_ms = now_ms,
                              .now = p->pass.now,
                              .pod_of = pod_of,
                              .ctx = p };
    struct look *look = &p->memory->look;

    p->config = (struct pool_config){ .max_batch = p->r->config->pool_batch,
                                      .grace_ms = p->r->config->pool_grace_ms,
                                      .recheck_ms = p->r->config->pool_recheck_ms,
                                      .is_bounded = p->r->config->pods_max > 0,
                                      .room = room_for_pods(p),
                                      .is_evictable = p->r->config->is_pool_evictable };
    if (are_counts_enough(p, &counts, now_ms)) {
        pool_decide_counts(&view, &counts, &p->config, p->pass.ed, &p->plan);
        if (!counts.unready)
            look->due_ms = 0;
        else if (!look->due_ms) /* the first of them came after the last look */
            look->due_ms = now_ms + p->config.grace_ms + POOL_GRACE_MARGIN_MS;
    } else {
        collect_members(p);
        view.members = p->members;
        view.member_count = p->member_count;
        pool_decide(&view, &p->config, p->pass.ed, &p->plan);
        note_look(p, now_ms);
    }
    if (p->plan.look_again_ms)
        pass_look_again(&p->pass, backoff_jitter_ms(p->plan.look_again_ms, 0.5));
    if (look->due_ms)
        pass_look_again(&p->pass, backoff_jitter_ms(look->due_ms - now_ms, 0.5));
}

static void work(void *ctx, struct queue_item *item)
{
    struct pools *r = ctx;
    const char *namespace = queue_item_namespace(item), *name = queue_item_name(item);
    struct object *pool = shared_get(r->base.shared, SHARED_POOLS, namespace, name);
    struct memory **known = memory_slot(r, namespace, name);
    const char *template;
    struct pool_pass *p;

    if (!pool || object_is_deleting(pool)) { /* its members go with it */
        if (*known)
            forget(known);
        queue_done(item);
        return;
    }
    p = NEW(struct pool_pass);
    pass_init(&p->pass, &passes, r->base.shared, item, p);
    p->r = r;
    p->memory = memory_of(r, namespace, name);
    p->pool = object_ref(pool);
    template = object_text(pool, "spec.sandboxTemplateRef.name");
    if (template)
        p->template = shared_get(r->base.shared, SHARED_TEMPLATES, namespace, template);
    if (p->template)
        (void)object_ref(p->template);
    decide(p);
    pass_go(&p->pass);
}

/* ---- what wakes it ---- */

/* A claim took a member: it is replaced when the claim has been told. */
static bool is_taken(const struct change *c)
{
    struct object_owner owner;

    return c->was && c->now && !object_is_deleting(c->now) && member_owner(c->was, &owner) &&
           !member_owner(c->now, &owner);
}

/* What was asked for has come: the expectations are lowered before the pool is woken. */
static void on_sandbox(struct reconciler *base, const struct change *c)
{
    struct pools *r = CONTAINER(base, struct pools, base);
    const struct object *o = change_object(c);
    const char *namespace = object_namespace(o);
    struct object_owner owner;
    struct memory *memory;

    if (!members_differ(c->was, c->now) ||
        (!member_owner(c->now, &owner) && !member_owner(c->was, &owner)))
        return;
    memory = *memory_slot(r, namespace, owner.name);
    if (memory && !c->was)
        expect_created(&memory->expect, 1);
    else if (memory && (!c->now || object_is_deleting(c->now)))
        expect_deleted(&memory->expect, object_uid(o));
    if (is_taken(c) && base->queue)
        queue_add_after(base->queue, namespace, owner.name, POOL_TAKEN_MS);
    else
        reconciler_wake(base, namespace, owner.name, c->is_initial);
}

/* Those that stand for parts of the system take no room. */
static void on_pod(struct reconciler *base, const struct change *c)
{
    struct pools *r = CONTAINER(base, struct pools, base);

    if (c->was && c->now)
        return;
    if (object_label(change_object(c), LABEL_TRACKING))
        r->pods += c->now ? 1 : (size_t)-1;
}

static void on_template(struct reconciler *r, const struct change *c)
{
    OWN(informer_walk_done) struct informer_walk walk;
    const struct object *template = change_object(c);
    struct object *pool;

    informer_walk(&walk, r->shared->of[SHARED_POOLS], POOLS_BY_TEMPLATE, object_namespace(template),
                  object_name(template));
    while ((pool = informer_walk_next(&walk)))
        reconciler_wake(r, object_namespace(pool), object_name(pool), c->is_initial);
}

static void pools_free(struct reconciler *base)
{
    struct pools *r = CONTAINER(base, struct pools, base);

    EACH(slot, r->slots) {
        while (*slot)
            forget(slot);
    }
    free(r);
}

struct reconciler *pools_new(struct shared *shared, const struct controller_config *config)
{
    struct pools *r = NEW(struct pools);

    reconciler_init(&r->base, shared, "sandboxwarmpool",
                    (struct reconciler_workers){ .most = config->pool_workers }, work, pools_free);
    r->config = config;
    reconciler_follow_others(&r->base, SHARED_POOLS);
    reconciler_watch(&r->base, SHARED_SANDBOXES, on_sandbox);
    reconciler_watch(&r->base, SHARED_TEMPLATES, on_template);
    if (config->pods_max)
        reconciler_watch(&r->base, SHARED_PODS, on_pod);
    return &r->base;
}
