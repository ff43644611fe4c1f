/* stamps: when claims were ready for the first time, until that is noted on them, which can wait while others wait for a sandbox.
 *
 * Owns:     a time for each claim that has yet to be noted. After a crash the note says "unknown", as where nobody saw it.
 * Used by:  claim_pass.c.
 */
#ifndef SILICA_CONTROLLER_STAMPS_H
#define SILICA_CONTROLLER_STAMPS_H

#include "kube/object.h"

#include <time.h>

struct stamps;

struct stamps *stamps_new(void);
void stamps_free(struct stamps *s);
void stamps_put(struct stamps *s, const struct object *claim, struct timespec ready);
/* False: it is not known. */
bool stamps_get(const struct stamps *s, const struct object *claim, struct timespec *ret);
/* It is noted, or the claim is gone. */
void stamps_drop(struct stamps *s, const char *namespace, const char *name);

#endif
