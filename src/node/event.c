#include "node/event.h"

#include "base/log.h"
#include "ev/timer.h"
#include "kube/time.h"
#include "node/limits.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX_BYTES 1024 /* the API's */
#define BODY_MAX_BYTES    (16 * 1024)

/* One that waits. */
struct waiting {
    struct waiting *next;
    char *namespace;
    struct buf body;
};

struct node_events {
    struct kube_client *client;
    struct waiting *first, **end;
    size_t count;
    struct ev_timer timer;
};

static void put(struct json_out *o, const char *key, const char *text)
{
    json_out_key(o, key);
    json_out_cstr(o, text);
}

/* The kubelet's way: of its own Node it says the name for the uid. */
static void put_about_node(struct json_out *o, const char *node)
{
    json_out_key(o, "involvedObject");
    json_out_object_begin(o);
    put(o, "apiVersion", "v1"), put(o, "kind", "Node");
    put(o, "name", node), put(o, "uid", node);
    json_out_object_end(o);
}

static void put_about(struct json_out *o, const struct event_spec *spec)
{
    const struct object *about = spec->about;
    const struct kind *kind = object_kind(about);
    char text[128];

    json_out_key(o, "involvedObject");
    json_out_object_begin(o);
    put(o, "apiVersion", kind_api_version(kind, &kind->versions[0]));
    put(o, "kind", kind->name);
    if (*object_namespace(about))
        put(o, "namespace", object_namespace(about));
    put(o, "name", object_name(about));
    put(o, "uid", object_uid(about));
    (void)snprintf(text, sizeof text, "spec.%s{%s}",
                   spec->is_init ? "initContainers" : "containers",
                   spec->container ? spec->container : "");
    if (spec->container)
        put(o, "fieldPath", text);
    json_out_object_end(o);
}

static const char *namespace_of(const struct event_spec *spec)
{
    const char *space = spec->about ? object_namespace(spec->about) : "";

    return *space ? space : "default";
}

/* Cut between characters. */
static struct span cut(const char *message)
{
    size_t n = strlen(message);

    if (n > MESSAGE_MAX_BYTES) {
        n = MESSAGE_MAX_BYTES;
        while (n && ((unsigned char)message[n] & 0xc0) == 0x80)
            n--;
    }
    return span_of(message, n);
}

static int write_event(const struct event_spec *spec, struct buf *body, struct err *e)
{
    char name[320], time[TIME_TEXT_BYTES];
    struct timespec now;
    struct json_out o;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(
        name, sizeof name, "%.253s.%llx", spec->about ? object_name(spec->about) : spec->node,
        (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec);
    (void)kube_time_text(time, now.tv_sec);
    json_out_init(&o, body, 0);
    json_out_object_begin(&o);
    put(&o, "apiVersion", "v1"), put(&o, "kind", "Event");
    json_out_key(&o, "metadata");
    json_out_object_begin(&o);
    put(&o, "name", name), put(&o, "namespace", namespace_of(spec));
    json_out_object_end(&o);
    if (spec->about)
        put_about(&o, spec);
    else
        put_about_node(&o, spec->node);
    put(&o, "reason", spec->reason);
    json_out_key(&o, "message"), json_out_str(&o, cut(spec->message));
    json_out_key(&o, "source");
    json_out_object_begin(&o);
    put(&o, "component", "kubelet"), put(&o, "host", spec->node);
    json_out_object_end(&o);
    put(&o, "firstTimestamp", time), put(&o, "lastTimestamp", time);
    json_out_key(&o, "count"), json_out_i64(&o, 1);
    put(&o, "type", spec->is_warning ? "Warning" : "Normal");
    put(&o, "reportingComponent", "kubelet"), put(&o, "reportingInstance", spec->node);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

static void on_written(void *ctx, const struct kube_answer *answer)
{
    (void)ctx;
    if (answer->refusal && answer->refusal->code)
        log_warn("event.write", KV("err", buf_cstr(&answer->refusal->message)));
}

static void send_first(struct node_events *events)
{
    struct waiting *w = events->first;

    events->first = w->next;
    if (!events->first)
        events->end = &events->first;
    events->count--;
    (void)kube_call_start(events->client,
                          &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .kind = kind_find("", "v1", "events"),
                                                  .namespace = w->namespace,
                                                  .body = buf_span(&w->body) },
                          on_written, NULL);
    buf_done(&w->body);
    free(w->namespace);
    free(w);
}

void node_events_send(struct node_events *events)
{
    while (events->first)
        send_first(events);
}

static void on_due(void *ctx)
{
    node_events_send(ctx);
}

struct node_events *node_events_open(struct kube_client *client)
{
    struct node_events *events = NEW(struct node_events);

    events->client = client;
    events->end = &events->first;
    return events;
}

void node_event(struct node_events *events, const struct event_spec *spec)
{
    struct waiting *w = NEW(struct waiting);
    struct err e;

    w->body = (struct buf)BUF_INIT(BODY_MAX_BYTES);
    if (write_event(spec, &w->body, &e) < 0) {
        log_warn("event.write", KV("err", &e));
        buf_done(&w->body);
        free(w);
        return;
    }
    w->namespace = own_strdup(namespace_of(spec));
    *events->end = w;
    events->end = &w->next;
    if (++events->count > EVENTS_WAITING_MAX)
        send_first(events);
    if (spec->is_warning)
        node_events_send(events);
    else if (!ev_timer_is_running(&events->timer))
        ev_timer_start(kube_client_loop(events->client), &events->timer, EVENTS_WAIT_MS, on_due,
                       events);
}

void node_events_close(struct node_events *events)
{
    if (!events)
        return;
    ev_timer_stop(kube_client_loop(events->client), &events->timer);
    node_events_send(events);
    free(events);
}
