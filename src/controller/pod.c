#include "controller/pod.h"

#include "controller/keys.h"
#include "controller/names.h"
#include "controller/pod_meta.h"

#include <string.h>

static bool is_noted(const struct object *sandbox)
{
    const char *note = object_annotation(sandbox, NOTE_POD_NAME);

    return note && *note;
}

const char *pod_name_of(const struct object *sandbox)
{
    return is_noted(sandbox) ? object_annotation(sandbox, NOTE_POD_NAME) : object_name(sandbox);
}

bool sandbox_is_suspended(const struct object *sandbox)
{
    const char *mode = object_text(sandbox, "spec.operatingMode");

    return mode && strcmp(mode, "Suspended") == 0;
}

const char *volume_claim_name(struct json_edit *ed, const struct json *template,
                              const struct object *sandbox)
{
    struct span name = json_str(json_get(json_get(template, "metadata"), "name"));
    struct span head = json_edit_join(ed, name, SPAN("-"));

    return (const char *)json_edit_join(ed, head, span_cstr(object_name(sandbox))).p;
}

/* ---- a new Pod ---- */

/* The volumes of the claims come last; one of the spec that has the name of a claim gives way to it. */
static void add_volumes(struct json_node *spec, const struct object *sandbox)
{
    struct json_edit *ed = json_node_edit(spec);
    struct json_node *volumes = json_node_get(spec, "volumes");
    const struct json *templates = object_at(sandbox, "spec.volumeClaimTemplates");

    if (!json_count(templates))
        return;
    if (json_node_type(volumes) != JSON_ARRAY)
        volumes = json_node_set(spec, "volumes", json_edit_array(ed));
    JSON_EACH(template, templates)
    {
        struct span name = json_str(json_get(json_get(template, "metadata"), "name"));
        struct json_node *volume = json_edit_object(ed);

        for (size_t i = json_node_count(volumes); i-- > 0;)
            if (span_eq(json_node_str(json_node_get(json_node_at(volumes, i), "name")), name))
                json_node_remove_at(volumes, i);
        json_node_set(volume, "name", json_edit_str(ed, name));
        tree_text(tree_object(volume, "persistentVolumeClaim"), "claimName",
                  volume_claim_name(ed, template, sandbox));
        json_node_append(volumes, volume);
    }
}

static struct step make_pod(const struct object *sandbox, const char *hash, struct json_edit *ed)
{
    struct step step =
        step_create(ed, known_kinds()->pod, object_namespace(sandbox), object_name(sandbox));
    struct json_node *meta = tree_object(step.body, "metadata"), *spec, *owners;

    pod_meta_make(sandbox, hash, meta);
    owners = json_node_set(meta, "ownerReferences", json_edit_array(ed));
    json_node_append(owners, owner_reference(ed, sandbox));
    spec = json_edit_view(ed, object_at(sandbox, "spec.podTemplate.spec"));
    if (!spec)
        spec = json_edit_object(ed);
    json_node_set(step.body, "spec", spec);
    add_volumes(spec, sandbox);
    return step;
}

/* ---- which Pod ---- */

/* The one Pod that is the sandbox's own, *ret_count how many there are. */
static struct object *find_own(const struct pod_view *v, size_t *ret_count)
{
    struct object *own = NULL;
    bool has_named = false;

    *ret_count = 0;
    for (size_t i = 0; i < v->tracked_count; i++) {
        struct object *pod = v->tracked[i];

        if (ownership_of(pod, v->sandbox) != OWNED)
            continue;
        own = pod;
        ++*ret_count;
        has_named |= v->named && strcmp(object_name(pod), object_name(v->named)) == 0;
    }
    if (v->named && !has_named && ownership_of(v->named, v->sandbox) == OWNED) {
        own = v->named;
        ++*ret_count;
    }
    return own;
}

static void suspend(const struct pod_view *v, struct pod_verdict *ret)
{
    if (!ret->pod || ownership_of(ret->pod, v->sandbox) != OWNED) {
        ret->note = "";
        return;
    }
    if (!object_is_deleting(ret->pod))
        ret->step = step_delete(ret->pod);
}

static void keep_running(const struct pod_view *v, const char *hash, struct json_edit *ed,
                         struct pod_verdict *ret)
{
    enum ownership owner = ownership_of(ret->pod, v->sandbox);

    if (owner == FOREIGN || (owner == UNOWNED && !may_adopt(ret->pod, hash))) {
        if (owner == FOREIGN) {
            ret->note = "";
            (void)err_foreign(&ret->fault, "pod", ret->pod, v->sandbox);
        } else {
            (void)err_unowned(&ret->fault, "pod", ret->pod, v->sandbox);
        }
        ret->pod = NULL;
        return;
    }
    if (!ret->note && !is_noted(v->sandbox))
        ret->note = object_name(ret->pod);
    if (object_is_deleting(ret->pod))
        return; /* it goes: nobody reads its labels any more */
    if (owner == UNOWNED) {
        ret->step = step_patch_locked(ed, ret->pod);
        json_node_set(tree_object(ret->step.body, "metadata"), "ownerReferences",
                      owner_references_with(ed, ret->pod, v->sandbox));
        (void)pod_meta_patch(v->sandbox, hash, ret->pod, ret->step.body);
        return;
    }
    ret->step = step_patch(ed, ret->pod);
    ret->is_metadata_only = pod_meta_patch(v->sandbox, hash, ret->pod, ret->step.body);
    if (!ret->is_metadata_only)
        ret->step.verb = STEP_NONE;
}

/* The annotation changes only where it says something else now. */
static void settle_note(const struct object *sandbox, const char **note)
{
    const char *have = object_annotation(sandbox, NOTE_POD_NAME);

    if (*note && ((!have && !**note) || (have && strcmp(have, *note) == 0)))
        *note = NULL;
}

void pod_decide(const struct pod_view *v, struct json_edit *ed, struct pod_verdict *ret)
{
    char hash[NAME_HASH_BYTES];
    size_t count;
    struct object *own = find_own(v, &count);

    *ret = (struct pod_verdict){ 0 };
    (void)name_hash(hash, span_cstr(object_name(v->sandbox)));
    if (count > 1) {
        ret->is_conflict = true;
        (void)err_set(&ret->fault, ERR_CONFLICT,
                      "multiple Pods (%zu) are controlled by this Sandbox; refusing to choose or "
                      "create a Pod",
                      count);
        return;
    }
    ret->pod = v->named;
    if (own && own != v->named &&
        (!v->named || strcmp(object_name(own), object_name(v->named)) != 0)) {
        ret->pod = own;
        ret->note = sandbox_is_suspended(v->sandbox) ? "" : object_name(own);
    }
    if (sandbox_is_suspended(v->sandbox)) {
        suspend(v, ret);
    } else if (ret->pod) {
        keep_running(v, hash, ed, ret);
    } else {
        ret->step = make_pod(v->sandbox, hash, ed);
        ret->note = object_name(v->sandbox);
        ret->note_if_failed = "";
    }
    settle_note(v->sandbox, &ret->note);
    settle_note(v->sandbox, &ret->note_if_failed);
}
