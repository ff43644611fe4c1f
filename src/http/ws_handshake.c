#include "http/ws_handshake.h"

#include "base/sha1.h"
#include "base/str.h"

#include <string.h>

#define KEY_BYTES 24                                     /* sixteen bytes in base64 */
#define GUID      "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455 1.3 */

bool ws_request_is(const struct http_head *req)
{
    return span_is(http_head_method(req), "GET") && req->minor >= 1 &&
           http_head_has_token(req, "connection", "upgrade") &&
           http_head_has_token(req, "upgrade", "websocket");
}

int ws_request_judge(const struct http_head *req, struct err *e)
{
    OWN(buf_done) struct buf nonce = BUF_INIT(KEY_BYTES);
    struct span key = http_head_get(req, "sec-websocket-key");
    struct err unused;

    if (!ws_request_is(req))
        return err_set(e, ERR_INVALID, "the request does not ask for a WebSocket");
    if (!span_is(http_head_get(req, "sec-websocket-version"), "13"))
        return err_set(e, ERR_UNSUPPORTED, "WebSocket version 13 is the only one");
    if (key.n != KEY_BYTES || str_base64_decode(key, &nonce, &unused) < 0 ||
        nonce.n != WS_NONCE_BYTES)
        return err_set(e, ERR_INVALID, "sec-websocket-key is not %d bytes in base64",
                       WS_NONCE_BYTES);
    return 0;
}

void ws_accept(struct span key, char ret[WS_ACCEPT_BYTES + 1])
{
    OWN(buf_done)
    struct buf text = BUF_INIT(KEY_BYTES + sizeof GUID), coded = BUF_INIT(WS_ACCEPT_BYTES);
    uint8_t digest[SHA1_BYTES];
    struct err e;

    /* All of known lengths, and the ceilings are made for them. */
    (void)buf_add(&text, span_slice(key, 0, KEY_BYTES), &e);
    (void)buf_add(&text, SPAN(GUID), &e);
    sha1(buf_span(&text), digest);
    (void)str_base64_encode(span_of(digest, sizeof digest), &coded, &e);
    assert(coded.n == WS_ACCEPT_BYTES);
    memcpy(ret, buf_cstr(&coded), WS_ACCEPT_BYTES + 1);
}

static void make_key(const uint8_t nonce[WS_NONCE_BYTES], struct buf *key)
{
    struct err e;

    (void)str_base64_encode(span_of(nonce, WS_NONCE_BYTES), key, &e);
    assert(key->n == KEY_BYTES);
}

int ws_request_fields(struct http_head *req, const uint8_t nonce[WS_NONCE_BYTES],
                      const char *protocols, struct err *e)
{
    OWN(buf_done) struct buf key = BUF_INIT(KEY_BYTES);

    make_key(nonce, &key);
    if (http_head_add(req, SPAN("connection"), SPAN("Upgrade"), e) < 0 ||
        http_head_add(req, SPAN("upgrade"), SPAN("websocket"), e) < 0 ||
        http_head_add(req, SPAN("sec-websocket-version"), SPAN("13"), e) < 0 ||
        http_head_add(req, SPAN("sec-websocket-key"), buf_span(&key), e) < 0)
        return -1;
    return protocols ? http_head_add(req, SPAN("sec-websocket-protocol"), span_cstr(protocols), e)
                     : 0;
}

int ws_answer_judge(const struct http_head *answer, const uint8_t nonce[WS_NONCE_BYTES],
                    struct err *e)
{
    OWN(buf_done) struct buf key = BUF_INIT(KEY_BYTES);
    char want[WS_ACCEPT_BYTES + 1];

    make_key(nonce, &key);
    ws_accept(buf_span(&key), want);
    if (answer->status != 101 || !http_head_has_token(answer, "upgrade", "websocket") ||
        !http_head_has_token(answer, "connection", "upgrade"))
        return err_set(e, ERR_PROTOCOL, "the server did not switch to WebSocket: status %u",
                       answer->status);
    if (!span_is(http_head_get(answer, "sec-websocket-accept"), want))
        return err_set(e, ERR_PROTOCOL, "the server's sec-websocket-accept answers another key");
    if (http_head_get(answer, "sec-websocket-extensions").n)
        return err_set(e, ERR_PROTOCOL, "the server uses an extension that was not offered");
    return 0;
}
