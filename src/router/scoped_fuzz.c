/* Any bytes as a token, and as a payload that is signed properly, so that what stands behind the signature is read too:
 * nobody without the secret makes one. */
#include "router/scoped.h"

#include "base/str.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define SECRET "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_signed(struct span payload)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20), token = BUF_INIT(1 << 20);
    uint8_t mac[EVP_MAX_MD_SIZE];
    struct scoped s;
    unsigned n;
    struct err e;

    if (payload.n > 2048)
        return;
    (void)buf_add(&text, SPAN("agent-sandbox/scoped-token/"), &e);
    (void)buf_add(&token, SPAN("v1."), &e);
    if (payload.n)
        (void)str_base64url_encode(payload, &token, &e);
    (void)buf_add(&text, buf_span(&token), &e);
    assert(HMAC(EVP_sha256(), SECRET, sizeof SECRET - 1, text.p, text.n, mac, &n));
    (void)buf_addc(&token, '.', &e);
    (void)str_base64url_encode(span_of(mac, n), &token, &e);
    if (scoped_read(SPAN(SECRET), buf_span(&token), 0, &s))
        assert(s.namespace[0] && s.name[0]);
    assert(!scoped_read(SPAN("another secret of thirty-two byt"), buf_span(&token), 0, &s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scoped s;

    if (size == 0)
        return 0;
    (void)scoped_read(SPAN(SECRET), span_of(data, size), 1800000000, &s);
    try_signed(span_of(data + 1, size - 1));
    return 0;
}
