#include "up/schedule.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/timer.h"
#include "kube/binding.h"
#include "kube/informer.h"
#include "up/given.h"
#include "up/limits.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A Pod on its way to the node, or one there of which no Event tells yet. */
struct binding {
    struct binding *next;
    struct schedule *of;
    struct object *pod;
};

struct schedule {
    struct kube_client *client;
    struct informer *pods;
    char *node;
    size_t max,
        held;     /* Pods that the node may have, and those that it has and that have not ended */
    bool is_full; /* some found no room */
    struct binding *untold, **untold_end;
    struct ev_timer tell, again;
    size_t calls; /* under way */
    bool is_closed;
};

static void binding_free(struct binding *b)
{
    object_unref(b->pod);
    free(b);
}

static void let_go(struct schedule *s)
{
    if (!s->is_closed || s->calls)
        return;
    free(s->node);
    free(s);
}

/* ---- what people are told ---- */

static void on_told(void *ctx, const struct kube_answer *answer)
{
    (void)ctx;
    if (answer->refusal && answer->refusal->code)
        log_warn("schedule.event", KV("err", buf_cstr(&answer->refusal->message)));
}

struct word {
    const char *reason, *type;
    const char *message;
};

static void write_event(const struct schedule *s, const struct object *pod, const struct word *word)
{
    OWN(buf_done) struct buf text = BUF_INIT(GIVEN_TEXT_MAX_BYTES);
    const char *space = object_namespace(pod), *name = object_name(pod);
    char time[TIME_TEXT_BYTES];
    struct timespec now;
    struct err e;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)time_rfc3339(time, now, false);
    if (buf_addf(&text, &e,
                 "{\"metadata\":{\"name\":\"%s.%llx\"},\"involvedObject\":{\"apiVersion\":\"v1\","
                 "\"kind\":\"Pod\",\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"},"
                 "\"reason\":\"%s\",\"message\":\"%s\","
                 "\"source\":{\"component\":\"default-scheduler\"},\"firstTimestamp\":\"%s\","
                 "\"lastTimestamp\":\"%s\",\"count\":1,\"type\":\"%s\","
                 "\"reportingComponent\":\"default-scheduler\",\"reportingInstance\":\"%s\"}",
                 name,
                 (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec,
                 space, name, object_uid(pod), word->reason, word->message, time, time, word->type,
                 s->node) < 0)
        log_warn("schedule.event", KV("err", &e));
    else
        given_create(s->client, &(struct given){ "", "events", space, buf_cstr(&text) }, on_told,
                     NULL);
}

static void tell_bound(const struct schedule *s, const struct object *pod)
{
    char message[700];

    (void)snprintf(message, sizeof message, "Successfully assigned %s/%s to %s",
                   object_namespace(pod), object_name(pod), s->node);
    write_event(s, pod, &(struct word){ "Scheduled", "Normal", message });
}

/* Once: whoever reads the Pod finds it there. The words are those of a cluster's scheduler. */
static void tell_full(const struct schedule *s, const struct object *pod)
{
    static const char message[] = "0/1 nodes are available: 1 Too many pods.";
    char text[512], time[TIME_TEXT_BYTES];
    struct timespec now;

    JSON_EACH(c, object_at(pod, "status.conditions"))
    {
        if (span_is(json_str(json_get(c, "type")), "PodScheduled"))
            return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)time_rfc3339(time, now, false);
    (void)snprintf(text, sizeof text,
                   "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
                   "\"reason\":\"Unschedulable\",\"message\":\"%s\",\"lastProbeTime\":null,"
                   "\"lastTransitionTime\":\"%s\"}]}}",
                   message, time);
    given_status(s->client, &(struct given){ "", "pods", object_namespace(pod), text },
                 object_name(pod), on_told, NULL);
    write_event(s, pod, &(struct word){ "FailedScheduling", "Warning", message });
}

static void tell_some(void *ctx)
{
    struct schedule *s = ctx;

    for (size_t i = 0; i < SCHEDULE_EVENTS_MAX && s->untold; i++) {
        struct binding *b = s->untold;

        s->untold = b->next;
        if (!s->untold)
            s->untold_end = &s->untold;
        tell_bound(s, b->pod);
        binding_free(b);
    }
    if (s->untold)
        ev_timer_start(kube_client_loop(s->client), &s->tell, SCHEDULE_TELL_MS, tell_some, s);
}

/* ---- binding ---- */

static void look_again(void *ctx);

static void on_bound(void *ctx, const struct kube_answer *answer)
{
    struct binding *b = ctx;
    struct schedule *s = b->of;
    const struct status *no = answer->refusal;

    s->calls--;
    if (s->is_closed || no) {
        /* 404 and 409: it is gone, or another's. All else passes: a full disk. */
        if (!s->is_closed && no->code != 404 && no->code != 409) {
            log_warn("schedule.bind", KV("namespace", object_namespace(b->pod)),
                     KV("pod", object_name(b->pod)), KV("err", buf_cstr(&no->message)));
            ev_timer_start(kube_client_loop(s->client), &s->again, SCHEDULE_RETRY_MS, look_again,
                           s);
        }
        binding_free(b);
        let_go(s);
        return;
    }
    *s->untold_end = b;
    s->untold_end = &b->next;
    if (!ev_timer_is_running(&s->tell))
        ev_timer_start(kube_client_loop(s->client), &s->tell, SCHEDULE_TELL_MS, tell_some, s);
}

static void consider(struct schedule *s, struct object *pod)
{
    struct binding *b;

    if (!binding_is_wanted(pod))
        return;
    if (s->held + s->calls >= s->max) {
        s->is_full = true;
        tell_full(s, pod);
        return;
    }
    b = NEW(struct binding);
    b->of = s;
    b->pod = object_ref(pod);
    s->calls++;
    binding_start(s->client, pod, s->node, on_bound, b);
}

static void look_again(void *ctx)
{
    struct schedule *s = ctx;
    OWN(informer_walk_done) struct informer_walk walk = { 0 };
    struct object *pod;

    s->is_full = false;
    informer_walk_all(&walk, s->pods);
    while ((pod = informer_walk_next(&walk)))
        consider(s, pod);
}

/* ---- what is there ---- */

/* A Pod that has ended takes no room. */
static bool is_held(const struct schedule *s, const struct object *pod)
{
    const char *node = object_text(pod, "spec.nodeName"), *phase;

    if (!node || strcmp(node, s->node) != 0)
        return false;
    phase = object_text(pod, "status.phase");
    return !phase || (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0);
}

static void count(struct schedule *s, const struct object *was, const struct object *now)
{
    bool was_held = was && is_held(s, was), holds = now && is_held(s, now);

    if (holds && !was_held)
        s->held++;
    if (!was_held || holds)
        return;
    s->held--;
    if (s->is_full && !ev_timer_is_running(&s->again))
        ev_timer_start(kube_client_loop(s->client), &s->again, SCHEDULE_ROOM_MS, look_again, s);
}

/* Those that were there before us are counted first. */
static void on_add(void *ctx, struct object *pod, bool is_initial)
{
    count(ctx, NULL, pod);
    if (!is_initial)
        consider(ctx, pod);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    count(ctx, old, now);
    consider(ctx, now); /* its gates may be gone now */
}

static void on_delete(void *ctx, struct object *last)
{
    count(ctx, last, NULL);
}

static void on_synced(void *ctx)
{
    look_again(ctx);
}

/* ---- life ---- */

int schedule_open(struct kube_client *client, const char *node, size_t max, struct schedule **ret,
                  struct err *e)
{
    static const struct informer_listener listener = {
        .on_add = on_add, .on_update = on_update, .on_delete = on_delete, .on_synced = on_synced
    };
    struct schedule *s = NEW(struct schedule);

    s->client = client;
    s->untold_end = &s->untold;
    s->max = max;
    if (informer_new(client, &(struct informer_spec){ .kind = kind_find("", "v1", "pods") },
                     &s->pods, e) < 0) {
        free(s);
        return -1;
    }
    s->node = own_strdup(node);
    informer_listen(s->pods, &listener, s);
    informer_start(s->pods);
    *ret = s;
    return 0;
}

void schedule_close(struct schedule *s)
{
    struct binding *b;

    if (!s)
        return;
    ev_timer_stop(kube_client_loop(s->client), &s->tell);
    ev_timer_stop(kube_client_loop(s->client), &s->again);
    informer_close(s->pods);
    while ((b = s->untold)) {
        s->untold = b->next;
        binding_free(b);
    }
    s->is_closed = true;
    let_go(s);
}
