/* context: which trace a request belongs to, as W3C's trace context says it in two header fields.
 *
 *     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     tracestate:  vendor=opaque,other=text
 *
 * Owns:     nothing. Does no I/O, reads no clock.
 * Rules:    letters are lower case; ids of zeros alone are none; what a later version adds behind the flags is skipped.
 *           A tracestate means nothing without a traceparent, and a bad one is no reason to drop that.
 */
#ifndef SILICA_TRACE_CONTEXT_H
#define SILICA_TRACE_CONTEXT_H

#include "base/buf.h"

#define TRACE_ID_BYTES   16
#define TRACE_SPAN_BYTES 8
#define TRACE_TEXT_BYTES 56 /* with its end */
#define TRACE_SAMPLED    1  /* of the flags: somebody records it */

struct trace_context {
    uint8_t trace[TRACE_ID_BYTES];
    uint8_t span[TRACE_SPAN_BYTES];
    uint8_t flags;
};

/* False: it is none, and *ret is as it was. */
bool trace_context_parse(struct span text, struct trace_context *ret);
/* Of the version that we speak, which knows one flag. */
const char *trace_context_format(char text[TRACE_TEXT_BYTES], const struct trace_context *c);
/* Hexadecimal, for people: 2 * n characters and an end. */
const char *trace_hex(char *text, const uint8_t *bytes, size_t n);
/* One field's value, or several with commas between. */
bool trace_state_is_valid(struct span text);

#endif
