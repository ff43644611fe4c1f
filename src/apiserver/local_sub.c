/* Subresources of the client on the store, but status, which is the object itself. */
#include "apiserver/local_impl.h"

#include "apiserver/body.h"
#include "apiserver/op_sub.h"

/* The body as a tree: the object that was given, or its JSON. */
static int read_body(const struct op *op, const struct kube_request *rq, struct json_edit *ed,
                     struct json_node **ret, struct status *st)
{
    const struct kind_subresource *sub = op->sub;
    const struct schema_type *type =
        sub->kind ? kind_body_type(sub->group ? sub->group : op->kind->group,
                                   sub->version ? sub->version : op->version->name, sub->kind)
                  : op->version->type;

    if (!rq->object)
        return body_read_json(rq->body, type, ed, ret, st);
    *ret = object_thaw(rq->object, kind_api_version(op->kind, op->version), ed);
    return body_check(type, *ret, st);
}

static int do_scale(struct op *op, const struct kube_request *rq, struct json_edit *ed,
                    struct json_node **ret, struct status *st)
{
    struct json_node *body;

    if (rq->verb == KUBE_GET)
        return op_scale_get(op, STORE_HEAD, ed, ret, st);
    if (rq->verb == KUBE_PATCH)
        return op_scale_patch(op, rq->patch == KUBE_PATCH_JSON ? OP_PATCH_JSON : OP_PATCH_MERGE,
                              rq->body, ed, ret, st);
    return read_body(op, rq, ed, &body, st) < 0 ? -1 : op_scale_update(op, ed, body, ret, st);
}

int local_sub(struct local *l, struct op *op, const struct kube_request *rq,
              struct local_answer *ret, struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *body = NULL, *told = NULL;
    enum kind_sub sub = op->sub->sub;
    struct err e;
    int rc;

    if (sub == KIND_SUB_SCALE) {
        rc = do_scale(op, rq, ed, &told, st);
    } else if (sub == KIND_SUB_TOKEN || sub == KIND_SUB_EVICTION || sub == KIND_SUB_BINDING ||
               sub == KIND_SUB_FINALIZE) {
        if (read_body(op, rq, ed, &body, st) < 0)
            return -1;
        rc = sub == KIND_SUB_TOKEN      ? op_token(op, l->s->pki, ed, body, st)
             : sub == KIND_SUB_EVICTION ? op_evict(op, body, st)
             : sub == KIND_SUB_BINDING  ? op_bind(op, ed, body, st)
                                        : op_finalize(op, ed, body, &ret->object, st);
        if (sub == KIND_SUB_TOKEN)
            told = body;
    } else { /* streams are no call */
        rc = status_no_resource(st);
    }
    if (rc == 0 && told && json_node_freeze(told, &ret->body, &e) < 0)
        return status_of_err(st, &e);
    return rc;
}
