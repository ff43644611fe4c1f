/* outbox: spans on their way to the collector. For trace.c alone.
 *
 * Owns:     the spans, packed, from the moment they are put in; the connection; the one call under way.
 * Order:    as they came. A batch stays where it is until the collector has it, or is dropped whole.
 * Logs:     the first failure of a row and its end, what was lost, what the collector refused. Never a header.
 */
#ifndef SILICA_TRACE_OUTBOX_H
#define SILICA_TRACE_OUTBOX_H

#include "base/buf.h"
#include "net/dial.h"

struct outbox;
struct trace_settings;

int outbox_new(struct ev_loop *loop, struct dial_resolver *resolver,
               const struct trace_settings *settings, struct outbox **ret, struct err *e);
void outbox_put(struct outbox *o, struct span packed);
void outbox_flush(struct outbox *o, uint64_t ms, ev_fn done, void *ctx);
/* Turns the loop. Tolerates NULL. */
void outbox_free(struct outbox *o);

#endif
