/* Numbers of the host's side of a sandbox, with their reasons. PID 1 shares a kernel namespace with hostile code, so
 * all of these hold against it. */
#ifndef SILICA_SANDBOX_LIMITS_H
#define SILICA_SANDBOX_LIMITS_H

/* clang-format off */
#define SANDBOX_WINDOW_BYTES       (256 * 1024)  /* output that may come while its reader has paused */
#define SANDBOX_STDIN_HIGH_BYTES   (256 * 1024)  /* queued input; then sandbox_exec_is_full() */
#define SANDBOX_CALLS_MAX          256           /* commands at a time; then ERR_BUSY */
#define SANDBOX_SAID_MAX_BYTES     2048          /* kept of what a copy inside says on standard error: its first lines count */
#define SANDBOX_LOG_ENTRY_MAX_BYTES (64 * 1024) /* of a log file: the keeper cuts at 16 KiB */
#define SANDBOX_START_MS           30000         /* from Start to its first event; the machine may be busy */
/* clang-format on */

#endif
