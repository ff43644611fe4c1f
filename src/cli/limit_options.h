/* limit_options: what sandboxes may take where they ask for no limit, and all together, as rows of an option table: the same for
 * `silica node` and `silica up`. In both the fields are struct box_limits.
 */
#ifndef SILICA_CLI_LIMIT_OPTIONS_H
#define SILICA_CLI_LIMIT_OPTIONS_H

#include "isolate/box.h"

/* clang-format off */
#define LIMIT_OPTIONS(one, all) \
    { "--pids", NULL, OPT_U64, (one) + offsetof(struct box_limits, pids), NULL, 1, 4194304, "N", "processes and threads of a sandbox that asks for no limit; default: 1024", "Limits" }, \
    { "--memory", NULL, OPT_BYTES, (one) + offsetof(struct box_limits, memory_bytes), NULL, 1 << 20, 0, "SIZE", "memory of a sandbox that asks for no limit; default: a quarter of the machine's" }, \
    { "--total-pids", NULL, OPT_U64, (all) + offsetof(struct box_limits, pids), NULL, 1, 4194304, "N", "processes and threads of all sandboxes together; default: three quarters of kernel.pid_max" }, \
    { "--total-memory", NULL, OPT_BYTES, (all) + offsetof(struct box_limits, memory_bytes), NULL, 1 << 20, 0, "SIZE", "memory of all sandboxes together; default: the machine's less 1 GiB, or less a tenth where that is more" }
/* clang-format on */

#endif
