/* sha1: the SHA-1 digest of a short text, for protocols that name it (WebSocket's handshake). It proves nothing about
 * who made the text: never for secrets or signatures.
 *
 * Owns:     nothing. Does no I/O.
 */
#ifndef SILICA_BASE_SHA1_H
#define SILICA_BASE_SHA1_H

#include "base/buf.h"

#define SHA1_BYTES 20

void sha1(struct span text, uint8_t ret_digest[SHA1_BYTES]);

#endif
