/* The doors of a request, in order: what is asked for, who asks, may they, which verb. */
#include "apiserver/authn.h"
#include "apiserver/authz.h"
#include "apiserver/body.h"
#include "apiserver/call.h"
#include "apiserver/impersonate.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <string.h>

/* ---- what the answer shall look like ---- */

/* is_type_known: only what was wanted behind it was not. */
static int refuse_form(struct call *c, bool is_type_known)
{
    if (is_type_known)
        return status_not_acceptable(&c->status, "only the following media types are accepted: "
                                                 "application/json, application/yaml, "
                                                 "application/vnd.kubernetes.protobuf");
    (void)status_not_acceptable(&c->status, "406: Not Acceptable\n\nAvailable representations: "
                                            "application/json, application/yaml, "
                                            "application/json;stream=watch");
    c->status.kind = "";
    return -1;
}

static int read_form(struct call *c)
{
    const char *include;
    struct accept wanted;

    if (!accept_read(http_field(c->x, "accept"), &wanted))
        return refuse_form(c, wanted.is_type_known);
    c->form = wanted.form;
    c->is_yaml = wanted.is_yaml;
    if (c->is_yaml && c->req.verb == VERB_WATCH)
        return status_not_acceptable(&c->status,
                                     "only the following media types are accepted: "
                                     "application/json;stream=watch, "
                                     "application/vnd.kubernetes.protobuf;stream=watch");
    if (c->form == FORM_PARTIAL && c->req.verb == VERB_LIST)
        return status_not_acceptable(&c->status,
                                     "you requested PartialObjectMetadata, but the requested "
                                     "object is a list (*unstructured.UnstructuredList)");
    if (c->form == FORM_PARTIAL_LIST && c->req.verb != VERB_LIST && c->req.verb != VERB_WATCH)
        return status_bare(&c->status, "content is not a list");
    if (c->form == FORM_PARTIAL_LIST)
        c->form = FORM_PARTIAL;
    include = call_query(c, "includeObject");
    if (include && !table_include_parse(span_cstr(include), &c->include))
        return status_bad_request(&c->status,
                                  "Unable to convert to Table as requested: includeObject: Invalid "
                                  "value: \"%s\": must be 'Metadata', 'Object', 'None', or empty",
                                  include);
    return 0;
}

/* ---- options ---- */

static int read_selectors(struct call *c)
{
    OWN_MEM char *labels = call_query_dup(c, "labelSelector");

    return selection_init(&c->want, &c->op, labels, call_query(c, "fieldSelector"), &c->status);
}

/* Whose fields: as asked for, else the first part of the program's name. */
static int read_manager(struct call *c)
{
    OWN_MEM char *given = call_query_dup(c, "fieldManager");
    struct op_options options = { .verb = c->req.verb,
                                  .manager = given,
                                  .is_apply =
                                      span_starts(body_type(c->x), "application/apply-patch+"),
                                  .has_force = call_query(c, "force") != NULL };
    struct span agent = http_field(c->x, "user-agent"), word;

    if (op_check_options(&options, &c->status) < 0)
        return -1;
    if (given && *given)
        (void)buf_add_capped(&c->manager, span_cstr(given));
    else if (span_cut(&agent, '/', &word) && word.n <= OP_MANAGER_MAX_BYTES)
        (void)buf_add_capped(&c->manager, word);
    else
        (void)buf_add_capped(&c->manager, SPAN("unknown"));
    c->op.manager = buf_cstr(&c->manager);
    return 0;
}

static int read_write_options(struct call *c)
{
    const char *text = call_query(c, "dryRun");

    if (text && *text && strcmp(text, "All") != 0) {
        OWN(buf_done) struct buf shown = BUF_INIT(256);
        struct err e;

        if (buf_addf(&shown, &e, "[\"%s\"]", text) < 0)
            (void)buf_add_capped(&shown, SPAN("[...]"));
        causes_add_shown(&c->status.causes, CAUSE_NOT_SUPPORTED, AT(NULL, "dryRun"),
                         buf_cstr(&shown), "supported values: \"All\"");
        return op_refuse_options(c->req.verb, &c->status);
    }
    c->op.is_dry_run = text && *text;
    text = call_query(c, "fieldValidation");
    if (text && !check_mode_parse(span_cstr(text), &c->op.fields)) {
        causes_add_text(&c->status.causes, CAUSE_NOT_SUPPORTED, AT(NULL, "fieldValidation"),
                        span_cstr(text),
                        "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
        return op_refuse_options(c->req.verb, &c->status);
    }
    c->op.is_forced = call_query_bool(c, "force");
    return read_manager(c);
}

/* ---- the verbs ---- */

static void (*const verbs[])(struct call *c) = {
    [VERB_GET] = read_get,        [VERB_LIST] = read_list,
    [VERB_WATCH] = watch_begin,   [VERB_CREATE] = write_create,
    [VERB_UPDATE] = write_update, [VERB_PATCH] = write_patch,
    [VERB_DELETE] = write_delete, [VERB_DELETE_COLLECTION] = write_delete_collection,
};

/* Is anything of that group served? version NULL: in any version. */
static bool is_group(const char *group, const char *version)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(kinds[i].group, group) == 0 && (!version || kind_version(&kinds[i], version)))
            return true;
    return false;
}

static int find_kind(struct call *c)
{
    struct op *op = &c->op;

    op->store = c->s->store;
    op->user = &c->user;
    op->is_reserved = c->s->is_reserved;
    op->namespace = c->req.namespace;
    op->name = c->req.name;
    op->kind = kind_find(c->req.group, c->req.version, c->req.resource);
    if (!op->kind) {
        c->is_no_page =
            !is_group(c->req.group, strstr(c->req.group, "x-k8s.io") ? c->req.version : NULL);
        return status_no_resource(&c->status);
    }
    op->version = kind_version(op->kind, c->req.version);
    if (op_place(op, c->req.verb, c->req.subresource, &c->status) < 0) {
        c->is_no_page = c->status.code == 405 && op->kind->traits & KIND_CUSTOM;
        return -1;
    }
    if (op->version->deprecation)
        op_warn(op, "%s", op->version->deprecation);
    return 0;
}

static int prepare(struct call *c)
{
    if (c->req.verb >= VERB_CREATE)
        return read_write_options(c) < 0               ? -1
               : c->req.verb == VERB_DELETE_COLLECTION ? read_selectors(c)
                                                       : 0;
    return c->req.verb == VERB_GET ? 0 : read_selectors(c);
}

static void answer_resource(struct call *c)
{
    if (find_kind(c) < 0) {
        if (c->is_no_page)
            call_no_page(c);
        else
            call_refuse(c);
        return;
    }
    if (op_can(&c->op, c->req.verb, &c->status) < 0)
        call_refuse(c);
    else if (c->op.sub && kind_sub_is_stream(c->op.sub->sub))
        stream_answer(c);
    else if (read_form(c) < 0 || prepare(c) < 0)
        call_refuse(c);
    else if (c->op.sub && c->op.sub->sub != KIND_SUB_STATUS)
        sub_answer(c);
    else
        verbs[c->req.verb](c);
}

static void on_gone(void *ctx)
{
    call_free(ctx);
}

static struct call *call_new(struct apiserver *s, struct http_exchange *x)
{
    struct call *c = NEW(struct call);

    *c = (struct call){ .s = s,
                        .x = x,
                        .user = USER_INIT,
                        .status = STATUS_INIT,
                        .manager = BUF_INIT(1024),
                        .query = BUF_INIT(CALL_QUERY_MAX_BYTES),
                        .list_tail = BUF_INIT(CALL_WARNING_MAX_BYTES * 4),
                        .began_us = time_mono_us() };
    c->op.warnings.max = CALL_WARNING_MAX_BYTES;
    c->next = s->calls;
    c->link = &s->calls;
    if (c->next)
        c->next->link = &c->next;
    s->calls = c;
    http_on_gone(x, on_gone, c);
    return c;
}

void route_request(void *ctx, struct http_exchange *x)
{
    struct call *c = call_new(ctx, x);
    struct span path = http_path(x);
    const char *why;

    if (!request_read(http_method(x), path, call_query_bool(c, "watch"), &c->req)) {
        (void)status_no_resource(&c->status);
    } else if (authn_exchange(c->s, x, &c->user, &why) < 0) {
        if (log_limit_pass(&c->s->unauthorized, ev_now_ms(c->s->loop)))
            log_info("api.unauthorized", KV("id", http_id(x)), KV("why", why),
                     KV("count", c->s->unauthorized.count));
        (void)status_unauthorized(&c->status);
    } else if (impersonate(c->s->store, http_id(x), http_req(x), &c->user, &c->status) == 0 &&
               authz_call(c) == 0) {
        if (c->req.verb != VERB_NONE || c->req.has_bad_method)
            answer_resource(c);
        else if (!discovery_answer(c, path))
            call_no_page(c);
        return;
    }
    call_refuse(c);
}
