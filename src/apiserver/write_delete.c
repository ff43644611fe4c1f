/* delete and deletecollection. */
#include "apiserver/body.h"
#include "apiserver/limits.h"
#include "apiserver/pages.h"

#include "base/str.h"

#include <string.h>

static int check_kind(struct call *c, struct json_node *body)
{
    struct span kind = json_node_str(json_node_get(body, "kind"));
    struct span api = json_node_str(json_node_get(body, "apiVersion"));

    if (!kind.n || span_is(kind, "DeleteOptions"))
        return 0;
    return status_bad_request(&c->status,
                              "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                              "\"pkg/runtime/scheme.go:111\"",
                              SPAN_ARG(kind), SPAN_ARG(api));
}

static int read_query(struct call *c, struct op_delete *how)
{
    const char *text = call_query(c, "gracePeriodSeconds");

    if (text && *text) {
        if (!str_i64(span_cstr(text), INT64_MIN, INT64_MAX, &how->grace_s))
            return call_not_a_number(c, text);
        how->grace_s = how->grace_s < 0 ? 1 : how->grace_s; /* -1 would be "not said" */
    }
    text = call_query(c, "propagationPolicy");
    return text && *text ? op_delete_propagation(span_cstr(text), how, &c->status) : 0;
}

static int read_all(struct call *c, struct span bytes, struct json_edit *ed, struct op_delete *how)
{
    struct json_node *body = NULL;

    *how = (struct op_delete){ .grace_s = -1 };
    if (read_query(c, how) < 0)
        return -1;
    if (!bytes.n)
        return 0;
    if (body_read(c, bytes, kind_body_type("", "v1", "DeleteOptions"), ed, &body) < 0 ||
        check_kind(c, body) < 0 ||
        body_check(kind_body_type("", "v1", "DeleteOptions"), body, &c->status) < 0)
        return -1;
    return op_delete_options(&c->op, body, how, &c->status);
}

/* These answer a delete with the object itself. */
static bool returns_object(const struct kind *k)
{
    static const char *const names[] = { "Pod", "Service", "ServiceAccount", "ResourceQuota",
                                         "PersistentVolumeClaim" };

    EACH(name, names) {
        if (!*k->group && strcmp(k->name, *name) == 0)
            return true;
    }
    return false;
}

static void on_delete_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct op_delete how;
    struct object *o = NULL;
    bool is_gone = false;

    if ((e && body_is_bad(c, e)) || read_all(c, bytes, ed, &how) < 0) {
        call_refuse(c);
    } else if (op_delete(&c->op, &how, &o, &is_gone, &c->status) < 0) {
        call_answer_status(c);
    } else if (is_gone && !returns_object(c->op.kind)) {
        (void)status_success(&c->status, c->op.kind, c->op.name, object_uid(o));
        object_unref(o);
        call_answer_status(c);
    } else {
        call_answer_object(c, 200, o);
    }
}

void write_delete(struct call *c)
{
    http_body_collect(c->x, CALL_BODY_MAX_BYTES, on_delete_body, c);
}

/* ---- many ---- */

struct batch {
    struct pages pages;
    struct op_delete how;
    struct json_edit *ed;
    struct ev_task task;
    struct buf out;
    bool has_items;
};

static void batch_free(struct call *c)
{
    struct batch *b = c->stream;

    ev_post_cancel(&b->task);
    pages_done(&b->pages);
    json_edit_free(b->ed);
    buf_done(&b->out);
    ev_free_later(c->s->loop, b, free);
}

static void on_all_deleted(void *ctx, const struct err *e)
{
    struct call *c = ctx;
    struct batch *b = c->stream;

    if (e)
        (void)status_of_err(&c->status, e);
    if (e || render_list_end(c, !b->has_items, &b->out) < 0)
        call_refuse(c);
    else
        call_answer_bytes(c, 200, c->is_yaml ? "application/yaml" : "application/json",
                          buf_span(&b->out));
}

/* Each by its own. The list in the answer is what was found. */
static int delete_one(struct call *c, struct batch *b, struct object *o)
{
    OWN(object_done) struct object *now = NULL;
    int rc;

    if (op_delete_found(&c->op, o, &b->how, &now, &c->status) < 0)
        return -1;
    if (!now)
        return 0;
    rc = render_item(c, now, !b->has_items, &b->out);
    b->has_items = true;
    return rc;
}

static void delete_some(void *ctx)
{
    struct call *c = ctx;
    struct batch *b = c->stream;
    size_t budget = DELETE_SLICE_OBJECTS;
    struct object *o;

    while ((o = pages_next(&b->pages, &budget))) {
        if (delete_one(c, b, o) < 0) {
            call_answer_status(c);
            return;
        }
    }
    if (b->pages.is_over)
        store_wait(c->s->store, &c->wait, store_version(c->s->store, STORE_HEAD), on_all_deleted,
                   c);
    else
        ev_post(c->s->loop, &b->task, delete_some, c);
}

static void on_collection_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    struct batch *b = c->stream;

    if ((e && body_is_bad(c, e)) || read_all(c, bytes, b->ed, &b->how) < 0 ||
        render_list_begin(c, b->pages.version, NULL, 0, &b->out) < 0)
        call_refuse(c);
    else
        delete_some(c);
}

void write_delete_collection(struct call *c)
{
    struct batch *b = NEW(struct batch);
    uint64_t version;
    struct shelf *shelf = store_snapshot(c->s->store, STORE_COMMITTED, &version);

    b->ed = json_edit_new(0);
    b->out.max = CALL_ANSWER_MAX_BYTES;
    c->stream = b;
    c->stream_free = batch_free;
    pages_init(&b->pages, &c->want, shelf, version, NULL);
    http_body_collect(c->x, CALL_BODY_MAX_BYTES, on_collection_body, c);
}
