/* A pod's row: what its many states come to in one word. The order of the rules is the public server's. */
#include "kube/table_cells.h"

#include "kube/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct summary {
    const struct cells *cells;
    int64_t total, ready, restarts;
    const struct json *last_restart; /* the latest finishedAt of an earlier run */
    char reason[128];
};

static struct span text_of(const struct json *v, const char *name)
{
    return json_str(json_get(v, name));
}

static int64_t number_of(const struct json *v, const char *name)
{
    int64_t n = 0;

    (void)json_i64(json_get(v, name), &n);
    return n;
}

static bool is_true(const struct json *v, const char *name)
{
    bool b = false;

    return json_bool(json_get(v, name), &b) && b;
}

static bool has_condition(const struct json *status, const char *type)
{
    JSON_EACH(condition, json_get(status, "conditions"))
    {
        if (span_is(text_of(condition, "type"), type) &&
            span_is(text_of(condition, "status"), "True"))
            return true;
    }
    return false;
}

static const struct json *container_named(const struct json *list, struct span name)
{
    JSON_EACH(container, list)
    {
        if (span_eq(text_of(container, "name"), name))
            return container;
    }
    return NULL;
}

static bool is_sidecar(const struct json *container)
{
    return span_is(text_of(container, "restartPolicy"), "Always");
}

static void say(struct summary *s, const char *prefix, struct span reason)
{
    snprintf(s->reason, sizeof s->reason, "%s%.*s", prefix, SPAN_ARG(reason));
}

/* How a container ended, in words. */
static void say_end(struct summary *s, const char *prefix, const struct json *terminated)
{
    struct span reason = text_of(terminated, "reason");
    int64_t signal = number_of(terminated, "signal");

    if (reason.n)
        say(s, prefix, reason);
    else if (signal)
        snprintf(s->reason, sizeof s->reason, "%sSignal:%" PRId64, prefix, signal);
    else
        snprintf(s->reason, sizeof s->reason, "%sExitCode:%" PRId64, prefix,
                 number_of(terminated, "exitCode"));
}

/* RFC 3339 in UTC compares as text. */
static void note_restart(struct summary *s, const struct json *container_status)
{
    const struct json *at =
        json_get(json_get(json_get(container_status, "lastState"), "terminated"), "finishedAt");
    const char *text = json_cstr(at), *best = json_cstr(s->last_restart);

    s->restarts += number_of(container_status, "restartCount");
    if (text && (!best || strcmp(text, best) > 0))
        s->last_restart = at;
}

/* True: initialisation is still under way, and s->reason says where. */
static bool judge_init(struct summary *s, const struct json *spec, const struct json *status,
                       struct summary *sidecars)
{
    const struct json *specs = json_get(spec, "initContainers");
    int64_t i = -1;

    JSON_EACH(container, json_get(status, "initContainerStatuses"))
    {
        const struct json *state = json_get(container, "state");
        const struct json *terminated = json_get(state, "terminated");
        struct span waiting = text_of(json_get(state, "waiting"), "reason");
        bool is_side = is_sidecar(container_named(specs, text_of(container, "name")));

        i++;
        note_restart(s, container);
        if (is_side)
            note_restart(sidecars, container);
        if (terminated && number_of(terminated, "exitCode") == 0)
            continue;
        if (is_side && is_true(container, "started")) {
            s->ready += is_true(container, "ready");
            continue;
        }
        if (terminated)
            say_end(s, "Init:", terminated);
        else if (waiting.n && !span_is(waiting, "PodInitializing"))
            say(s, "Init:", waiting);
        else
            snprintf(s->reason, sizeof s->reason, "Init:%" PRId64 "/%zu", i, json_count(specs));
        return true;
    }
    return false;
}

static void judge_running(struct summary *s, const struct json *status)
{
    const struct json *list = json_get(status, "containerStatuses");
    char failed[sizeof s->reason] = "";
    bool has_running = false;

    /* From the last to the first: the first container's word is the one that stays. */
    for (size_t i = json_count(list); i-- > 0;) {
        const struct json *container = json_at(list, i);
        const struct json *state = json_get(container, "state");
        const struct json *terminated = json_get(state, "terminated");
        struct span waiting = text_of(json_get(state, "waiting"), "reason");

        note_restart(s, container);
        if (waiting.n) {
            say(s, "", waiting);
        } else if (terminated) {
            say_end(s, "", terminated);
            if (number_of(terminated, "exitCode"))
                memcpy(failed, s->reason, sizeof failed);
        } else if (is_true(container, "ready") && json_get(state, "running")) {
            has_running = true;
            s->ready++;
        }
    }
    if (strcmp(s->reason, "Completed") != 0)
        return;
    if (has_running && has_condition(status, "Ready"))
        say(s, "", SPAN("Running"));
    else if (failed[0])
        memcpy(s->reason, failed, sizeof failed);
    else if (has_running)
        say(s, "", SPAN("NotReady"));
}

static void judge(struct summary *s)
{
    const struct object *pod = s->cells->obj;
    const struct json *spec = object_member(pod, "spec"), *status = object_member(pod, "status");
    struct span phase = text_of(status, "phase"), reason = text_of(status, "reason");
    struct summary sidecars = { .cells = s->cells };

    say(s, "", reason.n ? reason : phase);
    JSON_EACH(condition, json_get(status, "conditions"))
    {
        if (span_is(text_of(condition, "type"), "PodScheduled") &&
            span_is(text_of(condition, "reason"), "SchedulingGated"))
            say(s, "", SPAN("SchedulingGated"));
    }
    s->total = (int64_t)json_count(json_get(spec, "containers"));
    JSON_EACH(container, json_get(spec, "initContainers"))
    {
        s->total += is_sidecar(container);
    }
    if (!judge_init(s, spec, status, &sidecars) || has_condition(status, "Initialized")) {
        s->restarts = sidecars.restarts;
        s->last_restart = sidecars.last_restart;
        judge_running(s, status);
    }
    if (object_is_deleting(pod) && span_is(reason, "NodeLost"))
        say(s, "", SPAN("Unknown"));
    else if (object_is_deleting(pod) && !span_is(phase, "Succeeded") && !span_is(phase, "Failed"))
        say(s, "", SPAN("Terminating"));
}

static void gate_cell(const struct cells *c)
{
    const struct json *gates = object_at(c->obj, "spec.readinessGates");
    const struct json *status = object_member(c->obj, "status");
    size_t good = 0;
    char text[48];

    JSON_EACH(gate, gates)
    {
        const char *type = json_cstr(json_get(gate, "conditionType"));

        good += type && has_condition(status, type);
    }
    snprintf(text, sizeof text, "%zu/%zu", good, json_count(gates));
    cell_text(c, json_count(gates) ? text : "<none>");
}

void table_pod_cells(const struct cells *c)
{
    struct summary s = { .cells = c };
    char text[96], age[KUBE_AGE_BYTES];

    judge(&s);
    cell_text(c, object_name(c->obj));
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, s.ready, s.total);
    cell_text(c, text);
    cell_text(c, s.reason);
    if (s.restarts && s.last_restart)
        snprintf(text, sizeof text, "%" PRId64 " (%s ago)", s.restarts,
                 cells_age(c, s.last_restart, age));
    else
        snprintf(text, sizeof text, "%" PRId64, s.restarts);
    cell_text(c, text);
    cell_created(c);
    cell_text_or(c, json_cstr(json_get(json_at(object_at(c->obj, "status.podIPs"), 0), "ip")),
                 "<none>");
    cell_text_or(c, object_text(c->obj, "spec.nodeName"), "<none>");
    cell_text_or(c, object_text(c->obj, "status.nominatedNodeName"), "<none>");
    gate_cell(c);
}

void table_pod_conditions(const struct object *pod, struct json_out *o)
{
    const char *phase = object_text(pod, "status.phase");
    bool is_done = phase && strcmp(phase, "Succeeded") == 0;

    if (!is_done && !(phase && strcmp(phase, "Failed") == 0))
        return;
    json_out_key(o, "conditions"), json_out_array_begin(o), json_out_object_begin(o);
    json_out_key(o, "type"), json_out_cstr(o, "Completed");
    json_out_key(o, "status"), json_out_cstr(o, "True");
    json_out_key(o, "reason"), json_out_cstr(o, phase);
    json_out_key(o, "message");
    json_out_cstr(o, is_done ? "The pod has completed successfully." : "The pod failed.");
    json_out_object_end(o), json_out_array_end(o);
}
