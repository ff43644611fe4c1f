#include "controller/pod_meta.h"

#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"

#include <string.h>

/* The labels under reserved keys that a Pod has from its sandbox. NULL: it must not have it. */
struct reserved {
    const char *key;
    const char *value;
};
#define RESERVED_COUNT 4

/* Labels of pools and templates come only through a sandbox that a pool or claim made: whoever may make Sandboxes must
 * not be able to put a Pod under another's NetworkPolicy. */
static void reserved_labels(const struct object *sandbox, const char *hash,
                            struct reserved ret[RESERVED_COUNT])
{
    const char *template = NULL, *pool = NULL;
    const char *by = object_label(sandbox, LABEL_CREATED_BY);

    if (owner_is(sandbox, GROUP_EXTENSIONS, NULL))
        template = object_label(sandbox, LABEL_TEMPLATE_REF);
    if (owner_is(sandbox, GROUP_EXTENSIONS, "SandboxWarmPool"))
        pool = object_label(sandbox, LABEL_POOL);
    ret[0] = (struct reserved){ LABEL_TRACKING, hash };
    ret[1] = (struct reserved){ LABEL_TEMPLATE_REF, template && *template ? template : NULL };
    ret[2] = (struct reserved){ LABEL_POOL, pool && *pool ? pool : NULL };
    ret[3] = (struct reserved){ LABEL_CREATED_BY, by && *by ? created_by_known(by) : NULL };
}

static const struct json *template_map(const struct object *sandbox, const char *name)
{
    return json_get(object_at(sandbox, "spec.podTemplate.metadata"), name);
}

/* ---- the list of keys that were copied ---- */

static int by_bytes(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int order = memcmp(x->p, y->p, MIN(x->n, y->n));

    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* The keys of a map that are not reserved, sorted, with commas between. */
static struct span sent_keys(struct json_edit *ed, const struct json *map)
{
    OWN(buf_done) struct buf text = BUF_INIT(KEYS_MAX_BYTES);
    OWN_MEM struct span *keys = own_new((json_count(map) + 1) * sizeof *keys);
    size_t n = 0;
    struct err e;

    JSON_MEMBERS(name, value, map)
    {
        struct span key = json_str(name);

        if (!key_is_reserved(key) && json_type(value) == JSON_STRING)
            keys[n++] = key;
    }
    if (!n)
        return SPAN("");
    qsort(keys, n, sizeof *keys, by_bytes);
    for (size_t i = 0; i < n; i++)
        if (buf_add(&text, i ? SPAN(",") : SPAN_NONE, &e) < 0 || buf_add(&text, keys[i], &e) < 0)
            break;
    return json_edit_text(ed, buf_span(&text));
}

/* ---- a new Pod ---- */

static void copy_map(struct json_node *meta, const char *name, const struct json *map)
{
    struct json_node *to = tree_object(meta, name);

    JSON_MEMBERS(key, value, map)
    {
        if (!key_is_reserved(json_str(key)) && json_type(value) == JSON_STRING)
            json_node_set_span(to, json_str(key), json_edit_view(json_node_edit(meta), value));
    }
}

static void note_sent(struct json_node *meta, const char *note, const struct json *map)
{
    struct json_edit *ed = json_node_edit(meta);
    struct span keys = sent_keys(ed, map);

    if (keys.n)
        json_node_set(tree_object(meta, "annotations"), note, json_edit_str(ed, keys));
}

void pod_meta_make(const struct object *sandbox, const char *hash, struct json_node *meta)
{
    struct reserved reserved[RESERVED_COUNT];
    const struct json *labels = template_map(sandbox, "labels");
    const struct json *annotations = template_map(sandbox, "annotations");

    copy_map(meta, "labels", labels);
    reserved_labels(sandbox, hash, reserved);
    EACH(r, reserved) {
        if (r->value)
            tree_text(tree_object(meta, "labels"), r->key, r->value);
    }
    if (json_count(annotations))
        copy_map(meta, "annotations", annotations);
    note_sent(meta, NOTE_SENT_LABELS, labels);
    note_sent(meta, NOTE_SENT_ANNOTATIONS, annotations);
}

/* ---- a Pod that is there ---- */

/* One of its two maps, and the patch of it. */
struct change {
    const struct json *have;
    struct json_node *patch; /* the object's merge patch */
    const char *name;        /* "labels" */
    bool has_changed;
};

static void put(struct change *c, struct span key, struct span value)
{
    struct span have = json_str(json_get_span(c->have, key));
    struct json_node *meta;

    if (have.p && span_eq(have, value))
        return;
    meta = tree_object(c->patch, "metadata");
    json_node_set_span(tree_object(meta, c->name), key,
                       json_edit_str(json_node_edit(c->patch), value));
    c->has_changed = true;
}

static void drop(struct change *c, struct span key)
{
    struct json_node *meta;

    if (!json_get_span(c->have, key))
        return;
    meta = tree_object(c->patch, "metadata");
    json_node_set_span(tree_object(meta, c->name), key, json_edit_null(json_node_edit(c->patch)));
    c->has_changed = true;
}

static bool is_kept(struct span key)
{
    return span_is(key, LABEL_TRACKING) || span_is(key, NOTE_SENT_LABELS) ||
           span_is(key, NOTE_SENT_ANNOTATIONS);
}

/* What the template says is set; what it said once, and says no more, goes. */
static void follow_template(struct change *c, const struct json *map, const char *sent)
{
    struct span rest = span_cstr(sent), key;

    JSON_MEMBERS(name, value, map)
    {
        if (!key_is_reserved(json_str(name)) && json_type(value) == JSON_STRING)
            put(c, json_str(name), json_str(value));
    }
    while (span_cut(&rest, ',', &key)) {
        bool is_said = !key_is_reserved(key) && json_get_span(map, key);

        if (key.n && !is_said && !is_kept(key))
            drop(c, key);
    }
}

/* Absent and empty say the same: a Pod without such keys needs no write for that. */
static void follow_sent(struct change *notes, const char *note, const struct json *map)
{
    struct span keys = sent_keys(json_node_edit(notes->patch), map);

    if (keys.n || json_get(notes->have, note))
        put(notes, span_cstr(note), keys);
}

bool pod_meta_patch(const struct object *sandbox, const char *hash, const struct object *pod,
                    struct json_node *patch)
{
    const struct json *meta = object_meta(pod);
    struct change labels = { json_get(meta, "labels"), patch, "labels", false };
    struct change notes = { json_get(meta, "annotations"), patch, "annotations", false };
    const struct json *template_labels = template_map(sandbox, "labels");
    const struct json *template_notes = template_map(sandbox, "annotations");
    struct reserved reserved[RESERVED_COUNT];

    follow_template(&labels, template_labels, object_annotation(pod, NOTE_SENT_LABELS));
    follow_template(&notes, template_notes, object_annotation(pod, NOTE_SENT_ANNOTATIONS));
    reserved_labels(sandbox, hash, reserved);
    EACH(r, reserved) {
        struct span key = span_cstr(r->key);

        /* An older controller may have listed it as copied, and it was dropped above. */
        json_node_remove_span(json_node_get(json_node_get(patch, "metadata"), "labels"), key);
        if (r->value)
            put(&labels, key, span_cstr(r->value));
        else
            drop(&labels, key);
    }
    follow_sent(&notes, NOTE_SENT_LABELS, template_labels);
    follow_sent(&notes, NOTE_SENT_ANNOTATIONS, template_notes);
    return labels.has_changed || notes.has_changed;
}
