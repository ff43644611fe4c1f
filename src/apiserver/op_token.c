/* TokenRequest: a token of a service account, signed and told once. */
#include "apiserver/op_sub.h"

#include "apiserver/admit.h"
#include "apiserver/pki.h"
#include "apiserver/token.h"
#include "apiserver/user.h"
#include "base/log.h"
#include "kube/time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TOKEN_DEFAULT_S 3600
#define TOKEN_MIN_S     600
#define TOKEN_MAX_S     (365 * 24 * 3600)

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

/* A conflict names a kind where others name a resource. */
static const struct bindable {
    enum token_bound bound;
    struct kind kind;
    const char *plural;
    bool is_namespaced;
} bindables[] = {
    { TOKEN_BOUND_POD, { .group = "", .name = "Pod", .plural = "Pod" }, "pods", true },
    { TOKEN_BOUND_SECRET, { .group = "", .name = "Secret", .plural = "Secret" }, "secrets", true },
    { TOKEN_BOUND_NODE, { .group = "", .name = "Node", .plural = "Node" }, "nodes", false },
};

static const char *text_at(struct json_node *n, const char *member)
{
    const char *text = json_node_cstr(json_node_get(n, member));

    return text ? text : "";
}

static const struct bindable *find_bindable(struct json_node *ref, struct status *st)
{
    const char *version = text_at(ref, "apiVersion"), *kind = text_at(ref, "kind");
    bool has_group = strchr(version, '/') != NULL;

    EACH(b, bindables) {
        if (!has_group && strcmp(kind, b->kind.name) == 0)
            return b;
    }
    (void)status_bad_request(st, "cannot bind token to object of type %s%s, Kind=%s",
                             has_group ? "" : "/", version, kind);
    return NULL;
}

/* A token bound to an object ends with it, and with its uid. */
static int read_bound(struct op *op, struct json_node *spec, const struct object *account,
                      struct token_claims *claims, struct status *st)
{
    struct json_node *ref = json_node_get(spec, "boundObjectRef");
    const char *name = text_at(ref, "name"), *uid = text_at(ref, "uid"), *runs_as;
    const struct bindable *b;
    const struct object *o;
    struct shelf_key key;

    if (json_node_type(ref) != JSON_OBJECT)
        return 0;
    b = find_bindable(ref, st);
    if (!b)
        return -1;
    if (!*name)
        return status_bad_request(st, "Name parameter required.");
    key = (struct shelf_key){ op_number(kind_find("", "v1", b->plural)),
                              b->is_namespaced ? op->namespace : "", name };
    o = store_get(op->store, STORE_HEAD, &key);
    if (!o || strlen(name) >= sizeof claims->bound_name ||
        strlen(object_uid(o)) >= sizeof claims->bound_uid)
        return status_not_found(st, kind_find("", "v1", b->plural), name);
    runs_as = b->bound == TOKEN_BOUND_POD ? object_text(o, "spec.serviceAccountName") : NULL;
    if (runs_as && strcmp(runs_as, object_name(account)) != 0)
        return status_bad_request(st,
                                  "cannot bind token for serviceaccount \"%s\" to pod running with "
                                  "different serviceaccount name.",
                                  object_name(account));
    if (*uid && strcmp(uid, object_uid(o)) != 0)
        return status_conflict(st, &b->kind, name,
                               "the UID in the bound object reference (%s) does not match the UID "
                               "in record. The object might have been deleted and then recreated",
                               uid);
    claims->bound = b->bound;
    (void)snprintf(claims->bound_name, sizeof claims->bound_name, "%s", name);
    (void)snprintf(claims->bound_uid, sizeof claims->bound_uid, "%s", object_uid(o));
    return 0;
}

static int make_claims(struct op *op, struct json_node *spec, struct object *account,
                       struct token_claims *claims, struct status *st)
{
    int64_t seconds;

    *claims = (struct token_claims){ .issued_s = (int64_t)time(NULL) };
    if (read_audiences(spec, claims, st) < 0 || read_lifetime(spec, &seconds, st) < 0 ||
        read_bound(op, spec, account, claims, st) < 0)
        return -1;
    claims->expires_s = claims->issued_s + MIN(seconds, (int64_t)TOKEN_MAX_S);
    admit_uuid(claims->id);
    (void)snprintf(claims->namespace, sizeof claims->namespace, "%s", object_namespace(account));
    (void)snprintf(claims->name, sizeof claims->name, "%s", object_name(account));
    (void)snprintf(claims->uid, sizeof claims->uid, "%s", object_uid(account));
    return 0;
}

static void fill_answer(struct json_edit *ed, struct json_node *body,
                        const struct token_claims *claims, struct span token)
{
    struct json_node *spec = json_node_get(body, "spec"),
                     *status = json_node_set(body, "status", json_edit_object(ed)), *list;
    char text[TIME_TEXT_BYTES];

    if (json_node_type(spec) != JSON_OBJECT)
        spec = json_node_set(body, "spec", json_edit_object(ed));
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

int op_token(struct op *op, const struct pki *pki, struct json_edit *ed, struct json_node *body,
             struct status *st)
{
    static const char *const names[] = { "name", "namespace", "uid", "creationTimestamp", NULL };
    OWN(buf_done) struct buf token = BUF_INIT(TOKEN_MAX_BYTES);
    OWN(object_done) struct object *account = NULL;
    struct token_claims claims;
    struct err e;

    if (op_get(op, STORE_HEAD, &account, st) < 0 ||
        make_claims(op, json_node_get(body, "spec"), account, &claims, st) < 0)
        return -1;
    if (token_sign(pki_token_key(pki), &claims, &token, &e) < 0)
        return status_of_err(st, &e);
    json_node_set(body, "kind", json_edit_cstr(ed, "TokenRequest"));
    json_node_set(body, "apiVersion", json_edit_cstr(ed, "authentication.k8s.io/v1"));
    op_copy_meta(ed, json_node_set(body, "metadata", json_edit_object(ed)),
                 json_node_get(object_thaw(account, NULL, ed), "metadata"), names);
    fill_answer(ed, body, &claims, buf_span(&token));
    log_info("api.token", KV("namespace", object_namespace(account)),
             KV("account", object_name(account)),
             KV("user", op->user ? user_name(op->user) : op->manager));
    return 0;
}
