/* The numbers of this room, each with what happens there. */
#ifndef SILICA_ISOLATE_LIMITS_H
#define SILICA_ISOLATE_LIMITS_H

/* clang-format off */
#define PLAN_ROWS_MAX 256 /* then ERR_LIMIT: the host image takes about 80, the rest are the caller's binds */
#define PLAN_TEXT_MAX_BYTES 4096 /* of one path or file of the plan; a path cannot be longer */

#define BOX_ROOT_BYTES (1ull << 30)         /* the writable root where nobody says; memory is taken only when used */
#define BOX_SHM_SHARE 4  /* /dev/shm gets this part of the root's size, on top of it */
#define BOX_ARGS_MAX  64 /* options of PID 1 */

/* Ids of root's sandboxes: above what systemd-nspawn takes (up to 0x6fff0000), below 2^31, where some programs stop
 * counting. 4,095 ranges of 65,536. */
#define IDS_BASE  0x70000000u
#define IDS_COUNT 65536u
#define IDS_SLOTS 4095u

#define BOX_KILL_TIMEOUT_MS 10000 /* a killed PID 1 that takes longer sits in the kernel; then an error */

#define BOX_FREEZE_TIMEOUT_MS 2000 /* freezing takes milliseconds; a task in the kernel's hands may take longer */

#define TREE_MAX 32768 /* processes of one sandbox that we walk; the kernel's own default for a machine */

/* clang-format on */

#endif
