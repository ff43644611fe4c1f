#include "controller/pool.h"

#include "controller/blueprint.h"
#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "kube/time.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

bool pool_recreates(const struct object *pool)
{
    const char *type = object_text(pool, "spec.updateStrategy.type");

    return type && strcmp(type, "Recreate") == 0;
}

size_t pool_wish(const struct object *pool)
{
    int64_t n;

    if (!json_i64(object_at(pool, "spec.replicas"), &n))
        return 1;
    return n > 0 ? (size_t)n : 0;
}

/* ---- a plan in the making ---- */

struct making {
    const struct pool_view *v;
    const struct pool_config *config;
    struct json_edit *ed;
    struct pool_plan *plan;
    const struct object **active; /* as many as there are members */
    size_t active_count, going, ready;
};

static void add_step(struct pool_plan *plan, const struct step *step)
{
    if (plan->count == plan->cap) {
        plan->cap = plan->cap ? 2 * plan->cap : 16;
        plan->steps = own_resize(plan->steps, plan->cap, sizeof *plan->steps);
    }
    plan->steps[plan->count++] = *step;
}

void pool_plan_done(struct pool_plan *plan)
{
    free(plan->steps);
    *plan = (struct pool_plan){ 0 };
}

/* Only as it was seen: a claim may just have taken it. */
static void throw_away(struct making *m, const struct object *member)
{
    struct step step = step_delete(member);

    step.version = object_version(member);
    add_step(m->plan, &step);
}

static bool is_ready(const struct object *sandbox)
{
    return condition_is(object_at(sandbox, "status.conditions"), COND_READY, "True");
}

static void look_again(struct making *m, uint64_t ms)
{
    if (!m->plan->look_again_ms || ms < m->plan->look_again_ms)
        m->plan->look_again_ms = ms;
}

/* ---- each sandbox that carries the label ---- */

static bool has_launch_label(const struct object *member)
{
    const char *launch = object_label(member, LABEL_LAUNCH);

    return launch && strcmp(launch, LAUNCH_WARM) == 0;
}

/* Takes over an orphan, and sees to it that a member says how it was started. */
static void take_in(struct making *m, const struct object *member, enum ownership owner)
{
    struct step step;
    struct json_node *meta;

    if (owner == OWNED && has_launch_label(member))
        return;
    step = step_patch_locked(m->ed, member);
    meta = tree_object(step.body, "metadata");
    if (owner == UNOWNED)
        json_node_set(meta, "ownerReferences", owner_references_with(m->ed, member, m->v->pool));
    tree_text(tree_object(meta, "labels"), LABEL_LAUNCH, LAUNCH_WARM);
    add_step(m->plan, &step);
}

static void classify(struct making *m, const struct object *member)
{
    enum ownership owner = ownership_of(member, m->v->pool);

    if (owner == FOREIGN) /* a claim has it already */
        return;
    if (object_is_deleting(member) || expect_is_going(m->v->expect, object_uid(member))) {
        m->going += owner == OWNED;
        return;
    }
    if (m->v->template && (owner == UNOWNED || pool_recreates(m->v->pool)) &&
        blueprint_is_stale(member, m->v->template)) {
        throw_away(m, member);
        m->going += owner == OWNED;
        return;
    }
    take_in(m, member, owner);
    m->active[m->active_count++] = member;
}

/* ---- members that do not become ready ---- */

static int64_t age_ms(const struct making *m, const struct object *member)
{
    struct timespec made;

    if (!kube_time_parse(span_cstr(object_text(member, "metadata.creationTimestamp")), &made))
        return -1;
    return (m->v->now.tv_sec - made.tv_sec) * 1000 + (m->v->now.tv_nsec - made.tv_nsec) / 1000000;
}

static bool cannot_be_scheduled(const struct making *m, const struct object *member)
{
    const struct object *pod = m->v->pod_of(m->v->ctx, member);
    const struct json *conditions = pod ? object_at(pod, "status.conditions") : NULL;

    return pod && !object_is_deleting(pod) &&
           condition_is(conditions, COND_POD_SCHEDULED, "False") &&
           strcmp(condition_reason(conditions, COND_POD_SCHEDULED), "Unschedulable") == 0;
}

/* One whose Pod has ended never becomes ready. */
static uint64_t grace_of(const struct making *m, const struct object *member)
{
    return condition_is(object_at(member, "status.conditions"), COND_FINISHED, "True")
               ? MIN(m->config->grace_ms, (uint64_t)POOL_FINISHED_MS)
               : m->config->grace_ms;
}

/* False: it has had its time, and goes. */
static bool is_kept(struct making *m, const struct object *member)
{
    uint64_t grace_ms = grace_of(m, member);
    int64_t age;

    if (is_ready(member)) {
        m->ready++;
        return true;
    }
    age = age_ms(m, member);
    if (age < 0)
        return true;
    if ((uint64_t)age <= grace_ms) {
        look_again(m, grace_ms - (uint64_t)age + POOL_GRACE_MARGIN_MS);
        return true;
    }
    if (!cannot_be_scheduled(m, member))
        return false;
    m->plan->stuck++;
    look_again(m, m->config->recheck_ms);
    return true;
}

static void drop_stuck(struct making *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->active_count; i++) {
        const struct object *member = m->active[i];

        if (is_kept(m, member)) {
            m->active[kept++] = member;
        } else {
            throw_away(m, member);
            m->going++;
        }
    }
    m->active_count = kept;
}

/* ---- too few, too many ---- */

/* Those that are not ready go first, then the newest: who waits longest is served best. */
static int by_worth(const void *a, const void *b)
{
    const struct object *x = *(const struct object *const *)a;
    const struct object *y = *(const struct object *const *)b;
    const char *x_made = object_text(x, "metadata.creationTimestamp");
    const char *y_made = object_text(y, "metadata.creationTimestamp");

    if (is_ready(x) != is_ready(y))
        return is_ready(x) ? 1 : -1;
    return strcmp(y_made ? y_made : "", x_made ? x_made : "");
}

/* How many may be made now. Members that are not ready may have no Pod yet: they count as if none had. */
static size_t most(const struct making *m)
{
    size_t unready = m->active_count - MIN(m->active_count, m->ready), room = m->config->room;

    if (!m->config->is_bounded)
        return m->config->max_batch;
    room -= MIN(room, unready);
    return MIN(room, m->config->max_batch);
}

static void size_up(struct making *m)
{
    size_t wish = pool_wish(m->v->pool), all = m->active_count + m->going;
    bool may_act = expect_is_met(m->v->expect, m->v->now_ms);

    if (m->active_count > wish) {
        size_t excess = MIN(m->active_count - wish, m->config->max_batch);

        m->plan->is_held = !may_act;
        if (!may_act)
            return;
        qsort(m->active, m->active_count, sizeof *m->active, by_worth);
        for (size_t i = 0; i < excess; i++)
            throw_away(m, m->active[i]);
    } else if (wish > all && m->v->template) {
        m->plan->is_held = !may_act;
        if (may_act)
            m->plan->creates = MIN(wish - all, most(m));
        m->plan->is_crowded = may_act && !m->plan->creates;
        if (m->plan->is_crowded)
            look_again(m, POOL_CROWDED_MS);
    }
}

static struct json_node *status_of(struct making *m)
{
    struct json_node *status = json_edit_object(m->ed);
    char hash[NAME_HASH_BYTES], selector[96];

    json_node_set(status, "replicas", json_edit_i64(m->ed, (int64_t)m->active_count));
    json_node_set(status, "readyReplicas", json_edit_i64(m->ed, (int64_t)m->ready));
    (void)snprintf(selector, sizeof selector, "%s=%s", LABEL_POOL,
                   name_hash(hash, span_cstr(object_name(m->v->pool))));
    tree_text(status, "selector", selector);
    json_node_set(status, "observedGeneration",
                  json_edit_i64(m->ed, object_generation(m->v->pool)));
    return status;
}

void pool_decide(const struct pool_view *v, const struct pool_config *config, struct json_edit *ed,
                 struct pool_plan *ret)
{
    OWN_MEM const struct object **active = own_array(v->member_count + 1, sizeof *active);
    struct making m = { .v = v, .config = config, .ed = ed, .plan = ret, .active = active };

    *ret = (struct pool_plan){ 0 };
    for (size_t i = 0; i < v->member_count; i++)
        classify(&m, v->members[i]);
    drop_stuck(&m);
    ret->active = m.active_count;
    ret->ready = m.ready;
    ret->status = status_of(&m);
    size_up(&m);
    if (ret->is_held)
        look_again(&m, POOL_HELD_MS);
}

void pool_decide_counts(const struct pool_view *v, const struct member_counts *counts,
                        const struct pool_config *config, struct json_edit *ed,
                        struct pool_plan *ret)
{
    struct making m = { .v = v,
                        .config = config,
                        .ed = ed,
                        .plan = ret,
                        .active_count = counts->ready + counts->unready,
                        .going = counts->going,
                        .ready = counts->ready };

    *ret = (struct pool_plan){ 0 };
    assert(m.active_count <= pool_wish(v->pool));
    ret->active = m.active_count;
    ret->ready = m.ready;
    ret->status = status_of(&m);
    size_up(&m);
    if (ret->is_held)
        look_again(&m, POOL_HELD_MS);
}

/* ---- a new member ---- */

void pool_member_name(const struct object *pool, char name[POOL_NAME_BYTES])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* no vowels: no words */
    size_t n = MIN(strlen(object_name(pool)), (size_t)57);
    uint8_t random[5];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        abort(); /* so few are always given whole */
    memcpy(name, object_name(pool), n);
    name[n++] = '-';
    EACH(byte, random)
        name[n++] = letters[*byte % (sizeof letters - 1)];
    name[n] = '\0';
}

struct step pool_member(const struct object *pool, const struct object *template, const char *name,
                        const struct pool_config *config, struct json_edit *ed)
{
    struct step step = step_create(ed, known_kinds()->sandbox, object_namespace(pool), name);
    struct json_node *meta = tree_object(step.body, "metadata"), *owners = json_edit_array(ed);
    struct json_node *labels = tree_object(meta, "labels"), *pod_labels, *pod_meta;
    char of_pool[NAME_HASH_BYTES], ref[NAME_HASH_BYTES], all[NAME_HASH_BYTES], pod[NAME_HASH_BYTES];
    const struct {
        const char *key, *value;
    } marks[] = {
        { LABEL_POOL, name_hash(of_pool, span_cstr(object_name(pool))) },
        { LABEL_TEMPLATE_REF, name_hash(ref, span_cstr(object_name(template))) },
        { LABEL_TEMPLATE_HASH, blueprint_hash(all, template) },
        { LABEL_POD_HASH, blueprint_pod_hash(pod, template) },
    };

    json_node_set(meta, "generateName",
                  json_edit_str(ed, json_edit_join(ed, span_cstr(object_name(pool)), SPAN("-"))));
    json_node_set(step.body, "spec", blueprint_spec(ed, template));
    pod_meta =
        tree_object(tree_object(json_node_get(step.body, "spec"), "podTemplate"), "metadata");
    pod_labels = tree_object(pod_meta, "labels");
    EACH(mark, marks) {
        tree_text(labels, mark->key, mark->value);
        tree_text(pod_labels, mark->key, mark->value);
    }
    tree_text(labels, LABEL_LAUNCH, LAUNCH_WARM);
    tree_text(labels, LABEL_CREATED_BY, "controller");
    tree_text(tree_object(meta, "annotations"), NOTE_TEMPLATE_REF, object_name(template));
    tree_text(tree_object(meta, "annotations"), NOTE_POD_NAME, name);
    if (config->is_evictable &&
        !json_node_get(json_node_get(pod_meta, "annotations"), NOTE_SAFE_TO_EVICT))
        tree_text(tree_object(pod_meta, "annotations"), NOTE_SAFE_TO_EVICT, "true");
    json_node_append(owners, owner_reference(ed, pool));
    json_node_set(meta, "ownerReferences", owners);
    return step;
}

struct step pool_status_step(const struct object *pool, struct json_node *status,
                             struct json_edit *ed)
{
    const struct json *have = object_member(pool, "status");
    struct step step = step_patch(ed, pool);
    bool is_new = false;

    step.sub = "status";
    for (size_t i = 0; i < json_node_count(status); i++) {
        struct span name = json_node_name_at(status, i);
        struct json_node *value = json_node_value_at(status, i);

        if (json_node_equal_value(value, json_get_span(have, name)))
            continue;
        json_node_set_span(tree_object(step.body, "status"), name, json_node_copy(ed, value));
        is_new = true;
    }
    if (!is_new)
        step.verb = STEP_NONE;
    return step;
}
