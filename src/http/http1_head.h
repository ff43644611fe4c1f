/* http1_head: what the lines of an HTTP/1 head mean. The inside of http1, split off for its length: http1.c
 * cuts the stream into lines, this judges them.
 *
 * Verdicts: 0, or -1 with *e filled and p->bad_status set.
 */
#ifndef SILICA_HTTP_HTTP1_HEAD_H
#define SILICA_HTTP_HTTP1_HEAD_H

#include "http/http1.h"

/* Sets the status to answer with and the error that goes with it; returns -1. */
#define HTTP1_REFUSE(p, status, e, ...)                                                            \
    ((p)->bad_status = (uint16_t)(status), err_set(e, http1_head_code(status), __VA_ARGS__))

enum err_code http1_head_code(int status);
/* The request or status line. */
int http1_head_first(struct http1 *p, struct http_piece line, struct err *e);
/* Takes the fields that come next, as many as stand there whole and plain; the rest of the input is for the way that says
 * what is wrong with it, or waits. */
int http1_head_lines(struct http1 *p, struct span in, size_t *ret_used, struct err *e);
/* The field that was added last. */
int http1_head_field(struct http1 *p, struct err *e);
/* The same in a trailer: fields that frame or route a message may not come late. */
int http1_head_trailer(struct http1 *p, struct err *e);
/* The blank line: decides on the body and sets the state that reads it. */
int http1_head_finish(struct http1 *p, struct err *e);

#endif
