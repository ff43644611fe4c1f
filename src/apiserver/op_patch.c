#include "apiserver/admit.h"
#include "apiserver/definition.h"
#include "apiserver/op_write.h"

#include "kube/patch.h"
#include "kube/yaml.h"

#include <string.h>

int op_patch_refuse(struct status *st, const struct err *e)
{
    if (e->code == ERR_PROTOCOL)
        return status_bad_request(st, "%s", e->msg);
    if (e->code == ERR_INVALID) {
        (void)status_no_resource(st);
        st->code = 422;
        st->reason = "Invalid";
        buf_clear(&st->message);
        (void)buf_add_capped(&st->message, SPAN(PATCH_REFUSED_TEXT));
        return -1;
    }
    return status_of_err(st, e);
}

int op_patch_parse(struct span patch, struct json_edit *ed, const struct json **ret,
                   struct status *st)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(patch, NULL, &doc, &e) < 0)
        return e.code == ERR_LIMIT ? status_of_err(st, &e)
                                   : status_bad_request(st, "error decoding patch: %s", e.msg);
    *ret = json_doc_root(json_edit_hold(ed, doc));
    return 0;
}

static int change(struct op *op, enum op_patch type, struct json_node **root,
                  const struct json *patch, struct err *e)
{
    switch (type) {
    case OP_PATCH_JSON:
        return patch_json(root, patch, e);
    case OP_PATCH_MERGE:
        return patch_merge(*root, patch, e);
    case OP_PATCH_STRATEGIC:
        return patch_strategic(*root, op->version->type, patch, e);
    case OP_PATCH_APPLY: /* by apply() */
        break;
    }
    return err_set(e, ERR_INTERNAL, "an apply is no patch");
}

/* ---- server-side apply ---- */

static int parse_config(struct span text, struct json_edit *ed, struct json_node **ret,
                        struct status *st)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (kube_yaml_to_doc(text, NULL, &doc, &e) < 0)
        return e.code == ERR_LIMIT
                   ? status_of_err(st, &e)
                   : status_bad_request(
                         st, "error decoding YAML: error converting YAML to JSON: %s", e.msg);
    *ret = json_edit_doc(ed, doc);
    return 0;
}

/* An apply says what it is, and nothing that its kind does not have: what is not known cannot be owned. */
static int check_config(struct op *op, struct json_node *config, struct status *st)
{
    OWN(check_issues_done) struct check_issues issues = CHECK_ISSUES_INIT;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *meta = json_node_get(config, "metadata");
    struct span api = json_node_str(json_node_get(config, "apiVersion"));
    struct span kind = json_node_str(json_node_get(config, "kind")), field;
    struct err e;

    if (json_node_type(config) != JSON_OBJECT || !kind.n)
        return status_bad_request(st, "invalid object type: %s%.*s, Kind=", api.n ? "" : "/",
                                  SPAN_ARG(api));
    if (json_node_freeze(config, &doc, &e) < 0)
        return status_of_err(st, &e);
    if (check_object(op->version->type, json_doc_root(doc), &issues, &e) < 0 || !issues.n)
        return 0; /* a wrong type is told by admit_body */
    field = span_cstr(check_issue(&issues, 0));
    if (!span_starts(field, "unknown field \""))
        return 0;
    field = span_slice(field, 15, field.n - 1);
    return status_bare(st,
                       "failed to create typed patch object (%.*s/%s; %.*s, Kind=%.*s): .%.*s: "
                       "field not declared in schema",
                       SPAN_ARG(json_node_str(json_node_get(meta, "namespace"))), op->name,
                       SPAN_ARG(api), SPAN_ARG(kind), SPAN_ARG(field));
}

static int conflict(struct causes *causes, struct status *st)
{
    OWN(buf_done) struct buf text = BUF_INIT(CAUSES_TEXT_MAX_BYTES * 2);
    struct err e;

    if (apply_conflict_text(causes, &text, &e) < 0)
        return status_of_err(st, &e);
    causes_done(&st->causes);
    st->causes = *causes;
    *causes = (struct causes)CAUSES_INIT;
    return status_apply_conflict(st, "%s", buf_cstr(&text));
}

static int apply(struct op *op, struct span text, struct object **ret, bool *ret_is_created,
                 struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(causes_done) struct causes causes = CAUSES_INIT;
    OWN(object_done) struct object *old = NULL, *shown = NULL;
    struct shelf_key key = op_key(op);
    struct json_node *config, *live = NULL, *root;
    bool is_named;
    char now[TIME_TEXT_BYTES];
    struct apply_by by = admit_by(op, admit_now(now));
    struct err e;

    if (parse_config(text, ed, &config, st) < 0 || check_config(op, config, st) < 0 ||
        admit_type(op, config, st) < 0 || admit_fields(op, config, NULL, st) < 0)
        return -1;
    (void)json_node_dedupe(config);
    is_named = admit_envelope(op, config, st) == 0; /* told only where nobody else's fields are */
    old = object_ref(store_get(op->store, STORE_HEAD, &key));
    if (!old && op->sub)
        return status_not_found(st, op->kind, op->name);
    if (old && !definition_given(op, op->name)) {
        if (admit_show(op, old, &shown, st) < 0)
            return -1;
        live = object_thaw(shown, kind_api_version(op->kind, op->version), ed);
    }
    if (apply_config(&by, live, config, &causes, &root, &e) < 0)
        return e.code == ERR_CONFLICT ? conflict(&causes, st) : op_patch_refuse(st, &e);
    if (!is_named)
        return -1;
    op->is_tracked = true;
    *ret_is_created = !old;
    return old ? op_replace(op, ed, old, root, ret, st) : op_create(op, ed, root, ret, st);
}

/* Said twice, as the public server does. */
static int check_uid(struct op *op, const struct object *old, struct json_node *root,
                     struct status *st)
{
    struct span uid = json_node_str(json_node_get(json_node_get(root, "metadata"), "uid"));

    if (!uid.n || span_is(uid, object_uid(old)))
        return 0;
    for (int i = 0; i < 2; i++)
        causes_add_text(&st->causes, CAUSE_INVALID, AT(AT(NULL, "metadata"), "uid"), uid,
                        "field is immutable");
    return status_invalid(st, op->kind, op->name);
}

int op_patch_refuse_result(struct json_node *root, struct status *st)
{
    static const struct kind nothing = { .group = "", .name = "" };
    OWN(buf_done) struct buf said = BUF_INIT(STATUS_TEXT_MAX_BYTES), shown = BUF_INIT(32 * 1024);
    const char *why;
    struct err e;

    buf_move(&said, &st->message);
    why = strstr(buf_cstr(&said), ": "); /* behind "Pod in version v1 cannot be handled as a Pod" */
    if (json_node_write(root, &shown, &e) < 0)
        buf_clear(&shown);
    status_clear(st);
    causes_add_text(&st->causes, CAUSE_INVALID, AT(NULL, "patch"), buf_span(&shown), "%s",
                    why ? why + 2 : buf_cstr(&said));
    return status_invalid(st, &nothing, "");
}

int op_patch(struct op *op, enum op_patch type, struct span patch_text, struct object **ret,
             bool *ret_is_created, struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *old = NULL, *shown = NULL;
    const struct json *patch;
    struct json_node *root;
    struct err e;

    *ret_is_created = false;
    if (type == OP_PATCH_APPLY)
        return apply(op, patch_text, ret, ret_is_created, st);
    if (op_patch_parse(patch_text, ed, &patch, st) < 0 || op_get(op, STORE_HEAD, &old, st) < 0 ||
        admit_show(op, old, &shown, st) < 0)
        return -1;
    root = object_thaw(shown, kind_api_version(op->kind, op->version), ed);
    if (change(op, type, &root, patch, &e) < 0)
        return op_patch_refuse(st, &e);
    if (check_uid(op, old, root, st) < 0)
        return -1;
    if (admit_type(op, root, st) < 0)
        return -1;
    if (admit_fields(op, root, shown, st) < 0)
        return st->code == 400 ? op_patch_refuse_result(root, st) : -1;
    (void)json_node_dedupe(root);
    if (admit_envelope(op, root, st) < 0)
        return -1;
    return op_replace(op, ed, old, root, ret, st);
}
