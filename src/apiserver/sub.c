/* The paths below an object that are not the object: token, eviction, binding, finalize; scale is sub_scale.c. */
#include "apiserver/sub.h"

#include "apiserver/admit.h"
#include "apiserver/body.h"
#include "apiserver/op_write.h"
#include "apiserver/pki.h"
#include "apiserver/token.h"
#include "base/log.h"
#include "kube/time.h"

#include <string.h>
#include <time.h>

#define TOKEN_DEFAULT_S 3600
#define TOKEN_MIN_S     600
#define TOKEN_MAX_S     (365 * 24 * 3600)

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

static struct json_node *set_object(struct json_edit *ed, struct json_node *parent,
                                    const char *name)
{
    return json_node_set(parent, name, json_edit_object(ed));
}

void sub_copy_meta(struct json_edit *ed, struct json_node *to, struct json_node *from,
                   const char *const *names)
{
    for (; *names; names++) {
        struct json_node *v = json_node_get(from, *names);

        if (v)
            json_node_set(to, *names, json_node_copy(ed, v));
    }
}

/* ---- token ---- */

static int read_audiences(struct json_node *spec, struct token_claims *claims, struct status *st)
{
    struct json_node *list = json_node_get(spec, "audiences");

    for (size_t i = 0; i < json_node_count(list); i++) {
        struct span s = json_node_str(json_node_at(list, i));

        if (i == TOKEN_AUDIENCES_MAX || s.n >= sizeof claims->audiences[0])
            return status_bad_request(st, "more audiences than fit in a token");
        memcpy(claims->audiences[claims->audience_count], s.p, s.n);
        claims->audiences[claims->audience_count++][s.n] = '\0';
    }
    if (claims->audience_count == 0)
        memcpy(claims->audiences[claims->audience_count++], TOKEN_ISSUER, sizeof TOKEN_ISSUER);
    return 0;
}

/* No kind of its own, but refusals name it. */
static const struct kind token_request = { .group = "authentication.k8s.io",
                                           .name = "TokenRequest" };

static int read_lifetime(struct json_node *spec, int64_t *ret, struct status *st)
{
    char shown[32];

    *ret = TOKEN_DEFAULT_S;
    (void)json_node_i64(json_node_get(spec, "expirationSeconds"), ret);
    (void)snprintf(shown, sizeof shown, "%lld", (long long)*ret);
    if (*ret < TOKEN_MIN_S)
        causes_add_shown(&st->causes, CAUSE_INVALID, AT(AT(NULL, "spec"), "expirationSeconds"),
                         shown, "may not specify a duration less than 10 minutes");
    else if (*ret > (int64_t)1 << 32)
        causes_add_shown(&st->causes, CAUSE_INVALID, AT(AT(NULL, "spec"), "expirationSeconds"),
                         shown, "may not specify a duration larger than 2^32 seconds");
    else
        return 0;
    return status_invalid(st, &token_request, "");
}

/* A token bound to a Pod ends with it. */
static int read_bound(struct call *c, struct json_node *spec, struct token_claims *claims)
{
    struct json_node *ref = json_node_get(spec, "boundObjectRef");
    const char *name = json_node_cstr(json_node_get(ref, "name"));
    struct shelf_key key = { op_number(kind_find("", "v1", "pods")), c->op.namespace,
                             name ? name : "" };
    const struct object *pod;

    if (json_node_type(ref) != JSON_OBJECT ||
        !span_is(json_node_str(json_node_get(ref, "kind")), "Pod"))
        return 0;
    pod = store_get(c->s->store, STORE_HEAD, &key);
    if (!pod || strlen(object_uid(pod)) >= sizeof claims->pod_uid)
        return status_not_found(&c->status, kind_find("", "v1", "pods"), key.name);
    (void)snprintf(claims->pod_name, sizeof claims->pod_name, "%s", key.name);
    (void)snprintf(claims->pod_uid, sizeof claims->pod_uid, "%s", object_uid(pod));
    return 0;
}

static int make_claims(struct call *c, struct json_node *spec, struct object *account,
                       struct token_claims *claims)
{
    int64_t seconds;

    *claims = (struct token_claims){ .issued_s = (int64_t)time(NULL) };
    if (read_audiences(spec, claims, &c->status) < 0 ||
        read_lifetime(spec, &seconds, &c->status) < 0 || read_bound(c, spec, claims) < 0)
        return -1;
    claims->expires_s = claims->issued_s + MIN(seconds, (int64_t)TOKEN_MAX_S);
    admit_uuid(claims->id);
    (void)snprintf(claims->namespace, sizeof claims->namespace, "%s", object_namespace(account));
    (void)snprintf(claims->name, sizeof claims->name, "%s", object_name(account));
    (void)snprintf(claims->uid, sizeof claims->uid, "%s", object_uid(account));
    return 0;
}

static void fill_token_answer(struct json_edit *ed, struct json_node *body,
                              const struct token_claims *claims, struct span token)
{
    struct json_node *spec = json_node_get(body, "spec"), *status = set_object(ed, body, "status"),
                     *list;
    char text[TIME_TEXT_BYTES];

    if (json_node_type(spec) != JSON_OBJECT)
        spec = set_object(ed, body, "spec");
    list = json_node_set(spec, "audiences", json_edit_array(ed));
    for (size_t i = 0; i < claims->audience_count; i++)
        json_node_append(list, json_edit_cstr(ed, claims->audiences[i]));
    json_node_set(spec, "expirationSeconds",
                  json_edit_i64(ed, claims->expires_s - claims->issued_s));
    if (!json_node_get(spec, "boundObjectRef"))
        json_node_set(spec, "boundObjectRef", json_edit_null(ed));
    json_node_set(status, "token", json_edit_str(ed, token));
    json_node_set(status, "expirationTimestamp",
                  json_edit_cstr(ed, kube_time_text(text, (time_t)claims->expires_s)));
}

static void on_token_body(struct call *c, struct span bytes, struct json_edit *ed)
{
    static const char *const names[] = { "name", "namespace", "uid", "creationTimestamp", NULL };
    OWN(buf_done) struct buf token = BUF_INIT(TOKEN_MAX_BYTES);
    OWN(object_done) struct object *account = NULL;
    struct json_node *body = NULL, *meta;
    struct token_claims claims;
    struct err e;

    if (op_get(&c->op, STORE_HEAD, &account, &c->status) < 0 ||
        body_read(c, bytes, kind_body_type("authentication.k8s.io", "v1", "TokenRequest"), ed,
                  &body) < 0 ||
        make_claims(c, json_node_get(body, "spec"), account, &claims) < 0) {
        call_refuse(c);
        return;
    }
    if (token_sign(pki_token_key(c->s->pki), &claims, &token, &e) < 0) {
        (void)status_of_err(&c->status, &e);
        call_refuse(c);
        return;
    }
    json_node_set(body, "kind", json_edit_cstr(ed, "TokenRequest"));
    json_node_set(body, "apiVersion", json_edit_cstr(ed, "authentication.k8s.io/v1"));
    meta = set_object(ed, body, "metadata");
    sub_copy_meta(ed, meta, json_node_get(object_thaw(account, NULL, ed), "metadata"), names);
    fill_token_answer(ed, body, &claims, buf_span(&token));
    log_info("api.token", KV("namespace", object_namespace(account)),
             KV("account", object_name(account)), KV("user", user_name(&c->user)));
    answer_later(c, 201, body);
}

/* ---- eviction, binding ---- */

static void answer_success(struct call *c, struct json_edit *ed, int code)
{
    struct json_node *root = json_edit_object(ed);

    json_node_set(root, "kind", json_edit_cstr(ed, "Status"));
    json_node_set(root, "apiVersion", json_edit_cstr(ed, "v1"));
    set_object(ed, root, "metadata");
    json_node_set(root, "status", json_edit_cstr(ed, "Success"));
    json_node_set(root, "code", json_edit_i64(ed, code));
    answer_later(c, code, root);
}

static int check_name(struct call *c, struct json_node *body)
{
    struct span name = json_node_str(json_node_get(json_node_get(body, "metadata"), "name"));

    if (!name.n || span_is(name, c->op.name))
        return 0;
    return status_bad_request(&c->status, "name in URL does not match name in %s object",
                              c->op.sub->kind);
}

static void on_eviction_body(struct call *c, struct span bytes, struct json_edit *ed)
{
    OWN(object_done) struct object *o = NULL;
    struct op_delete how = { .grace_s = -1 };
    struct json_node *body = NULL;
    bool is_gone;

    if (body_read(c, bytes, kind_body_type("policy", "v1", "Eviction"), ed, &body) < 0 ||
        check_name(c, body) < 0)
        call_refuse(c);
    else if (op_delete(&c->op, &how, &o, &is_gone, &c->status) < 0)
        call_answer_status(c);
    else
        answer_success(c, ed, 201);
}

static void on_binding_body(struct call *c, struct span bytes, struct json_edit *ed)
{
    OWN(object_done) struct object *old = NULL, *made = NULL, *o = NULL;
    struct json_node *body = NULL, *root, *spec, *status, *list, *condition;
    char now[TIME_TEXT_BYTES];
    struct span node;
    struct err e;

    if (body_read(c, bytes, kind_body_type("", "v1", "Binding"), ed, &body) < 0 ||
        check_name(c, body) < 0 || op_get(&c->op, STORE_HEAD, &old, &c->status) < 0) {
        call_refuse(c);
        return;
    }
    node = json_node_str(json_node_get(json_node_get(body, "target"), "name"));
    root = object_thaw(old, NULL, ed);
    spec = json_node_get(root, "spec");
    if (json_node_str(json_node_get(spec, "nodeName")).n) {
        static const struct kind named = { .group = "", .plural = "pods/binding" };

        (void)status_conflict(&c->status, &named, c->op.name,
                              "pod %s is already assigned to node \"%s\"", c->op.name,
                              json_node_cstr(json_node_get(spec, "nodeName")));
        call_answer_status(c);
        return;
    }
    json_node_set(spec, "nodeName", json_edit_str(ed, node));
    status = json_node_get(root, "status");
    if (!status)
        status = set_object(ed, root, "status");
    list = json_node_get(status, "conditions");
    if (!list)
        list = json_node_set(status, "conditions", json_edit_array(ed));
    condition = json_edit_object(ed);
    json_node_set(condition, "type", json_edit_cstr(ed, "PodScheduled"));
    json_node_set(condition, "status", json_edit_cstr(ed, "True"));
    json_node_set(condition, "lastProbeTime", json_edit_null(ed));
    json_node_set(condition, "lastTransitionTime", json_edit_cstr(ed, admit_now(now)));
    json_node_append(list, condition);
    if (object_freeze(c->op.kind, old, root, &made, &e) < 0) {
        (void)status_of_err(&c->status, &e);
        call_refuse(c);
    } else if (op_commit(&c->op, STORE_UPDATE, made, false, &o, &c->status) < 0) {
        call_answer_status(c);
    } else {
        answer_success(c, ed, 201);
    }
}

/* ---- finalize: only a Namespace's spec.finalizers ---- */

static void on_finalize_body(struct call *c, struct span bytes, struct json_edit *ed)
{
    OWN(object_done) struct object *old = NULL, *made = NULL;
    struct json_node *body = NULL, *root, *spec;
    struct object *o = NULL;
    struct err e;

    if (body_read(c, bytes, c->op.version->type, ed, &body) < 0 ||
        admit_envelope(&c->op, body, &c->status) < 0 ||
        op_get(&c->op, STORE_HEAD, &old, &c->status) < 0) {
        call_refuse(c);
        return;
    }
    root = object_thaw(old, NULL, ed);
    spec = json_node_get(root, "spec");
    if (json_node_type(spec) != JSON_OBJECT)
        spec = set_object(ed, root, "spec");
    json_node_set(spec, "finalizers",
                  json_node_copy(ed, json_node_get(json_node_get(body, "spec"), "finalizers")));
    if (object_freeze(c->op.kind, old, root, &made, &e) < 0)
        (void)status_of_err(&c->status, &e);
    else if (op_commit(&c->op, op_may_go(made) ? STORE_DELETE : STORE_UPDATE, made, true, &o,
                       &c->status) == 0) {
        call_answer_object(c, 200, o);
        return;
    }
    call_answer_status(c);
}

/* ---- which ---- */

static const struct {
    enum kind_sub sub;
    void (*on_body)(struct call *c, struct span bytes, struct json_edit *ed);
} rows[] = {
    { KIND_SUB_SCALE, sub_scale_body },      { KIND_SUB_TOKEN, on_token_body },
    { KIND_SUB_EVICTION, on_eviction_body }, { KIND_SUB_BINDING, on_binding_body },
    { KIND_SUB_FINALIZE, on_finalize_body },
};

static void on_body(void *ctx, struct span bytes, const struct err *e)
{
    struct call *c = ctx;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *there = NULL;

    if (e) {
        if (e->code == ERR_LIMIT)
            (void)status_too_large(&c->status, CALL_BODY_MAX_BYTES);
        else
            (void)status_of_err(&c->status, e);
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
