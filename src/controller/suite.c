#include "controller/suite_impl.h"

#include "base/time.h"
#include "controller/condition.h"
#include "controller/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct client_suite *suite;

int suite_set_up(void **state)
{
    struct world *w = NEW(struct world);

    world_open(w, suite);
    *state = w;
    return 0;
}

int suite_tear_down(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

bool suite_has_condition(const struct object *o, const char *type, const char *text)
{
    const struct json *c = condition_find(object_at(o, "status.conditions"), type);
    char have[1024];

    if (!c)
        return false;
    (void)snprintf(have, sizeof have, "%s %s %s", json_cstr(json_get(c, "status")),
                   json_cstr(json_get(c, "reason")), json_cstr(json_get(c, "message")));
    return strncmp(have, text, strlen(text)) == 0;
}

/* What a scheduler says of Pods is none of ours. */
static void count_ours(void *ctx, const struct object *o)
{
    size_t *n = ctx;
    const char *about = object_text(o, "regarding.kind");

    *n += !about || strcmp(about, "Pod") != 0;
}

static size_t count_of(struct world *w, const struct kind *kind)
{
    size_t n = 0;

    world_each(w, kind, count_ours, &n);
    return n;
}

void suite_until_count(struct world *w, const struct kind *kind, size_t n)
{
    uint64_t end_ms = time_mono_ms() + WORLD_PATIENCE_MS;

    while (count_of(w, kind) != n && time_mono_ms() < end_ms)
        world_idle(w, 2);
    world_idle(w, 20);
    if (count_of(w, kind) != n)
        fail_msg("there are %zu of %s, not %zu", count_of(w, kind), kind->name, n);
}

/* ---- a template, a pool, claims ---- */

void suite_make_template(struct world *w, const char *more)
{
    (void)world_create(w, known_kinds()->template,
                       "{'metadata':{'name':'t'},'spec':{'podTemplate':{'spec':{'containers':[{"
                       "'name':'c','image':'i'}]}}%s}}",
                       more);
}

void suite_make_pool(struct world *w, unsigned replicas)
{
    (void)world_create(w, known_kinds()->pool,
                       "{'metadata':{'name':'p'},'spec':{'replicas':%u,'sandboxTemplateRef':{"
                       "'name':'t'}}}",
                       replicas);
}

static bool is_full(struct world *w, const struct object *o, const void *arg)
{
    const unsigned *want = arg;
    int64_t ready;

    (void)w;
    return o && json_i64(object_at(o, "status.readyReplicas"), &ready) && ready == *want;
}

struct members {
    const char *pool;
    unsigned ready;
};

static void count_ready(void *ctx, const struct object *o)
{
    struct members *m = ctx;
    struct object_owner owner;

    m->ready += object_owner_controller(o, &owner) && strcmp(owner.name, m->pool) == 0 &&
                suite_has_condition(o, "Ready", "True");
}

/* Its status is written once for many changes: right after a claim it may still tell of the time before. */
void suite_until_size(struct world *w, const char *pool, unsigned replicas)
{
    uint64_t end_ms = time_mono_ms() + WORLD_PATIENCE_MS;
    struct members m = { pool, 0 };

    (void)world_until(w, known_kinds()->pool, pool, "full", is_full, &replicas);
    for (;;) {
        m.ready = 0;
        world_each(w, known_kinds()->sandbox, count_ready, &m);
        if (m.ready == replicas || time_mono_ms() > end_ms)
            break;
        world_idle(w, 2);
    }
    assert_int_equal(m.ready, replicas);
    (void)world_until(w, known_kinds()->pool, pool, "full", is_full, &replicas);
}

void suite_until_full(struct world *w, unsigned replicas)
{
    suite_until_size(w, "p", replicas);
}

void suite_open_pool(struct world *w, unsigned replicas, const char *more)
{
    suite_make_template(w, more);
    suite_make_pool(w, replicas);
    suite_until_full(w, replicas);
}

void suite_make_claim(struct world *w, const char *name, const char *more)
{
    (void)world_create(w, known_kinds()->claim,
                       "{'metadata':{'name':'%s'},'spec':{'warmPoolRef':{'name':'p'}%s}}", name,
                       more);
}

struct object *suite_sandbox_of(struct world *w, const struct object *claim)
{
    const char *name = object_text(claim, "status.sandbox.name");
    struct object *s;

    assert_non_null(name);
    s = world_get(w, known_kinds()->sandbox, name);
    assert_non_null(s);
    assert_int_equal(ownership_of(s, claim), OWNED);
    return s;
}

/* ---- what others do meanwhile ---- */

static void on_done(void *ctx, const struct kube_answer *answer)
{
    (void)ctx, (void)answer;
}

static void meet(struct suite_meddler *m, const struct kube_request *rq)
{
    if (!m->name[0])
        (void)snprintf(m->name, sizeof m->name, "%s", rq->name);
}

void suite_write_first(void *ctx, const struct kube_request *rq)
{
    static unsigned serial;
    struct suite_meddler *m = ctx;
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

void suite_delete_first(void *ctx, const struct kube_request *rq)
{
    struct suite_meddler *m = ctx;

    meet(m, rq);
    (void)kube_call_start(
        m->w->client,
        &(struct kube_request){
            .verb = KUBE_DELETE, .kind = rq->kind, .namespace = rq->namespace, .name = rq->name },
        on_done, NULL);
}

/* ---- what people are told ---- */

struct warning {
    const char *uid, *reason, *note;
    size_t events;
    int64_t times;
};

static void on_event(void *ctx, const struct object *o)
{
    struct warning *w = ctx;
    const char *uid = object_text(o, "regarding.uid"), *reason = object_text(o, "reason");
    const char *note = object_text(o, "note"), *type = object_text(o, "type");
    int64_t times;

    if (!uid || !reason || !note || strcmp(uid, w->uid) != 0 || strcmp(reason, w->reason) != 0 ||
        !strstr(note, w->note) || strcmp(type, "Warning") != 0)
        return;
    w->events++;
    w->times += json_i64(object_at(o, "series.count"), &times) ? times : 1;
}

int64_t suite_until_warned(struct world *w, const struct object *about, const char *reason,
                           const char *note)
{
    uint64_t end_ms = time_mono_ms() + WORLD_PATIENCE_MS;
    struct warning found = { object_uid(about), reason, note, 0, 0 };

    for (;;) {
        found.events = 0;
        found.times = 0;
        world_each(w, known_kinds()->event, on_event, &found);
        if (found.events || time_mono_ms() > end_ms)
            break;
        world_idle(w, 2);
    }
    if (found.events != 1)
        fail_msg("%zu Events of %s say %s ... %s", found.events, object_name(about), reason, note);
    return found.times;
}

int controller_suite_run(const struct client_suite *s)
{
    int failed = 0;

    suite = s;
    failed += suite_sandbox_run();
    failed += suite_pool_run();
    failed += suite_claim_run();
    failed += suite_fault_run();
    failed += suite_input_run();
    failed += suite_adopt_run();
    failed += suite_config_run();
    return failed;
}
