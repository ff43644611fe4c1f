#include "apiserver/quota_book.h"

#include <string.h>

static unsigned number(const struct kind *k)
{
    size_t n;

    return (unsigned)(k - kinds_all(&n));
}

/* Walks the objects of a kind in a namespace. */
static struct object *next_of(struct shelf_walk *walk, const struct kind *kind,
                              const char *namespace)
{
    unsigned at;
    struct object *o = shelf_walk_next(walk, &at);

    return o && at == number(kind) && strcmp(object_namespace(o), namespace) == 0 ? o : NULL;
}

static void begin(struct shelf_walk *walk, const struct shelf *s, const struct kind *kind,
                  const char *namespace)
{
    struct shelf_key from = { number(kind), namespace, "" };

    shelf_walk_init(walk, s, &from, false);
}

struct quantity quota_row_amount(const struct quota_row *r, const struct quota_entry *entry,
                                 const struct object *o)
{
    if (!entry->is_known || object_kind(o) != entry->measure.kind ||
        !quota_matches(object_member(r->quota, "spec"), o))
        return (struct quantity){ 0 };
    return quota_amount(&entry->measure, o);
}

static void change(const struct quota_row *r, struct quota_entry *entry, const struct object *o,
                   int sign)
{
    struct quantity amount = quota_row_amount(r, entry, o);

    if (entry->used.nano == 0)
        entry->used.form = amount.form;
    entry->used.nano += sign * amount.nano;
}

static bool is_system(const struct quota_book *b, const struct object *o)
{
    return b->is_reserved && b->is_reserved(object_kind(o), object_namespace(o), object_name(o));
}

static void count(const struct quota_book *b, struct quota_row *r, struct quota_entry *entry,
                  const struct shelf *s)
{
    struct shelf_walk walk;
    struct object *o;

    if (!entry->is_known || !entry->measure.kind)
        return;
    begin(&walk, s, entry->measure.kind, object_namespace(r->quota));
    while ((o = next_of(&walk, entry->measure.kind, object_namespace(r->quota))))
        if (!is_system(b, o))
            change(r, entry, o, 1);
}

static void read_quota(const struct quota_book *b, struct quota_row *r, struct object *quota,
                       const struct shelf *s)
{
    const struct json *hard = object_at(quota, "spec.hard");

    *r = (struct quota_row){ .quota = object_ref(quota),
                             .entries = own_array(json_count(hard) + 1, sizeof *r->entries) };
    JSON_MEMBERS(name, value, hard)
    {
        struct quota_entry *entry = &r->entries[r->n];

        *entry = (struct quota_entry){ .name = json_str(name) };
        if (!quantity_parse(json_str(value), &entry->hard))
            continue;
        entry->is_known = quota_measure_of(entry->name, &entry->measure);
        count(b, r, entry, s);
        r->n++;
    }
}

struct quota_book *quota_book_new(const struct shelf *s, const char *namespace,
                                  quota_reserved_fn is_reserved)
{
    const struct kind *kind = kind_find("", "v1", "resourcequotas");
    struct quota_book *b = NEW(struct quota_book);
    struct shelf_walk walk;
    struct object *o;

    b->is_reserved = is_reserved;
    begin(&walk, s, kind, namespace);
    while ((o = next_of(&walk, kind, namespace))) {
        b->rows = own_resize(b->rows, b->n + 1, sizeof *b->rows);
        read_quota(b, &b->rows[b->n++], o, s);
    }
    return b;
}

void quota_book_free(struct quota_book *b)
{
    for (size_t i = 0; b && i < b->n; i++) {
        object_unref(b->rows[i].quota);
        free(b->rows[i].entries);
    }
    if (b)
        free(b->rows);
    free(b);
}

void quota_book_change(struct quota_book *b, const struct object *before, const struct object *now)
{
    if (is_system(b, now ? now : before))
        return;
    for (size_t i = 0; i < b->n; i++) {
        struct quota_row *r = &b->rows[i];

        for (size_t k = 0; k < r->n; k++) {
            if (before)
                change(r, &r->entries[k], before, -1);
            if (now)
                change(r, &r->entries[k], now, 1);
        }
    }
    b->is_told = false;
}

bool quota_book_is_other(const struct object *before, const struct object *now)
{
    static const char *const told[] = { "metadata", "status", NULL };

    return !before || !now || !object_differs_only(before, now, told);
}
