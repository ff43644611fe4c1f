/* What a claim says of itself, and when it ends. */
#include "controller/claim.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "kube/time.h"

#include <stdio.h>
#include <string.h>

/* ---- the end ---- */

static struct expiry after_finished(const struct object *claim, struct timespec now)
{
    const struct json *conditions = object_at(claim, "status.conditions");
    const struct json *finished = condition_find(conditions, COND_FINISHED);
    struct timespec end;
    int64_t ttl, left_ms;

    if (!json_i64(object_at(claim, "spec.lifecycle.ttlSecondsAfterFinished"), &ttl) ||
        !condition_is(conditions, COND_FINISHED, "True") ||
        !kube_time_parse(json_str(json_get(finished, "lastTransitionTime")), &end))
        return (struct expiry){ 0 };
    left_ms = (end.tv_sec + ttl - now.tv_sec) * 1000 - now.tv_nsec / 1000000;
    return (struct expiry){ .is_set = true,
                            .is_over = left_ms <= 0,
                            .wait_ms = left_ms > 0 ? (uint64_t)left_ms : 0 };
}

struct expiry claim_expiry(const struct object *claim, struct timespec now)
{
    struct expiry by_time = expiry_of(object_at(claim, "spec.lifecycle.shutdownTime"), now);
    struct expiry by_end = after_finished(claim, now);

    if (!by_time.is_set || by_time.is_over)
        return by_time.is_set ? by_time : by_end;
    if (!by_end.is_set)
        return by_time;
    return by_end.is_over || by_end.wait_ms < by_time.wait_ms ? by_end : by_time;
}

bool claim_is_marked(const struct object *claim)
{
    const struct json *conditions = object_at(claim, "status.conditions");

    return strcmp(condition_reason(conditions, COND_READY), "ClaimExpired") == 0;
}

enum claim_end claim_end_of(const struct object *claim)
{
    const char *policy = object_text(claim, "spec.lifecycle.shutdownPolicy");

    if (policy && strcmp(policy, "Delete") == 0)
        return CLAIM_END_DELETE;
    return policy && strcmp(policy, "DeleteForeground") == 0 ? CLAIM_END_FOREGROUND
                                                             : CLAIM_END_RETAIN;
}

/* ---- Ready ---- */

const char *claim_fault_reason(enum claim_fault fault)
{
    switch (fault) {
    case CLAIM_METADATA:
        return "InvalidMetadata";
    case CLAIM_ENV:
        return "EnvVarsInjectionRejected";
    case CLAIM_VOLUMES:
        return "VolumeClaimTemplatesError";
    case CLAIM_NO_TEMPLATE:
        return "TemplateNotFound";
    case CLAIM_NO_POOL:
        return "WarmPoolNotFound";
    case CLAIM_CONFLICT:
        return "AdoptionConflict";
    case CLAIM_PENDING:
        return "SandboxCreatePending";
    case CLAIM_NOT_OWNED:
    case CLAIM_ERROR:
    case CLAIM_FINE:
        break;
    }
    return REASON_ERROR;
}

static void say(struct json_node *list, const struct claim_facts *f, struct condition c)
{
    c.type = COND_READY;
    c.generation = object_generation(f->claim);
    condition_set(list, &c, f->now);
}

/* Says Ready the same already, but of a generation that the claim has not reached: v0.5.6 of the public controller copies the
 * sandbox's number with the rest. That is left alone, or a take-over would write each of them. One that is behind is not. */
static bool is_said_ahead(const struct claim_facts *f, const struct condition *c)
{
    const struct json *have = condition_find(object_at(f->claim, "status.conditions"), COND_READY);
    int64_t generation;

    return json_i64(json_get(have, "observedGeneration"), &generation) &&
           generation > object_generation(f->claim) &&
           span_is(json_str(json_get(have, "status")), c->status) &&
           span_is(json_str(json_get(have, "reason")), c->reason) &&
           span_is(json_str(json_get(have, "message")), c->message);
}

static void say_fault(struct json_node *list, const struct claim_facts *f)
{
    OWN(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX_BYTES);

    if (f->fault == CLAIM_NOT_OWNED || f->fault == CLAIM_ERROR)
        (void)buf_add_capped(&text, SPAN("Error seen: "));
    (void)buf_add_capped(&text, span_cstr(f->text));
    say(list, f,
        (struct condition){ .status = "False",
                            .reason = claim_fault_reason(f->fault),
                            .message = buf_cstr(&text) });
}

/* Why its ports cannot be reached; NULL: they can. The Pod of a member of a pool was ready when it was taken; its ports are listened
 * on when its node hears that it is claimed.
 * Where it was not asked for in time to be said of a member, the address tells that the node is one of ours. */
static const char *why_unheard(const struct claim_facts *f)
{
    const struct json *conditions = object_at(f->pod, "status.conditions");
    const struct json *notes = object_at(f->sandbox, "spec.podTemplate.metadata.annotations");
    const char *ip = object_text(f->pod, "status.podIP");
    const char *reason = condition_reason(conditions, COND_POD_ADDRESSES);
    bool is_new = ip && strncmp(ip, "127.", 4) == 0 && !*reason &&
                  span_is(json_str(json_get(notes, NOTE_POD_ADDRESSES)), "true");

    if (strcmp(reason, REASON_STRANGERS) == 0)
        return "Pod is Ready but a program of another account has one of its ports; its Events say "
               "which";
    return is_new || strcmp(reason, REASON_UNCLAIMED) == 0
               ? "Pod is Ready but its ports are not listened on yet"
               : NULL;
}

/* A claim that was told to be ready stays so: its user has it already. */
static bool is_ready_with(const struct claim_facts *f)
{
    const char *name = object_text(f->claim, "status.sandbox.name");

    return condition_is(object_at(f->claim, "status.conditions"), COND_READY, "True") && name &&
           strcmp(name, object_name(f->sandbox)) == 0;
}

static void say_ready(struct json_node *list, const struct claim_facts *f)
{
    const struct json *conditions = f->sandbox ? object_at(f->sandbox, "status.conditions") : NULL;
    const struct json *from = condition_find(conditions, COND_READY);
    struct condition c = { .status = "False" };

    if (f->fault != CLAIM_FINE) {
        say_fault(list, f);
        return;
    }
    if (!f->sandbox) {
        c.reason = "SandboxMissing";
        c.message = "Sandbox does not exist";
    } else if (!from) {
        c.reason = "SandboxNotReady";
        c.message = "Sandbox is not ready";
    } else if (strcmp(condition_reason(conditions, COND_READY), REASON_EXPIRED) == 0) {
        c.reason = REASON_EXPIRED;
        c.message = "Underlying Sandbox resource has expired independently of the Claim.";
    } else if (f->pod && why_unheard(f) && !is_ready_with(f)) {
        c.reason = REASON_NOT_READY;
        c.message = why_unheard(f);
    } else {
        const char *message = json_cstr(json_get(from, "message"));

        c.status = json_cstr(json_get(from, "status"));
        c.reason = condition_reason(conditions, COND_READY);
        c.message = message ? message : "";
        c.since = json_cstr(json_get(from, "lastTransitionTime"));
    }
    if (!c.status)
        c.status = "Unknown";
    if (!is_said_ahead(f, &c))
        say(list, f, c);
}

/* Copied as it is; it stays when the sandbox is gone and the claim waits for its own end. */
static void mirror_finished(struct json_node *list, const struct claim_facts *f)
{
    const struct json *from =
        f->sandbox ? condition_find(object_at(f->sandbox, "status.conditions"), COND_FINISHED)
                   : NULL;

    if (!f->sandbox && f->fault != CLAIM_FINE)
        return; /* nothing is known of it now */
    condition_remove(list, COND_FINISHED);
    if (from) /* the names of types sort it before Ready */
        json_node_insert(list, 0, json_edit_view(json_node_edit(list), from));
}

/* ---- the whole ---- */

static struct json_node *begin(const struct object *claim, struct json_edit *ed,
                               struct json_node **ret_conditions)
{
    const struct json *have = object_member(claim, "status");
    struct json_node *status =
        json_type(have) == JSON_OBJECT ? json_edit_view(ed, have) : json_edit_object(ed);
    struct json_node *list = json_node_get(status, "conditions");

    if (json_node_type(list) != JSON_ARRAY)
        list = json_node_set(status, "conditions", json_edit_array(ed));
    *ret_conditions = list;
    return status;
}

static void put_sandbox(struct json_node *status, const struct object *sandbox)
{
    struct json_edit *ed = json_node_edit(status);
    struct json_node *to = json_edit_object(ed);
    const struct json *ips = object_at(sandbox, "status.podIPs");

    tree_text(to, "name", object_name(sandbox));
    if (json_count(ips))
        json_node_set(to, "podIPs", json_edit_view(ed, ips));
    json_node_set(status, "sandbox", to);
}

struct json_node *claim_status(const struct claim_facts *f, struct json_edit *ed)
{
    struct json_node *list, *status = begin(f->claim, ed, &list);

    if (f->fault == CLAIM_PENDING && json_node_get(status, "sandbox"))
        return status; /* the copy is behind: what was said stays right */
    if (f->sandbox)
        put_sandbox(status, f->sandbox);
    else if (f->fault == CLAIM_FINE || f->fault == CLAIM_NOT_OWNED)
        (void)json_node_remove(status, "sandbox");
    say_ready(list, f);
    mirror_finished(list, f);
    return status;
}

struct json_node *claim_status_expired(const struct object *claim, const char *text, bool is_gone,
                                       const char *now, struct json_edit *ed)
{
    struct claim_facts f = { .claim = claim, .now = now };
    struct json_node *list, *status = begin(claim, ed, &list);

    say(list, &f,
        (struct condition){ .status = "False",
                            .reason = "ClaimExpired",
                            .message = text ? text : "Claim expired. Sandbox cleanup initiated." });
    if (is_gone)
        (void)json_node_remove(status, "sandbox");
    return status;
}

struct step claim_status_step(const struct object *claim, struct json_node *status,
                              struct json_edit *ed)
{
    static const char *const names[] = { "conditions", "sandbox" };
    const struct json *have = object_member(claim, "status");
    struct step step = step_patch_locked(ed, claim);
    bool is_new = false;

    step.sub = "status";
    EACH(name, names) {
        struct json_node *value = json_node_get(status, *name);

        if (json_node_equal_value(value, json_get(have, *name)))
            continue;
        is_new = true;
        if (value && strcmp(*name, "sandbox") == 0 && !json_node_get(value, "podIPs"))
            json_node_set(value, "podIPs", json_edit_null(ed));
        json_node_set(tree_object(step.body, "status"), *name,
                      value ? json_node_copy(ed, value) : json_edit_null(ed));
    }
    if (!is_new)
        step.verb = STEP_NONE;
    return step;
}
