/* create, update, patch: the body is read, judged and written to the head in one turn; the answer waits for the commit. */
#include "apiserver/body.h"
#include "apiserver/review.h"

#include <string.h>

/* A refusal saw the head: it waits for the same commit as a success would. */
static void answer(struct call *c, int rc, int code, struct object **o)
{
    if (rc < 0)
        call_answer_status(c);
    else
        call_answer_object(c, code, *o);
}

static void answer_review(struct call *c, struct json_edit *ed, struct json_node *body)
{
    OWN(buf_done) struct buf out = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    struct err e;

    if (review(c->s, &c->op, ed, body, &c->status) < 0) {
        call_refuse(c);
    } else if (json_node_write(body, &out, &e) < 0) {
        (void)status_of_err(&c->status, &e);
        call_refuse(c);
    } else {
        call_answer_bytes(c, 201, "application/json", buf_span(&out));
    }
}

static void on_create_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *body = NULL;
    struct object *o = NULL;

    if ((e && body_is_bad(c, e)) || body_read(c, bytes, c->op.version->type, ed, &body) < 0)
        call_refuse(c);
    else if (c->op.kind->traits & KIND_REVIEW)
        answer_review(c, ed, body);
    else
        answer(c, op_create(&c->op, ed, body, &o, &c->status), 201, &o);
}

void write_create(struct call *c)
{
    http_body_collect(c->x, CALL_BODY_MAX_BYTES, on_create_body, c);
}

static void on_update_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *body = NULL;
    struct object *o = NULL;

    if ((e && body_is_bad(c, e)) || body_read(c, bytes, c->op.version->type, ed, &body) < 0)
        call_refuse(c);
    else
        answer(c, op_update(&c->op, ed, body, &o, &c->status), 200, &o);
}

void write_update(struct call *c)
{
    http_body_collect(c->x, CALL_BODY_MAX_BYTES, on_update_body, c);
}

static int patch_type(struct call *c, enum op_patch *ret)
{
    static const struct {
        const char *type;
        enum op_patch patch;
    } rows[] = {
        { "application/json-patch+json", OP_PATCH_JSON },
        { "application/merge-patch+json", OP_PATCH_MERGE },
        { "application/strategic-merge-patch+json", OP_PATCH_STRATEGIC },
        { "application/apply-patch+yaml", OP_PATCH_APPLY },
        { "application/apply-patch+json", OP_PATCH_APPLY },
    };
    struct span type = body_type(c->x);

    EACH(r, rows) {
        if (!span_is_nocase(type, r->type))
            continue;
        *ret = r->patch;
        return op_check_patch(&c->op, r->patch, &c->status);
    }
    (void)status_media_type(&c->status, "415: Unsupported Media Type");
    c->status.kind = "";
    return -1;
}

static void on_patch_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    struct object *o = NULL;
    enum op_patch type;
    bool is_created = false;
    int rc;

    if ((e && body_is_bad(c, e)) || patch_type(c, &type) < 0) {
        call_refuse(c);
        return;
    }
    rc = op_patch(&c->op, type, bytes, &o, &is_created, &c->status);
    answer(c, rc, is_created ? 201 : 200, &o);
}

void write_patch(struct call *c)
{
    http_body_collect(c->x, CALL_BODY_MAX_BYTES, on_patch_body, c);
}
