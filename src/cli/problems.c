#include "cli/problems.h"

#include <stdio.h>
#include <string.h>

static const struct json *ready_condition(const struct object *o)
{
    JSON_EACH(c, object_at(o, "status.conditions"))
    {
        if (span_is(json_str(json_get(c, "type")), "Ready"))
            return c;
    }
    return NULL;
}

static bool is_one_of(const char *reason, const char *const *list)
{
    for (; reason && *list; list++)
        if (strcmp(reason, *list) == 0)
            return true;
    return false;
}

static void say(const struct json *ready, struct problem *ret)
{
    const char *message = json_cstr(json_get(ready, "message"));

    (void)snprintf(ret->text, sizeof ret->text, "%.100s: %.280s",
                   json_cstr(json_get(ready, "reason")), message ? message : "");
}

/* The reasons that stay until something is done. One that ended by itself or by its time is as it was asked for. */
bool problem_of_claim(const struct object *claim, struct problem *ret)
{
    static const char *const missing[] = { "TemplateNotFound", "WarmPoolNotFound", NULL };
    static const char *const wrong[] = { "InvalidConfiguration", "InvalidMetadata",
                                         "EnvVarsInjectionRejected", "VolumeClaimTemplatesError",
                                         NULL };
    const struct json *ready = ready_condition(claim);
    const char *reason = json_cstr(json_get(ready, "reason"));
    const char *sandbox = object_text(claim, "status.sandbox.name");
    const char *space = object_namespace(claim);

    if (span_is(json_str(json_get(ready, "status")), "True"))
        return false;
    if (sandbox && reason && strcmp(reason, "PodFailed") == 0)
        (void)snprintf(ret->heal, sizeof ret->heal, "kubectl delete pod -n %s %s", space, sandbox);
    else if (is_one_of(reason, missing))
        (void)snprintf(ret->heal, sizeof ret->heal,
                       "kubectl apply what it names, or kubectl delete sandboxclaim -n %s %s",
                       space, object_name(claim));
    else if (is_one_of(reason, wrong))
        (void)snprintf(ret->heal, sizeof ret->heal, "kubectl delete sandboxclaim -n %s %s", space,
                       object_name(claim));
    else
        return false;
    say(ready, ret);
    return true;
}

void problem_add_template(struct buf *templates, const struct object *o)
{
    struct err e;

    if (!templates->n)
        (void)buf_addc(templates, '\n', &e);
    (void)buf_addf(templates, &e, "%s/%s\n", object_namespace(o), object_name(o));
}

bool problem_of_pool(const struct object *pool, const struct buf *templates, struct problem *ret)
{
    const char *name = object_text(pool, "spec.sandboxTemplateRef.name");
    char line[600];

    (void)snprintf(line, sizeof line, "\n%s/%s\n", object_namespace(pool), name ? name : "");
    if (!name || (templates->n && strstr(buf_cstr(templates), line)))
        return false;
    (void)snprintf(ret->text, sizeof ret->text, "its SandboxTemplate '%.300s' does not exist",
                   name);
    (void)snprintf(ret->heal, sizeof ret->heal,
                   "kubectl apply that SandboxTemplate, or kubectl delete sandboxwarmpool -n %s %s",
                   object_namespace(pool), object_name(pool));
    return true;
}

bool problem_is_suspended(const struct object *claim)
{
    const char *reason = json_cstr(json_get(ready_condition(claim), "reason"));

    return reason && strcmp(reason, "SandboxSuspended") == 0;
}
