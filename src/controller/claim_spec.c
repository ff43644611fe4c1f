#include "controller/claim_spec.h"

#include "controller/blueprint.h"
#include "controller/keys.h"
#include "controller/names.h"

#include <string.h>

bool claim_needs_own(const struct object *claim)
{
    return json_count(object_at(claim, "spec.env")) ||
           json_count(object_at(claim, "spec.volumeClaimTemplates"));
}

/* ---- variables ---- */

#define ENV_REJECTED "environment variable injection rejected: "

static struct json_node *container_named(struct json_node *pod_spec, struct span name)
{
    static const char *const lists[] = { "initContainers", "containers" };

    EACH(list, lists) {
        struct json_node *all = json_node_get(pod_spec, *list);

        for (size_t i = 0; i < json_node_count(all); i++)
            if (span_eq(json_node_str(json_node_get(json_node_at(all, i), "name")), name))
                return json_node_at(all, i);
    }
    return NULL;
}

static struct json_node *find_var(struct json_node *env, struct span name)
{
    for (size_t i = 0; i < json_node_count(env); i++)
        if (span_eq(json_node_str(json_node_get(json_node_at(env, i), "name")), name))
            return json_node_at(env, i);
    return NULL;
}

static enum claim_fault put_var(struct json_node *container, const struct json *var,
                                bool may_override, struct err *e)
{
    struct json_edit *ed = json_node_edit(container);
    struct span name = json_str(json_get(var, "name"));
    struct json_node *env = json_node_get(container, "env"), *have;

    if (!may_override && json_node_count(json_node_get(container, "envFrom"))) {
        (void)err_set(e, ERR_INVALID,
                      ENV_REJECTED "the container takes variables from elsewhere (envFrom), which "
                                   "they could override; the template must say Overrides");
        return CLAIM_ENV;
    }
    if (json_node_type(env) != JSON_ARRAY)
        env = json_node_set(container, "env", json_edit_array(ed));
    have = find_var(env, name);
    if (have && !may_override) {
        (void)err_set(e, ERR_CONFLICT,
                      "environment variable \"%.*s\" is the template's, which does not let claims "
                      "override it",
                      SPAN_ARG(name));
        return CLAIM_ERROR;
    }
    if (have)
        (void)json_node_remove(have, "valueFrom");
    else
        json_node_append(env, have = json_edit_object(ed));
    json_node_set(have, "name", json_edit_str(ed, name));
    json_node_set(have, "value", json_edit_str(ed, json_str(json_get(var, "value"))));
    return CLAIM_FINE;
}

/* Those for a container by name, or those for the first one. */
static enum claim_fault put_vars(struct json_node *pod_spec, const struct json *vars,
                                 bool is_targeted, bool may_override, struct err *e)
{
    JSON_EACH(var, vars)
    {
        struct span target = json_str(json_get(var, "containerName"));
        struct json_node *container;
        enum claim_fault fault;

        if ((target.n > 0) != is_targeted)
            continue;
        container = target.n ? container_named(pod_spec, target)
                             : json_node_at(json_node_get(pod_spec, "containers"), 0);
        if (!container) {
            (void)err_set(e, ERR_NOT_FOUND,
                          "environment variable \"%.*s\" is for container \"%.*s\", which the "
                          "template does not have",
                          SPAN_ARG(json_str(json_get(var, "name"))), SPAN_ARG(target));
            return CLAIM_ERROR;
        }
        fault = put_var(container, var, may_override, e);
        if (fault)
            return fault;
    }
    return CLAIM_FINE;
}

static enum claim_fault put_env(const struct object *claim, const struct object *template,
                                struct json_node *pod_spec, struct err *e)
{
    const struct json *vars = object_at(claim, "spec.env");
    const char *policy = object_text(template, "spec.envVarsInjectionPolicy");
    bool may_override = policy && strcmp(policy, "Overrides") == 0;
    enum claim_fault fault;

    if (!json_count(vars))
        return CLAIM_FINE;
    if (!may_override && (!policy || strcmp(policy, "Allowed") != 0)) {
        (void)err_set(e, ERR_DENIED, ENV_REJECTED "SandboxTemplate \"%s\" does not allow it",
                      object_name(template));
        return CLAIM_ENV;
    }
    fault = put_vars(pod_spec, vars, true, may_override, e);
    return fault ? fault : put_vars(pod_spec, vars, false, may_override, e);
}

/* ---- volume claims ---- */

static struct span volume_name(struct json_node *volume)
{
    return json_node_str(json_node_get(json_node_get(volume, "metadata"), "name"));
}

static size_t find_volume(struct json_node *list, struct span name, size_t before)
{
    for (size_t i = 0; i < MIN(before, json_node_count(list)); i++)
        if (span_eq(volume_name(json_node_at(list, i)), name))
            return i;
    return SIZE_MAX;
}

static int check_volumes(struct json_node *list, const char *whose, struct err *e)
{
    for (size_t i = 0; i < json_node_count(list); i++) {
        struct span name = volume_name(json_node_at(list, i));

        if (!name.n)
            return err_set(e, ERR_INVALID, "a volumeClaimTemplate of the %s has no name", whose);
        if (find_volume(list, name, i) != SIZE_MAX)
            return err_set(e, ERR_INVALID, "the %s has two volumeClaimTemplates named \"%.*s\"",
                           whose, SPAN_ARG(name));
    }
    return 0;
}

static int merge_volumes(struct json_node *to, struct json_node *more, bool may_override,
                         struct err *e)
{
    struct json_edit *ed = json_node_edit(to);

    for (size_t i = 0; i < json_node_count(more); i++) {
        struct json_node *volume = json_node_copy(ed, json_node_at(more, i));
        struct span name = volume_name(volume);
        size_t place = find_volume(to, name, SIZE_MAX);

        if (place == SIZE_MAX)
            json_node_append(to, volume);
        else if (may_override)
            json_node_replace_at(to, place, volume);
        else
            return err_set(e, ERR_CONFLICT,
                           "volumeClaimTemplate \"%.*s\" is the template's, which does not let "
                           "claims override it",
                           SPAN_ARG(name));
    }
    return 0;
}

static int put_volumes(const struct object *claim, const struct object *template,
                       struct json_node *spec, struct err *e)
{
    struct json_edit *ed = json_node_edit(spec);
    struct json_node *more = json_edit_view(ed, object_at(claim, "spec.volumeClaimTemplates"));
    struct json_node *have = json_node_get(spec, "volumeClaimTemplates");
    const char *policy = object_text(template, "spec.volumeClaimTemplatesPolicy");
    bool may_override = policy && strcmp(policy, "Overrides") == 0;

    if (check_volumes(have, "template", e) < 0 || check_volumes(more, "claim", e) < 0)
        return -1;
    if (!json_node_count(more))
        return 0;
    if (!may_override && (!policy || strcmp(policy, "Allowed") != 0))
        return err_set(e, ERR_DENIED,
                       "SandboxTemplate \"%s\" does not allow volumeClaimTemplates of claims",
                       object_name(template));
    if (json_node_type(have) != JSON_ARRAY)
        have = json_node_set(spec, "volumeClaimTemplates", json_edit_array(ed));
    return merge_volumes(have, more, may_override, e);
}

/* ---- the Sandbox ---- */

static void put_identity(const struct object *claim, const struct object *template,
                         struct json_node *meta)
{
    struct json_edit *ed = json_node_edit(meta);
    struct json_node *labels = tree_object(meta, "labels"), *owners = json_edit_array(ed);
    const char *by = object_label(claim, LABEL_CREATED_BY);
    const char *trace = object_annotation(claim, NOTE_TRACE);
    char hash[NAME_HASH_BYTES];

    tree_text(labels, LABEL_CLAIM_UID, object_uid(claim));
    tree_text(labels, LABEL_LAUNCH, LAUNCH_COLD);
    tree_text(labels, LABEL_TEMPLATE_REF, name_hash(hash, span_cstr(object_name(template))));
    if (by && *by)
        tree_text(labels, LABEL_CREATED_BY, by);
    tree_text(tree_object(meta, "annotations"), NOTE_TEMPLATE_REF, object_name(template));
    tree_text(tree_object(meta, "annotations"), NOTE_POD_NAME, object_name(claim));
    if (trace)
        tree_text(tree_object(meta, "annotations"), NOTE_TRACE, trace);
    json_node_append(owners, owner_reference(ed, claim));
    json_node_set(meta, "ownerReferences", owners);
}

enum claim_fault claim_make_sandbox(const struct object *claim, const struct object *template,
                                    struct json_edit *ed, struct step *ret, struct err *e)
{
    struct json_node *spec = blueprint_spec(ed, template), *pod, *meta = json_edit_object(ed);
    enum claim_fault fault;

    *ret = step_create(ed, known_kinds()->sandbox, object_namespace(claim), object_name(claim));
    put_identity(claim, template, tree_object(ret->body, "metadata"));
    json_node_set(ret->body, "spec", spec);
    pod = tree_object(spec, "podTemplate");
    if (claim_pod_metadata(claim, template, meta, e) < 0)
        return CLAIM_ERROR;
    json_node_set(pod, "metadata", meta);
    fault = put_env(claim, template, tree_object(pod, "spec"), e);
    if (fault)
        return fault;
    return put_volumes(claim, template, spec, e) < 0 ? CLAIM_VOLUMES : CLAIM_FINE;
}
