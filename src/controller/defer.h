/* defer: writes that may wait a little, because another one for the same object often follows at once.
 *
 * Owns:     a time for each object with such a write. Nothing else is kept: after a crash the wait begins again, and the write
 *           is decided on anew.
 * Clock:    the caller's, one that never goes back.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_DEFER_H
#define SILICA_CONTROLLER_DEFER_H

#include "base/own.h"

struct defer;

struct defer *defer_new(void);
void defer_free(struct defer *d);
/* How long the write may still wait: window_ms from the first time this was asked for the object. 0: it is due, and forgotten. */
uint64_t defer_left_ms(struct defer *d, const char *uid, uint64_t window_ms, uint64_t now_ms);
/* There is nothing to be written any more. */
void defer_forget(struct defer *d, const char *uid);

#endif
