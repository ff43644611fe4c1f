/* scale over HTTP: an object like any other in the form that was asked for. */
#include "apiserver/sub.h"

#include "apiserver/body.h"
#include "apiserver/op_sub.h"

#include <time.h>

/* In the form that was asked for: a Scale is an object like any other there. */
static int write_scale(struct call *c, struct json_node *root, struct buf *out)
{
    static const struct kind_version version = { .name = "v1" };
    static const struct kind kind = {
        .group = "autoscaling", .name = "Scale", .plural = "scales", .versions = &version
    };
    struct table_view view = {
        .kind = &kind, .version = &version, .now = time(NULL), .include = c->include
    };
    OWN(object_done) struct object *o = NULL;
    struct json_out partial;
    struct err e;
    int rc;

    if (c->form == FORM_OBJECT)
        return json_node_write(root, out, &e) < 0 ? status_of_err(&c->status, &e) : 0;
    if (object_freeze(&kind, NULL, root, &o, &e) < 0)
        return status_of_err(&c->status, &e);
    if (c->form == FORM_TABLE) {
        rc = table_write_one(&view, o, out, &e);
    } else {
        json_out_init(&partial, out, 0);
        table_partial(o, &partial);
        rc = json_out_end(&partial, &e);
    }
    return rc < 0 ? status_of_err(&c->status, &e) : 0;
}

static int change_scale(struct call *c, struct span bytes, struct json_edit *ed,
                        struct json_node **ret)
{
    OWN(object_done) struct object *there = NULL;
    bool is_json = span_is_nocase(body_type(c->x), "application/json-patch+json");
    struct json_node *scale;

    if (c->req.verb != VERB_UPDATE)
        return op_scale_patch(&c->op, is_json ? OP_PATCH_JSON : OP_PATCH_MERGE, bytes, ed, ret,
                              &c->status);
    if (op_get(&c->op, STORE_HEAD, &there, &c->status) < 0 ||
        body_read_as(c, bytes, kind_body_type("autoscaling", "v1", "Scale"), ed, &scale) < 0)
        return -1;
    return op_scale_update(&c->op, ed, scale, ret, &c->status);
}

void sub_scale_body(struct call *c, struct span bytes, struct json_edit *ed)
{
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    struct json_node *scale;

    if (change_scale(c, bytes, ed, &scale) < 0)
        call_answer_status(c);
    else if (write_scale(c, scale, &body) < 0)
        call_refuse(c);
    else
        sub_answer_later(c, 200, &body);
}

void sub_scale_get(struct call *c)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    struct json_node *scale;

    if (op_scale_get(&c->op, STORE_COMMITTED, ed, &scale, &c->status) < 0 ||
        write_scale(c, scale, &body) < 0)
        call_refuse(c);
    else
        call_answer_bytes(c, 200, "application/json", buf_span(&body));
}
