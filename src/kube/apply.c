#include "kube/apply.h"

#include "kube/apply_writing.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

struct conflict {
    struct causes *causes;
    const struct manager *row;
};

static void add_conflict(void *ctx, struct span path)
{
    const struct conflict *c = ctx;
    const struct manager *row = c->row;
    bool has_sub = row->subresource.n > 0;

    causes_add(c->causes, CAUSE_CONFLICT, AT_SPAN(NULL, path), NULL,
               "conflict with \"%.*s\"%s%.*s%s%s%.*s", SPAN_ARG(row->name),
               has_sub ? " with subresource \"" : "", SPAN_ARG(row->subresource),
               has_sub ? "\"" : "", row->is_applied ? "" : " using ",
               SPAN_ARG(row->is_applied ? SPAN_NONE : row->api_version));
}

static int compare_names(const void *pa, const void *pb)
{
    const struct manager *a = *(const struct manager *const *)pa,
                         *b = *(const struct manager *const *)pb;
    size_t n = MIN(a->name.n, b->name.n);
    int order = n ? memcmp(a->name.p, b->name.p, n) : 0;

    return order ? order : (a->name.n > b->name.n) - (a->name.n < b->name.n);
}

/* What others own, and the write would change; `allowed` fields (or NULL) do not count. */
static int find_conflicts(struct writing *w, const struct manager *self, struct json_node *allowed,
                          struct causes *causes, struct err *e)
{
    struct manager *rows[MANAGED_MAX];

    for (size_t i = 0; i < w->managed.n; i++)
        rows[i] = &w->managed.rows[i];
    qsort(rows, w->managed.n, sizeof *rows, compare_names);
    for (size_t i = 0; i < w->managed.n; i++) {
        struct json_node *lost = rows[i] == self ? NULL : writing_lost_fields(w, rows[i]);

        if (lost && allowed)
            fieldset_subtract(lost, allowed);
        if (lost)
            fieldset_each(lost, add_conflict, &(struct conflict){ causes, rows[i] });
    }
    if (causes->n == 0)
        return 0;
    return err_set(e, ERR_CONFLICT, "Apply failed with %zu conflicts", causes->n + causes->dropped);
}

static int fields_in(const struct kind_version *version, struct json_node *object,
                     struct json_node **ret, struct err *e)
{
    if (typed_fields(version->type, object, false, ret, e) < 0)
        return -1;
    typed_name_parents(version->type, *ret);
    return 0;
}

/* Puts back into *pruned what is in `merged` and some manager owns in that version. */
static int add_back_owned(struct writing *w, const struct kind_version *version,
                          struct json_node *merged, struct json_node **pruned, struct err *e)
{
    struct json_node *gone, *left, *owned = fieldset_new(w->ed);

    for (size_t i = 0; i < w->managed.n; i++)
        if (writing_version_of(w->by->kind, w->managed.rows[i].api_version) == version)
            fieldset_add(owned, managed_open(&w->managed, &w->managed.rows[i]));
    if (fields_in(version, merged, &gone, e) < 0 || fields_in(version, *pruned, &left, e) < 0)
        return -1;
    typed_name_parents(version->type, owned);
    fieldset_subtract(gone, left);
    fieldset_subtract(gone, owned);
    *pruned = json_node_copy(w->ed, merged);
    typed_remove(version->type, *pruned, gone);
    return 0;
}

/* Takes away what the manager applied last time, and neither it nor anybody else owns now. */
static int prune(struct writing *w, const struct manager *last, struct json_node **object,
                 struct err *e)
{
    const struct kind_version *version = writing_version_of(w->by->kind, last->api_version);
    struct json_node *merged, *pruned, *gone, *left, *had;

    merged = version ? writing_in_version(w, *object, w->version, version) : NULL;
    if (!merged || fieldset_is_empty(last->set))
        return 0;
    had = json_node_copy(w->ed, last->set);
    typed_name_parents(version->type, had);
    pruned = json_node_copy(w->ed, merged);
    typed_remove(version->type, pruned, had);
    if (add_back_owned(w, version, merged, &pruned, e) < 0)
        return -1;
    for (size_t i = 0; i < w->by->kind->version_count; i++) {
        const struct kind_version *other = &w->by->kind->versions[i];
        struct json_node *there = writing_in_version(w, merged, version, other),
                         *part = writing_in_version(w, pruned, version, other);

        if (other == version || !there || !part)
            continue;
        if (add_back_owned(w, other, there, &part, e) < 0)
            return -1;
        pruned = writing_in_version(w, part, other, version);
        if (!pruned)
            return 0;
    }
    if (fields_in(version, pruned, &left, e) < 0 || fields_in(version, merged, &gone, e) < 0)
        return -1;
    fieldset_subtract(gone, left);
    gone = fieldset_common(gone, had);
    if (fieldset_is_empty(gone))
        return 0; /* the way through another version leaves its traces: not for nothing */
    merged = json_node_copy(w->ed, merged);
    typed_remove(version->type, merged, gone);
    merged = writing_in_version(w, merged, version, w->version);
    *object = merged ? merged : *object;
    return 0;
}

static int check_config(const struct writing *w, struct json_node *config, struct err *e)
{
    struct span given = json_node_str(json_node_get(config, "apiVersion")),
                want = writing_api_version(w);

    if (json_node_type(config) != JSON_OBJECT)
        return err_set(e, ERR_PROTOCOL, "the configuration is a JSON %s, not an object",
                       json_node_type_name(config));
    if (given.p && !span_eq(given, want))
        return err_set(e, ERR_PROTOCOL,
                       "Incorrect version specified in apply patch. Specified patch version: "
                       "%.*s, expected: %.*s",
                       SPAN_ARG(span_slice(given, 0, 128)), SPAN_ARG(want));
    if (json_node_get(json_node_get(config, "metadata"), "managedFields"))
        return err_set(e, ERR_PROTOCOL, "metadata.managedFields must be nil");
    return 0;
}

/* Everything that was there before anybody applied belongs to one manager. */
static int note_before_first(struct writing *w, struct json_node *live, struct err *e)
{
    struct json_node *now = w->live;

    if (!live || w->managed.n)
        return 0;
    w->live = writing_empty_object(w->ed, w->version->type);
    w->object = now;
    if (writing_take_changes(w, "before-first-apply", e) < 0)
        return -1;
    w->live = now;
    w->seen_n = 0;
    return 0;
}

/* kubectl's first server-side apply after client-side ones: what the annotation says it applied last,
 * and is still so, it owns in truth. NULL: nothing. */
static struct json_node *last_applied(struct writing *w)
{
    struct json_node *meta = json_node_get(w->live, "metadata"), *last, *fields;
    struct span text =
        json_node_str(json_node_get(json_node_get(meta, "annotations"), LAST_APPLIED));
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct typed_diff d;
    struct err e;

    if (strcmp(w->by->manager, "kubectl") != 0 || !text.n || json_parse(text, NULL, &doc, &e) < 0)
        return NULL;
    last = json_edit_doc(w->ed, doc);
    if (!span_eq(json_node_str(json_node_get(last, "apiVersion")), writing_api_version(w)) ||
        typed_fields(w->version->type, last, false, &fields, &e) < 0)
        return NULL;
    typed_compare(w->version->type, last, w->live, &d);
    fieldset_subtract(fields, d.modified);
    fieldset_subtract(fields, d.added);
    fieldset_subtract(fields, d.removed);
    return fields;
}

static int judge_conflicts(struct writing *w, const struct manager *self, struct causes *conflicts,
                           struct err *e)
{
    struct json_node *allowed;

    if (w->by->is_forced || find_conflicts(w, self, NULL, conflicts, e) == 0)
        return 0;
    allowed = last_applied(w);
    if (!allowed)
        return -1;
    causes_done(conflicts);
    *conflicts = (struct causes)CAUSES_INIT;
    return find_conflicts(w, self, allowed, conflicts, e);
}

/* Finds or makes the applying manager's entry; *ret_last is what it was. */
static struct manager *enter_applier(struct writing *w, struct json_node *set,
                                     struct manager *ret_last, struct err *e)
{
    struct manager row = { .name = span_cstr(writing_manager_name(w->by)),
                           .api_version = writing_api_version(w),
                           .subresource = span_cstr(w->by->subresource),
                           .is_applied = true,
                           .set = set },
                   *self = managed_find(&w->managed, &row);

    *ret_last = (struct manager){ .set = fieldset_new(w->ed) };
    if (self) {
        (void)managed_open(&w->managed, self);
        *ret_last = *self;
        row.time = self->time;
        *self = row;
        return self;
    }
    self = managed_add(&w->managed, &row);
    if (!self)
        (void)err_set(e, ERR_LIMIT, "more than %d managers of fields", MANAGED_MAX);
    return self;
}

int apply_config(const struct apply_by *by, struct json_node *live, struct json_node *config,
                 struct causes *conflicts, struct json_node **ret, struct err *e)
{
    OWN_MEM struct writing *w = NEW(struct writing);
    struct json_node *set, *object, *kept;
    struct manager last, *self;

    if (writing_begin(w, by, config, e) < 0 || check_config(w, config, e) < 0)
        return -1;
    writing_compare_with(w, live);
    kept = json_node_get(json_node_get(live, "metadata"), "managedFields");
    if (managed_decode(w->ed, kept, false, &w->managed, e) < 0)
        return err_wrap(e, "failed to decode managed fields");
    writing_drop_unserved(w);
    if (note_before_first(w, live, e) < 0 ||
        typed_fields(w->version->type, config, true, &set, e) < 0)
        return -1;
    fieldset_subtract_below(set, writing_reset_fields(w));
    self = enter_applier(w, set, &last, e);
    if (!self)
        return -1;
    object = typed_merge(w->version->type, json_node_copy(w->ed, w->live), config);
    if (prune(w, &last, &object, e) < 0)
        return -1;
    w->object = object;
    if (judge_conflicts(w, self, conflicts, e) < 0)
        return -1;
    writing_settle_others(w, self);
    writing_strip(self->set);
    if (!json_node_equal(object, w->live))
        self->time = span_cstr(by->now);
    managed_drop_empty(&w->managed);
    json_node_prune(object);
    writing_write_managed(w, object);
    *ret = object;
    return writing_full(w, e);
}

int apply_conflict_text(const struct causes *conflicts, struct buf *out, struct err *e)
{
    const char *who = "";

    if (conflicts->n == 1)
        return buf_addf(out, e, "Apply failed with 1 conflict: %s: %s", cause_message(conflicts, 0),
                        cause_field(conflicts, 0));
    if (buf_addf(out, e, "Apply failed with %zu conflicts:", conflicts->n + conflicts->dropped) < 0)
        return -1;
    for (size_t i = 0; i < conflicts->n; i++) {
        const char *message = cause_message(conflicts, i);

        /* "conflict with x" heads the list of all that conflict with x. */
        if (strcmp(message, who) != 0 &&
            buf_addf(out, e, "%sconflicts%s:", i ? "\n" : " ", message + strlen("conflict")) < 0)
            return -1;
        who = message;
        if (buf_addf(out, e, "\n- %s", cause_field(conflicts, i)) < 0)
            return -1;
    }
    return 0;
}
