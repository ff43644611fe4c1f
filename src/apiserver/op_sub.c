/* Eviction, Binding, and a Namespace's finalizers. */
#include "apiserver/op_sub.h"

#include "apiserver/admit.h"
#include "apiserver/op_write.h"

void op_copy_meta(struct json_edit *ed, struct json_node *to, struct json_node *from,
                  const char *const *names)
{
    for (; *names; names++) {
        struct json_node *v = json_node_get(from, *names);

        if (v)
            json_node_set(to, *names, json_node_copy(ed, v));
    }
}

static int check_name(const struct op *op, struct json_node *body, struct status *st)
{
    struct span name = json_node_str(json_node_get(json_node_get(body, "metadata"), "name"));

    if (!name.n || span_is(name, op->name))
        return 0;
    return status_bad_request(st, "name in URL does not match name in %s object", op->sub->kind);
}

int op_evict(struct op *op, struct json_node *body, struct status *st)
{
    OWN(object_done) struct object *o = NULL;
    struct op_delete how = { .grace_s = -1 };
    bool is_gone;

    if (check_name(op, body, st) < 0 ||
        op_delete_options(op, json_node_get(body, "deleteOptions"), &how, st) < 0)
        return -1;
    return op_delete(op, &how, &o, &is_gone, st);
}

static struct json_node *need(struct json_edit *ed, struct json_node *parent, const char *name)
{
    struct json_node *v = json_node_get(parent, name);

    return json_node_type(v) == JSON_OBJECT ? v : json_node_set(parent, name, json_edit_object(ed));
}

static void add_scheduled(struct json_edit *ed, struct json_node *root)
{
    struct json_node *status = need(ed, root, "status"), *list, *condition = json_edit_object(ed);
    char now[TIME_TEXT_BYTES];

    list = json_node_get(status, "conditions");
    if (!list)
        list = json_node_set(status, "conditions", json_edit_array(ed));
    json_node_set(condition, "type", json_edit_cstr(ed, "PodScheduled"));
    json_node_set(condition, "status", json_edit_cstr(ed, "True"));
    json_node_set(condition, "lastProbeTime", json_edit_null(ed));
    json_node_set(condition, "lastTransitionTime", json_edit_cstr(ed, admit_now(now)));
    json_node_append(list, condition);
}

int op_bind(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st)
{
    static const struct kind named = { .group = "", .plural = "pods/binding" };
    OWN(object_done) struct object *old = NULL, *made = NULL, *o = NULL;
    struct json_node *root, *spec;
    struct span node;
    struct err e;

    if (check_name(op, body, st) < 0 || op_get(op, STORE_HEAD, &old, st) < 0)
        return -1;
    node = json_node_str(json_node_get(json_node_get(body, "target"), "name"));
    root = object_thaw(old, NULL, ed);
    spec = need(ed, root, "spec");
    if (json_node_str(json_node_get(spec, "nodeName")).n)
        return status_conflict(st, &named, op->name, "pod %s is already assigned to node \"%s\"",
                               op->name, json_node_cstr(json_node_get(spec, "nodeName")));
    json_node_set(spec, "nodeName", json_edit_str(ed, node));
    add_scheduled(ed, root);
    if (object_freeze(op->kind, old, root, &made, &e) < 0)
        return status_of_err(st, &e);
    return op_commit(op, STORE_UPDATE, made, false, &o, st);
}

int op_finalize(struct op *op, struct json_edit *ed, struct json_node *body, struct object **ret,
                struct status *st)
{
    OWN(object_done) struct object *old = NULL, *made = NULL;
    struct json_node *root;
    struct err e;

    if (admit_envelope(op, body, st) < 0 || op_get(op, STORE_HEAD, &old, st) < 0)
        return -1;
    root = object_thaw(old, NULL, ed);
    json_node_set(need(ed, root, "spec"), "finalizers",
                  json_node_copy(ed, json_node_get(json_node_get(body, "spec"), "finalizers")));
    if (object_freeze(op->kind, old, root, &made, &e) < 0)
        return status_of_err(st, &e);
    return op_commit(op, op_may_go(made) ? STORE_DELETE : STORE_UPDATE, made, true, ret, st);
}
