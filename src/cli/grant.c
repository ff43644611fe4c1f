#include "cli/grant.h"

#include "base/json.h"
#include "base/near.h"

#include <stdio.h>
#include <string.h>

#define RBAC "rbac.authorization.k8s.io"

struct granting {
    const struct grant *grant;
    struct api *api;
    struct buf *token;
};

static void take_token(void *ctx, const struct kube_answer *answer)
{
    struct granting *g = ctx;
    struct err e;

    /* What does not fit leaves none, which grant_token() says. */
    (void)buf_add(g->token, json_str(json_get(json_get(answer->body, "status"), "token")), &e);
}

/* What is there already stays as it is. */
static int create(struct granting *g, const char *group, const char *plural, const char *namespace,
                  struct span text, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *object = NULL;
    const struct kind *kind = kind_find(group, NULL, plural);

    if (json_parse(text, NULL, &doc, e) < 0 ||
        object_parse(kind, json_doc_root(doc), &object, e) < 0)
        return -1;
    if (api_call(g->api,
                 &(struct kube_request){
                     .verb = KUBE_CREATE, .kind = kind, .namespace = namespace, .object = object },
                 NULL, NULL, e) == 0 ||
        e->code == ERR_EXISTS)
        return 0;
    return -1;
}

static int create_named(struct granting *g, const char *plural, const char *namespace,
                        const char *name, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(4096);
    struct json_out out;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "metadata"), json_out_object_begin(&out);
    json_out_key(&out, "name"), json_out_cstr(&out, name);
    json_out_object_end(&out);
    json_out_object_end(&out);
    return json_out_end(&out, e) < 0 ? -1 : create(g, "", plural, namespace, buf_span(&text), e);
}

static int bind_role(struct granting *g, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192), name = BUF_INIT(1024);
    const struct grant *o = g->grant;
    struct json_out out;

    if (buf_addf(&name, e, "%s-%s", o->name, o->role) < 0)
        return -1;
    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "metadata"), json_out_object_begin(&out);
    json_out_key(&out, "name"), json_out_cstr(&out, buf_cstr(&name));
    json_out_object_end(&out);
    json_out_key(&out, "roleRef"), json_out_object_begin(&out);
    json_out_key(&out, "apiGroup"), json_out_cstr(&out, RBAC);
    json_out_key(&out, "kind"), json_out_cstr(&out, "ClusterRole");
    json_out_key(&out, "name"), json_out_cstr(&out, o->role);
    json_out_object_end(&out);
    json_out_key(&out, "subjects"), json_out_array_begin(&out), json_out_object_begin(&out);
    json_out_key(&out, "kind"), json_out_cstr(&out, "ServiceAccount");
    json_out_key(&out, "name"), json_out_cstr(&out, o->name);
    json_out_key(&out, "namespace"), json_out_cstr(&out, o->namespace);
    json_out_object_end(&out), json_out_array_end(&out);
    json_out_object_end(&out);
    return json_out_end(&out, e) < 0
               ? -1
               : create(g, RBAC, "rolebindings", o->namespace, buf_span(&text), e);
}

static int ask_token(struct granting *g, struct err *e)
{
    char body[256];

    (void)snprintf(body, sizeof body,
                   "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                   "\"spec\":{\"expirationSeconds\":%llu}}",
                   (unsigned long long)(g->grant->life_s));
    return api_call(g->api,
                    &(struct kube_request){ .verb = KUBE_CREATE,
                                            .kind = kind_find("", NULL, "serviceaccounts"),
                                            .namespace = g->grant->namespace,
                                            .name = g->grant->name,
                                            .sub = "token",
                                            .body = span_cstr(body) },
                    take_token, g, e);
}

struct roles {
    const char *name;
    bool is_there;
    struct err e; /* that it is not, with the one that was meant */
};

static void on_roles(void *ctx, const struct kube_answer *answer)
{
    struct roles *r = ctx;
    struct near near = { .name = r->name };

    for (size_t i = 0; i < answer->item_count; i++) {
        near_try(&near, object_name(answer->items[i]));
        r->is_there |= strcmp(object_name(answer->items[i]), r->name) == 0;
    }
    (void)err_set(&r->e, ERR_NOT_FOUND, "there is no ClusterRole '%s'", r->name);
    if (!near_hint(&near, &r->e))
        err_hint(&r->e, "`kubectl get clusterroles` lists them");
}

/* A binding to a role that is not there is an object like any other, and gives nothing. */
static int check_role(struct granting *g, struct err *e)
{
    const struct kube_request list = { .verb = KUBE_LIST,
                                       .kind = kind_find(RBAC, NULL, "clusterroles") };
    struct roles roles = { .name = g->grant->role };

    if (api_call(g->api, &list, on_roles, &roles, e) < 0)
        return -1;
    if (roles.is_there)
        return 0;
    *e = roles.e;
    return -1;
}

int grant_token(struct api *api, const struct grant *grant, struct buf *token, struct err *e)
{
    struct granting given = { grant, api, token }, *g = &given;

    if (check_role(g, e) < 0 || create_named(g, "namespaces", NULL, g->grant->namespace, e) < 0 ||
        create_named(g, "serviceaccounts", g->grant->namespace, g->grant->name, e) < 0 ||
        bind_role(g, e) < 0 || ask_token(g, e) < 0)
        return -1;
    return token->n
               ? 0
               : err_set(e, ERR_PROTOCOL, "the server gave no token, or one of more than %zu bytes",
                         token->max);
}
