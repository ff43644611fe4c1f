#include "apiserver/namespace_limit.h"

#include "apiserver/usage.h"
#include "kube/quantity.h"

static uint64_t annotated(const struct object *namespace, const char *name, uint64_t otherwise)
{
    const char *text = object_annotation(namespace, name);
    struct quantity q;

    if (!text || !quantity_parse(span_cstr(text), &q) || q.nano < 0)
        return otherwise;
    return (uint64_t)(q.nano / 1000000000);
}

/* Read again when the Namespace has changed; else nothing is looked into. */
static void read_max(const struct op *op, struct usage_row *row)
{
    const struct usage_amount *usual = usage_max(store_usage(op->store));
    struct shelf_key key = { op_number(kind_find("", "v1", "namespaces")), "", row->namespace };
    const struct object *o = store_get(op->store, STORE_HEAD, &key);
    uint64_t version = o ? object_version(o) : 0;

    if (version && row->max_version == version)
        return;
    row->max = *usual;
    row->max_version = version;
    if (!o)
        return;
    row->max.objects = annotated(o, NAMESPACE_MAX_OBJECTS, usual->objects);
    row->max.bytes = annotated(o, NAMESPACE_MAX_BYTES, usual->bytes);
}

/* A tenth more for Events, so that a full namespace is told of; their number has a ceiling of its own (crowd.h). */
static struct usage_amount max_for(const struct op *op, const struct usage_row *row)
{
    struct usage_amount max = row->max;

    if (op_number(op->kind) == op_number(kind_find("", "v1", "events"))) {
        max.objects += max.objects / 10;
        max.bytes += max.bytes / 10;
    }
    return max;
}

static int refuse(const struct op *op, const char *name, const char *what, const char *annotation,
                  const uint64_t amounts[3], struct status *st)
{
    return status_forbidden(
        st, op->kind, name,
        "exceeded quota: of the namespace, requested: %s=%llu, used: %s=%llu, limited: %s=%llu; an "
        "administrator of the whole system sets it by the Namespace's annotation %s",
        what, (unsigned long long)amounts[0], what, (unsigned long long)amounts[1], what,
        (unsigned long long)amounts[2], annotation);
}

static bool is_judged(const struct op *op, enum store_op what, const struct object *o)
{
    if (what == STORE_DELETE || !*object_namespace(o))
        return false;
    return what == STORE_CREATE ? op->user || op->is_deputy : op->user && !op->sub;
}

int namespace_limit_check(const struct op *op, enum store_op what, const struct object *o,
                          struct status *st)
{
    struct shelf_key key = { op_number(op->kind), object_namespace(o), object_name(o) };
    const struct object *before;
    struct usage_amount max;
    struct usage_row *row;
    size_t size, had;

    if (!is_judged(op, what, o))
        return 0;
    row = usage_find(store_usage(op->store), key.namespace);
    read_max(op, row);
    max = max_for(op, row);
    if (what == STORE_CREATE && max.objects && row->now.objects >= max.objects)
        return refuse(op, key.name, "objects", NAMESPACE_MAX_OBJECTS,
                      (uint64_t[]){ 1, row->now.objects, max.objects }, st);
    size = object_text_size(o);
    if (!max.bytes || row->now.bytes + size <= max.bytes)
        return 0;
    before = what == STORE_CREATE ? NULL : store_get(op->store, STORE_HEAD, &key);
    had = before ? object_text_size(before) : 0;
    if (size <= had || row->now.bytes - had + size <= max.bytes)
        return 0;
    return refuse(op, key.name, "bytes", NAMESPACE_MAX_BYTES,
                  (uint64_t[]){ size - had, row->now.bytes, max.bytes }, st);
}
