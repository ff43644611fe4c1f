#include "kube/managed.h"

static struct span text_of(const struct json *entry, const char *name)
{
    return json_str(json_get(entry, name));
}

static int decode_row(struct json_edit *ed, const struct json *entry, bool is_ours,
                      struct manager *ret, struct err *e)
{
    struct span operation = text_of(entry, "operation");

    *ret = (struct manager){ .name = text_of(entry, "manager"),
                             .api_version = text_of(entry, "apiVersion"),
                             .subresource = text_of(entry, "subresource"),
                             .time = text_of(entry, "time"),
                             .is_applied = span_is(operation, "Apply"),
                             .entry = entry,
                             .wire = json_get(entry, "fieldsV1") };
    if (!ret->is_applied && !span_is(operation, "Update"))
        return err_set(e, ERR_INVALID, "operation must be `Apply` or `Update`");
    if (ret->api_version.n == 0)
        return err_set(e, ERR_INVALID, "apiVersion must not be empty");
    if (!span_is(text_of(entry, "fieldsType"), "FieldsV1"))
        return err_set(e, ERR_INVALID, "invalid fieldsType in managed fields entry");
    if (ret->wire && !is_ours && !fieldset_wire_is_valid(ret->wire))
        return err_set(e, ERR_INVALID, "a managed fields entry is no set of fields");
    if (!ret->wire)
        ret->set = fieldset_new(ed);
    return 0;
}

struct json_node *managed_open(struct managed *m, struct manager *row)
{
    struct json_node *wired = row->wire ? json_edit_view(m->ed, row->wire) : row->wired;
    struct err e;

    if (!wired)
        return row->set;
    row->set = fieldset_decode(m->ed, wired, &e);
    row->wire = NULL;
    row->wired = NULL;
    if (!row->set) /* it was valid, so the edit is full */
        row->set = fieldset_new(m->ed);
    return row->set;
}

/* As the wire has it, to be changed; NULL: it was decoded. */
static struct json_node *wired(struct managed *m, struct manager *row)
{
    if (row->wire) {
        row->wired = json_edit_view(m->ed, row->wire);
        row->wire = NULL;
    }
    return row->wired;
}

void managed_put(struct managed *m, struct manager *row, struct json_node *set)
{
    struct json_node *there = wired(m, row);

    if (there)
        fieldset_wire_add(there, set);
    else
        fieldset_add(row->set, set);
}

void managed_take(struct managed *m, struct manager *row, struct json_node *set)
{
    struct json_node *there = wired(m, row);

    if (there)
        fieldset_wire_subtract(there, set);
    else
        fieldset_subtract(row->set, set);
}

struct json_node *managed_common(struct managed *m, struct manager *row, struct json_node *set)
{
    return row->wire ? fieldset_wire_common(row->wire, set)
                     : fieldset_common(managed_open(m, row), set);
}

static bool is_empty(const struct manager *row)
{
    if (row->wired)
        return json_node_count(row->wired) == 0;
    return row->wire ? json_count(row->wire) == 0 : fieldset_is_empty(row->set);
}

int managed_decode(struct json_edit *ed, struct json_node *list, bool is_ours, struct managed *ret,
                   struct err *e)
{
    ret->ed = ed;
    ret->n = 0;
    if (!list)
        return 0;
    if (json_node_settle(list, e) < 0)
        return -1;
    if (json_count(json_node_plain(list)) > MANAGED_MAX)
        return err_set(e, ERR_INVALID, "more than %d managers of fields", MANAGED_MAX);
    JSON_EACH(entry, json_node_plain(list))
    {
        struct manager row, *there;

        if (decode_row(ed, entry, is_ours, &row, e) < 0)
            return -1;
        there = managed_find(ret, &row);
        if (there)
            *there = row;
        else
            ret->rows[ret->n++] = row;
    }
    return 0;
}

struct manager *managed_find(struct managed *m, const struct manager *like)
{
    for (size_t i = 0; i < m->n; i++) {
        struct manager *row = &m->rows[i];

        if (row->is_applied == like->is_applied && span_eq(row->name, like->name) &&
            span_eq(row->subresource, like->subresource) &&
            (row->is_applied || span_eq(row->api_version, like->api_version)))
            return row;
    }
    return NULL;
}

struct manager *managed_add(struct managed *m, const struct manager *row)
{
    if (m->n == MANAGED_MAX)
        return NULL;
    m->rows[m->n] = *row;
    return &m->rows[m->n++];
}

void managed_drop(struct managed *m, struct manager *row)
{
    m->n--;
    memmove(row, row + 1, (size_t)(&m->rows[m->n] - row) * sizeof *row);
}

void managed_drop_empty(struct managed *m)
{
    for (size_t i = m->n; i-- > 0;)
        if (is_empty(&m->rows[i]))
            managed_drop(m, &m->rows[i]);
}

static int compare_spans(struct span a, struct span b)
{
    size_t n = MIN(a.n, b.n);
    int order = n ? memcmp(a.p, b.p, n) : 0;

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Times are RFC 3339 in UTC, so texts order them. */
static int compare_rows(const void *pa, const void *pb)
{
    const struct manager *a = pa, *b = pb;
    int order = (int)b->is_applied - (int)a->is_applied;

    order = order ? order : compare_spans(a->time, b->time);
    order = order ? order : compare_spans(a->name, b->name);
    order = order ? order : compare_spans(a->api_version, b->api_version);
    return order ? order : compare_spans(a->subresource, b->subresource);
}

/* It says what we would, and nothing else: one that is kept as it came must not change when it is written anew later. */
static bool is_as_written(const struct manager *row)
{
    size_t members = 5u + (row->time.p != NULL) + (row->subresource.n > 0);

    return row->entry && row->wire && row->name.p && json_count(row->entry) == members &&
           row->time.p == text_of(row->entry, "time").p;
}

static struct json_node *encode_row(struct json_edit *ed, const struct manager *row)
{
    struct json_node *entry;

    if (is_as_written(row))
        return json_edit_view(ed, row->entry);
    entry = json_edit_object(ed);
    json_node_set(entry, "manager", json_edit_str(ed, row->name));
    json_node_set(entry, "operation", json_edit_cstr(ed, row->is_applied ? "Apply" : "Update"));
    json_node_set(entry, "apiVersion", json_edit_str(ed, row->api_version));
    if (row->time.p)
        json_node_set(entry, "time", json_edit_str(ed, row->time));
    json_node_set(entry, "fieldsType", json_edit_cstr(ed, "FieldsV1"));
    json_node_set(entry, "fieldsV1",
                  row->wire    ? json_edit_view(ed, row->wire)
                  : row->wired ? row->wired
                               : fieldset_encode(row->set));
    if (row->subresource.n)
        json_node_set(entry, "subresource", json_edit_str(ed, row->subresource));
    return entry;
}

struct json_node *managed_encode(struct managed *m)
{
    struct json_node *list = json_edit_array(m->ed);

    if (m->n == 0)
        return NULL;
    qsort(m->rows, m->n, sizeof *m->rows, compare_rows);
    for (size_t i = 0; i < m->n; i++)
        json_node_append(list, encode_row(m->ed, &m->rows[i]));
    return list;
}

static size_t count_updaters(const struct managed *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        n += !m->rows[i].is_applied;
    return n;
}

void managed_cap(struct managed *m)
{
    size_t updaters = count_updaters(m);

    if (updaters <= MANAGED_UPDATERS_MAX)
        return;
    qsort(m->rows, m->n, sizeof *m->rows, compare_rows);
    for (size_t i = 0; i < m->n && updaters > MANAGED_UPDATERS_MAX; i++) {
        struct manager *old = &m->rows[i];

        for (size_t k = i + 1; !old->is_applied && k < m->n && updaters > MANAGED_UPDATERS_MAX;) {
            struct manager *row = &m->rows[k];

            if (!span_eq(row->api_version, old->api_version)) {
                k++;
                continue;
            }
            fieldset_add(managed_open(m, old), managed_open(m, row));
            old->name = SPAN("ancient-changes");
            old->subresource = SPAN_NONE;
            old->time = row->time;
            managed_drop(m, row);
            updaters--;
        }
    }
}
