/* Numbers of the host's side of a sandbox, with their reasons. PID 1 shares a kernel namespace with hostile code, so
 * all of these hold against it. */
#ifndef SILICA_SANDBOX_LIMITS_H
#define SILICA_SANDBOX_LIMITS_H

/* clang-format off */
#define SANDBOX_WINDOW_BYTES       (256 * 1024)  /* output that may come while its reader has paused */
#define SANDBOX_MESSAGE_MAX_BYTES  (256 * 1024)  /* one message from PID 1; it sends pieces of SANDBOX_CHUNK_BYTES */
#define SANDBOX_CHUNK_BYTES        (64 * 1024)   /* of output, as PID 1 is asked to cut it */
#define SANDBOX_INPUT_BYTES        (256 * 1024)  /* of input in one call: each waits for the answer to the one before */
#define SANDBOX_START_MAX_BYTES    (4 * 1024 * 1024) /* a command with its variables; PID 1 takes no more */
#define SANDBOX_STDIN_HIGH_BYTES   (256 * 1024)  /* queued input; then sandbox_exec_is_full() */
#define SANDBOX_HEAD_MAX_BYTES     (16 * 1024)   /* of an answer: a status and a short text */
#define SANDBOX_CALLS_MAX          256           /* not answered yet; then ERR_BUSY: signals and resizes are few */
#define SANDBOX_SAID_MAX_BYTES     2048          /* kept of what a copy inside says on standard error: its first lines count */
#define SANDBOX_LOG_ENTRY_MAX_BYTES (64 * 1024) /* of a log file: the keeper cuts at 16 KiB */
#define SANDBOX_START_MS           30000         /* from Start to its first event; the machine may be busy */
/* clang-format on */

#endif
