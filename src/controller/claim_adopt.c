/* The two writes of an adoption, and what follows them. */
#include "controller/claim.h"

#include "base/time.h"
#include "controller/keys.h"
#include "controller/names.h"

#include <stdio.h>
#include <string.h>

const char *claim_assigned(const struct object *claim)
{
    const char *name = object_annotation(claim, NOTE_SANDBOX_NAME);

    if (!name || !*name)
        name = object_label(claim, NOTE_SANDBOX_NAME);
    return name && *name ? name : NULL;
}

/* RFC 3339 with all nine digits, as the public controller stamps it. */
static const char *nano_text(struct timespec t, char text[64])
{
    char whole[TIME_TEXT_BYTES];
    size_t n;

    (void)time_rfc3339(whole, t, false);
    n = strlen(whole);
    (void)snprintf(text, 64, "%.*s.%09ldZ", (int)(n ? n - 1 : 0), whole, t.tv_nsec);
    return text;
}

struct step claim_lock(const struct object *claim, const char *sandbox, const struct timespec *now,
                       struct json_edit *ed)
{
    struct step step = step_patch_locked(ed, claim);
    struct json_node *notes = tree_object(tree_object(step.body, "metadata"), "annotations");
    char text[64];

    tree_text(notes, NOTE_SANDBOX_NAME, sandbox);
    if (now && !object_annotation(claim, NOTE_FIRST_SEEN))
        tree_text(notes, NOTE_FIRST_SEEN, nano_text(*now, text));
    if (object_label(claim, NOTE_SANDBOX_NAME)) /* where older controllers wrote it */
        json_node_set(tree_object(tree_object(step.body, "metadata"), "labels"), NOTE_SANDBOX_NAME,
                      json_edit_null(ed));
    return step;
}

struct step claim_stamp(const struct object *claim, const struct timespec *now,
                        struct json_edit *ed)
{
    struct step step = step_patch(ed, claim);
    char text[64];

    tree_text(tree_object(tree_object(step.body, "metadata"), "annotations"), NOTE_FIRST_READY,
              now ? nano_text(*now, text) : "unknown");
    return step;
}

struct step claim_unlock(const struct object *claim, struct json_edit *ed)
{
    struct step step = step_patch_locked(ed, claim);
    struct json_node *meta = tree_object(step.body, "metadata");

    if (object_annotation(claim, NOTE_SANDBOX_NAME))
        json_node_set(tree_object(meta, "annotations"), NOTE_SANDBOX_NAME, json_edit_null(ed));
    if (object_label(claim, NOTE_SANDBOX_NAME))
        json_node_set(tree_object(meta, "labels"), NOTE_SANDBOX_NAME, json_edit_null(ed));
    return step;
}

/* ---- differences ---- */

/* A patch of a map: what differs, and a null for what goes. False: nothing. */
static bool put_map(struct json_node *patch, const char *name, const struct json *have,
                    struct json_node *want)
{
    struct json_edit *ed = json_node_edit(patch);
    bool is_new = false;

    for (size_t i = 0; i < json_node_count(want); i++) {
        struct span key = json_node_name_at(want, i);
        struct json_node *value = json_node_value_at(want, i);

        if (json_node_equal_value(value, json_get_span(have, key)))
            continue;
        json_node_set_span(tree_object(patch, name), key, json_node_copy(ed, value));
        is_new = true;
    }
    JSON_MEMBERS(key, value, have)
    {
        (void)value;
        if (json_node_get_span(want, json_str(key)))
            continue;
        json_node_set_span(tree_object(patch, name), json_str(key), json_edit_null(ed));
        is_new = true;
    }
    return is_new;
}

/* One label of the sandbox; NULL takes it away. */
static bool put_label(struct step *step, const struct object *sandbox, const char *key,
                      const char *value)
{
    const char *have = object_label(sandbox, key);
    struct json_node *labels;

    if (value ? have && strcmp(have, value) == 0 : !have)
        return false;
    labels = tree_object(tree_object(step->body, "metadata"), "labels");
    if (value)
        tree_text(labels, key, value);
    else
        json_node_set(labels, key, json_edit_null(json_node_edit(labels)));
    return true;
}

static const char *created_by(const struct object *claim)
{
    const char *by = object_label(claim, LABEL_CREATED_BY);

    return by && *by ? by : NULL;
}

/* ---- the metadata of the Pod ---- */

/* Without its template: what is there, without what was the pool's, and the claim's own. */
static void keep_metadata(const struct object *claim, const struct object *sandbox,
                          struct json_node *meta)
{
    static const char *const of_pool[] = { LABEL_POOL, LABEL_TEMPLATE_HASH, LABEL_POD_HASH };
    const struct json *have = object_at(sandbox, "spec.podTemplate.metadata");
    const struct json *more = object_at(claim, "spec.additionalPodMetadata");
    struct json_edit *ed = json_node_edit(meta);
    struct json_node *labels, *notes;

    if (json_get(have, "labels"))
        json_node_set(meta, "labels", json_edit_view(ed, json_get(have, "labels")));
    if (json_get(have, "annotations"))
        json_node_set(meta, "annotations", json_edit_view(ed, json_get(have, "annotations")));
    labels = tree_object(meta, "labels");
    notes = tree_object(meta, "annotations");
    EACH(key, of_pool)
        (void)json_node_remove(labels, *key);
    if (span_is(json_node_str(json_node_get(notes, NOTE_SAFE_TO_EVICT)), "true"))
        (void)json_node_remove(notes, NOTE_SAFE_TO_EVICT);
    tree_text(labels, LABEL_CLAIM_UID, object_uid(claim));
    json_node_set(labels, LABEL_CREATED_BY,
                  created_by(claim) ? json_edit_cstr(ed, created_by(claim)) : NULL);
    JSON_MEMBERS(key, value, json_get(more, "labels"))
    {
        json_node_set_span(labels, json_str(key), json_edit_view(ed, value));
    }
    JSON_MEMBERS(note, text, json_get(more, "annotations"))
    {
        json_node_set_span(notes, json_str(note), json_edit_view(ed, text));
    }
}

static int put_pod_metadata(const struct object *claim, const struct object *template,
                            const struct object *sandbox, struct step *step, bool *ret_is_new,
                            struct err *e)
{
    const struct json *have = object_at(sandbox, "spec.podTemplate.metadata");
    struct json_edit *ed = json_node_edit(step->body);
    struct json_node *want = json_edit_object(ed), *patch = json_edit_object(ed);

    if (!template)
        keep_metadata(claim, sandbox, want);
    else if (claim_pod_metadata(claim, template, want, e) < 0)
        return -1;
    *ret_is_new = put_map(patch, "labels", json_get(have, "labels"), json_node_get(want, "labels"));
    *ret_is_new |= put_map(patch, "annotations", json_get(have, "annotations"),
                           json_node_get(want, "annotations"));
    if (*ret_is_new)
        json_node_set(tree_object(tree_object(step->body, "spec"), "podTemplate"), "metadata",
                      patch);
    return 0;
}

/* ---- the sandbox ---- */

int claim_adopt(const struct object *claim, const struct object *template,
                const struct object *sandbox, struct json_edit *ed, struct step *ret, struct err *e)
{
    const char *trace = object_annotation(claim, NOTE_TRACE);
    struct step step = step_patch_locked(ed, sandbox);
    struct json_node *meta = tree_object(step.body, "metadata"), *owners = json_edit_array(ed);
    char hash[NAME_HASH_BYTES];
    bool is_new;

    (void)put_label(&step, sandbox, LABEL_POOL, NULL);
    (void)put_label(&step, sandbox, LABEL_TEMPLATE_HASH, NULL);
    (void)put_label(&step, sandbox, LABEL_POD_HASH, NULL);
    (void)put_label(&step, sandbox, LABEL_LAUNCH, LAUNCH_WARM);
    (void)put_label(&step, sandbox, LABEL_CLAIM_UID, object_uid(claim));
    (void)put_label(&step, sandbox, LABEL_CREATED_BY, created_by(claim));
    if (template)
        (void)put_label(&step, sandbox, LABEL_TEMPLATE_REF,
                        name_hash(hash, span_cstr(object_name(template))));
    json_node_append(owners, owner_reference(ed, claim));
    json_node_set(meta, "ownerReferences", owners);
    tree_text(tree_object(meta, "annotations"), NOTE_POD_NAME, object_name(sandbox));
    if (trace)
        tree_text(tree_object(meta, "annotations"), NOTE_TRACE, trace);
    if (put_pod_metadata(claim, template, sandbox, &step, &is_new, e) < 0)
        return -1;
    *ret = step;
    return 0;
}

int claim_follow(const struct object *claim, const struct object *template,
                 const struct object *sandbox, const char *launch, struct json_edit *ed,
                 struct step *ret, struct err *e)
{
    const char *have = object_label(sandbox, LABEL_LAUNCH);
    struct step step = step_patch_locked(ed, sandbox);
    char hash[NAME_HASH_BYTES];
    bool is_new = false, differs = false;

    if (!have || !*have)
        differs |= put_label(&step, sandbox, LABEL_LAUNCH, launch);
    if (template) {
        (void)name_hash(hash, span_cstr(object_name(template)));
        differs |= put_label(&step, sandbox, LABEL_TEMPLATE_REF, hash);
        differs |= put_label(&step, sandbox, LABEL_CREATED_BY, created_by(claim));
        if (put_pod_metadata(claim, template, sandbox, &step, &is_new, e) < 0)
            return -1;
    }
    *ret = step;
    if (!differs && !is_new)
        ret->verb = STEP_NONE;
    return 0;
}
