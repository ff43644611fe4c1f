/* time: moments as Kubernetes writes and reads them.
 *
 * Owns:     nothing. Reads no clock: `now` is always the caller's.
 */
#ifndef SILICA_KUBE_TIME_H
#define SILICA_KUBE_TIME_H

#include "base/buf.h"
#include "base/time.h"

#define KUBE_AGE_BYTES 32

/* RFC 3339 with any offset and fraction: "2026-11-16T09:30:00Z", "2026-11-16T10:30:00.5+01:00". */
bool kube_time_parse(struct span s, struct timespec *ret);
/* metav1.Time: UTC, whole seconds. */
const char *kube_time_text(char text[TIME_TEXT_BYTES], time_t t);
/* metav1.MicroTime: UTC, always six digits of a second. */
const char *kube_microtime_text(char text[TIME_TEXT_BYTES], struct timespec t);
/* How long ago, in the two largest units that matter: "42s", "7m30s", "3h12m", "5d"; "<invalid>" for the
 * future. */
const char *kube_age_text(char text[KUBE_AGE_BYTES], int64_t seconds);

#endif
