/* range: which bytes of a file a request wants (RFC 9110 14).
 *
 * Owns:     nothing. The two servers whose answers we reproduce read the same header differently, so the
 *           caller says whose rules hold: Go's ServeContent, or Starlette's file response. Neither is followed
 *           into an empty range ("-0"), which is unsatisfiable here as RFC 9110 has it.
 * Used by:  the runtime's download routes.
 */
#ifndef SILICA_HTTP_RANGE_H
#define SILICA_HTTP_RANGE_H

#include "base/buf.h"

/* More are answered with the whole file: each costs a part head of its own */
#define HTTP_RANGES_MAX 32

enum http_range_rules {
    HTTP_RANGE_GO, /* one malformed range spoils all; ranges keep their order; more bytes than the file
                           * has: the whole file; an empty file is never unsatisfiable */
    HTTP_RANGE_STARLETTE, /* malformed ranges are skipped; one that begins outside spoils all; the rest is
                           * sorted and merged */
};

enum http_range_verdict {
    HTTP_RANGE_WHOLE,         /* 200: there is no such header, or it is better ignored */
    HTTP_RANGE_PARTIAL,       /* 206: the list says which */
    HTTP_RANGE_UNSATISFIABLE, /* 416 with "bytes <star>/size" */
    HTTP_RANGE_MALFORMED,     /* Starlette: 400; Go: 416 without a content-range */
};

struct http_range {
    uint64_t start, length; /* length is not 0 */
};

struct http_ranges {
    size_t n;
    struct http_range v[HTTP_RANGES_MAX];
};

/* The header's value, p NULL when it was not sent. *ret is filled for PARTIAL. */
enum http_range_verdict http_range_parse(struct span header, uint64_t size,
                                         enum http_range_rules rules, struct http_ranges *ret);
/* "bytes 0-9/100" and "bytes <star>/100". */
int http_range_write(struct buf *out, struct http_range r, uint64_t size, struct err *e);
int http_range_write_none(struct buf *out, uint64_t size, struct err *e);

/* A multipart/byteranges body: for each range a part's head, its bytes and CRLF; then the end. */
struct http_byteranges {
    const char *boundary, *content_type;
    uint64_t size;
};
int http_range_write_part(struct buf *out, const struct http_byteranges *b, struct http_range r,
                          struct err *e);
int http_range_write_end(struct buf *out, const struct http_byteranges *b, struct err *e);

#endif
