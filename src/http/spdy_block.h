/* spdy_block: heads as SPDY/3 writes them: counted names and values, in one zlib stream per direction that lasts as long
 * as the connection and begins with a dictionary that the protocol fixes.
 *
 * Owns:     a packer or unpacker owns its zlib state.
 * Used by:  spdy. Does no I/O.
 * Names:    lower case; a repeated name travels as one, its values joined by NUL bytes.
 */
#ifndef SILICA_HTTP_SPDY_BLOCK_H
#define SILICA_HTTP_SPDY_BLOCK_H

#include "http/head.h"

struct spdy_packer;
struct spdy_unpacker;

struct spdy_packer *spdy_packer_new(void);
void spdy_packer_free(struct spdy_packer *p);
/* Adds the block to out; head NULL has no fields. -1: ERR_LIMIT at out's ceiling, ERR_INVALID for a field that may not
 * stand on the wire. Nothing was packed then, so the stream goes on. */
int spdy_pack(struct spdy_packer *p, const struct http_head *head, struct buf *out, struct err *e);

struct spdy_unpacker *spdy_unpacker_new(void);
void spdy_unpacker_free(struct spdy_unpacker *u);
/* Fills the head, which is empty. -1: ERR_INVALID, the block is not a head, but the next one can be read; ERR_PROTOCOL
 * or ERR_LIMIT (more than max_bytes unpacked), the stream is broken. */
int spdy_unpack(struct spdy_unpacker *u, struct span block, size_t max_bytes,
                struct http_head *head, struct err *e);

#endif
