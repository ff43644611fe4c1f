#include "apiserver/quota.h"

#include "apiserver/quota_book.h"
#include "apiserver/usage.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MAX_BYTES (32 * 1024) /* of resources or containers in a refusal */

/* NULL where there is no quota, which is nearly everywhere. */
static struct quota_book *book_of(struct store *store, const char *namespace)
{
    struct usage_row *row = usage_find(store_usage(store), namespace);
    struct shelf *head;

    if (row->quotas == 0)
        return NULL;
    if (!row->book) {
        head = store_snapshot(store, STORE_HEAD, NULL);
        row->book = quota_book_new(head, namespace, usage_reserved(store_usage(store)));
        shelf_unref(head);
    }
    return row->book;
}

/* ---- judging ---- */

static bool is_judged(const struct op *op, enum store_op what, const struct object *o)
{
    if (what == STORE_DELETE || !*object_namespace(o) || !(op->user || op->is_deputy))
        return false;
    return !op->sub || (what == STORE_UPDATE && op->sub->sub == KIND_SUB_RESIZE);
}

static int by_name(const void *a, const void *b)
{
    const struct quota_entry *x = *(const struct quota_entry *const *)a,
                             *y = *(const struct quota_entry *const *)b;
    int order = memcmp(x->name.p, y->name.p, MIN(x->name.n, y->name.n));

    return order ? order : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

/* The containers of a Pod that do not say how much they need. */
static void add_silent(const struct quota_entry *entry, const struct object *pod, struct buf *said)
{
    static const char *const lists[] = { "containers", "initContainers" };
    const struct json *spec = object_member(pod, "spec");
    const char *separator = " for: ";

    if (quota_said(&entry->measure, json_get(spec, "resources")))
        return;
    EACH(list, lists) {
        JSON_EACH(container, json_get(spec, *list))
        {
            if (quota_said(&entry->measure, json_get(container, "resources")))
                continue;
            if (*separator == ' ')
                buf_addf_capped(said, "%s%.*s", said->n ? "; " : "", SPAN_ARG(entry->name));
            buf_addf_capped(said, "%s%.*s", separator,
                            SPAN_ARG(json_str(json_get(container, "name"))));
            separator = ",";
        }
    }
}

static int check_said(const struct op *op, const struct quota_row *r,
                      struct quota_entry *const *entries, const struct object *o, struct status *st)
{
    OWN(buf_done) struct buf said = BUF_INIT(LIST_MAX_BYTES);

    for (size_t i = 0; i < r->n; i++) {
        if (entries[i]->is_known && object_kind(o) == entries[i]->measure.kind &&
            quota_must_be_said(&entries[i]->measure))
            add_silent(entries[i], o, &said);
    }
    if (!said.n)
        return 0;
    return status_forbidden(st, op->kind, object_name(o), "failed quota: %s: must specify %s",
                            object_name(r->quota), buf_cstr(&said));
}

static void add_amount(struct buf *list, const struct quota_entry *entry, const struct quantity *q)
{
    char text[QUANTITY_TEXT_BYTES];

    buf_addf_capped(list, "%s%.*s=%s", list->n ? "," : "", SPAN_ARG(entry->name),
                    quantity_text(q, text));
}

static int check_sums(const struct op *op, const struct quota_row *r,
                      struct quota_entry *const *entries, const struct object *before,
                      const struct object *o, struct status *st)
{
    OWN(buf_done)
    struct buf requested = BUF_INIT(LIST_MAX_BYTES), used = BUF_INIT(LIST_MAX_BYTES),
               limited = BUF_INIT(LIST_MAX_BYTES);

    for (size_t i = 0; i < r->n; i++) {
        const struct quota_entry *entry = entries[i];
        struct quantity more = quota_row_amount(r, entry, o);

        if (before)
            more.nano -= quota_row_amount(r, entry, before).nano;
        if (more.nano <= 0 || entry->used.nano + more.nano <= entry->hard.nano)
            continue;
        add_amount(&requested, entry, &more);
        add_amount(&used, entry, &entry->used);
        add_amount(&limited, entry, &entry->hard);
    }
    if (!requested.n)
        return 0;
    return status_forbidden(
        st, op->kind, object_name(o), "exceeded quota: %s, requested: %s, used: %s, limited: %s",
        object_name(r->quota), buf_cstr(&requested), buf_cstr(&used), buf_cstr(&limited));
}

static int check_row(const struct op *op, const struct quota_row *r, const struct object *before,
                     const struct object *o, struct status *st)
{
    OWN_MEM struct quota_entry **entries = own_array(r->n + 1, sizeof *entries);

    if (!quota_matches(object_member(r->quota, "spec"), o))
        return 0;
    for (size_t i = 0; i < r->n; i++)
        entries[i] = &r->entries[i];
    qsort(entries, r->n, sizeof *entries, by_name);
    if ((!before || op->sub) && check_said(op, r, entries, o, st) < 0)
        return -1;
    return check_sums(op, r, entries, before, o, st);
}

int quota_check(const struct op *op, enum store_op what, const struct object *o, struct status *st)
{
    struct shelf_key key = { op_number(op->kind), object_namespace(o), object_name(o) };
    const struct object *before;
    struct quota_book *b;

    if (!is_judged(op, what, o) || !(b = book_of(op->store, key.namespace)))
        return 0;
    before = what == STORE_UPDATE ? store_get(op->store, STORE_HEAD, &key) : NULL;
    for (size_t i = 0; i < b->n; i++) {
        if (check_row(op, &b->rows[i], before, o, st) < 0)
            return -1;
    }
    return 0;
}

/* ---- telling ---- */

static int write_status(const struct quota_row *r, struct buf *text, struct err *e)
{
    char amount[QUANTITY_TEXT_BYTES];
    struct json_out o;

    json_out_init(&o, text, 0);
    json_out_object_begin(&o);
    if (r->n) {
        json_out_key(&o, "hard"), json_out_object_begin(&o);
        for (size_t i = 0; i < r->n; i++) {
            json_out_key_span(&o, r->entries[i].name);
            json_out_cstr(&o, quantity_text(&r->entries[i].hard, amount));
        }
        json_out_object_end(&o);
        json_out_key(&o, "used"), json_out_object_begin(&o);
        for (size_t i = 0; i < r->n; i++) {
            if (!r->entries[i].is_known)
                continue;
            json_out_key_span(&o, r->entries[i].name);
            json_out_cstr(&o, quantity_text(&r->entries[i].used, amount));
        }
        json_out_object_end(&o);
    }
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

static int tell(struct store *store, const struct quota_row *r, const struct object *quota,
                struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *next = NULL, *ignored = NULL;
    struct json_doc *there = object_member_doc(quota, "status");
    struct store_change change = { .op = STORE_UPDATE };

    if (write_status(r, &text, e) < 0)
        return -1;
    if (there && span_eq(json_doc_bytes(there), buf_span(&text)))
        return 0;
    if (json_parse(buf_span(&text), NULL, &doc, e) < 0 ||
        object_with(quota, "status", doc, &next, e) < 0)
        return -1;
    change.object = next;
    return store_write(store, &change, &ignored, e);
}

void quota_tell(struct store *store, const char *namespace)
{
    struct quota_book *b = *namespace ? book_of(store, namespace) : NULL;
    bool is_told = true;
    struct err e;

    if (!b || b->is_told)
        return;
    for (size_t i = 0; i < b->n; i++) {
        struct shelf_key key = { op_number(object_kind(b->rows[i].quota)), namespace,
                                 object_name(b->rows[i].quota) };
        OWN(object_done)
        struct object *quota = object_ref(store_get(store, STORE_HEAD, &key));

        is_told = quota && tell(store, &b->rows[i], quota, &e) == 0 && is_told;
    }
    b->is_told = is_told;
}

void quota_tell_all(struct store *store)
{
    struct shelf_key from = { op_number(kind_find("", "v1", "resourcequotas")), "", "" };
    struct shelf *head = store_snapshot(store, STORE_HEAD, NULL);
    struct shelf_walk walk;
    struct object *o;
    unsigned kind;

    shelf_walk_init(&walk, head, &from, false);
    while ((o = shelf_walk_next(&walk, &kind)) && kind == from.kind)
        quota_tell(store, object_namespace(o));
    shelf_unref(head);
}
