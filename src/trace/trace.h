/* trace: which part of a trace one request was here, told to a collector of OpenTelemetry.
 *
 * Owns:     spans that ended and are not told yet, the connection to the collector. A span is its caller's until it ends.
 * Used by:  the router, for each request.
 * Sends:    OTLP by gRPC, in batches: after a while, or when there are enough. One call is under way at a time; what a
 *           collector does not take for a while is said again, then dropped. It never holds up who traces: beyond a
 *           number spans are dropped and counted.
 * Threads:  the loop's.
 */
#ifndef SILICA_TRACE_TRACE_H
#define SILICA_TRACE_TRACE_H

#include "http/head.h"
#include "net/dial.h"
#include "trace/context.h"

struct tracer;
struct trace_settings;

struct trace_span {
    struct trace_context at;
    uint8_t parent[TRACE_SPAN_BYTES]; /* zeros: it is the first of its trace */
    uint64_t began_ns;                /* since 1970 */
    uint64_t began_us;                /* by the clock that never jumps */
    char *state;                      /* tracestate as it came; or NULL */
};

struct trace_attribute {
    const char *key;
    struct span text; /* p NULL: it is the number */
    int64_t number;
};

/* Copies what it needs of the settings. resolver may be NULL: addresses and localhost only. */
int tracer_new(struct ev_loop *loop, struct dial_resolver *resolver,
               const struct trace_settings *settings, struct tracer **ret, struct err *e);
/* Tells what is left, then done(ctx), in a later turn: told or not, at most after so long. Once. */
void tracer_flush(struct tracer *t, uint64_t ms, ev_fn done, void *ctx);
/* At once; what is left is lost. Tolerates NULL. Not for callbacks: turns the loop. */
void tracer_free(struct tracer *t);

/* A request came: a part of its caller's trace, where it names one, else of a new one. */
struct trace_span *trace_begin(struct tracer *t, const struct http_head *request);
/* The request as it goes on says that we are its caller. */
int trace_pass(const struct trace_span *s, struct http_head *to, struct err *e);
/* Takes it. is_error: it failed, and by nobody's wish. */
void trace_end(struct tracer *t, struct trace_span *s, const char *name,
               const struct trace_attribute *attributes, size_t count, bool is_error);

#endif
