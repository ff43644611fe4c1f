/* field: header lines, cut out of a byte stream and added to a head where they stand.
 *
 * Owns:     nothing; the line under way grows at the end of head.text, whose ceiling is the head's.
 * Used by:  http1 for heads and trailers, multipart for the heads of parts.
 */
#ifndef SILICA_HTTP_FIELD_H
#define SILICA_HTTP_FIELD_H

#include "http/head.h"

enum http_line {
    HTTP_LINE_MORE, /* all of the input is taken, the line goes on */
    HTTP_LINE_DONE, /* the line and its LF are taken */
    HTTP_LINE_LONG, /* the line would pass line_max */
    HTTP_LINE_FULL, /* the head would pass its ceiling */
};

/* Moves the bytes of `in` up to the next LF to the end of h->text; the line began at line_at there. */
enum http_line http_line_take(struct http_head *h, uint32_t line_at, size_t line_max,
                              struct span in, size_t *ret_used);
/* The line that ends h->text, without its CRLF. ERR_PROTOCOL when it ends in a bare LF: two parsers that
 * disagree on what ends a line can be played against each other. */
int http_line_end(const struct http_head *h, uint32_t line_at, struct http_piece *ret_line,
                  struct err *e);

enum http_field_rules {
    HTTP_FIELD_STRICT, /* RFC 9110 5.5: no control bytes but tab */
    HTTP_FIELD_MIME,   /* a part's head: only CR and NUL are refused, as file names are sent raw */
};
/* Parses "Name: value" in place and adds it to the head. ERR_PROTOCOL, or ERR_LIMIT for one field too many. */
int http_field_parse(struct http_head *h, struct http_piece line, enum http_field_rules rules,
                     struct err *e);

#endif
