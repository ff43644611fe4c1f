/* account: what is remembered of a request until its end, for the line in the log and the span in its trace.
 *
 * Owns:     copies of what its client said, as the exchange may be gone by then; the span.
 * Used by:  hop, which has one of them for each request. Zeroed is empty.
 */
#ifndef SILICA_ROUTER_ACCOUNT_H
#define SILICA_ROUTER_ACCOUNT_H

#include "http/serve.h"
#include "net/addr.h"
#include "router/caller.h"

struct trace_span;
struct tracer;

struct account {
    bool is_logged;
    char method[16], client[NET_ADDR_TEXT_BYTES];
    char *path, *agent, *id, *namespace;
    char *user;              /* who calls, where somebody said so */
    struct trace_span *span; /* NULL: nobody traces */
};

/* The method alone is remembered in any case; the rest by account_open. */
void account_begin(struct account *a, const struct http_exchange *x);
/* caller and tracer may be NULL. */
void account_open(struct account *a, const struct http_exchange *x, const struct caller *caller,
                  struct tracer *tracer);
/* The request as it goes on is part of the trace. */
int account_pass(const struct account *a, struct http_head *to, struct err *e);
/* Tells the log and the tracer, and empties it. */
void account_close(struct account *a, struct tracer *tracer, int status, uint64_t out_bytes,
                   uint64_t took_us);

#endif
