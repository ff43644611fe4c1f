/* The paths below an object that are not the object: token, eviction, binding, finalize; scale is sub_scale.c. */
#include "apiserver/sub.h"

#include "apiserver/body.h"
#include "apiserver/op_sub.h"

/* Bytes that wait for the commit of what they tell. */
struct later {
    struct buf body;
    int code;
};

static void later_free(struct call *c)
{
    struct later *l = c->stream;

    buf_done(&l->body);
    free(l);
}

static void on_committed(void *ctx, const struct err *e)
{
    struct call *c = ctx;
    struct later *l = c->stream;

    if (e) {
        (void)status_of_err(&c->status, e);
        call_refuse(c);
    } else {
        call_answer_bytes(c, l->code, "application/json", buf_span(&l->body));
    }
}

void sub_answer_later(struct call *c, int code, struct buf *body)
{
    struct later *l = NEW(struct later);

    l->code = code;
    l->body.max = CALL_ANSWER_MAX_BYTES;
    buf_move(&l->body, body);
    c->stream = l;
    c->stream_free = later_free;
    store_wait(c->s->store, &c->wait, store_version(c->s->store, STORE_HEAD), on_committed, c);
}

static void answer_later(struct call *c, int code, struct json_node *root)
{
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    struct err e;

    if (json_node_write(root, &body, &e) < 0) {
        (void)status_of_err(&c->status, &e);
        call_refuse(c);
    } else {
        sub_answer_later(c, code, &body);
    }
}

/* ---- the answers ---- */

static void answer_success(struct call *c, struct json_edit *ed, int code)
{
    struct json_node *root = json_edit_object(ed);

    json_node_set(root, "kind", json_edit_cstr(ed, "Status"));
    json_node_set(root, "apiVersion", json_edit_cstr(ed, "v1"));
    json_node_set(root, "metadata", json_edit_object(ed));
    json_node_set(root, "status", json_edit_cstr(ed, "Success"));
    json_node_set(root, "code", json_edit_i64(ed, code));
    answer_later(c, code, root);
}

/* The operations on a body of their own; what they read of the store is the head. */
static void do_token(struct call *c, struct span bytes, struct json_edit *ed)
{
    OWN(object_done) struct object *there = NULL;
    struct json_node *body = NULL;

    if (op_get(&c->op, STORE_HEAD, &there, &c->status) < 0 ||
        body_read_as(c, bytes, kind_body_type("authentication.k8s.io", "v1", "TokenRequest"), ed,
                     &body) < 0 ||
        op_token(&c->op, c->s->pki, ed, body, &c->status) < 0)
        call_refuse(c);
    else
        answer_later(c, 201, body);
}

static void do_eviction(struct call *c, struct span bytes, struct json_edit *ed)
{
    struct json_node *body = NULL;

    if (body_read_as(c, bytes, kind_body_type("policy", "v1", "Eviction"), ed, &body) < 0)
        call_refuse(c);
    else if (op_evict(&c->op, body, &c->status) < 0)
        call_answer_status(c);
    else
        answer_success(c, ed, 201);
}

static void do_binding(struct call *c, struct span bytes, struct json_edit *ed)
{
    struct json_node *body = NULL;

    if (body_read_as(c, bytes, kind_body_type("", "v1", "Binding"), ed, &body) < 0)
        call_refuse(c);
    else if (op_bind(&c->op, ed, body, &c->status) < 0)
        call_answer_status(c);
    else
        answer_success(c, ed, 201);
}

static void do_finalize(struct call *c, struct span bytes, struct json_edit *ed)
{
    struct json_node *body = NULL;
    struct object *o = NULL;

    if (body_read_as(c, bytes, c->op.version->type, ed, &body) < 0)
        call_refuse(c);
    else if (op_finalize(&c->op, ed, body, &o, &c->status) < 0)
        call_answer_status(c);
    else
        call_answer_object(c, 200, o);
}

/* ---- which ---- */

static const struct {
    enum kind_sub sub;
    void (*on_body)(struct call *c, struct span bytes, struct json_edit *ed);
} rows[] = {
    { KIND_SUB_SCALE, sub_scale_body }, { KIND_SUB_TOKEN, do_token },
    { KIND_SUB_EVICTION, do_eviction }, { KIND_SUB_BINDING, do_binding },
    { KIND_SUB_FINALIZE, do_finalize },
};

static void on_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *there = NULL;

    if (e && body_is_bad(c, e)) {
        call_refuse(c);
        return;
    }
    EACH(r, rows) {
        if (r->sub == c->op.sub->sub) {
            r->on_body(c, bytes, ed);
            return;
        }
    }
    if (op_get(&c->op, STORE_COMMITTED, &there, &c->status) == 0)
        (void)status_no_resource(&c->status);
    call_refuse(c);
}

void sub_answer(struct call *c)
{
    if (c->req.verb == VERB_GET && c->op.sub->sub == KIND_SUB_SCALE)
        sub_scale_get(c);
    else
        http_body_collect(c->x, CALL_BODY_MAX_BYTES, on_body, c);
}
