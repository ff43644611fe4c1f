/* tend: a Pod that runs is looked after: files of ConfigMaps, Secrets, tokens and its own fields follow what they are made of,
 * and volumes with a limit are measured.
 *
 *     tend_wait_ms -> tend_start -> done, once; then the next wait begins
 *
 * Owns:     nothing but a turn under way. The record stays until it is done: one pass at a time looks at a Pod.
 * Used by:  work.c.
 * Threads:  the loop's; files are written and counted by the crew.
 * Failures: of one turn are a line in the log: what there is stays as it is, and the next turn tries again.
 */
#ifndef SILICA_NODE_TEND_H
#define SILICA_NODE_TEND_H

#include "node/record.h"

/* evicted: a volume is larger than it may be, and this is what to say. NULL: all is well. Borrowed. */
typedef void (*tend_fn)(void *ctx, const char *evicted);

/* UINT64_MAX: there is nothing to look after. */
uint64_t tend_wait_ms(struct record *r);
/* done comes exactly once, in a later turn. */
void tend_start(struct record *r, tend_fn done, void *ctx);

#endif
