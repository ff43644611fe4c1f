/* One call of the client on the store. */
#include "apiserver/local_impl.h"

#include "apiserver/admit.h"
#include "apiserver/limits.h"
#include "apiserver/pages.h"
#include "apiserver/review.h"

#include <string.h>

/* A list or a delete of many, which take more than one turn. */
struct many {
    struct op op;
    char *namespace, *uid;
    struct selection want;
    struct pages pages;
    struct op_delete how;
    uint64_t limit; /* 0: none */
};

struct local_call {
    struct kube_call base;
    struct local *client;
    struct local_call *next, **link;
    kube_done_fn done;
    void *ctx;
    struct ev_task task;
    struct store_wait wait; /* for the disk, where that is far behind */
    bool is_told;           /* `done` is on the stack, or was */
    bool is_refused;        /* by `status` */
    struct status status;
    struct local_answer found;
    struct object **items;
    size_t item_count, item_cap;
    uint64_t version;
    struct buf continued;
    struct many *many;
};

static const enum request_verb verbs[] = {
    [KUBE_GET] = VERB_GET,
    [KUBE_LIST] = VERB_LIST,
    [KUBE_CREATE] = VERB_CREATE,
    [KUBE_UPDATE] = VERB_UPDATE,
    [KUBE_PATCH] = VERB_PATCH,
    [KUBE_DELETE] = VERB_DELETE,
    [KUBE_DELETE_COLLECTION] = VERB_DELETE_COLLECTION,
};

/* ---- the end ---- */

static void many_free(struct many *m)
{
    if (!m)
        return;
    pages_done(&m->pages);
    selection_done(&m->want);
    free(m->namespace);
    free(m->uid);
    free(m);
}

static void drop_results(struct local_call *call)
{
    many_free(take_ptr(&call->many));
    object_unref(take_ptr(&call->found.object));
    json_doc_unref(take_ptr(&call->found.body));
    for (size_t i = 0; i < call->item_count; i++)
        object_unref(call->items[i]);
    call->item_count = 0;
}

static void call_free(struct local_call *call)
{
    drop_results(call);
    free(call->items);
    buf_done(&call->continued);
    status_done(&call->status);
    local_unref(call->client);
    free(call);
}

static void answer(void *ctx)
{
    struct local_call *call = ctx;
    struct kube_answer a = { .refusal = call->is_refused ? &call->status : NULL };

    if (!call->is_refused) {
        a.object = call->found.object;
        a.body = call->found.body ? json_doc_root(call->found.body) : NULL;
        a.items = call->items;
        a.item_count = call->item_count;
        a.version = call->version;
        a.next = call->continued.n ? buf_cstr(&call->continued) : NULL;
    }
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    call->is_told = true;
    call->done(call->ctx, &a);
    call_free(call);
}

/* The only way out of a call. */
static void finish(struct local_call *call, bool is_refused)
{
    call->is_refused = is_refused;
    if (is_refused)
        drop_results(call);
    store_wait_cancel(&call->wait);
    ev_post_cancel(&call->task);
    ev_post(call->base.client->loop, &call->task, answer, call);
}

static void on_disk(void *ctx, const struct err *e)
{
    struct local_call *call = ctx;

    if (e)
        (void)status_of_err(&call->status, e);
    finish(call, e != NULL);
}

/* Something was written, or could have been. Whoever writes faster than the disk for long waits for it. */
static void finish_write(struct local_call *call)
{
    struct store *st = call->client->s->store;
    struct store_stats stats;

    store_stats(st, &stats);
    if (stats.pending < STORE_PENDING_CALM)
        finish(call, false);
    else
        store_wait(st, &call->wait, store_version(st, STORE_HEAD), on_disk, call);
}

/* ---- one object ---- */

/* In the version that was asked for; takes *stored. */
static int show(struct local_call *call, struct op *op, struct object **stored)
{
    OWN(object_done) struct object *o = take_ptr(stored);

    return admit_show(op, o, &call->found.object, &call->status);
}

/* What was answered and is not kept. */
static int freeze(struct local_call *call, const struct kind *kind, struct json_node *body)
{
    struct err e;

    return object_freeze(kind, NULL, body, &call->found.object, &e) < 0
               ? status_of_err(&call->status, &e)
               : 0;
}

static int write_one(struct local_call *call, struct op *op, const struct kube_request *rq)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *o = NULL;
    struct json_node *body;
    int rc;

    if (!rq->object)
        return status_bad_request(&call->status, "no object was given to be written");
    body = object_thaw(rq->object, kind_api_version(op->kind, op->version), ed);
    if (op->kind->traits & KIND_REVIEW)
        return review(call->client->s, op, ed, body, &call->status) < 0
                   ? -1
                   : freeze(call, op->kind, body);
    rc = rq->verb == KUBE_CREATE ? op_create(op, ed, body, &o, &call->status)
                                 : op_update(op, ed, body, &o, &call->status);
    return rc < 0 ? -1 : show(call, op, &o);
}

static int patch_one(struct local_call *call, struct op *op, const struct kube_request *rq)
{
    static const enum op_patch types[] = { [KUBE_PATCH_JSON] = OP_PATCH_JSON,
                                           [KUBE_PATCH_MERGE] = OP_PATCH_MERGE,
                                           [KUBE_PATCH_STRATEGIC] = OP_PATCH_STRATEGIC,
                                           [KUBE_PATCH_APPLY] = OP_PATCH_APPLY };
    OWN(object_done) struct object *o = NULL;
    bool is_created;

    if (op_check_patch(op, types[rq->patch], &call->status) < 0 ||
        op_patch(op, types[rq->patch], rq->body, &o, &is_created, &call->status) < 0)
        return -1;
    return show(call, op, &o);
}

static struct op_delete how_to_delete(const struct kube_request *rq)
{
    static const enum op_propagation propagations[] = {
        [KUBE_PROPAGATION_UNSAID] = OP_PROPAGATION_UNSAID,
        [KUBE_ORPHAN] = OP_ORPHAN,
        [KUBE_BACKGROUND] = OP_BACKGROUND,
        [KUBE_FOREGROUND] = OP_FOREGROUND,
    };

    return (struct op_delete){ .propagation = propagations[rq->propagation],
                               .grace_s = rq->grace_s ? MAX(*rq->grace_s, (int64_t)0) : -1,
                               .uid = rq->uid,
                               .version = rq->only_version,
                               .has_version = rq->only_version != 0 };
}

static int delete_one(struct local_call *call, struct op *op, const struct kube_request *rq)
{
    struct op_delete how = how_to_delete(rq);
    OWN(object_done) struct object *o = NULL;
    bool is_gone;

    if (op_delete(op, &how, &o, &is_gone, &call->status) < 0)
        return -1;
    return show(call, op, &o);
}

static int get_one(struct local_call *call, struct op *op, const struct kube_request *rq)
{
    OWN(object_done) struct object *o = NULL;

    if (op_get_at(op, STORE_HEAD, rq->at_version, &o, &call->status) < 0)
        return -1;
    return show(call, op, &o);
}

static int do_one(struct local_call *call, struct op *op, const struct kube_request *rq)
{
    struct op_options options = { .verb = verbs[rq->verb],
                                  .manager = rq->manager,
                                  .is_apply = rq->patch == KUBE_PATCH_APPLY,
                                  .has_force = rq->is_forced };

    if (rq->verb != KUBE_GET && op_check_options(&options, &call->status) < 0)
        return -1;
    if (op->sub && op->sub->sub != KIND_SUB_STATUS)
        return local_sub(call->client, op, rq, &call->found, &call->status);
    if (rq->verb == KUBE_GET)
        return get_one(call, op, rq);
    if (rq->verb == KUBE_PATCH)
        return patch_one(call, op, rq);
    return rq->verb == KUBE_DELETE ? delete_one(call, op, rq) : write_one(call, op, rq);
}

/* ---- many objects ---- */

static void add_item(struct local_call *call, struct object *o)
{
    if (call->item_count == call->item_cap) {
        call->item_cap = call->item_cap ? call->item_cap * 2 : 16;
        call->items = own_resize(call->items, call->item_cap, sizeof *call->items);
    }
    call->items[call->item_count++] = o;
}

/* There is one more than fits: the token says behind which it goes on. */
static int cut_off(struct local_call *call, struct many *m)
{
    const struct object *last = call->items[call->item_count - 1];
    struct local *l = call->client;
    struct err e;

    if (pages_token_write(m->pages.version, last, &call->continued, &e) < 0)
        return status_of_err(&call->status, &e);
    snapshots_keep(&l->snapshots, m->pages.shelf, m->pages.version, ev_now_ms(l->base.loop));
    return 0;
}

static void list_some(void *ctx)
{
    struct local_call *call = ctx;
    struct many *m = call->many;
    size_t budget = LIST_SLICE_OBJECTS;
    struct object *o, *shown;

    while ((o = pages_next(&m->pages, &budget))) {
        if (m->limit && call->item_count == m->limit) {
            finish(call, cut_off(call, m) < 0);
            return;
        }
        if (admit_show(&m->op, o, &shown, &call->status) < 0) {
            finish(call, true);
            return;
        }
        add_item(call, shown);
    }
    if (m->pages.is_over)
        finish(call, false);
    else
        ev_post(call->base.client->loop, &call->task, list_some, call);
}

static void delete_some(void *ctx)
{
    struct local_call *call = ctx;
    struct many *m = call->many;
    size_t budget = DELETE_SLICE_OBJECTS;
    struct object *o;

    while ((o = pages_next(&m->pages, &budget))) {
        OWN(object_done) struct object *now = NULL;

        if (op_delete_found(&m->op, o, &m->how, &now, &call->status) < 0) {
            finish(call, true);
            return;
        }
    }
    if (m->pages.is_over)
        finish(call, false);
    else
        ev_post(call->base.client->loop, &call->task, delete_some, call);
}

static int do_many(struct local_call *call, const struct op *op, const struct kube_request *rq)
{
    struct local *l = call->client;
    struct many *m = call->many = NEW(struct many);
    struct pages_ask ask = { .store = op->store,
                             .view = STORE_HEAD,
                             .snapshots = &l->snapshots,
                             .now_ms = ev_now_ms(l->base.loop),
                             .next = rq->next,
                             .version = rq->at_version };
    bool is_list = rq->verb == KUBE_LIST;

    m->op = *op;
    m->op.namespace = m->namespace = own_strdup(op->namespace);
    m->limit = is_list ? rq->limit : 0;
    m->how = how_to_delete(rq);
    m->how.uid = m->uid = rq->uid ? own_strdup(rq->uid) : NULL;
    if (selection_init(&m->want, &m->op, rq->labels, rq->fields, &call->status) < 0 ||
        pages_open(&m->pages, &m->want, &ask, &call->status) < 0)
        return -1;
    call->version = m->pages.version;
    ev_post(l->base.loop, &call->task, is_list ? list_some : delete_some, call);
    return 0;
}

/* ---- the beginning ---- */

static int prepare(struct local_call *call, const struct kube_request *rq, struct op *op)
{
    if (local_op(call->client, rq->kind, rq->version, op, &call->status) < 0)
        return -1;
    op->namespace = rq->namespace ? rq->namespace : "";
    op->name = rq->name && (rq->verb != KUBE_CREATE || rq->sub) ? rq->name : "";
    op->is_dry_run = rq->is_dry_run;
    op->is_forced = rq->is_forced;
    if (rq->manager && *rq->manager)
        op->manager = rq->manager;
    if (op_place(op, verbs[rq->verb], rq->sub ? rq->sub : "", &call->status) < 0)
        return -1;
    return op_can(op, verbs[rq->verb], &call->status);
}

struct kube_call *local_call_start(struct kube_client *c, const struct kube_request *rq,
                                   kube_done_fn done, void *ctx)
{
    struct local *l = CONTAINER(c, struct local, base);
    struct local_call *call = NEW(struct local_call);
    bool is_many = rq->verb == KUBE_LIST || rq->verb == KUBE_DELETE_COLLECTION;
    struct op op;
    int rc;

    *call = (struct local_call){ .base = { c },
                                 .client = local_ref(l),
                                 .next = l->calls,
                                 .link = &l->calls,
                                 .done = done,
                                 .ctx = ctx,
                                 .status = STATUS_INIT,
                                 .continued = BUF_INIT(PAGES_TOKEN_MAX_BYTES) };
    if (call->next)
        call->next->link = &call->next;
    l->calls = call;
    rc = prepare(call, rq, &op);
    if (rc == 0)
        rc = is_many ? do_many(call, &op, rq) : do_one(call, &op, rq);
    if (rc < 0 || rq->verb == KUBE_GET)
        finish(call, rc < 0);
    else if (!is_many)
        finish_write(call);
    return &call->base;
}

void local_call_cancel(struct kube_call *base)
{
    struct local_call *call = CONTAINER(base, struct local_call, base);

    if (call->is_told)
        return;
    local_say_canceled(&call->status);
    finish(call, true);
}

void local_calls_cancel(struct local *l)
{
    for (struct local_call *call = l->calls; call; call = call->next)
        local_call_cancel(&call->base);
}
