#include "router/scoped.h"

#include "base/json.h"
#include "base/str.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

/* Signed before the payload: no other use of the secret makes a token by accident. */
#define CONTEXT "agent-sandbox/scoped-token/v1."

/* The MAC of the payload as it is written in the token. */
static bool sign(struct span secret, struct span payload, uint8_t ret[EVP_MAX_MD_SIZE],
                 size_t *ret_n)
{
    OWN(buf_done) struct buf text = BUF_INIT(SCOPED_TOKEN_MAX_BYTES + sizeof CONTEXT);
    unsigned n = 0;
    struct err e;

    if (secret.n > INT32_MAX || buf_add(&text, SPAN(CONTEXT), &e) < 0 ||
        buf_add(&text, payload, &e) < 0 ||
        !HMAC(EVP_sha256(), secret.p, (int)secret.n, text.p, text.n, ret, &n))
        return false;
    *ret_n = n;
    return true;
}

static bool is_signed(struct span secret, struct span payload, struct span signature)
{
    OWN(buf_done) struct buf given = BUF_INIT(SCOPED_TOKEN_MAX_BYTES);
    uint8_t mac[EVP_MAX_MD_SIZE];
    struct err e;
    size_t n;

    return str_base64url_decode(signature, &given, &e) == 0 && sign(secret, payload, mac, &n) &&
           str_eq_secret(buf_span(&given), span_of(mac, n));
}

static bool read_name(const struct json *claims, const char *key, char ret[TARGET_NAME_BYTES])
{
    const char *text = json_cstr(json_get(claims, key));

    if (!text || !*text)
        return false;
    return snprintf(ret, TARGET_NAME_BYTES, "%s", text) < TARGET_NAME_BYTES;
}

bool scoped_read(struct span secret, struct span token, int64_t now, struct scoped *ret)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(buf_done) struct buf text = BUF_INIT(SCOPED_TOKEN_MAX_BYTES);
    struct span payload, signature;
    const struct json *claims;
    struct scoped found;
    int64_t until;
    struct err e;
    size_t dot;

    if (token.n > SCOPED_TOKEN_MAX_BYTES || !span_starts(token, "v1."))
        return false;
    payload = span_skip(token, 3);
    dot = span_find(payload, '.');
    if (dot == SIZE_MAX)
        return false;
    signature = span_skip(payload, dot + 1);
    payload = span_slice(payload, 0, dot);
    if (!is_signed(secret, payload, signature) || str_base64url_decode(payload, &text, &e) < 0 ||
        json_parse(buf_span(&text), NULL, &doc, &e) < 0)
        return false;
    claims = json_doc_root(doc);
    if (!json_i64(json_get(claims, "exp"), &until) || now >= until ||
        !read_name(claims, "ns", found.namespace) || !read_name(claims, "name", found.name))
        return false;
    *ret = found;
    return true;
}
