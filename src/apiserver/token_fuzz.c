/* A token as somebody sends it, and claims as only we could have signed them: nothing is believed that does not fit, and
 * what was signed is either refused or read whole. */
#include "apiserver/token.h"

#include "base/str.h"

#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(struct span s, struct buf *out)
{
    size_t from = out->n;
    struct err e;

    (void)str_base64_encode(s, out, &e);
    while (out->n > from && out->p[out->n - 1] == '=')
        buf_truncate(out, out->n - 1);
    for (size_t i = from; i < out->n; i++)
        out->p[i] = out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i];
}

static void sign(EVP_PKEY *key, struct buf *token)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t der[128], halves[64];
    const uint8_t *p = der;
    size_t n = sizeof der;
    ECDSA_SIG *sig;

    if (EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) <= 0 ||
        EVP_DigestSign(ctx, der, &n, token->p, token->n) <= 0)
        abort();
    EVP_MD_CTX_free(ctx);
    sig = d2i_ECDSA_SIG(NULL, &p, (long)n);
    if (BN_bn2binpad(ECDSA_SIG_get0_r(sig), halves, 32) != 32 ||
        BN_bn2binpad(ECDSA_SIG_get0_s(sig), halves + 32, 32) != 32)
        abort();
    ECDSA_SIG_free(sig);
    (void)buf_addc(token, '.', &(struct err){ 0 });
    encode(span_of(halves, sizeof halves), token);
}

static void check(const struct token_claims *c)
{
    assert(strnlen(c->namespace, sizeof c->namespace) < sizeof c->namespace);
    assert(strnlen(c->name, sizeof c->name) < sizeof c->name);
    assert(strnlen(c->uid, sizeof c->uid) < sizeof c->uid);
    assert(c->audience_count <= TOKEN_AUDIENCES_MAX);
    assert(c->expires_s > 1500);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static EVP_PKEY *key;
    OWN(buf_done) struct buf token = BUF_INIT(TOKEN_MAX_BYTES * 4);
    struct token_claims claims;
    const char *why = NULL;
    struct err e;

    if (!key)
        key = EVP_EC_gen("P-256");
    assert(!token_verify(key, span_of(data, size), 1500, &claims, &why) && why);
    if (size > TOKEN_MAX_BYTES)
        return 0;
    encode(SPAN("{\"alg\":\"ES256\"}"), &token);
    (void)buf_addc(&token, '.', &e);
    encode(span_of(data, size), &token);
    sign(key, &token);
    if (token_verify(key, buf_span(&token), 1500, &claims, &why))
        check(&claims);
    token.p[token.n / 2] ^= 1; /* one bit of it */
    assert(!token_verify(key, buf_span(&token), 1500, &claims, &why));
    return 0;
}
