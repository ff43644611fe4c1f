/* limits: the numbers of the HTTP room. Every one is a ceiling a peer can run into. */
#ifndef SILICA_HTTP_LIMITS_H
#define SILICA_HTTP_LIMITS_H

#define HTTP_HEAD_MAX_BYTES                                                                        \
    (64 * 1024) /* then 431 and close; 8x the usual 8 KiB, as bearer tokens grow with groups */
#define HTTP_HEAD_MAX_FIELDS                                                                       \
    256 /* then 431; browsers send 20, a chain of proxies 60; lookups are linear */
#define HTTP_LINE_MAX_BYTES                                                                        \
    (32 *                                                                                          \
     1024) /* one request line or field; then 414 or 431; half a head, so that one cookie cannot fill it */
#define HTTP_TRAILER_MAX_BYTES                                                                     \
    (8 * 1024) /* then 431; gRPC-over-chunked and checksums need a few hundred */
#define HTTP_TRAILER_MAX_FIELDS 32
#define HTTP_CHUNK_LINE_MAX_BYTES                                                                  \
    1024 /* a chunk's size and its extensions, then 400; nobody uses extensions */

#endif
