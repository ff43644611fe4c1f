/* defer: writes that may wait a little, because another one for the same object often follows at once.
 *
 * Owns:     a time for each object with such a write. Nothing else is kept: after a crash the wait begins again, and the write
 *           is decided on anew.
 * Clock:    the caller's, one that never goes back.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_DEFER_H
#define SILICA_CONTROLLER_DEFER_H

#include "kube/object.h"

struct defer;

/* How long each of them may wait. */
struct defer *defer_new(uint64_t window_ms);
void defer_free(struct defer *d);
/* The write may still wait, from the first time this was asked for the object. False: it is due, and forgotten. */
bool defer_waits(struct defer *d, const struct object *o, uint64_t now_ms);
/* There is nothing to be written any more. */
void defer_forget(struct defer *d, const char *uid);
/* One that is due and was not told here before; the names live until it is forgotten. False: none. */
bool defer_due(struct defer *d, uint64_t now_ms, const char **ret_namespace, const char **ret_name);
/* When the next one is due that was not told yet. False: there is none. */
bool defer_next_ms(const struct defer *d, uint64_t now_ms, uint64_t *ret_left_ms);

#endif
