#include "kube/lease.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/timer.h"
#include "kube/backoff.h"
#include "kube/time.h"

#include <string.h>
#include <time.h>

#define NOT_SAID (-1)
#define JITTER   1.2 /* those who wait try every one to 2.2 times retry_ms, as the public library */

enum lease_state { LEASE_WAITING, LEASE_HELD, LEASE_LOST, LEASE_CLOSING };
enum lease_step { STEP_NONE, STEP_GET, STEP_CREATE, STEP_UPDATE, STEP_RELEASE };

struct lease {
    struct kube_client *client;
    struct ev_loop *loop;
    const struct kind *kind;
    struct lease_spec spec; /* its texts are ours */
    enum lease_state state;
    enum lease_step step; /* of the call under way */
    struct kube_call *call;
    struct object *seen; /* the Lease as it was last */
    uint64_t seen_ms;    /* when that was first */
    uint64_t sent_ms;    /* when the call under way was made */
    uint64_t until_ms;   /* while it is held: until then nobody else can have it */
    bool has_looked;     /* the attempt under way began with a get, or came to one */
    int said_code;       /* of the refusal that the log has; 0 and above, NOT_SAID: all is well */
    bool gives_back;     /* closing: once the call under way has ended */
    char *leader;        /* who was told of */
    struct ev_timer next;
    struct ev_timer limit; /* of a renewal while it is held, else of one call */
    struct ev_task end;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void set_state(struct lease *l, enum lease_state state)
{
    static const char *const names[] = { "waiting", "held", "lost", "closing" };

    assert(l->state < state || (l->state == LEASE_HELD && state == LEASE_HELD));
    if (l->state != state)
        log_info("lease.state", KV("lease", l->spec.name), KV("identity", l->spec.identity),
                 KV("state", names[state]));
    l->state = state;
}

/* ---- the Lease ---- */

static const char *holder(const struct object *o)
{
    const char *text = o ? object_text(o, "spec.holderIdentity") : NULL;

    return text ? text : "";
}

static bool is_ours(const struct lease *l)
{
    return strcmp(holder(l->seen), l->spec.identity) == 0;
}

/* Somebody else has it, and renewed it not too long ago. */
static bool is_taken(const struct lease *l)
{
    int64_t seconds;

    if (!*holder(l->seen) || is_ours(l))
        return false;
    if (!json_i64(object_at(l->seen, "spec.leaseDurationSeconds"), &seconds) || seconds < 0)
        seconds = 0;
    return ev_now_ms(l->loop) < l->seen_ms + (uint64_t)MIN(seconds, (int64_t)INT32_MAX) * 1000;
}

static struct span spec_bytes(const struct object *o)
{
    struct json_doc *doc = o ? object_member_doc(o, "spec") : NULL;

    return doc ? json_doc_bytes(doc) : SPAN_NONE;
}

/* Only the record counts: a label that somebody puts on the Lease renews nothing. */
static void observe(struct lease *l, struct object *o)
{
    if (!l->seen || !span_eq(spec_bytes(o), spec_bytes(l->seen)))
        l->seen_ms = ev_now_ms(l->loop);
    object_unref(l->seen);
    l->seen = object_ref(o);
}

static void tell_leader(struct lease *l)
{
    const char *now = holder(l->seen);

    if (l->state == LEASE_CLOSING || strcmp(l->leader, now) == 0)
        return;
    free(l->leader);
    l->leader = own_strdup(now);
    log_info("lease.leader", KV("lease", l->spec.name), KV("leader", now));
    if (l->spec.on_leader)
        l->spec.on_leader(l->spec.ctx, l->leader);
}

static void set_spec(const struct lease *l, struct json_node *spec, bool is_released)
{
    struct json_edit *ed = json_node_edit(spec);
    char text[TIME_TEXT_BYTES];
    struct timespec now;
    int64_t transitions = 0;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)kube_microtime_text(text, now);
    (void)json_node_i64(json_node_get(spec, "leaseTransitions"), &transitions);
    if (!is_ours(l) && l->seen)
        transitions++;
    if (!is_ours(l) || is_released)
        json_node_set(spec, "acquireTime", json_edit_cstr(ed, text));
    json_node_set(spec, "holderIdentity", json_edit_cstr(ed, is_released ? "" : l->spec.identity));
    json_node_set(
        spec, "leaseDurationSeconds",
        json_edit_i64(ed, is_released ? 1 : (int64_t)MAX(l->spec.duration_ms / 1000, 1ull)));
    json_node_set(spec, "leaseTransitions", json_edit_i64(ed, transitions));
    json_node_set(spec, "renewTime", json_edit_cstr(ed, text));
}

/* The Lease as we want it, on top of what was seen. NULL: what is there cannot be changed by us. */
static struct object *make(const struct lease *l, bool is_released)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = l->seen ? object_thaw(l->seen, NULL, ed) : json_edit_object(ed), *spec;
    struct object *o = NULL;
    struct err e;

    if (!l->seen) {
        struct json_node *meta = json_node_set(root, "metadata", json_edit_object(ed));

        json_node_set(meta, "name", json_edit_cstr(ed, l->spec.name));
        json_node_set(meta, "namespace", json_edit_cstr(ed, l->spec.namespace));
    }
    spec = json_node_get(root, "spec");
    if (json_node_type(spec) != JSON_OBJECT)
        spec = json_node_set(root, "spec", json_edit_object(ed));
    set_spec(l, spec, is_released);
    return object_freeze(l->kind, l->seen, root, &o, &e) < 0 ? NULL : o;
}

/* ---- attempts ---- */

static void on_limit(void *ctx);
static void on_answer(void *ctx, const struct kube_answer *answer);
static void attempt(void *ctx);
static void finish_close(struct lease *l);

static void start_call(struct lease *l, enum lease_step step)
{
    static const enum kube_verb verbs[] = { [STEP_GET] = KUBE_GET,
                                            [STEP_CREATE] = KUBE_CREATE,
                                            [STEP_UPDATE] = KUBE_UPDATE,
                                            [STEP_RELEASE] = KUBE_UPDATE };
    OWN(object_done) struct object *o = step == STEP_GET ? NULL : make(l, step == STEP_RELEASE);

    l->step = step;
    l->sent_ms = ev_now_ms(l->loop);
    if (l->state != LEASE_HELD)
        ev_timer_start(l->loop, &l->limit, l->spec.renew_ms, on_limit, l);
    l->call = kube_call_start(l->client,
                              &(struct kube_request){ .verb = verbs[step],
                                                      .kind = l->kind,
                                                      .version = "v1",
                                                      .namespace = l->spec.namespace,
                                                      .name = l->spec.name,
                                                      .object = o },
                              on_answer, l);
}

static void try_again(struct lease *l)
{
    uint64_t ms =
        l->state == LEASE_HELD ? l->spec.retry_ms : backoff_jitter_ms(l->spec.retry_ms, JITTER);

    if (l->state == LEASE_WAITING)
        ev_timer_stop(l->loop, &l->limit);
    ev_timer_start(l->loop, &l->next, ms, attempt, l);
}

static void hold(struct lease *l)
{
    bool is_new = l->state != LEASE_HELD;
    uint64_t late_ms = ev_now_ms(l->loop) - l->sent_ms;

    /* From the moment it was sent: nobody knows when within the call the others began to count. */
    l->until_ms = l->sent_ms + l->spec.renew_ms;
    ev_timer_start(l->loop, &l->limit, late_ms < l->spec.renew_ms ? l->spec.renew_ms - late_ms : 0,
                   on_limit, l);
    set_state(l, LEASE_HELD);
    try_again(l);
    tell_leader(l);
    if (is_new && l->state == LEASE_HELD && l->spec.on_started)
        l->spec.on_started(l->spec.ctx);
}

static void lose(struct lease *l, const char *why)
{
    log_error("lease.lost", KV("lease", l->spec.name), KV("identity", l->spec.identity),
              KV("why", why));
    ev_timer_stop(l->loop, &l->next);
    ev_timer_stop(l->loop, &l->limit);
    set_state(l, LEASE_LOST);
    if (l->spec.on_stopped)
        l->spec.on_stopped(l->spec.ctx);
}

static void on_limit(void *ctx)
{
    struct lease *l = ctx;

    if (l->call)
        kube_call_cancel(l->call); /* its answer comes all the same */
    if (l->state == LEASE_HELD)
        lose(l, "no renewal went through");
}

static void attempt(void *ctx)
{
    struct lease *l = ctx;

    assert(!l->call);
    l->has_looked = l->state != LEASE_HELD; /* who holds it knows what is there */
    start_call(l, l->has_looked ? STEP_GET : STEP_UPDATE);
}

static void say_well(struct lease *l)
{
    if (l->said_code != NOT_SAID)
        log_info("lease.well", KV("lease", l->spec.name));
    l->said_code = NOT_SAID;
}

static void on_got(struct lease *l, struct object *o)
{
    observe(l, o);
    if (!is_taken(l)) {
        start_call(l, STEP_UPDATE);
        tell_leader(l);
        return;
    }
    if (l->state == LEASE_HELD) {
        lose(l, "somebody else holds it");
        tell_leader(l);
        return;
    }
    try_again(l);
    tell_leader(l);
}

static void on_refused(struct lease *l, enum lease_step step, const struct status *why)
{
    bool is_gone = why->code == 404;

    if (step == STEP_UPDATE && (why->code == 409 || is_gone) && !l->has_looked) {
        l->has_looked = true;
        start_call(l, STEP_GET);
        return;
    }
    if (step == STEP_GET && is_gone) {
        object_unref(take_ptr(&l->seen));
        start_call(l, STEP_CREATE);
        return;
    }
    LOG_AT(l->said_code == why->code ? LOG_DEBUG : LOG_WARN, "lease.refused",
           KV("lease", l->spec.name), KV("code", why->code), KV("err", buf_cstr(&why->message)));
    l->said_code = why->code;
    try_again(l);
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct lease *l = ctx;
    enum lease_step step = l->step;

    l->call = NULL;
    l->step = STEP_NONE;
    if (!answer->refusal)
        say_well(l);
    if (!answer->refusal && answer->object && step != STEP_GET)
        observe(l, answer->object);
    if (l->state == LEASE_CLOSING)
        finish_close(l);
    else if (l->state == LEASE_LOST)
        return;
    else if (answer->refusal)
        on_refused(l, step, answer->refusal);
    else if (step == STEP_GET)
        on_got(l, answer->object);
    else
        hold(l);
}

/* ---- life ---- */

struct lease *lease_start(struct kube_client *client, const struct lease_spec *spec)
{
    struct lease *l = NEW(struct lease);

    l->client = client;
    l->loop = kube_client_loop(client);
    l->said_code = NOT_SAID;
    l->kind = kind_find("coordination.k8s.io", "v1", "leases");
    l->spec = *spec;
    l->spec.namespace = own_strdup(spec->namespace);
    l->spec.name = own_strdup(spec->name);
    l->spec.identity = own_strdup(spec->identity);
    l->leader = own_strdup("");
    l->spec.duration_ms = spec->duration_ms ? spec->duration_ms : LEASE_DURATION_MS;
    l->spec.renew_ms = spec->renew_ms ? spec->renew_ms : LEASE_RENEW_MS;
    l->spec.retry_ms = spec->retry_ms ? spec->retry_ms : LEASE_RETRY_MS;
    assert(l->spec.renew_ms < l->spec.duration_ms && l->spec.retry_ms < l->spec.renew_ms);
    attempt(l);
    return l;
}

bool lease_is_held(const struct lease *l)
{
    return l->state == LEASE_HELD && time_mono_ms() < l->until_ms;
}

static void free_lease(void *ctx)
{
    struct lease *l = ctx;

    object_unref(l->seen);
    free(l->leader);
    free((char *)l->spec.namespace);
    free((char *)l->spec.name);
    free((char *)l->spec.identity);
    free(l);
}

static void on_closed(void *ctx)
{
    struct lease *l = ctx;

    if (l->closed)
        l->closed(l->closed_ctx);
    ev_free_later(l->loop, l, free_lease);
}

/* No call is under way. The Lease is given back once, whatever the answer is. */
static void finish_close(struct lease *l)
{
    if (l->gives_back && l->seen && is_ours(l)) {
        l->gives_back = false;
        start_call(l, STEP_RELEASE);
        return;
    }
    ev_timer_stop(l->loop, &l->limit);
    ev_post(l->loop, &l->end, on_closed, l);
}

void lease_close(struct lease *l, void (*closed)(void *ctx), void *ctx)
{
    if (!l || l->state == LEASE_CLOSING)
        return;
    ev_timer_stop(l->loop, &l->next);
    l->gives_back = l->state != LEASE_LOST;
    set_state(l, LEASE_CLOSING);
    l->closed = closed;
    l->closed_ctx = ctx;
    if (!l->call)
        finish_close(l);
    else if (!ev_timer_is_running(&l->limit))
        kube_call_cancel(l->call);
}
