#include "router/authorize.h"

#include "base/str.h"
#include "router/scoped.h"

#include <openssl/crypto.h>
#include <string.h>
#include <time.h>

struct authorizer {
    enum authorize_mode mode;
    struct buf secret;
    struct review *review; /* of AUTHORIZE_REVIEW */
    struct review *access; /* of callers, or NULL */
};

bool authorize_mode_parse(const char *text, enum authorize_mode *ret)
{
    static const char *const names[] = { [AUTHORIZE_ALL] = "allow-all",
                                         [AUTHORIZE_TOKEN] = "token",
                                         [AUTHORIZE_REVIEW] = "tokenreview",
                                         [AUTHORIZE_SCOPED] = "scoped-token" };

    for (size_t i = 0; i < LEN(names); i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *ret = (enum authorize_mode)i;
        return true;
    }
    return false;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span trim(struct span s)
{
    while (s.n && is_blank(s.p[0]))
        s = span_skip(s, 1);
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

int authorizer_new(const struct authorizer_config *config, struct authorizer **ret, struct err *e)
{
    struct span secret = trim(config->secret);
    struct authorizer *a;

    if (config->mode == AUTHORIZE_TOKEN && !secret.n)
        return err_set(e, ERR_INVALID, "the token is blank");
    if (config->mode == AUTHORIZE_SCOPED && secret.n < SCOPED_SECRET_MIN_BYTES)
        return err_set(e, ERR_INVALID, "the secret has %zu bytes; at least %d", secret.n,
                       SCOPED_SECRET_MIN_BYTES);
    a = NEW(struct authorizer);
    a->mode = config->mode;
    a->secret.max = secret.n;
    if (config->mode == AUTHORIZE_TOKEN || config->mode == AUTHORIZE_SCOPED)
        /* Sized for it. */
        (void)buf_add(&a->secret, secret, e);
    if (config->mode == AUTHORIZE_REVIEW)
        a->review = review_new(&config->review);
    if (config->access.client)
        a->access = review_new(&config->access);
    *ret = a;
    return 0;
}

void authorizer_free(struct authorizer *a)
{
    if (!a)
        return;
    review_free(a->review);
    review_free(a->access);
    if (a->secret.n)
        OPENSSL_cleanse(a->secret.p, a->secret.n);
    buf_done(&a->secret);
    free(a);
}

/* "Bearer <token>", the scheme in any case; p NULL when there is none. */
static struct span bearer_of(const struct http_head *head)
{
    struct span field = http_head_get(head, "authorization");

    if (field.n <= 7 || !span_is_nocase(span_slice(field, 0, 7), "bearer "))
        return SPAN_NONE;
    field = span_trim(span_skip(field, 7));
    return field.n ? field : SPAN_NONE;
}

static enum authorize_verdict deny(struct refusal *why, int status, const char *text)
{
    refusal_set(why, status, "%s", text);
    return AUTHORIZE_DENIED;
}

static enum authorize_verdict by_scope(const struct authorizer *a, struct span token,
                                       const struct http_head *head, const struct target *t,
                                       struct refusal *why)
{
    struct scoped s;

    if (!token.p || !scoped_read(buf_span(&a->secret), token, (int64_t)time(NULL), &s))
        return deny(why, 401, "unauthenticated");
    if (http_head_get(head, "x-sandbox-pod-ip").n || http_head_get(head, "x-sandbox-uid").n ||
        strcmp(s.namespace, t->namespace) != 0 || strcmp(s.name, t->id) != 0)
        return deny(why, 403, "forbidden");
    return AUTHORIZE_ALLOWED;
}

static enum authorize_verdict by_token(const struct authorizer *a, struct span token,
                                       struct refusal *why)
{
    if (!token.p)
        return deny(why, 401, "Missing or invalid Authorization header.");
    if (!str_eq_secret(token, buf_span(&a->secret)))
        return deny(why, 401, "Invalid token.");
    return AUTHORIZE_ALLOWED;
}

enum authorize_verdict authorize_start(struct authorizer *a, const struct http_head *head,
                                       const struct target *t, struct review_wait *wait,
                                       struct refusal *why)
{
    switch (a->mode) {
    case AUTHORIZE_ALL:
        return AUTHORIZE_ALLOWED;
    case AUTHORIZE_TOKEN:
        return by_token(a, bearer_of(head), why);
    case AUTHORIZE_SCOPED:
        return by_scope(a, bearer_of(head), head, t, why);
    case AUTHORIZE_REVIEW:
        break;
    }
    if (!review_start(a->review, bearer_of(head), wait, why))
        return AUTHORIZE_WAITING;
    return why->status ? AUTHORIZE_DENIED : AUTHORIZE_ALLOWED;
}

enum authorize_verdict authorize_caller(struct authorizer *a, const struct caller *caller,
                                        const struct target *t, struct review_wait *wait,
                                        struct refusal *why)
{
    if (!a->access)
        return deny(why, 403, "forbidden");
    if (!review_access(a->access, caller, t, wait, why))
        return AUTHORIZE_WAITING;
    return why->status ? AUTHORIZE_DENIED : AUTHORIZE_ALLOWED;
}
