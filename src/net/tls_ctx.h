/* tls_ctx: certificates, keys and trust out of PEM become an SSL_CTX. Only for net/tls.c.
 *
 * Owns:     nothing; the context is the caller's, counted by OpenSSL.
 */
#ifndef SILICA_NET_TLS_CTX_H
#define SILICA_NET_TLS_CTX_H

#include "net/tls.h"

#include <openssl/types.h>

#define TLS_ERROR_MAX_BYTES 320 /* so that a caller's context fits before it in struct err */

/* ALPN is not set here. */
int tls_ctx_new(const struct tls_config *config, SSL_CTX **ret, struct err *e);
/* The oldest reason in OpenSSL's queue: the later ones only say what it led to. Empties the queue. */
const char *tls_queue_words(char text[TLS_ERROR_MAX_BYTES]);

#endif
