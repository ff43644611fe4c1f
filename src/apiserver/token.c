#include "apiserver/token.h"

#include "base/json.h"
#include "base/str.h"

#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#define HEAD       "{\"alg\":\"ES256\",\"kid\":\"silica\",\"typ\":\"JWT\"}"
#define HALF_BYTES 32 /* of a P-256 signature: r and s */
#define SKEW_S     30

/* ---- signatures: OpenSSL writes DER, JWS wants the two halves ---- */

static int to_halves(struct span der, uint8_t out[2 * HALF_BYTES])
{
    const uint8_t *p = der.p;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &p, (long)der.n);
    int ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, HALF_BYTES) == HALF_BYTES &&
             BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + HALF_BYTES, HALF_BYTES) == HALF_BYTES;

    ECDSA_SIG_free(sig);
    return ok;
}

static int to_der(const uint8_t in[2 * HALF_BYTES], uint8_t **ret)
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(in, HALF_BYTES, NULL), *s = BN_bin2bn(in + HALF_BYTES, HALF_BYTES, NULL);
    int n = -1;

    *ret = NULL;
    if (sig && r && s && ECDSA_SIG_set0(sig, r, s)) {
        r = s = NULL; /* the signature's now */
        n = i2d_ECDSA_SIG(sig, ret);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return n;
}

static bool sign(EVP_PKEY *key, struct span text, uint8_t out[2 * HALF_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t der[256];
    size_t n = sizeof der;
    bool ok = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(ctx, der, &n, text.p, text.n) == 1 && to_halves(span_of(der, n), out);

    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return ok;
}

static bool is_signed(EVP_PKEY *key, struct span text, struct span signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t *der = NULL;
    int n = signature.n == 2 * HALF_BYTES ? to_der(signature.p, &der) : -1;
    bool ok = ctx && n > 0 && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestVerify(ctx, der, (size_t)n, text.p, text.n) == 1;

    EVP_MD_CTX_free(ctx);
    OPENSSL_free(der);
    ERR_clear_error();
    return ok;
}

/* ---- claims ---- */

const char *token_bound_name(enum token_bound bound)
{
    static const char *const names[] = { NULL, "pod", "secret", "node" };

    return names[bound];
}

static void write_bound(struct json_out *o, const struct token_claims *c, enum token_bound bound)
{
    if (c->bound != bound)
        return;
    json_out_key(o, token_bound_name(bound)), json_out_object_begin(o);
    json_out_key(o, "name"), json_out_cstr(o, c->bound_name);
    json_out_key(o, "uid"), json_out_cstr(o, c->bound_uid);
    json_out_object_end(o);
}

static int write_claims(const struct token_claims *c, struct buf *out, struct err *e)
{
    struct json_out o;

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "aud"), json_out_array_begin(&o);
    for (size_t i = 0; i < c->audience_count; i++)
        json_out_cstr(&o, c->audiences[i]);
    json_out_array_end(&o);
    json_out_key(&o, "exp"), json_out_i64(&o, c->expires_s);
    json_out_key(&o, "iat"), json_out_i64(&o, c->issued_s);
    json_out_key(&o, "iss"), json_out_cstr(&o, TOKEN_ISSUER);
    json_out_key(&o, "jti"), json_out_cstr(&o, c->id);
    json_out_key(&o, "kubernetes.io"), json_out_object_begin(&o);
    json_out_key(&o, "namespace"), json_out_cstr(&o, c->namespace);
    write_bound(&o, c, TOKEN_BOUND_NODE), write_bound(&o, c, TOKEN_BOUND_POD);
    write_bound(&o, c, TOKEN_BOUND_SECRET);
    json_out_key(&o, "serviceaccount"), json_out_object_begin(&o);
    json_out_key(&o, "name"), json_out_cstr(&o, c->name);
    json_out_key(&o, "uid"), json_out_cstr(&o, c->uid);
    json_out_object_end(&o);
    json_out_object_end(&o);
    json_out_key(&o, "nbf"), json_out_i64(&o, c->issued_s);
    json_out_key(&o, "sub");
    {
        char subject[400];

        (void)snprintf(subject, sizeof subject, "system:serviceaccount:%s:%s", c->namespace,
                       c->name);
        json_out_cstr(&o, subject);
    }
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

int token_sign(EVP_PKEY *key, const struct token_claims *claims, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf body = BUF_INIT(TOKEN_MAX_BYTES), text = BUF_INIT(TOKEN_MAX_BYTES);
    uint8_t signature[2 * HALF_BYTES];

    if (write_claims(claims, &body, e) < 0 || str_base64url_encode(SPAN(HEAD), &text, e) < 0 ||
        buf_addc(&text, '.', e) < 0 || str_base64url_encode(buf_span(&body), &text, e) < 0)
        return -1;
    if (!sign(key, buf_span(&text), signature))
        return err_set(e, ERR_INTERNAL, "cannot sign a token");
    if (buf_addc(&text, '.', e) < 0 ||
        str_base64url_encode(span_of(signature, sizeof signature), &text, e) < 0)
        return -1;
    return buf_add(out, buf_span(&text), e);
}

static bool take_text(const struct json *v, char *out, size_t n)
{
    const char *s = json_cstr(v);

    if (!s || strlen(s) >= n)
        return false;
    memcpy(out, s, strlen(s) + 1);
    return true;
}

/* Beside a Pod, a node only says where that was made for. */
static bool read_bound(const struct json *k, struct token_claims *c)
{
    for (enum token_bound b = TOKEN_BOUND_POD; b <= TOKEN_BOUND_NODE; b++) {
        const struct json *object = json_get(k, token_bound_name(b));

        if (!object)
            continue;
        c->bound = b;
        return take_text(json_get(object, "name"), c->bound_name, sizeof c->bound_name) &&
               take_text(json_get(object, "uid"), c->bound_uid, sizeof c->bound_uid);
    }
    return true;
}

static bool read_claims(const struct json *root, struct token_claims *c)
{
    const struct json *k = json_get(root, "kubernetes.io"),
                      *account = json_get(k, "serviceaccount");
    const struct json *aud = json_get(root, "aud");
    int64_t not_before;

    *c = (struct token_claims){ .audience_count = 0 };
    if (!span_is(json_str(json_get(root, "iss")), TOKEN_ISSUER))
        return false;
    if (!json_i64(json_get(root, "exp"), &c->expires_s) ||
        !json_i64(json_get(root, "iat"), &c->issued_s) ||
        !json_i64(json_get(root, "nbf"), &not_before))
        return false;
    c->issued_s = MAX(c->issued_s, not_before);
    JSON_EACH(a, aud)
    {
        if (c->audience_count == TOKEN_AUDIENCES_MAX ||
            !take_text(a, c->audiences[c->audience_count++], sizeof c->audiences[0]))
            return false;
    }
    return read_bound(k, c) && take_text(json_get(root, "jti"), c->id, sizeof c->id) &&
           take_text(json_get(k, "namespace"), c->namespace, sizeof c->namespace) &&
           take_text(json_get(account, "name"), c->name, sizeof c->name) &&
           take_text(json_get(account, "uid"), c->uid, sizeof c->uid);
}

static bool is_our_head(struct span part)
{
    OWN(buf_done) struct buf text = BUF_INIT(TOKEN_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    return str_base64url_decode(part, &text, &e) == 0 &&
           json_parse(buf_span(&text), NULL, &doc, &e) == 0 &&
           span_is(json_str(json_get(json_doc_root(doc), "alg")), "ES256");
}

bool token_verify(EVP_PKEY *key, struct span token, int64_t now_s, struct token_claims *ret,
                  const char **why)
{
    OWN(buf_done) struct buf body = BUF_INIT(TOKEN_MAX_BYTES), signature = BUF_INIT(256);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    size_t head = span_find(token, '.'), rest;
    struct err e;

    *why = "not a token of this server";
    if (token.n > TOKEN_MAX_BYTES || head == SIZE_MAX)
        return false;
    rest = span_find(span_skip(token, head + 1), '.');
    if (rest == SIZE_MAX || !is_our_head(span_slice(token, 0, head)))
        return false;
    if (str_base64url_decode(span_skip(token, head + 1 + rest + 1), &signature, &e) < 0 ||
        !is_signed(key, span_slice(token, 0, head + 1 + rest), buf_span(&signature)))
        return false;
    if (str_base64url_decode(span_slice(token, head + 1, head + 1 + rest), &body, &e) < 0 ||
        json_parse(buf_span(&body), NULL, &doc, &e) < 0 || !read_claims(json_doc_root(doc), ret))
        return false;
    return token_is_current(ret, now_s, why);
}

bool token_is_current(const struct token_claims *claims, int64_t now_s, const char **why)
{
    *why = "expired";
    return now_s < claims->expires_s && now_s + SKEW_S >= claims->issued_s;
}
