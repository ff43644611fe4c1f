/* Scale: how many there are and shall be, wherever a kind keeps that, as an autoscaling/v1 Scale. */
#include "apiserver/op_sub.h"

#include "apiserver/admit.h"
#include "apiserver/op_write.h"
#include "kube/patch.h"
#include "kube/select.h"

#include <stdio.h>

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
    op_copy_meta(ed, json_node_set(root, "metadata", json_edit_object(ed)),
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

/* None is nought; what is no number is no Scale. */
static int read_replicas(struct json_node *scale, int64_t *ret, struct status *st)
{
    struct json_node *replicas = json_node_get(json_node_get(scale, "spec"), "replicas");

    *ret = 0;
    if (!replicas || json_node_type(replicas) == JSON_NULL ||
        (json_node_i64(replicas, ret) && *ret <= INT32_MAX && *ret >= INT32_MIN))
        return 0;
    return status_bad_request(st,
                              "Scale in version \"v1\" cannot be handled as a Scale: json: cannot "
                              "unmarshal %s into Go struct field ScaleSpec.spec.replicas of type "
                              "int32",
                              json_node_type_name(replicas));
}

static int read_scale(struct op *op, struct json_node *scale, int64_t *ret, struct status *st)
{
    struct json_node *meta = json_node_get(scale, "metadata");
    struct span name = json_node_str(json_node_get(meta, "name"));

    if (name.n && !span_is(name, op->name))
        return status_bad_request(
            st, "the name of the object (%.*s) does not match the name on the URL (%s)",
            SPAN_ARG(name), op->name);
    if (read_replicas(scale, ret, st) < 0)
        return -1;
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

static int show(struct op *op, struct object *o, struct json_edit *ed, struct json_node **ret,
                struct status *st)
{
    OWN(object_done) struct object *shown = NULL;

    if (admit_show(op, o, &shown, st) < 0)
        return -1;
    *ret = make_scale(ed, op, shown);
    return 0;
}

int op_scale_get(struct op *op, enum store_view view, struct json_edit *ed, struct json_node **ret,
                 struct status *st)
{
    OWN(object_done) struct object *o = NULL;

    return op_get(op, view, &o, st) < 0 ? -1 : show(op, o, ed, ret, st);
}

int op_scale_update(struct op *op, struct json_edit *ed, struct json_node *scale,
                    struct json_node **ret, struct status *st)
{
    OWN(object_done) struct object *old = NULL, *o = NULL;

    if (op_get(op, STORE_HEAD, &old, st) < 0 || put_scale(op, ed, old, scale, &o, st) < 0)
        return -1;
    return show(op, o, ed, ret, st);
}

int op_scale_patch(struct op *op, enum op_patch type, struct span text, struct json_edit *ed,
                   struct json_node **ret, struct status *st)
{
    const struct json *patch;
    struct json_node *scale;
    int64_t replicas;
    struct err e;

    if (op_scale_get(op, STORE_HEAD, ed, &scale, st) < 0 ||
        op_patch_parse(text, ed, &patch, st) < 0)
        return -1;
    if ((type == OP_PATCH_JSON ? patch_json(&scale, patch, &e) : patch_merge(scale, patch, &e)) < 0)
        return op_patch_refuse(st, &e);
    if (read_replicas(scale, &replicas, st) < 0)
        return op_patch_refuse_result(scale, st);
    return op_scale_update(op, ed, scale, ret, st);
}
