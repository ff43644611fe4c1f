#include "apiserver/admit.h"
#include "apiserver/definition.h"
#include "apiserver/op_write.h"
#include "apiserver/reserved.h"

#include "base/str.h"
#include "base/time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define FOREGROUND "foregroundDeletion"
#define ORPHAN     "orphan"

static bool is_core(const struct op *op, const char *name)
{
    return !*op->kind->group && strcmp(op->kind->name, name) == 0;
}

/* ---- what a delete may say ---- */

/* No kind of ours, but refusals name it. */
static const struct kind delete_options = { .group = "meta.k8s.io", .name = "DeleteOptions" };

int op_delete_propagation(struct span text, struct op_delete *how, struct status *st)
{
    if (span_is(text, "Orphan"))
        how->propagation = OP_ORPHAN;
    else if (span_is(text, "Background"))
        how->propagation = OP_BACKGROUND;
    else if (span_is(text, "Foreground"))
        how->propagation = OP_FOREGROUND;
    else {
        causes_add_text(&st->causes, CAUSE_NOT_SUPPORTED, AT(NULL, "propagationPolicy"), text,
                        "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        return status_invalid(st, &delete_options, "");
    }
    return 0;
}

/* Only all of it can be left undone. */
static int read_dry_run(struct op *op, struct json_node *list, struct status *st)
{
    OWN(buf_done) struct buf shown = BUF_INIT(4096);
    struct err e;

    for (size_t i = 0; i < json_node_count(list); i++) {
        if (span_is(json_node_str(json_node_at(list, i)), "All"))
            continue;
        if (json_node_write(list, &shown, &e) < 0)
            (void)buf_add_capped(&shown, SPAN("[...]"));
        causes_add_shown(&st->causes, CAUSE_NOT_SUPPORTED, AT(NULL, "dryRun"), buf_cstr(&shown),
                         "supported values: \"All\"");
        return status_invalid(st, &delete_options, "");
    }
    op->is_dry_run |= json_node_count(list) > 0;
    return 0;
}

int op_delete_options(struct op *op, struct json_node *body, struct op_delete *how,
                      struct status *st)
{
    struct json_node *conditions = json_node_get(body, "preconditions"), *v;
    bool is_orphan;

    if (json_node_i64(json_node_get(body, "gracePeriodSeconds"), &how->grace_s))
        how->grace_s = how->grace_s < 0 ? 1 : how->grace_s; /* -1 would be "not said" */
    v = json_node_get(body, "propagationPolicy");
    if (json_node_str(v).n && op_delete_propagation(json_node_str(v), how, st) < 0)
        return -1;
    if (json_node_bool(json_node_get(body, "orphanDependents"), &is_orphan)) {
        if (json_node_str(v).n) {
            causes_add_text(&st->causes, CAUSE_INVALID, AT(NULL, "propagationPolicy"),
                            json_node_str(v),
                            "orphanDependents and deletionPropagation cannot be both set");
            return status_invalid(st, &delete_options, "");
        }
        how->propagation = is_orphan ? OP_ORPHAN : OP_BACKGROUND;
    }
    if (read_dry_run(op, json_node_get(body, "dryRun"), st) < 0)
        return -1;
    how->uid = json_node_cstr(json_node_get(conditions, "uid"));
    v = json_node_get(conditions, "resourceVersion");
    if (json_node_str(v).n) {
        how->has_version = true;
        if (!str_u64(json_node_str(v), UINT64_MAX, &how->version))
            how->version = UINT64_MAX;
    }
    return 0;
}

/* ---- the delete ---- */

/* Told of the kind, not of the resource. */
static int check_preconditions(struct op *op, const struct op_delete *how, const struct object *o,
                               struct status *st)
{
    const struct kind named = { .group = op->kind->group, .plural = op->kind->name };

    if (how->uid && strcmp(how->uid, object_uid(o)) != 0)
        return status_conflict(
            st, &named, op->name,
            "the UID in the precondition (%s) does not match the UID in record (%s). The object "
            "might have been deleted and then recreated",
            how->uid, object_uid(o));
    if (how->has_version && how->version != object_version(o))
        return status_conflict(
            st, &named, op->name,
            "the ResourceVersion in the precondition (%llu) does not match the ResourceVersion in "
            "record (%llu). The object might have been modified",
            (unsigned long long)how->version, (unsigned long long)object_version(o));
    return 0;
}

/* Without these nothing else would be there. */
static int check_namespace(struct op *op, struct status *st)
{
    static const char *const kept[] = { "default", "kube-system", "kube-public" };

    EACH(name, kept) {
        if (is_core(op, "Namespace") && strcmp(op->name, *name) == 0)
            return status_forbidden(st, op->kind, op->name, "this namespace may not be deleted");
    }
    return 0;
}

/* How long a Pod has to end by itself. One that was never given to a node has nothing to end. */
static int64_t grace_of(struct op *op, const struct op_delete *how, const struct object *o)
{
    const char *node = object_text(o, "spec.nodeName"), *phase = object_text(o, "status.phase");
    int64_t grace = 30;

    if (!is_core(op, "Pod"))
        return 0;
    if (!node || !*node || (phase && (!strcmp(phase, "Failed") || !strcmp(phase, "Succeeded"))))
        return 0;
    if (how->grace_s >= 0)
        return how->grace_s;
    (void)json_i64(object_at(o, "spec.terminationGracePeriodSeconds"), &grace);
    return grace < 0 ? 1 : grace;
}

/* Who will be asked before it goes. */
static void add_finalizer(struct json_edit *ed, struct json_node *meta, const char *wanted,
                          const char *unwanted)
{
    struct json_node *list = json_node_get(meta, "finalizers");
    bool has_it = false;

    if (!list)
        list = json_node_set(meta, "finalizers", json_edit_array(ed));
    for (size_t i = json_node_count(list); i-- > 0;) {
        struct span name = json_node_str(json_node_at(list, i));

        if (wanted && span_is(name, wanted))
            has_it = true;
        if (span_is(name, unwanted) ||
            (!wanted && (span_is(name, FOREGROUND) || span_is(name, ORPHAN))))
            json_node_remove_at(list, i);
    }
    if (wanted && !has_it)
        json_node_append(list, json_edit_cstr(ed, wanted));
    if (json_node_count(list) == 0)
        (void)json_node_remove(meta, "finalizers");
}

static void apply_propagation(struct json_edit *ed, const struct op_delete *how,
                              struct json_node *meta)
{
    switch (how->propagation) {
    case OP_FOREGROUND:
        add_finalizer(ed, meta, FOREGROUND, ORPHAN);
        break;
    case OP_ORPHAN:
        add_finalizer(ed, meta, ORPHAN, FOREGROUND);
        break;
    case OP_BACKGROUND:
        add_finalizer(ed, meta, NULL, ORPHAN);
        break;
    case OP_PROPAGATION_UNSAID:
        break;
    }
}

/* A deletion that began earlier can only be made shorter. */
static void mark(struct json_edit *ed, struct json_node *meta, const struct object *o,
                 int64_t grace, bool is_namespace)
{
    struct timespec when;
    char text[TIME_TEXT_BYTES];
    int64_t before = INT64_MAX;

    if (object_is_deleting(o)) {
        if (!json_i64(object_at(o, "metadata.deletionGracePeriodSeconds"), &before))
            before = 0;
        if (grace >= before)
            return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += (time_t)grace;
    json_node_set(meta, "deletionTimestamp", json_edit_cstr(ed, time_rfc3339(text, when, false)));
    if (!is_namespace)
        json_node_set(meta, "deletionGracePeriodSeconds", json_edit_i64(ed, grace));
}

static int freeze_marked(struct op *op, struct json_edit *ed, struct object *old,
                         const struct op_delete *how, struct object **ret, struct status *st)
{
    const struct kind *kind = op_storage(op->kind);
    struct json_node *root = object_thaw(old, NULL, ed), *meta = json_node_get(root, "metadata");
    struct json_node *status;
    struct err e;

    apply_propagation(ed, how, meta);
    mark(ed, meta, old, grace_of(op, how, old), is_core(op, "Namespace"));
    if (is_core(op, "Namespace")) {
        status = json_node_get(root, "status");
        if (!status)
            status = json_node_set(root, "status", json_edit_object(ed));
        json_node_set(status, "phase", json_edit_cstr(ed, "Terminating"));
    }
    if (kind->traits & KIND_GENERATION && !object_is_deleting(old))
        json_node_set(meta, "generation", json_edit_i64(ed, object_generation(old) + 1));
    return object_freeze(kind, old, root, ret, &e) < 0 ? status_of_err(st, &e) : 0;
}

/* Nothing would hold it once it is marked, so nobody sees the mark; but a Pod is always shown with it. */
static bool goes_unmarked(struct op *op, const struct op_delete *how, const struct object *old)
{
    return !object_is_deleting(old) && !is_core(op, "Pod") && object_finalizer_count(old) == 0 &&
           how->propagation != OP_FOREGROUND && how->propagation != OP_ORPHAN &&
           json_count(object_at(old, "spec.finalizers")) == 0; /* a Namespace's */
}

static int delete_gone(struct op *op, struct object *last, struct object **ret, struct status *st)
{
    if (op_commit(op, STORE_DELETE, last, true, ret, st) < 0)
        return -1;
    definition_warn(op, object_name(last));
    return 0;
}

int op_delete(struct op *op, const struct op_delete *how, struct object **ret, bool *ret_is_gone,
              struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = NULL;
    OWN(object_done) struct object *old = NULL, *marked = NULL;

    if (check_namespace(op, st) < 0 || op_get(op, STORE_HEAD, &old, st) < 0 ||
        check_preconditions(op, how, old, st) < 0)
        return -1;
    if (goes_unmarked(op, how, old)) {
        *ret_is_gone = true;
        return delete_gone(op, old, ret, st);
    }
    ed = json_edit_new(0);
    if (freeze_marked(op, ed, old, how, &marked, st) < 0)
        return -1;
    *ret_is_gone = op_may_go(marked);
    if (*ret_is_gone)
        return delete_gone(op, object_is_deleting(old) || is_core(op, "Pod") ? marked : old, ret,
                           st);
    if (object_is_same(old, marked)) {
        *ret = object_ref(old);
        return 0;
    }
    return op_commit(op, STORE_UPDATE, marked, true, ret, st);
}

int op_delete_found(struct op *place, const struct object *found, const struct op_delete *how,
                    struct object **ret, struct status *st)
{
    struct op op = *place;
    bool is_gone;
    int rc;

    op.namespace = object_namespace(found);
    op.name = object_name(found);
    if (reserved_refuses(&op, op.namespace, op.name))
        return 0; /* passed over: the others may go */
    rc = op_delete(&op, how, ret, &is_gone, st);
    place->warnings = op.warnings; /* they may have grown */
    if (rc == 0)
        return 0;
    if (st->code != 404)
        return -1;
    status_clear(st);
    return 0;
}
