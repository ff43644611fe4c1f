/* Creates, updates and patches: who took which field. */
#include "kube/apply_writing.h"

/* None, or one that says nothing. */
static bool is_reset(const struct json *given)
{
    return json_type(given) == JSON_ARRAY &&
           (json_count(given) == 0 ||
            (json_count(given) == 1 && json_count(json_at(given, 0)) == 0));
}

/* The entries that a write starts from: those that it brings itself, unless it brings none, or nonsense. */
static void choose_managed(struct writing *w, struct json_node *live, struct json_node *object)
{
    struct json_node *given = json_node_get(json_node_get(object, "metadata"), "managedFields"),
                     *kept = json_node_get(json_node_get(live, "metadata"), "managedFields");
    bool is_ours = json_node_view(given) && json_node_view(given) == json_node_view(kept);
    struct err e;

    w->managed.n = 0;
    if (w->by->subresource[0] == '\0' && given && json_node_settle(given, &e) == 0) {
        if (is_reset(json_node_plain(given)))
            return;
        if (managed_decode(w->ed, given, is_ours, &w->managed, &e) == 0 && w->managed.n)
            return;
    }
    if (managed_decode(w->ed, kept, true, &w->managed, &e) < 0)
        w->managed.n = 0;
}

/* A create, the short way: the fields are written and not compared. False: take the long way. */
static bool track_new(struct writing *w, struct json_node *object)
{
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    bool has_status = kind_subresource(w->version, "status") != NULL;
    const char *const members[] = { "apiVersion", "kind", has_status ? "status" : NULL, NULL };
    struct typed_skip skip = { members, writing_nobodys };
    struct manager self = writing_updater(w, writing_manager_name(w->by));
    struct err e;

    if (!typed_write_new(w->version->type, object, &skip, &text) ||
        json_parse(buf_span(&text), NULL, &doc, &e) < 0)
        return false;
    self.wire = json_doc_root(json_edit_hold(w->ed, doc));
    if (json_count(self.wire))
        (void)managed_add(&w->managed, &self);
    return true;
}

int apply_track(const struct apply_by *by, struct json_node *live, struct json_node *object,
                struct err *e)
{
    OWN_MEM struct writing *w =
        own_resize(NULL, 1, sizeof *w); /* large, and writing_begin() fills it */
    struct manager self;

    if (writing_begin(w, by, object, e) < 0)
        return -1;
    choose_managed(w, live, object);
    (void)json_node_remove(json_node_get(object, "metadata"), "managedFields");
    if (live && w->managed.n == 0)
        return 0;
    w->object = object;
    if (!live && w->managed.n == 0 && by->subresource[0] == '\0' && track_new(w, object)) {
        writing_write_managed(w, object);
        return writing_full(w, e);
    }
    writing_compare_with(w, live);
    writing_drop_unserved(w);
    self = writing_updater(w, writing_manager_name(by));
    writing_settle_others(w, managed_find(&w->managed, &self));
    if (writing_take_changes(w, writing_manager_name(by), e) < 0)
        return -1;
    managed_drop_empty(&w->managed);
    managed_cap(&w->managed);
    writing_write_managed(w, object);
    return writing_full(w, e);
}
