/* scale: how many there are and shall be, wherever a kind keeps that, as an autoscaling/v1 Scale. */
#include "apiserver/admit.h"
#include "apiserver/body.h"
#include "apiserver/op_write.h"
#include "apiserver/sub.h"
#include "kube/patch.h"

#include <stdio.h>
#include <time.h>

static void write_selector(struct json_edit *ed, const struct kind_scale *scale,
                           const struct object *o, struct json_node *status)
{
    const struct json *there = object_at(o, scale->selector);
    OWN(selector_done) struct selector *s = NULL;
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    struct err e;

    if (!scale->is_label_selector) {
        if (json_str(there).n)
            json_node_set(status, "selector", json_edit_str(ed, json_str(there)));
    } else if (selector_of(there, &s, &e) == 0 && selector_write(s, &text, &e) == 0) {
        json_node_set(status, "selector", json_edit_str(ed, buf_span(&text)));
    }
}

static struct json_node *make_scale(struct json_edit *ed, struct op *op, struct object *shown)
{
    static const char *const names[] = {
        "name", "namespace", "uid", "resourceVersion", "creationTimestamp", NULL
    };
    const struct kind_scale *scale = op->version->scale;
    struct json_node *root = json_edit_object(ed), *whole = object_thaw(shown, NULL, ed), *spec,
                     *status;
    int64_t n;

    json_node_set(root, "kind", json_edit_cstr(ed, "Scale"));
    json_node_set(root, "apiVersion", json_edit_cstr(ed, "autoscaling/v1"));
    sub_copy_meta(ed, json_node_set(root, "metadata", json_edit_object(ed)),
                  json_node_get(whole, "metadata"), names);
    spec = json_node_set(root, "spec", json_edit_object(ed));
    if (json_i64(object_at(shown, scale->spec_replicas), &n) && n != 0)
        json_node_set(spec, "replicas", json_edit_i64(ed, n));
    status = json_node_set(root, "status", json_edit_object(ed));
    if (!json_i64(object_at(shown, scale->status_replicas), &n))
        n = 0;
    json_node_set(status, "replicas", json_edit_i64(ed, n));
    write_selector(ed, scale, shown, status);
    return root;
}

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

static int read_scale(struct op *op, struct json_node *scale, int64_t *ret, struct status *st)
{
    struct json_node *meta = json_node_get(scale, "metadata");
    struct span name = json_node_str(json_node_get(meta, "name"));

    if (name.n && !span_is(name, op->name))
        return status_bad_request(
            st, "the name of the object (%.*s) does not match the name on the URL (%s)",
            SPAN_ARG(name), op->name);
    *ret = 0;
    (void)json_node_i64(json_node_get(json_node_get(scale, "spec"), "replicas"), ret);
    if (*ret < 0 && !(op->kind->traits & KIND_CUSTOM)) { /* theirs is told by their rules */
        char shown[32];

        (void)snprintf(shown, sizeof shown, "%lld", (long long)*ret);
        causes_add_shown(&st->causes, CAUSE_INVALID, AT(AT(NULL, "spec"), "replicas"), shown,
                         "should be a non-negative integer");
        return status_invalid(st, op->kind, op->name);
    }
    return 0;
}

/* Puts the number where the kind keeps it ("spec.replicas"), and takes the rest of the way of an update. */
static int put_scale(struct op *op, struct json_edit *ed, struct object *old,
                     struct json_node *scale, struct object **ret, struct status *st)
{
    OWN(object_done) struct object *shown = NULL;
    struct json_node *root,
        *given = json_node_get(json_node_get(scale, "metadata"), "resourceVersion");
    int64_t replicas;

    if (read_scale(op, scale, &replicas, st) < 0 || admit_show(op, old, &shown, st) < 0)
        return -1;
    root = object_thaw(shown, kind_api_version(op->kind, op->version), ed);
    if (json_node_str(given).n)
        json_node_set(json_node_get(root, "metadata"), "resourceVersion",
                      json_edit_str(ed, json_node_str(given)));
    json_node_set(json_node_get(root, "spec"), "replicas", json_edit_i64(ed, replicas));
    return op_replace(op, ed, old, root, ret, st);
}

static int change_scale(struct call *c, struct span bytes, struct json_edit *ed,
                        struct object **ret)
{
    OWN(object_done) struct object *old = NULL, *shown = NULL;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *scale;
    struct err e;

    if (op_get(&c->op, STORE_HEAD, &old, &c->status) < 0 ||
        admit_show(&c->op, old, &shown, &c->status) < 0)
        return -1;
    if (c->req.verb == VERB_UPDATE) {
        if (body_read(c, bytes, kind_body_type("autoscaling", "v1", "Scale"), ed, &scale) < 0)
            return -1;
        return put_scale(&c->op, ed, old, scale, ret, &c->status);
    }
    if (json_parse(bytes, NULL, &doc, &e) < 0)
        return status_bad_request(&c->status, "error decoding patch: %s", e.msg);
    scale = make_scale(ed, &c->op, shown);
    if ((span_is_nocase(body_type(c->x), "application/json-patch+json")
             ? patch_json(&scale, json_doc_root(json_edit_hold(ed, doc)), &e)
             : patch_merge(scale, json_doc_root(json_edit_hold(ed, doc)), &e)) < 0)
        return status_of_err(&c->status, &e);
    return put_scale(&c->op, ed, old, scale, ret, &c->status);
}

void sub_scale_body(struct call *c, struct span bytes, struct json_edit *ed)
{
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    OWN(object_done) struct object *o = NULL, *shown = NULL;

    if (change_scale(c, bytes, ed, &o) < 0)
        call_answer_status(c);
    else if (admit_show(&c->op, o, &shown, &c->status) < 0)
        call_refuse(c);
    else if (write_scale(c, make_scale(ed, &c->op, shown), &body) < 0)
        call_refuse(c);
    else
        sub_answer_later(c, 200, &body);
}

void sub_scale_get(struct call *c)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    OWN(object_done) struct object *o = NULL, *shown = NULL;

    if (op_get(&c->op, STORE_COMMITTED, &o, &c->status) < 0 ||
        admit_show(&c->op, o, &shown, &c->status) < 0)
        call_refuse(c);
    else if (write_scale(c, make_scale(ed, &c->op, shown), &body) < 0)
        call_refuse(c);
    else
        call_answer_bytes(c, 200, "application/json", buf_span(&body));
}
