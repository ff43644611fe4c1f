#include "apiserver/authn.h"

#include "apiserver/op.h"
#include "apiserver/pki.h"
#include "apiserver/proven.h"
#include "base/str.h"
#include "kube/time.h"
#include "net/tls.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define BOUND_LEEWAY_S 60 /* as kube-apiserver has it */

static int finish(struct user *u, const char *how, struct err *e)
{
    u->how = how;
    return user_add_group(u, SPAN(GROUP_AUTHENTICATED), e);
}

/* ---- certificates ---- */

/* CN is the user, each O a group, as Kubernetes reads them. False: none was shown. */
static bool read_certificate(const struct conn_filter *f, struct user *u, struct err *e)
{
    OWN(buf_done) struct buf name = BUF_INIT(1024);

    if (!f || !tls_peer_subject(f, TLS_SUBJECT_CN, 0, &name) || !name.n)
        return false;
    if (user_set_name(u, buf_span(&name), e) < 0)
        return false;
    for (size_t i = 0;; i++) {
        buf_clear(&name);
        if (!tls_peer_subject(f, TLS_SUBJECT_O, i, &name))
            break;
        if (user_add_group(u, buf_span(&name), e) < 0)
            return false;
    }
    return finish(u, "x509", e) == 0;
}

/* ---- tokens ---- */

/* What is being deleted counts for a minute after its grace, so that last words are heard; finalizers do not prolong it. */
static bool is_ending(const struct object *o)
{
    const char *text = object_is_deleting(o) ? object_text(o, "metadata.deletionTimestamp") : NULL;
    struct timespec at;

    return text && kube_time_parse(span_cstr(text), &at) && time(NULL) > at.tv_sec + BOUND_LEEWAY_S;
}

/* The object that a token is bound to, if to any, is there, and is the same. */
static bool is_bound_alive(struct apiserver *s, const struct token_claims *c)
{
    static const char *const plurals[] = { NULL, "pods", "secrets", "nodes" };
    struct shelf_key key = { .namespace = c->bound == TOKEN_BOUND_NODE ? "" : c->namespace,
                             .name = c->bound_name };
    const struct object *o;

    if (c->bound == TOKEN_BOUND_NONE)
        return true;
    key.kind = op_number(kind_find("", "v1", plurals[c->bound]));
    o = store_get(s->store, STORE_COMMITTED, &key);
    return o && strcmp(object_uid(o), c->bound_uid) == 0 && !is_ending(o);
}

/* The account, and what the token is bound to, must still be those the token was made for. */
static bool is_alive(struct apiserver *s, const struct token_claims *c)
{
    struct shelf_key key = { op_number(kind_find("", "v1", "serviceaccounts")), c->namespace,
                             c->name };
    const struct object *account = store_get(s->store, STORE_COMMITTED, &key);

    return account && strcmp(object_uid(account), c->uid) == 0 && !object_is_deleting(account) &&
           is_bound_alive(s, c);
}

static bool has_audience(const struct token_claims *c, const char *audience)
{
    for (size_t i = 0; i < c->audience_count; i++)
        if (strcmp(c->audiences[i], audience) == 0)
            return true;
    return false;
}

static int become_account(struct user *u, const struct token_claims *c, struct err *e)
{
    char text[400];

    (void)snprintf(text, sizeof text, "system:serviceaccount:%s:%s", c->namespace, c->name);
    if (user_set_name(u, span_cstr(text), e) < 0 || user_set_uid(u, span_cstr(c->uid), e) < 0 ||
        user_add_group(u, SPAN(GROUP_ACCOUNTS), e) < 0)
        return -1;
    (void)snprintf(text, sizeof text, GROUP_ACCOUNTS ":%s", c->namespace);
    return user_add_group(u, span_cstr(text), e) < 0 ? -1 : finish(u, "token", e);
}

/* Every line is compared, so that the time says nothing of how far a guess came. */
static const struct static_token *find_static(const struct apiserver *s, struct span token)
{
    const struct static_token *found = NULL;

    for (size_t i = 0; i < s->token_count; i++)
        if (str_eq_secret(span_cstr(s->tokens[i].token), token))
            found = &s->tokens[i];
    return found;
}

static int become_static(struct user *u, const struct static_token *t, struct err *e)
{
    struct span rest = span_cstr(t->groups), group;

    if (user_set_name(u, span_cstr(t->user), e) < 0 || user_set_uid(u, span_cstr(t->uid), e) < 0)
        return -1;
    while (span_cut(&rest, ',', &group))
        if (group.n && user_add_group(u, group, e) < 0)
            return -1;
    return finish(u, "token", e);
}

int authn_token(struct apiserver *s, struct span token, const char *audience, struct user *u,
                const char **why)
{
    const struct static_token *fixed = token.n ? find_static(s, token) : NULL;
    struct token_claims claims;
    struct err e;

    *why = "too much in it";
    if (fixed)
        return become_static(u, fixed, &e);
    if (!proven_verify(&s->proven, pki_token_key(s->pki), token, (int64_t)time(NULL), &claims, why))
        return -1;
    *why = "for another audience";
    if (!has_audience(&claims, audience ? audience : TOKEN_ISSUER))
        return -1;
    *why = "its account, or the object it is bound to, is gone";
    return is_alive(s, &claims) ? become_account(u, &claims, &e) : -1;
}

/* ---- both ---- */

/* SPAN_NONE: no bearer token was shown. Browsers' clients put it into a WebSocket's protocol list. */
static struct span bearer(const struct http_exchange *x)
{
    struct span field = http_field(x, "authorization");

    if (field.n > 7 && span_is_nocase(span_slice(field, 0, 7), "bearer "))
        return span_trim(span_skip(field, 7));
    return SPAN_NONE;
}

int authn_exchange(struct apiserver *s, struct http_exchange *x, struct user *u, const char **why)
{
    struct span token = bearer(x);
    struct err e = { 0 };

    user_clear(u);
    if (token.n)
        return authn_token(s, token, NULL, u, why);
    if (read_certificate(http_filter(x), u, &e))
        return 0;
    *why = "the certificate says too much";
    user_clear(u);
    if (e.code)
        return -1;
    *why = "nothing that fits in a user";
    if (user_set_name(u, SPAN(USER_ANONYMOUS), &e) < 0)
        return -1;
    return user_add_group(u, SPAN(GROUP_ANONYMOUS), &e);
}
