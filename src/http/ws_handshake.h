/* ws_handshake: the HTTP request and answer that open a WebSocket (RFC 6455 section 4), judged and made.
 *
 * Owns:     nothing. Does no I/O; random bytes come from the caller.
 * Used by:  podstream; tests as clients.
 */
#ifndef SILICA_HTTP_WS_HANDSHAKE_H
#define SILICA_HTTP_WS_HANDSHAKE_H

#include "http/head.h"

#define WS_NONCE_BYTES  16
#define WS_ACCEPT_BYTES 28 /* of the text */

/* Does this request want a WebSocket: a GET whose Upgrade names it? Its other fields are not judged yet. */
bool ws_request_is(const struct http_head *req);
/* -1: ERR_INVALID (answer 400), ERR_UNSUPPORTED (426 with `sec-websocket-version: 13`). */
int ws_request_judge(const struct http_head *req, struct err *e);
/* The value of sec-websocket-accept for this key; NUL-terminated. */
void ws_accept(struct span key, char ret[WS_ACCEPT_BYTES + 1]);

/* Adds what a client's GET needs; protocols is a comma list or NULL. */
int ws_request_fields(struct http_head *req, const uint8_t nonce[WS_NONCE_BYTES],
                      const char *protocols, struct err *e);
/* Is this 101 the answer to that nonce? -1: ERR_PROTOCOL. The subprotocol is the caller's to look at. */
int ws_answer_judge(const struct http_head *answer, const uint8_t nonce[WS_NONCE_BYTES],
                    struct err *e);

#endif
