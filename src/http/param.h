/* param: the parameters behind a header value, as in `form-data; name="a"; filename="b"`.
 *
 * Owns:     nothing; pieces are parts of the header. Lenient as the readers of mail are: clients write what
 *           they like here, and nothing is framed by it.
 * Used by:  multipart, for Content-Type and Content-Disposition.
 */
#ifndef SILICA_HTTP_PARAM_H
#define SILICA_HTTP_PARAM_H

#include "base/buf.h"

/* The value before the first ';', trimmed; *ret_rest is for http_param_next(). */
struct span http_param_value(struct span header, struct span *ret_rest);
/* The next parameter: name and raw value (quotes and escapes still on it), both trimmed; a parameter
 * without '=' has an empty value. False when there is none. */
bool http_param_next(struct span *rest, struct span *ret_name, struct span *ret_raw);
/* Adds the value without its quotes. Of the escapes only \\ and \" are taken off: Go writes those two, and
 * clients that escape nothing send Windows paths, whose other backslashes must stay. */
int http_param_unquote(struct span raw, struct buf *out, struct err *e);
/* Adds the value of a `name*` parameter (RFC 5987): behind charset'language', percent-decoded. */
int http_param_extended(struct span raw, struct buf *out, struct err *e);

#endif
