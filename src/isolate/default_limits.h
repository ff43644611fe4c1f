/* default_limits: what a sandbox may take where its caller asks for no limit, and what all sandboxes of a daemon may take
 * together, as parts of the machine.
 *
 * Owns:     nothing. Decisions are functions of the machine's figures; default_limits_machine alone reads files.
 * Used by:  keeper.c (all together), node/make.c (one), status.c.
 */
#ifndef SILICA_ISOLATE_DEFAULT_LIMITS_H
#define SILICA_ISOLATE_DEFAULT_LIMITS_H

#include "isolate/box.h"

struct machine {
    uint64_t memory_bytes;
    uint64_t pid_max; /* kernel.pid_max: processes and threads of the machine */
};

/* Out of /proc/meminfo and /proc/sys/kernel/pid_max. A figure that is not there is 0. */
void default_limits_parse(struct span meminfo, struct span pid_max, struct machine *ret);
/* Reads both once in a process. */
const struct machine *default_limits_machine(void);

/* Of one sandbox. A figure that is not known gives no limit. */
struct box_limits default_limits_one(const struct machine *m);
/* Of all together: what is left is for the machine's own programs, the daemon's among them. */
struct box_limits default_limits_all(const struct machine *m);
/* Memory that sandboxes leave to the machine. */
uint64_t default_limits_reserve(const struct machine *m);
/* What is asked for, and where nothing is, what the defaults give. */
struct box_limits default_limits_fill(const struct box_limits *asked,
                                      const struct box_limits *defaults);

#endif
