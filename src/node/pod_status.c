#include "node/pod_status.h"

#include "kube/time.h"
#include "node/run.h"

#include <stdio.h>
#include <string.h>

struct maker {
    const struct pod_status_spec *s;
    struct json_edit *ed;
    char now[TIME_TEXT_BYTES];
};

static void put(struct json_node *o, const char *name, const char *text)
{
    json_node_set(o, name, json_edit_cstr(json_node_edit(o), text));
}

static void put_time(struct json_node *o, const char *name, uint64_t ms)
{
    char text[TIME_TEXT_BYTES];

    put(o, name, kube_time_text(text, (time_t)(ms / 1000)));
}

/* ---- containers ---- */

static const struct json *spec_of(const struct object *pod, const struct life_container *c)
{
    const struct json *list =
        object_at(pod, c->is_init ? "spec.initContainers" : "spec.containers");

    JSON_EACH(item, list)
    {
        if (span_is(json_str(json_get(item, "name")), c->name))
            return item;
    }
    return NULL;
}

static void put_id(struct maker *m, struct json_node *to, const struct life_container *c,
                   const struct life_run *r)
{
    char name[RUN_NAME_BYTES], text[RUN_NAME_BYTES + 16];
    struct err e;

    if (run_name(name, object_uid(m->s->pod), c->name, r->attempt, &e) < 0)
        return;
    (void)snprintf(text, sizeof text, "silica://%s", name);
    put(to, "containerID", text);
}

/* All containers of a Pod have LIFE_MESSAGES_BYTES together, each its share, as the kubelet has it. */
static void put_message(struct maker *m, struct json_node *to, const char *message)
{
    size_t most = LIFE_MESSAGES_BYTES / MAX(m->s->life->n, (size_t)1), n = strlen(message);

    if (n > most)
        n = most;
    while (n && ((uint8_t)message[n] & 0xc0) == 0x80) /* not in the middle of a character */
        n--;
    json_node_set(to, "message", json_edit_str(m->ed, span_of(message, n)));
}

static struct json_node *terminated(struct maker *m, const struct life_container *c,
                                    const struct life_run *r)
{
    struct json_node *state = json_edit_object(m->ed), *t = json_edit_object(m->ed);

    json_node_set(state, "terminated", t);
    json_node_set(t, "exitCode", json_edit_i64(m->ed, r->exit_code));
    put(t, "reason", r->reason ? r->reason : r->exit_code == 0 ? "Completed" : "Error");
    if (r->message)
        put_message(m, t, r->message);
    put_time(t, "startedAt", r->began_ms);
    put_time(t, "finishedAt", r->ended_ms);
    put_id(m, t, c, r);
    return state;
}

static struct json_node *waiting(struct maker *m, const char *reason, const char *message)
{
    struct json_node *state = json_edit_object(m->ed), *w = json_edit_object(m->ed);

    json_node_set(state, "waiting", w);
    put(w, "reason", reason);
    if (message && *message)
        put(w, "message", message);
    return state;
}

static struct json_node *pausing(struct maker *m, const struct life_container *c)
{
    const struct object *pod = m->s->pod;
    unsigned long long pause_s = life_pause_ms(c) / 1000;
    char pause[32], text[512];

    if (c->wait_reason)
        return waiting(m, c->wait_reason, c->wait_message);
    /* As Go writes durations. */
    if (pause_s < 60)
        (void)snprintf(pause, sizeof pause, "%llus", pause_s);
    else
        (void)snprintf(pause, sizeof pause, "%llum%llus", pause_s / 60, pause_s % 60);
    (void)snprintf(text, sizeof text, "back-off %s restarting failed container=%s pod=%s_%s(%s)",
                   pause, c->name, object_name(pod), object_namespace(pod), object_uid(pod));
    return waiting(m, "CrashLoopBackOff", text);
}

static struct json_node *running(struct maker *m, const struct life_run *r)
{
    struct json_node *state = json_edit_object(m->ed),
                     *run = json_node_set(state, "running", json_edit_object(m->ed));

    put_time(run, "startedAt", r->began_ms);
    return state;
}

static struct json_node *state_of(struct maker *m, const struct life_container *c)
{
    bool is_initialized = life_is_initialized(m->s->life);

    switch (c->now.state) {
    case RUN_UP:
        return c->now.is_starting ? waiting(m, "ContainerCreating", NULL) : running(m, &c->now);
    case RUN_OVER:
        return life_comes_back(m->s->life, c) ? pausing(m, c) : terminated(m, c, &c->now);
    case RUN_NONE:
        break;
    }
    if (c->wait_reason)
        return waiting(m, c->wait_reason, c->wait_message);
    return waiting(m, is_initialized || c->is_init ? "ContainerCreating" : "PodInitializing", NULL);
}

/* The attempt that lastState tells of; NULL: there is none. */
static const struct life_run *last_of(const struct maker *m, const struct life_container *c)
{
    if (c->now.state == RUN_OVER && life_comes_back(m->s->life, c))
        return &c->now;
    return c->before.state == RUN_OVER ? &c->before : NULL;
}

static bool is_ready(const struct life_container *c)
{
    if (c->is_init && !c->is_sidecar)
        return c->now.state == RUN_OVER && c->now.exit_code == 0;
    return c->now.state == RUN_UP && c->is_ready;
}

static struct json_node *container(struct maker *m, const struct life_container *c)
{
    const struct json *spec = spec_of(m->s->pod, c);
    const char *image = json_cstr(json_get(spec, "image"));
    const struct life_run *last = last_of(m, c);
    struct json_node *o = json_edit_object(m->ed);
    const char *id = "";

    put(o, "name", c->name);
    json_node_set(o, "state", state_of(m, c));
    json_node_set(o, "lastState", last ? terminated(m, c, last) : json_edit_object(m->ed));
    json_node_set(o, "ready", json_edit_bool(m->ed, is_ready(c)));
    json_node_set(o, "restartCount", json_edit_i64(m->ed, c->now.attempt));
    put(o, "image", image ? image : "");
    if (m->s->image_id && image && c->now.state != RUN_NONE)
        id = m->s->image_id(m->s->ctx, image);
    put(o, "imageID", id ? id : "");
    if (c->now.state != RUN_NONE)
        put_id(m, o, c, &c->now);
    else if (c->before.state == RUN_OVER)
        put_id(m, o, c, &c->before);
    json_node_set(o, "started", json_edit_bool(m->ed, c->now.state == RUN_UP && c->is_started));
    return o;
}

static void put_containers(struct maker *m, struct json_node *status)
{
    struct json_node *init = json_edit_array(m->ed), *list = json_edit_array(m->ed);

    for (size_t i = 0; i < m->s->life->n; i++) {
        const struct life_container *c = &m->s->life->v[i];

        json_node_append(c->is_init ? init : list, container(m, c));
    }
    if (json_node_count(init))
        json_node_set(status, "initContainerStatuses", init);
    json_node_set(status, "containerStatuses", list);
}

/* ---- conditions ---- */

static const struct json *condition_now(const struct object *pod, const char *type)
{
    const struct json *list = object_at(pod, "status.conditions");

    JSON_EACH(c, list)
    {
        if (span_is(json_str(json_get(c, "type")), type))
            return c;
    }
    return NULL;
}

/* reason NULL: nothing is wrong. */
static void condition(struct maker *m, struct json_node *list, const char *type, bool is_true,
                      const char *reason, const char *message)
{
    const struct json *was = condition_now(m->s->pod, type);
    struct json_node *c = json_edit_object(m->ed);
    const char *since = json_cstr(json_get(was, "lastTransitionTime"));
    bool is_same = span_is(json_str(json_get(was, "status")), is_true ? "True" : "False");

    put(c, "type", type);
    put(c, "status", is_true ? "True" : "False");
    json_node_set(c, "lastProbeTime", json_edit_null(m->ed));
    put(c, "lastTransitionTime", is_same && since ? since : m->now);
    if (reason)
        put(c, "reason", reason);
    if (message && *message)
        put(c, "message", message);
    json_node_append(list, c);
}

/* "containers with unready status: [a b]". */
static void list_unready(const struct maker *m, bool is_init, const char *what, char *text,
                         size_t size)
{
    OWN(buf_done) struct buf names = BUF_INIT(size - 64);

    for (size_t i = 0; i < m->s->life->n; i++) {
        const struct life_container *c = &m->s->life->v[i];

        if (c->is_init != is_init || is_ready(c))
            continue;
        (void)buf_add_capped(&names, span_cstr(names.n ? " " : ""));
        (void)buf_add_capped(&names, span_cstr(c->name));
    }
    (void)snprintf(text, size, "containers with %s status: [%s]", what, buf_cstr(&names));
}

static bool are_ready(const struct maker *m)
{
    for (size_t i = 0; i < m->s->life->n; i++)
        if (!m->s->life->v[i].is_init && !is_ready(&m->s->life->v[i]))
            return false;
    return true;
}

/* Conditions of others that the Pod wants to be true before it counts as ready. */
static const char *closed_gate(const struct object *pod)
{
    const struct json *gates = object_at(pod, "spec.readinessGates");

    JSON_EACH(gate, gates)
    {
        const char *type = json_cstr(json_get(gate, "conditionType"));

        if (type && !span_is(json_str(json_get(condition_now(pod, type), "status")), "True"))
            return type;
    }
    return NULL;
}

static void put_readiness(struct maker *m, struct json_node *list, bool is_done)
{
    bool is_all = are_ready(m);
    const char *gate = closed_gate(m->s->pod);
    char text[1024], gate_text[512];

    list_unready(m, false, "unready", text, sizeof text);
    if (is_done) {
        const char *reason =
            strcmp(life_phase(m->s->life), "Failed") == 0 ? "PodFailed" : "PodCompleted";

        condition(m, list, "Ready", false, reason, NULL);
        condition(m, list, "ContainersReady", false, reason, NULL);
        return;
    }
    if (is_all && gate) {
        (void)snprintf(gate_text, sizeof gate_text,
                       "corresponding condition of pod readiness gate \"%.200s\" does not exist.",
                       gate);
        condition(m, list, "Ready", false, "ReadinessGatesNotReady", gate_text);
    } else {
        condition(m, list, "Ready", is_all, is_all ? NULL : "ContainersNotReady",
                  is_all ? NULL : text);
    }
    condition(m, list, "ContainersReady", is_all, is_all ? NULL : "ContainersNotReady",
              is_all ? NULL : text);
}

/* Those of others stay as they are. */
static void keep_others(struct maker *m, struct json_node *list)
{
    static const char *const ours[] = {
        "PodReadyToStartContainers", "Initialized",  "Ready",
        "ContainersReady",           "PodScheduled", POD_STATUS_ADDRESSES
    };
    const struct json *was = object_at(m->s->pod, "status.conditions");

    JSON_EACH(c, was)
    {
        bool is_ours = false;

        EACH(name, ours)
            is_ours |= span_is(json_str(json_get(c, "type")), *name);
        if (!is_ours)
            json_node_append(list, json_edit_view(m->ed, c));
    }
}

static bool has_begun(const struct life_pod *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].now.state != RUN_NONE)
            return true;
    return false;
}

static void put_conditions(struct maker *m, struct json_node *status)
{
    struct json_node *list = json_node_set(status, "conditions", json_edit_array(m->ed));
    bool is_initialized = life_is_initialized(m->s->life), is_done = life_is_over(m->s->life);
    char text[1024];

    list_unready(m, true, "incomplete", text, sizeof text);
    condition(m, list, "PodReadyToStartContainers", has_begun(m->s->life) && !is_done, NULL, NULL);
    condition(m, list, "Initialized", is_initialized,
              !is_initialized ? "ContainersNotInitialized"
              : is_done       ? "PodCompleted"
                              : NULL,
              is_initialized ? NULL : text);
    put_readiness(m, list, is_done);
    condition(m, list, "PodScheduled", true, NULL, NULL);
    if (m->s->ports_reason)
        condition(m, list, POD_STATUS_ADDRESSES,
                  strcmp(m->s->ports_reason, POD_STATUS_LISTENING) == 0, m->s->ports_reason, NULL);
    keep_others(m, list);
}

/* ---- all of it ---- */

static void put_ips(struct maker *m, struct json_node *status, const char *name, const char *names,
                    const char *ip)
{
    struct json_node *list, *one = json_edit_object(m->ed);

    if (!*ip)
        return;
    put(status, name, ip);
    list = json_node_set(status, names, json_edit_array(m->ed));
    put(one, "ip", ip);
    json_node_append(list, one);
}

struct json_node *pod_status_patch(const struct pod_status_spec *s, struct json_edit *ed)
{
    struct json_node *status = json_edit_object(ed), *patch = json_edit_object(ed);
    const struct json *was = object_member(s->pod, "status");
    const char *since = json_cstr(json_get(was, "startTime"));
    struct maker m = { .s = s, .ed = ed };
    bool is_changed = false;

    (void)kube_time_text(m.now, s->now);
    put(status, "phase", life_phase(s->life));
    if (s->life->failed) {
        put(status, "reason", s->life->failed);
        put(status, "message", s->message ? s->message : "");
    }
    put_conditions(&m, status);
    put_ips(&m, status, "hostIP", "hostIPs", s->host_ip);
    put_ips(&m, status, "podIP", "podIPs", s->ip);
    put(status, "startTime", since ? since : m.now);
    put_containers(&m, status);
    for (size_t i = 0; i < json_node_count(status); i++) {
        struct span name = json_node_name_at(status, i);
        struct json_node *value = json_node_value_at(status, i);

        if (json_node_equal_value(value, json_get_span(was, name)))
            continue;
        is_changed = true;
        json_node_set_span(patch, name, json_node_copy(ed, value));
    }
    return is_changed ? patch : NULL;
}
