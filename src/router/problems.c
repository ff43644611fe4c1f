#include "router/problems.h"

#include "base/near.h"

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

void problem_drop_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

static void say(const struct json *ready, struct problem *ret)
{
    const char *message = json_cstr(json_get(ready, "message"));

    (void)snprintf(ret->text, sizeof ret->text, "%.100s: %.280s",
                   json_cstr(json_get(ready, "reason")), message ? message : "");
    problem_drop_controls(ret->text);
}

/* A name that a shell takes for a word, and kubectl for no option. */
static bool is_word(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-";

    return name && *name && *name != '-' && !name[strspn(name, letters)];
}

/* kind: as kubectl has it. pod: what runs for it, or NULL. The reasons are those that stay until something is done: one that
 * ended by itself or by its time is as it was asked for. */
static bool is_problem(const struct object *o, const char *kind, const char *pod,
                       struct problem *ret)
{
    static const char *const missing[] = { "TemplateNotFound", "WarmPoolNotFound", NULL };
    static const char *const wrong[] = { "InvalidConfiguration", "InvalidMetadata",
                                         "EnvVarsInjectionRejected", "VolumeClaimTemplatesError",
                                         NULL };
    const struct json *ready = ready_condition(o);
    const char *reason = json_cstr(json_get(ready, "reason"));
    const char *space = object_namespace(o);

    if (span_is(json_str(json_get(ready, "status")), "True"))
        return false;
    if (is_word(pod) && reason && strcmp(reason, "PodFailed") == 0)
        (void)snprintf(ret->heal, sizeof ret->heal, "kubectl delete pod -n %s %s", space, pod);
    else if (is_one_of(reason, missing))
        (void)snprintf(ret->heal, sizeof ret->heal,
                       "kubectl apply what it names, or kubectl delete %s -n %s %s", kind, space,
                       object_name(o));
    else if (is_one_of(reason, wrong))
        (void)snprintf(ret->heal, sizeof ret->heal, "kubectl delete %s -n %s %s", kind, space,
                       object_name(o));
    else
        return false;
    say(ready, ret);
    return true;
}

bool problem_of_claim(const struct object *claim, struct problem *ret)
{
    return is_problem(claim, "sandboxclaim", object_text(claim, "status.sandbox.name"), ret);
}

bool problem_is_owned(const struct object *sandbox)
{
    static const char *const kinds[] = { "SandboxClaim", "SandboxWarmPool", NULL };
    struct object_owner owner;

    return object_owner_controller(sandbox, &owner) && is_one_of(owner.kind, kinds);
}

bool problem_of_sandbox(const struct object *sandbox, struct problem *ret)
{
    return !problem_is_owned(sandbox) && is_problem(sandbox, "sandbox", object_name(sandbox), ret);
}

/* ---- names ---- */

void problem_add_name(struct buf *names, const struct object *o)
{
    struct err e;

    if (!names->n)
        (void)buf_addc(names, '\n', &e); /* fits: the first */
    /* There is room for some 200,000 names. */
    (void)buf_addf(names, &e, "%s/%s\n", object_namespace(o), object_name(o));
}

static bool has_name(const struct buf *names, const char *space, const char *name)
{
    char line[600];

    (void)snprintf(line, sizeof line, "\n%s/%s\n", space, name);
    return names->n && strstr(buf_cstr(names), line);
}

bool problem_of_pool(const struct object *pool, const struct buf *templates, struct problem *ret)
{
    const char *name = object_text(pool, "spec.sandboxTemplateRef.name");

    if (!name || has_name(templates, object_namespace(pool), name))
        return false;
    (void)snprintf(ret->text, sizeof ret->text, "its SandboxTemplate '%.300s' does not exist",
                   name);
    problem_drop_controls(ret->text);
    (void)snprintf(ret->heal, sizeof ret->heal,
                   "kubectl apply that SandboxTemplate, or kubectl delete sandboxwarmpool -n %s %s",
                   object_namespace(pool), object_name(pool));
    return true;
}

/* The nearest of the same namespace, into text; "" where none is near. */
static void find_near(const struct buf *names, const char *space, const char *name, char *text,
                      size_t n)
{
    struct span all = buf_span(names), line;
    size_t before = strlen(space) + 1;
    char known[NEAR_NAME_MAX_BYTES];
    struct near near = { .name = name };

    *text = '\0';
    while (span_cut(&all, '\n', &line)) {
        size_t away = near.best ? near.away : SIZE_MAX;

        if (line.n <= before || !span_starts(line, space) || line.p[before - 1] != '/')
            continue;
        (void)snprintf(known, sizeof known, "%.*s", SPAN_ARG(span_skip(line, before)));
        near_try(&near, known);
        if (near.best && near.away < away)
            (void)snprintf(text, n, ": did you mean '%.200s'?", known);
    }
}

bool problem_of_binding(const struct object *binding, const struct buf *roles, struct problem *ret)
{
    const char *kind = object_text(binding, "roleRef.kind");
    const char *name = object_text(binding, "roleRef.name"), *space = object_namespace(binding);
    const char *own = *space ? "rolebinding" : "clusterrolebinding";
    const char *in = kind && strcmp(kind, "Role") == 0 ? space : "";
    char meant[240];

    if (!kind || !name || has_name(roles, in, name))
        return false;
    find_near(roles, in, name, meant, sizeof meant);
    (void)snprintf(ret->text, sizeof ret->text,
                   "it gives nothing: the %.30s '%.100s' does not exist%s", kind, name, meant);
    problem_drop_controls(ret->text);
    if (is_word(object_name(binding)))
        (void)snprintf(ret->heal, sizeof ret->heal,
                       "kubectl delete %s%s%s %s, and bind a role that exists", own,
                       *space ? " -n " : "", space, object_name(binding));
    else
        (void)snprintf(ret->heal, sizeof ret->heal, "delete it, and bind a role that exists");
    return true;
}

bool problem_is_suspended(const struct object *o)
{
    const char *reason = json_cstr(json_get(ready_condition(o), "reason"));

    return reason && strcmp(reason, "SandboxSuspended") == 0;
}
