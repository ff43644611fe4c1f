#include "up/schedule.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/timer.h"
#include "kube/binding.h"
#include "kube/informer.h"
#include "up/given.h"
#include "up/limits.h"

#include <stdio.h>
#include <time.h>

/* A Pod on its way to the node, or one there of which no Event tells yet. */
struct binding {
    struct binding *next;
    struct schedule *of;
    struct object *pod;
};

struct schedule {
    struct kube_client *client;
    struct informer *pods; /* that nobody has */
    char *node;
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

static void write_event(const struct schedule *s, const struct object *pod)
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
                 "\"reason\":\"Scheduled\",\"message\":\"Successfully assigned %s/%s to %s\","
                 "\"source\":{\"component\":\"default-scheduler\"},\"firstTimestamp\":\"%s\","
                 "\"lastTimestamp\":\"%s\",\"count\":1,\"type\":\"Normal\","
                 "\"reportingComponent\":\"default-scheduler\",\"reportingInstance\":\"%s\"}",
                 name,
                 (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec,
                 space, name, object_uid(pod), space, name, s->node, time, time, s->node) < 0)
        log_warn("schedule.event", KV("err", &e));
    else
        given_create(s->client, &(struct given){ "", "events", space, buf_cstr(&text) }, on_told,
                     NULL);
}

static void tell_some(void *ctx)
{
    struct schedule *s = ctx;

    for (size_t i = 0; i < SCHEDULE_EVENTS_MAX && s->untold; i++) {
        struct binding *b = s->untold;

        s->untold = b->next;
        if (!s->untold)
            s->untold_end = &s->untold;
        write_event(s, b->pod);
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

    informer_walk_all(&walk, s->pods);
    while ((pod = informer_walk_next(&walk)))
        consider(s, pod);
}

static void on_add(void *ctx, struct object *pod, bool is_initial)
{
    (void)is_initial;
    consider(ctx, pod);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old; /* its gates may be gone now */
    consider(ctx, now);
}

/* ---- life ---- */

int schedule_open(struct kube_client *client, const char *node, struct schedule **ret,
                  struct err *e)
{
    static const struct informer_listener listener = { .on_add = on_add, .on_update = on_update };
    struct schedule *s = NEW(struct schedule);

    s->client = client;
    s->untold_end = &s->untold;
    if (informer_new(client,
                     &(struct informer_spec){ .kind = kind_find("", "v1", "pods"),
                                              .fields = "spec.nodeName=" },
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
