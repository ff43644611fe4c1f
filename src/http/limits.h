/* limits: the numbers of the HTTP/1 and multipart engines. Each is a ceiling that a peer can run into. */
#ifndef SILICA_HTTP_LIMITS_H
#define SILICA_HTTP_LIMITS_H

/* Then 431 and close. Eight times the usual 8 KiB, as bearer tokens grow with groups. */
#define HTTP_HEAD_MAX_BYTES (64 * 1024)
/* Then 431. Browsers send 20, a chain of proxies 60; lookups are linear. */
#define HTTP_HEAD_MAX_FIELDS 256
/* One request line or field: then 414 or 431. A line may fill the head, but not hide behind a larger one. */
#define HTTP_LINE_MAX_BYTES (64 * 1024)
/* Then 431. Checksums and gRPC statuses need a few hundred. */
#define HTTP_TRAILER_MAX_BYTES  (8 * 1024)
#define HTTP_TRAILER_MAX_FIELDS 32
/* Chunk extensions of one body together, then 400. Nobody uses them, and tiny chunks would multiply them. */
#define HTTP_CHUNK_EXT_MAX_BYTES 4096

#endif
