/* limits: the numbers of the HTTP/1 and multipart engines. Each is a ceiling that a peer can run into. */
#ifndef SILICA_HTTP_LIMITS_H
#define SILICA_HTTP_LIMITS_H

/* Then 431 and close. Eight times the usual 8 KiB, as bearer tokens grow with groups. */
#define HTTP_HEAD_MAX_BYTES (64 * 1024)
/* Then 431. Browsers send 20, a chain of proxies 60; lookups are linear. */
#define HTTP_HEAD_MAX_FIELDS 256
/* A connection without a message for this long gives the memory of its head back. One that is in use would only ask for it
 * again; and thousands that rest have none. */
#define HTTP_REST_MS 1000
/* Of an answer's head whose memory stays with the server, for the next one */
#define HTTP_SPARE_HEAD_BYTES (8 * 1024)
/* One request line or field: then 414 or 431. A line may fill the head, but not hide behind a larger one. */
#define HTTP_LINE_MAX_BYTES (64 * 1024)
/* Then 431. Checksums and gRPC statuses need a few hundred. */
#define HTTP_TRAILER_MAX_BYTES  (8 * 1024)
#define HTTP_TRAILER_MAX_FIELDS 32
/* Chunk extensions of one body together, then 400. Nobody uses them, and tiny chunks would multiply them. */
#define HTTP_CHUNK_EXT_MAX_BYTES 4096
/* Parts of a form with and without a filename: the ceilings of the contract that has forms. */
#define HTTP_FORM_MAX_FILES  1000
#define HTTP_FORM_MAX_FIELDS 1000
/* One part's head, then 400: a file name of PATH_MAX, percent-encoded, and a few more fields. */
#define HTTP_PART_HEAD_MAX_BYTES  (16 * 1024)
#define HTTP_PART_HEAD_MAX_FIELDS 16
/* What /metrics answers with; beyond it 500. A row of a histogram has 2 KB, and rows have ceilings. */
#define SHOW_METRICS_MAX_BYTES (32u * 1024 * 1024)
/* Of a server's connections, for one client that is not its own account: a fleet behind one address has thousands, and three more
 * like it still fit. The rest beside all of these clients is for the owner, whose tools have a few each. */
#define CONNECTION_CLIENT_PART  4
#define CONNECTION_RESERVE_PART 8
/* Busy connections that are passed over in search of an idle one, for each that comes: then the new one is refused. */
#define CONNECTION_LOOKS_MAX 64
/* Of the descriptors a process may have, for connections: the others are for files, timers and what requests need. */
#define CONNECTION_FILES_NUMERATOR   3
#define CONNECTION_FILES_DENOMINATOR 4
/* Between two lines of the log about connections that were closed or refused */
#define CONNECTION_LOG_MS 1000
/* Scrapers and probes; beyond it new connections are closed. */
#define SHOW_CONNECTIONS_MAX 256
/* RFC 2046 says 70; some clients make longer ones. */
#define HTTP_BOUNDARY_MAX_BYTES 250

#endif
