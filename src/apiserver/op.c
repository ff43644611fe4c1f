#include "apiserver/op.h"

#include <stdio.h>
#include <string.h>

/* The same objects may be served under two groups; they are kept under one. */
const struct kind *op_storage(const struct kind *k)
{
    return k->storage_kind ? kind_find_kind("", NULL, k->storage_kind) : k;
}

unsigned op_number(const struct kind *k)
{
    size_t n;

    return (unsigned)(op_storage(k) - kinds_all(&n));
}

struct shelf_key op_key(const struct op *op)
{
    return (struct shelf_key){ op_number(op->kind), op->namespace, op->name };
}

void op_warn(struct op *op, const char *fmt, ...)
{
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    if (buf_vaddf(&op->warnings, &e, fmt, ap) == 0)
        (void)buf_addc(&op->warnings, '\0', &e);
    va_end(ap);
}

int op_get(struct op *op, enum store_view view, struct object **ret, struct status *st)
{
    struct shelf_key key = op_key(op);
    struct object *o = store_get(op->store, view, &key);

    if (!o)
        return status_not_found(st, op->kind, op->name);
    *ret = object_ref(o);
    return 0;
}
