#include "node/hook.h"

#include "node/event.h"
#include "node/limits.h"
#include "node/make.h"
#include "node/question.h"

#include "base/log.h"
#include "ev/timer.h"

#define GRACE_DEFAULT_S 30

struct hook {
    struct hook *next, **at_list;
    struct ev_loop *loop;
    struct node *node; /* NULL: it has closed */
    struct run_id id;  /* the record may go meanwhile */
    char box[RUN_NAME_BYTES];
    struct object *pod; /* whose texts these are */
    enum hook_when when;
    struct question question;
    struct ev_timer sleeping; /* of a handler that only waits */
};

static const char *const keys[] = { "postStart", "preStop" };
static const char *const names[] = { "PostStartHook", "PreStopHook" };
static const char *const reasons[] = { "FailedPostStartHook", "FailedPreStopHook" };

bool hook_has(const struct json *container, enum hook_when when)
{
    return json_count(json_get(json_get(container, "lifecycle"), keys[when])) > 0;
}

/* ---- the end ---- */

static struct life_container *still(const struct hook *h, struct record **ret, size_t *ret_at)
{
    struct record *r = record_find_uid(h->node, h->id.uid);
    size_t at = r ? record_container(r, h->id.container) : SIZE_MAX;

    if (at == SIZE_MAX || r->life.v[at].now.state != RUN_UP ||
        r->life.v[at].now.attempt != h->id.attempt)
        return NULL;
    *ret = r;
    *ret_at = at;
    return &r->life.v[at];
}

static void tell(const struct hook *h, const struct record *r, size_t at, const char *why)
{
    char text[PROBER_MESSAGE_MAX_BYTES + 64];

    (void)snprintf(text, sizeof text, "%s failed%s%s", names[h->when], *why ? ": " : "", why);
    log_info("hook.failed", KV("box", (const char *)h->box), KV("hook", keys[h->when]),
             KV("err", why));
    node_event(h->node->events, &(struct event_spec){ .about = h->pod,
                                                      .node = h->node->name,
                                                      .container = r->parts[at].name,
                                                      .is_init = r->life.v[at].is_init,
                                                      .is_warning = true,
                                                      .reason = reasons[h->when],
                                                      .message = text });
}

/* It has begun; or it is ended as one that could not. */
static void started(struct hook *h, struct record *r, size_t at, bool is_success)
{
    struct life_container *c = &r->life.v[at];
    uint64_t grace_s = GRACE_DEFAULT_S;

    c->now.is_starting = false;
    if (is_success) {
        if (r->pod)
            ready_begin(r, at);
        return;
    }
    (void)json_u64(object_at(h->pod, "spec.terminationGracePeriodSeconds"), &grace_s);
    c->must_end = true;
    c->end_by_ms = node_wall_ms() + MIN(grace_s, (uint64_t)UINT32_MAX) * 1000;
}

static void hook_free(void *obj)
{
    struct hook *h = obj;

    object_unref(h->pod);
    free(h);
}

static void unlist(struct hook *h)
{
    if (!h->at_list)
        return;
    *h->at_list = h->next;
    if (h->next)
        h->next->at_list = h->at_list;
    h->at_list = NULL;
}

static void finish(void *ctx, bool is_success, const char *message)
{
    struct hook *h = ctx;
    struct record *r;
    size_t at;
    struct life_container *c = h->node ? still(h, &r, &at) : NULL;

    if (c && !is_success)
        tell(h, r, at, message);
    if (c && h->when == HOOK_START)
        started(h, r, at, is_success);
    if (c && h->when == HOOK_STOP) {
        c->now.is_hooking = false;
        c->now.was_hooked = true;
    }
    if (c)
        node_wake(h->node, r);
    unlist(h);
    ev_free_later(h->loop, h, hook_free);
}

static void slept(void *ctx)
{
    finish(ctx, true, "");
}

/* ---- the beginning ---- */

static void begin(struct hook *h, struct record *r, size_t at, uint64_t timeout_ms)
{
    const struct json *container = record_spec(r, at);
    const struct json *handler = json_get(json_get(container, "lifecycle"), keys[h->when]);
    const struct json *sleep = json_get(handler, "sleep");
    uint64_t seconds = 0;

    if (json_type(sleep) == JSON_OBJECT) {
        (void)json_u64(json_get(sleep, "seconds"), &seconds);
        seconds = MIN(seconds, (uint64_t)UINT32_MAX);
        ev_timer_start(h->loop, &h->sleeping, MIN(seconds * 1000, timeout_ms), slept, h);
        return;
    }
    question_start(&h->question, &(struct question_spec){ .node = h->node,
                                                          .box = h->box,
                                                          .handler = handler,
                                                          .container = container,
                                                          .pod_ip = r->ip,
                                                          .cwd = make_cwd(r, at),
                                                          .timeout_ms = timeout_ms,
                                                          .takes_any_status = true,
                                                          .done = finish,
                                                          .ctx = h });
}

void hook_start(struct record *r, size_t at, enum hook_when when, uint64_t timeout_ms)
{
    struct node *n = r->node;
    struct hook *h = NEW(struct hook);

    h->node = n;
    h->loop = n->loop;
    h->when = when;
    h->pod = object_ref(r->pod);
    (void)snprintf(h->id.uid, sizeof h->id.uid, "%s", r->uid);
    (void)snprintf(h->id.container, sizeof h->id.container, "%s", r->parts[at].name);
    h->id.attempt = r->life.v[at].now.attempt;
    record_box(r, at, h->id.attempt, h->box);
    h->at_list = &n->hooks;
    h->next = n->hooks;
    if (h->next)
        h->next->at_list = &h->next;
    n->hooks = h;
    begin(h, r, at, timeout_ms);
}

void hook_close(struct node *n)
{
    while (n->hooks) {
        struct hook *h = n->hooks;

        unlist(h);
        h->node = NULL; /* it may be gone before the last word of these is said */
        if (ev_timer_is_running(&h->sleeping)) {
            ev_timer_stop(h->loop, &h->sleeping);
            ev_free_later(h->loop, h, hook_free);
        } else {
            question_cancel(&h->question);
        }
    }
}
