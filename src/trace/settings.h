/* settings: where traces go and which of them, as the variables say that all programs with OpenTelemetry read.
 *
 *     OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4317      or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which wins
 *
 * Owns:     the texts in the struct.
 * Used by:  commands that trace, before they serve: what is wrong with a variable is told then.
 * Secrets:  headers may hold them: they are not for logs.
 */
#ifndef SILICA_TRACE_SETTINGS_H
#define SILICA_TRACE_SETTINGS_H

#include "base/buf.h"

/* What a trace is judged by that nobody before us judged. */
enum trace_sampler { TRACE_ALL, TRACE_NONE, TRACE_RATIO };

struct trace_pair {
    char *name, *value;
};

struct trace_pairs {
    struct trace_pair *v;
    size_t n;
};

struct trace_settings {
    char *host, *authority;
    uint16_t port;
    bool is_tls;
    char *ca_file, *cert_file, *key_file; /* or NULL */
    struct trace_pairs headers;           /* of each call, beside gRPC's own */
    struct trace_pairs attributes;        /* what we are, service.name among it */
    uint64_t timeout_ms, delay_ms;
    enum trace_sampler sampler;
    bool is_parent_heard; /* a caller's word on being recorded counts */
    uint64_t below;       /* TRACE_RATIO: of all 2^63 traces, so many */
};

/* Somebody named a collector, and nobody said that there are to be no traces, or that it is spoken to otherwise than by gRPC. */
bool trace_is_asked_for(void);
/* Reads the environment. service: what we are called where it does not say. ERR_USAGE names the variable. */
int trace_settings_read(const char *service, struct trace_settings *ret, struct err *e);
/* Tolerates what is zeroed or half read. */
void trace_settings_done(struct trace_settings *s);

#endif
