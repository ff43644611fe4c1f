/* pace: how long a server asks us to wait.
 *
 * Owns:     nothing. Reads no clock: `now` is the caller's.
 * Used by:  rest and watch; what nobody asked for is kube/backoff.h.
 */
#ifndef SILICA_KUBECLIENT_PACE_H
#define SILICA_KUBECLIENT_PACE_H

#include "base/buf.h"

/* Retry-After: seconds, or an HTTP date. False: neither. At most max_s. */
bool retry_after_ms(struct span value, time_t now, unsigned max_s, uint64_t *ret_ms);

#endif
