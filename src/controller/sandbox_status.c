#include "controller/sandbox_status.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "controller/pod.h"
#include "controller/pod_waiting.h"

#include <stdio.h>
#include <string.h>

#define POD_MESSAGE_BYTES (POD_WAITING_BYTES + 128)

/* The status in the making. */
struct making {
    const struct sandbox_facts *f;
    struct json_edit *ed;
    struct json_node *status, *conditions;
};

static bool is_own(const struct sandbox_facts *f)
{
    return f->pod && ownership_of(f->pod, f->sandbox) == OWNED;
}

static const char *phase_of(const struct object *pod)
{
    const char *phase = pod ? object_text(pod, "status.phase") : NULL;

    return phase ? phase : "";
}

static const struct json *pod_conditions(const struct object *pod)
{
    return pod ? object_at(pod, "status.conditions") : NULL;
}

/* Every condition of ours is of the generation that was looked at. */
static void say(struct making *m, struct condition c)
{
    c.generation = object_generation(m->f->sandbox);
    condition_set(m->conditions, &c, m->f->now);
}

/* ---- the conditions, in their order ---- */

static void say_suspended(struct making *m)
{
    const struct sandbox_facts *f = m->f;
    struct condition c = { .type = COND_SUSPENDED, .status = "False" };

    if (!sandbox_is_suspended(f->sandbox)) {
        c.reason = "NotSuspended";
        c.message = "Sandbox is not suspended";
    } else if (!f->pod && f->has_pod_failed) {
        c.status = "Unknown";
        c.reason = "PodStateUnknown";
        c.message = "Pod state is unknown. Sandbox suspension cannot be confirmed";
    } else if (!f->pod) {
        c.status = "True";
        c.reason = "PodTerminated";
        c.message = "Pod has been terminated. Sandbox is suspended";
    } else if (!is_own(f)) {
        c.reason = "PodNotOwned";
        c.message = "Refused to delete pod because it is not owned by this sandbox";
    } else {
        c.reason = "PodTerminating";
        c.message = "Pod is terminating. Sandbox is suspending";
    }
    say(m, c);
}

/* The Pod ended by itself. False: it has not, or it is not the sandbox's. */
static bool find_end(const struct sandbox_facts *f, struct condition *ret)
{
    const char *phase = phase_of(f->pod);

    if (!is_own(f))
        return false;
    if (strcmp(phase, "Succeeded") == 0) {
        ret->reason = REASON_POD_OK;
        ret->message = "Pod completed successfully";
        return true;
    }
    if (strcmp(phase, "Failed") == 0) {
        ret->reason = REASON_POD_FAILED;
        ret->message = "Pod failed";
        return true;
    }
    return false;
}

static void say_finished(struct making *m)
{
    struct condition c = { .type = COND_FINISHED, .status = "True" };

    if (find_end(m->f, &c))
        say(m, c);
    else
        condition_remove(m->conditions, COND_FINISHED);
}

static const char *text_or(const struct json *v, const char *otherwise)
{
    const char *text = json_cstr(v);

    return text && *text ? text : otherwise;
}

static void mirror_scheduled(struct making *m, const struct json *from)
{
    const char *status = text_or(json_get(from, "status"), "Unknown");
    bool is_true = strcmp(status, "True") == 0;

    say(m, (struct condition){
               .type = COND_POD_SCHEDULED,
               .status = status,
               .reason = text_or(json_get(from, "reason"),
                                 is_true ? "PodScheduled" : "PodSchedulingUnknown"),
               .message = text_or(json_get(from, "message"), ""),
               .since = json_cstr(json_get(from, "lastTransitionTime")),
           });
}

static void say_scheduled(struct making *m)
{
    const struct sandbox_facts *f = m->f;
    const struct json *from = condition_find(pod_conditions(f->pod), COND_POD_SCHEDULED);
    struct condition unknown = { .type = COND_POD_SCHEDULED,
                                 .status = "Unknown",
                                 .reason = "PodSchedulingUnknown" };

    if (is_own(f) && from) {
        mirror_scheduled(m, from);
    } else if (is_own(f)) {
        unknown.message = "Pod has not reported a PodScheduled condition yet";
        say(m, unknown);
    } else if (!f->pod && f->has_pod_failed) {
        unknown.message = "Pod state is unknown. Pod scheduling cannot be determined";
        say(m, unknown);
    } else {
        condition_remove(m->conditions, COND_POD_SCHEDULED);
    }
}

/* ---- Ready ---- */

/* The public words, and behind them what its users would have to look for in the Pod. */
static const char *unready_message(const struct object *pod, char text[POD_MESSAGE_BYTES])
{
    char why[POD_WAITING_BYTES];

    (void)pod_waiting(pod, why);
    if (strcmp(phase_of(pod), "Running") != 0)
        (void)snprintf(text, POD_MESSAGE_BYTES, "Pod exists with phase: %.64s%s%s", phase_of(pod),
                       *why ? "; " : "", why);
    else
        (void)snprintf(text, POD_MESSAGE_BYTES, "Pod is Running but not Ready%s%s",
                       *why ? "; " : "", why);
    return text;
}

static const char *pod_message(const struct object *pod, bool *ret_is_ready,
                               char text[POD_MESSAGE_BYTES])
{
    *ret_is_ready = false;
    if (!pod)
        return "Pod does not exist";
    if (strcmp(phase_of(pod), "Running") != 0 ||
        !condition_is(pod_conditions(pod), "Ready", "True"))
        return unready_message(pod, text);
    if (!json_count(object_at(pod, "status.podIPs")))
        return "Pod is Ready but has no podIPs yet";
    *ret_is_ready = true;
    return "Pod is Ready";
}

static void say_dependencies(struct making *m)
{
    const struct sandbox_facts *f = m->f;
    char text[POD_MESSAGE_BYTES + 64], unready[POD_MESSAGE_BYTES];
    const char *service = "";
    bool is_ready;
    const char *pod = pod_message(f->pod, &is_ready, unready);

    if (f->is_service_required) {
        service = f->has_service ? "; Service Exists" : "; Service does not exist";
        is_ready &= f->has_service;
    }
    (void)snprintf(text, sizeof text, "%s%s", pod, service);
    say(m, (struct condition){ .type = COND_READY,
                               .status = is_ready ? "True" : "False",
                               .reason = is_ready ? REASON_READY : REASON_NOT_READY,
                               .message = text });
}

static void say_fault(struct making *m)
{
    OWN(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX_BYTES);

    if (!m->f->is_invalid)
        (void)buf_add_capped(&text, SPAN("Error seen: "));
    (void)buf_add_capped(&text, span_cstr(m->f->fault));
    say(m, (struct condition){ .type = COND_READY,
                               .status = "False",
                               .reason = m->f->is_invalid ? REASON_INVALID : REASON_ERROR,
                               .message = buf_cstr(&text) });
}

static void say_ready(struct making *m)
{
    const struct sandbox_facts *f = m->f;
    struct condition c = { .type = COND_READY, .status = "False" };

    if (f->conflict) {
        c.reason = REASON_MANY_PODS;
        c.message = f->conflict;
    } else if (f->fault) {
        say_fault(m);
        return;
    } else if (sandbox_is_suspended(f->sandbox)) {
        c.reason = REASON_SUSPENDED;
        c.message = f->pod ? "Sandbox is suspending" : "Sandbox is suspended";
    } else if (!find_end(f, &c)) {
        say_dependencies(m);
        return;
    }
    say(m, c);
}

/* ---- the other fields ---- */

static void put_pod(struct making *m)
{
    const struct sandbox_facts *f = m->f;
    char hash[NAME_HASH_BYTES], selector[96];
    struct json_node *ips;

    (void)json_node_remove(m->status, "podIPs");
    (void)json_node_remove(m->status, "nodeName");
    if (!f->pod)
        return;
    (void)snprintf(selector, sizeof selector, "%s=%s", LABEL_TRACKING,
                   name_hash(hash, span_cstr(object_name(f->sandbox))));
    tree_text(m->status, "selector", selector);
    if (!is_own(f)) /* a stranger's address is none of ours to tell */
        return;
    if (json_count(object_at(f->pod, "status.podIPs"))) {
        ips = json_node_set(m->status, "podIPs", json_edit_array(m->ed));
        JSON_EACH(ip, object_at(f->pod, "status.podIPs"))
        {
            json_node_append(ips, json_edit_str(m->ed, json_str(json_get(ip, "ip"))));
        }
    }
    if (object_text(f->pod, "spec.nodeName"))
        tree_text(m->status, "nodeName", object_text(f->pod, "spec.nodeName"));
}

static void put_service(struct making *m)
{
    const struct object *sandbox = m->f->sandbox;
    char fqdn[1024];

    if (!m->f->is_service_known)
        return;
    (void)json_node_remove(m->status, "service");
    (void)json_node_remove(m->status, "serviceFQDN");
    if (!m->f->is_service_shown)
        return;
    (void)snprintf(fqdn, sizeof fqdn, "%s.%s.svc.%s", object_name(sandbox),
                   object_namespace(sandbox), m->f->cluster_domain);
    tree_text(m->status, "service", object_name(sandbox));
    tree_text(m->status, "serviceFQDN", fqdn);
}

static struct making begin(const struct sandbox_facts *f, struct json_edit *ed)
{
    const struct json *status = object_member(f->sandbox, "status");
    struct making m = { .f = f, .ed = ed };

    m.status = json_type(status) == JSON_OBJECT ? json_edit_view(ed, status) : json_edit_object(ed);
    m.conditions = json_node_get(m.status, "conditions");
    if (json_node_type(m.conditions) != JSON_ARRAY)
        m.conditions = json_node_set(m.status, "conditions", json_edit_array(ed));
    return m;
}

struct json_node *sandbox_status(const struct sandbox_facts *f, struct json_edit *ed)
{
    struct making m = begin(f, ed);

    put_pod(&m);
    put_service(&m);
    say_suspended(&m);
    say_finished(&m);
    say_scheduled(&m);
    say_ready(&m);
    return m.status;
}

/* ---- expiry ---- */

struct json_node *sandbox_status_expired(const struct object *sandbox, const char *now,
                                         struct json_edit *ed)
{
    struct sandbox_facts f = { .sandbox = sandbox, .now = now };
    struct making m = begin(&f, ed);

    condition_remove(m.conditions, COND_POD_SCHEDULED);
    say(&m, (struct condition){ .type = COND_READY,
                                .status = "False",
                                .reason = REASON_EXPIRED,
                                .message = "Sandbox has expired" });
    return m.status;
}

struct json_node *sandbox_status_ended(const struct object *sandbox, const char *now,
                                       struct json_edit *ed)
{
    struct json_node *status = sandbox_status_expired(sandbox, now, ed);
    struct json_node *left = json_edit_object(ed);

    json_node_set(left, "conditions", json_node_copy(ed, json_node_get(status, "conditions")));
    return left;
}

/* ---- the write ---- */

static bool is_only_node_new(const struct json *have, struct json_node *status)
{
    struct json_edit *ed = json_node_edit(status);
    struct json_node *was = json_edit_view(ed, have), *now = json_node_copy(ed, status);

    if (!was)
        return false;
    (void)json_node_remove(was, "nodeName");
    (void)json_node_remove(now, "nodeName");
    return json_node_equal(was, now);
}

/* The same conditions without the generations. */
static struct json_node *unnumbered(struct json_node *status)
{
    struct json_node *list = json_node_get(status, "conditions");

    for (size_t i = 0; i < json_node_count(list); i++)
        (void)json_node_remove(json_node_at(list, i), "observedGeneration");
    return status;
}

bool sandbox_status_is_renumbered(const struct object *sandbox, struct json_node *status)
{
    const struct json *have = object_member(sandbox, "status");
    struct json_edit *ed = json_node_edit(status);

    return have && !json_node_equal_value(status, have) &&
           json_node_equal(unnumbered(json_edit_view(ed, have)),
                           unnumbered(json_node_copy(ed, status)));
}

static bool is_ready(struct json_node *status)
{
    struct json_node *list = json_node_get(status, "conditions");

    for (size_t i = 0; i < json_node_count(list); i++) {
        struct json_node *c = json_node_at(list, i);

        if (span_is(json_node_str(json_node_get(c, "type")), COND_READY))
            return span_is(json_node_str(json_node_get(c, "status")), "True");
    }
    return false;
}

/* A merge patch: members that changed, and a null for each that went. */
static void put_difference(const struct json *have, struct json_node *status,
                           struct json_node *patch)
{
    struct json_edit *ed = json_node_edit(status);

    for (size_t i = 0; i < json_node_count(status); i++) {
        struct span name = json_node_name_at(status, i);
        struct json_node *value = json_node_value_at(status, i);

        if (!json_node_equal_value(value, json_get_span(have, name)))
            json_node_set_span(patch, name, json_node_copy(ed, value));
    }
    JSON_MEMBERS(name, value, have)
    {
        (void)value;
        if (!json_node_get_span(status, json_str(name)))
            json_node_set_span(patch, json_str(name), json_edit_null(ed));
    }
}

struct step sandbox_status_step(const struct object *sandbox, struct json_node *status,
                                struct json_edit *ed)
{
    const struct json *have = object_member(sandbox, "status");
    struct step step = { 0 };

    if (have && json_node_equal_value(status, have))
        return step;
    if (have && !is_ready(status) && is_only_node_new(have, status))
        return step;
    step = step_patch(ed, sandbox);
    step.sub = "status";
    put_difference(have, status, tree_object(step.body, "status"));
    return step;
}
