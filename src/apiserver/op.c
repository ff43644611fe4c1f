#include "apiserver/op.h"

#include "apiserver/pages.h"

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
        /* Where its end does not fit, the next does not either: the ceiling ends the last one. */
        (void)buf_addc(&op->warnings, '\0', &e);
    va_end(ap);
}

/* ---- what is asked for ---- */

int op_place(struct op *op, enum request_verb verb, const char *sub, struct status *st)
{
    if (!kind_is_namespaced(op->kind)) {
        if (*op->namespace)
            return status_no_resource(st);
    } else if (!*op->namespace && *op->name) {
        return status_no_resource(st);
    } else if (!*op->namespace && verb != VERB_LIST && verb != VERB_WATCH) {
        return status_method(st, NULL, "");
    }
    if (!*sub)
        return 0;
    op->sub = kind_subresource(op->version, sub);
    if (op->sub)
        return 0;
    return op->kind->traits & KIND_CUSTOM ? status_not_found(st, op->kind, op->name)
                                          : status_no_resource(st);
}

int op_can(const struct op *op, enum request_verb verb, struct status *st)
{
    static const unsigned bits[] = {
        [VERB_GET] = KIND_GET,       [VERB_LIST] = KIND_LIST,
        [VERB_WATCH] = KIND_WATCH,   [VERB_CREATE] = KIND_CREATE,
        [VERB_UPDATE] = KIND_UPDATE, [VERB_PATCH] = KIND_PATCH,
        [VERB_DELETE] = KIND_DELETE, [VERB_DELETE_COLLECTION] = KIND_DELETE_COLLECTION,
    };
    unsigned can = op->sub ? op->sub->verbs : op->kind->verbs;
    bool is_named = *op->name != '\0';

    if (can & bits[verb] && !(verb == VERB_CREATE && is_named && !op->sub) &&
        !((verb == VERB_UPDATE || verb == VERB_PATCH) && !is_named))
        return 0;
    return status_method(st, op->sub && op->kind->traits & KIND_CUSTOM ? op->kind : NULL,
                         request_verb_name(verb));
}

int op_refuse_options(enum request_verb verb, struct status *st)
{
    static const struct kind named[] = {
        [VERB_CREATE] = { .group = "meta.k8s.io", .name = "CreateOptions" },
        [VERB_UPDATE] = { .group = "meta.k8s.io", .name = "UpdateOptions" },
        [VERB_PATCH] = { .group = "meta.k8s.io", .name = "PatchOptions" },
        [VERB_DELETE] = { .group = "meta.k8s.io", .name = "DeleteOptions" },
        [VERB_DELETE_COLLECTION] = { .group = "meta.k8s.io", .name = "DeleteOptions" },
    };

    return status_invalid(st, &named[verb], "");
}

int op_check_options(const struct op_options *o, struct status *st)
{
    bool is_named = o->manager && *o->manager;

    /* Only an apply takes fields by force, and only for somebody. */
    if (o->verb == VERB_PATCH && o->is_apply && !is_named)
        causes_add(&st->causes, CAUSE_REQUIRED, AT(NULL, "fieldManager"), NULL,
                   "is required for apply patch");
    if (o->verb == VERB_PATCH && !o->is_apply && o->has_force)
        causes_add(&st->causes, CAUSE_FORBIDDEN, AT(NULL, "force"), NULL,
                   "may not be specified for non-apply patch");
    if (st->causes.n == 0 && is_named && strlen(o->manager) > OP_MANAGER_MAX_BYTES)
        causes_add(&st->causes, CAUSE_TOO_LONG, AT(NULL, "fieldManager"), NULL,
                   "may not be more than 128 bytes");
    return st->causes.n ? op_refuse_options(o->verb, st) : 0;
}

int op_check_patch(const struct op *op, enum op_patch type, struct status *st)
{
    if (type != OP_PATCH_STRATEGIC || !(op->kind->traits & KIND_CUSTOM))
        return 0;
    return status_media_type(
        st, "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "application/apply-patch+yaml");
}

int op_say_lost(const struct store *store, uint64_t version, struct status *st)
{
    return status_expired(st, "too old resource version: %llu (%llu)", (unsigned long long)version,
                          (unsigned long long)store_version(store, STORE_COMMITTED));
}

/* ---- reading ---- */

int op_get(struct op *op, enum store_view view, struct object **ret, struct status *st)
{
    struct shelf_key key = op_key(op);
    struct object *o = store_get(op->store, view, &key);

    if (!o)
        return status_not_found(st, op->kind, op->name);
    *ret = object_ref(o);
    return 0;
}

int op_get_at(struct op *op, enum store_view view, const char *version, struct object **ret,
              struct status *st)
{
    uint64_t wanted, there = store_version(op->store, view);
    bool is_given;

    if (!pages_read_version(version, &wanted, &is_given))
        return status_bare(st,
                           "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing "
                           "\"%s\": invalid syntax",
                           version, version);
    return wanted > there ? status_too_new(st, wanted, there) : op_get(op, view, ret, st);
}
