/* pools: the reconciler of SandboxWarmPools: keeps as many sandboxes waiting as each pool wishes (pool.h).
 *
 * Owns:     what it remembers of each pool: what was asked for and not seen yet (expect.h), and what people were told.
 * Used by:  controller.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_POOLS_H
#define SILICA_CONTROLLER_POOLS_H

#include "controller/controller.h"
#include "controller/reconciler.h"

struct reconciler *pools_new(struct shared *shared, const struct controller_config *config);

#endif
