/* controller_debug: what `silica controller` tells of its inside to those who ask under /debug: where time and memory go, what
 * waits and what is under way; as text, and as profiles that `go tool pprof` opens.
 *
 * Owns:     the profile that is being taken, one at a time.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_CONTROLLER_DEBUG_H
#define SILICA_CLI_CONTROLLER_DEBUG_H

#include "base/buf.h"

struct controller;
struct controller_debug;
struct controller_options;
struct ev_loop;
struct http_exchange;

/* NULL: not wanted. */
struct controller_debug *controller_debug_new(struct ev_loop *loop,
                                              const struct controller_options *o);
/* Answers what is its own; else false. controller NULL: it does not work yet. */
bool controller_debug_answer(struct controller_debug *d, struct controller *controller,
                             struct http_exchange *x);

#endif
