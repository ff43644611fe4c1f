#include "kube/apply.h"

#include "kube/convert.h"
#include "kube/managed.h"
#include "kube/typed.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* One version of the API in which managers own fields: what changed there. */
struct seen {
    const struct kind_version *version;
    struct typed_diff diff;
};

struct writing {
    const struct apply_by *by;
    struct json_edit *ed;
    const struct kind_version *version;
    struct json_node *live, *object; /* without managedFields */
    struct managed managed;
    struct seen seen[4]; /* kinds have at most two versions */
    size_t seen_n;
};

static const struct kind_version *version_of(const struct kind *kind, struct span api_version)
{
    for (size_t i = 0; i < kind->version_count; i++)
        if (span_is(api_version, kind_api_version(kind, &kind->versions[i])))
            return &kind->versions[i];
    return NULL;
}

static struct span own_api_version(const struct writing *w)
{
    return span_cstr(kind_api_version(w->by->kind, w->version));
}

/* What an object has that nobody gave: core kinds have their spec and status, though empty. */
static struct json_node *empty_object(struct json_edit *ed, const struct schema_type *type)
{
    struct json_node *o = json_edit_object(ed);

    for (size_t i = 0; i < type->field_count; i++) {
        const struct schema_field *f = &type->fields[i];
        bool is_struct = f->shape == SCHEMA_SINGLE && f->value == SCHEMA_OBJECT && f->ref;

        if (f->flags & SCHEMA_ALWAYS || strcmp(f->name, "metadata") == 0)
            json_node_set(o, f->name, is_struct ? empty_object(ed, f->ref) : json_edit_null(ed));
    }
    return o;
}

static struct json_node *without_managed(struct json_edit *ed, struct json_node *object)
{
    struct json_node *copy = json_node_copy(ed, object);

    (void)json_node_remove(json_node_get(copy, "metadata"), "managedFields");
    return copy;
}

static int begin(struct writing *w, const struct apply_by *by, struct json_node *live,
                 struct json_node *object, struct err *e)
{
    w->by = by;
    w->ed = json_node_edit(object);
    w->version = kind_version(by->kind, by->version);
    w->seen_n = 0;
    w->managed.ed = w->ed;
    w->managed.n = 0;
    if (!w->version)
        return err_set(e, ERR_PROTOCOL, "%s is not served in version '%s'", by->kind->name,
                       by->version);
    w->live = live ? without_managed(w->ed, live) : empty_object(w->ed, w->version->type);
    return 0;
}

/* The object in another version of its API; NULL when it cannot be converted. */
static struct json_node *in_version(const struct writing *w, struct json_node *object,
                                    const struct kind_version *from, const struct kind_version *to)
{
    struct json_node *copy;
    struct err e;

    if (from == to)
        return object;
    copy = json_node_copy(w->ed, object);
    return convert_tree(w->by->kind, from->name, to->name, copy, &e) == 0 ? copy : NULL;
}

/* Fields that this request cannot change, and therefore does not own. */
static struct json_node *reset_fields(const struct writing *w)
{
    struct json_node *set = fieldset_new(w->ed);

    if (strcmp(w->by->subresource, "status") == 0) {
        fieldset_mark(fieldset_child(set, SPAN("f:spec")));
        if (w->by->kind->traits & KIND_CUSTOM)
            fieldset_mark(fieldset_child(set, SPAN("f:metadata")));
    } else if (kind_subresource(w->version, "status")) {
        fieldset_mark(fieldset_child(set, SPAN("f:status")));
    }
    return set;
}

/* Of one version, compared once. NULL: it is not served, so its managers go. */
static const struct typed_diff *diff_in(struct writing *w, const struct kind_version *version)
{
    struct json_node *live, *object, *reset;
    struct seen *s;

    for (size_t i = 0; i < w->seen_n; i++)
        if (w->seen[i].version == version)
            return &w->seen[i].diff;
    if (!version || w->seen_n == LEN(w->seen))
        return NULL;
    live = in_version(w, w->live, w->version, version);
    object = in_version(w, w->object, w->version, version);
    if (!live || !object)
        return NULL;
    s = &w->seen[w->seen_n++];
    s->version = version;
    typed_compare(version->type, live, object, &s->diff);
    reset = reset_fields(w);
    fieldset_subtract_below(s->diff.added, reset);
    fieldset_subtract_below(s->diff.modified, reset);
    fieldset_subtract_below(s->diff.removed, reset);
    return &s->diff;
}

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

/* What the manager owns and the write changes; NULL: nothing. */
static struct json_node *lost_fields(struct writing *w, const struct manager *row)
{
    const struct typed_diff *d = diff_in(w, version_of(w->by->kind, row->api_version));
    struct json_node *lost;

    if (!d)
        return NULL;
    lost = managed_common(row, d->modified);
    fieldset_add(lost, managed_common(row, d->added));
    return fieldset_is_empty(lost) ? NULL : lost;
}

/* The manager loses what is in the set; one that has nothing of it is not even decoded. */
static void take_from(struct writing *w, struct manager *row, struct json_node *set)
{
    if (set && !fieldset_is_empty(managed_common(row, set)))
        fieldset_subtract(managed_open(&w->managed, row), set);
}

/* Others lose what was changed or removed. */
static void settle_others(struct writing *w, const struct manager *self)
{
    for (size_t i = 0; i < w->managed.n; i++) {
        struct manager *row = &w->managed.rows[i];
        const struct typed_diff *d = diff_in(w, version_of(w->by->kind, row->api_version));

        if (row == self || !d)
            continue;
        take_from(w, row, lost_fields(w, row));
        take_from(w, row, d->removed);
    }
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
    const struct manager *rows[MANAGED_MAX];

    for (size_t i = 0; i < w->managed.n; i++)
        rows[i] = &w->managed.rows[i];
    qsort(rows, w->managed.n, sizeof *rows, compare_names);
    for (size_t i = 0; i < w->managed.n; i++) {
        struct json_node *lost = rows[i] == self ? NULL : lost_fields(w, rows[i]);

        if (lost && allowed)
            fieldset_subtract(lost, allowed);
        if (lost)
            fieldset_each(lost, add_conflict, &(struct conflict){ causes, rows[i] });
    }
    if (causes->n == 0)
        return 0;
    return err_set(e, ERR_CONFLICT, "Apply failed with %zu conflicts", causes->n + causes->dropped);
}

static void drop_unserved(struct writing *w)
{
    for (size_t i = w->managed.n; i-- > 0;)
        if (!version_of(w->by->kind, w->managed.rows[i].api_version))
            managed_drop(&w->managed, &w->managed.rows[i]);
}

/* Fields that every object has, or that only the server sets, are nobody's. */
static const char *const nobodys[] = { "name",       "namespace",     "creationTimestamp",
                                       "selfLink",   "uid",           "clusterName",
                                       "generation", "managedFields", "resourceVersion" };

static void strip(struct json_node *set)
{
    struct json_node *below = fieldset_find(set, SPAN("f:metadata"));

    (void)json_node_remove(set, "f:apiVersion");
    (void)json_node_remove(set, "f:kind");
    (void)json_node_remove(below, ".");
    EACH(name, nobodys) {
        (void)json_node_remove_span(below, fieldset_field(json_node_edit(set), span_cstr(*name)));
    }
}

static struct manager updater(const struct writing *w, const char *manager)
{
    return (struct manager){ .name = span_cstr(manager),
                             .api_version = own_api_version(w),
                             .subresource = span_cstr(w->by->subresource),
                             .time = span_cstr(w->by->now) };
}

/* What an update took, added and changed fields, joins what its manager had before. */
static int take_changes(struct writing *w, const char *manager, struct err *e)
{
    const struct typed_diff *d = diff_in(w, w->version);
    struct manager self = updater(w, manager), *before = managed_find(&w->managed, &self);

    strip(d->added);
    strip(d->modified);
    if (before)
        take_from(w, before, d->removed);
    if (fieldset_is_empty(d->added) && fieldset_is_empty(d->modified))
        return 0;
    if (before) {
        before->time = self.time;
        if (before->wire && fieldset_wire_has(before->wire, d->added) &&
            fieldset_wire_has(before->wire, d->modified))
            return 0;
        fieldset_add(managed_open(&w->managed, before), d->added);
        fieldset_add(before->set, d->modified);
        return 0;
    }
    self.set = d->added;
    fieldset_add(self.set, d->modified);
    if (managed_add(&w->managed, &self))
        return 0;
    return err_set(e, ERR_LIMIT, "more than %d managers of fields", MANAGED_MAX);
}

/* The entries that a write starts from: those that it brings itself, unless it brings none, or nonsense. */
static void choose_managed(struct writing *w, struct json_node *live, struct json_node *object)
{
    struct json_node *given = json_node_get(json_node_get(object, "metadata"), "managedFields"),
                     *kept = json_node_get(json_node_get(live, "metadata"), "managedFields");
    bool is_reset = json_node_type(given) == JSON_ARRAY &&
                    (json_node_count(given) == 0 ||
                     (json_node_count(given) == 1 && json_node_count(json_node_at(given, 0)) == 0));
    struct err e;

    w->managed.n = 0;
    if (w->by->subresource[0] == '\0') {
        if (is_reset)
            return;
        if (managed_decode(w->ed, given, &w->managed, &e) == 0 && w->managed.n)
            return;
    }
    if (managed_decode(w->ed, kept, &w->managed, &e) < 0)
        w->managed.n = 0;
}

static void write_managed(struct writing *w, struct json_node *object)
{
    struct json_node *meta = json_node_get(object, "metadata"), *list = managed_encode(&w->managed);

    if (!meta)
        meta = json_node_set(object, "metadata", json_edit_object(w->ed));
    json_node_set(meta, "managedFields", list);
}

static int full(const struct writing *w, struct err *e)
{
    if (!json_edit_is_full(w->ed))
        return 0;
    return err_set(e, ERR_LIMIT, "the object has more fields than can be kept account of");
}

static const char *manager_name(const struct apply_by *by)
{
    return by->manager[0] ? by->manager : "unknown";
}

/* A create, the short way: the fields are written and not compared. False: take the long way. */
static bool track_new(struct writing *w, struct json_node *object)
{
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *skip = json_edit_object(w->ed), *meta = json_edit_object(w->ed);
    struct manager self = updater(w, manager_name(w->by));
    struct err e;

    EACH(name, nobodys) {
        json_node_set(meta, *name, json_edit_object(w->ed));
    }
    json_node_set(skip, "metadata", meta);
    json_node_set(skip, "apiVersion", json_edit_object(w->ed));
    json_node_set(skip, "kind", json_edit_object(w->ed));
    if (kind_subresource(w->version, "status"))
        json_node_set(skip, "status", json_edit_object(w->ed));
    if (!typed_write_new(w->version->type, object, skip, &text) ||
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
    OWN_MEM struct writing *w = own_resize(NULL, 1, sizeof *w); /* large, and begin() fills it */
    struct manager self;

    if (begin(w, by, live, object, e) < 0)
        return -1;
    choose_managed(w, live, object);
    (void)json_node_remove(json_node_get(object, "metadata"), "managedFields");
    if (live && w->managed.n == 0)
        return 0;
    w->object = object;
    if (!live && w->managed.n == 0 && by->subresource[0] == '\0' && track_new(w, object)) {
        write_managed(w, object);
        return full(w, e);
    }
    drop_unserved(w);
    self = updater(w, manager_name(by));
    settle_others(w, managed_find(&w->managed, &self));
    if (take_changes(w, manager_name(by), e) < 0)
        return -1;
    managed_drop_empty(&w->managed);
    managed_cap(&w->managed);
    write_managed(w, object);
    return full(w, e);
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
        if (version_of(w->by->kind, w->managed.rows[i].api_version) == version)
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
    const struct kind_version *version = version_of(w->by->kind, last->api_version);
    struct json_node *merged, *pruned, *gone, *left, *had;

    merged = version ? in_version(w, *object, w->version, version) : NULL;
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
        struct json_node *there = in_version(w, merged, version, other),
                         *part = in_version(w, pruned, version, other);

        if (other == version || !there || !part)
            continue;
        if (add_back_owned(w, other, there, &part, e) < 0)
            return -1;
        pruned = in_version(w, part, other, version);
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
    merged = in_version(w, merged, version, w->version);
    *object = merged ? merged : *object;
    return 0;
}

static int check_config(const struct writing *w, struct json_node *config, struct err *e)
{
    struct span given = json_node_str(json_node_get(config, "apiVersion")),
                want = own_api_version(w);

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
    w->live = empty_object(w->ed, w->version->type);
    w->object = now;
    if (take_changes(w, "before-first-apply", e) < 0)
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
    if (!span_eq(json_node_str(json_node_get(last, "apiVersion")), own_api_version(w)) ||
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
    struct manager row = { .name = span_cstr(manager_name(w->by)),
                           .api_version = own_api_version(w),
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

    if (begin(w, by, live, config, e) < 0 || check_config(w, config, e) < 0)
        return -1;
    kept = json_node_get(json_node_get(live, "metadata"), "managedFields");
    if (managed_decode(w->ed, kept, &w->managed, e) < 0)
        return err_wrap(e, "failed to decode managed fields");
    drop_unserved(w);
    if (note_before_first(w, live, e) < 0 ||
        typed_fields(w->version->type, config, true, &set, e) < 0)
        return -1;
    fieldset_subtract_below(set, reset_fields(w));
    self = enter_applier(w, set, &last, e);
    if (!self)
        return -1;
    object = typed_merge(w->version->type, json_node_copy(w->ed, w->live), config);
    if (prune(w, &last, &object, e) < 0)
        return -1;
    w->object = object;
    if (judge_conflicts(w, self, conflicts, e) < 0)
        return -1;
    settle_others(w, self);
    strip(self->set);
    if (!json_node_equal(object, w->live))
        self->time = span_cstr(by->now);
    managed_drop_empty(&w->managed);
    json_node_prune(object);
    write_managed(w, object);
    *ret = object;
    return full(w, e);
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
