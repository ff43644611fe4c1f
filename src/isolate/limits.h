/* The numbers of this room, each with what happens there. */
#ifndef SILICA_ISOLATE_LIMITS_H
#define SILICA_ISOLATE_LIMITS_H

/* clang-format off */
#define PLAN_ROWS_MAX 448 /* then ERR_LIMIT: the host image takes about 80, the rest are the caller's binds, twice below an alias */
#define PLAN_TEXT_MAX_BYTES 4096 /* of one path or file of the plan; a path cannot be longer */

#define BOX_ROOT_BYTES (1ull << 30)         /* the writable root where nobody says; memory is taken only when used */
#define BOX_SHM_SHARE 4  /* /dev/shm gets this part of the root's size, on top of it */
#define FRAME_BYTES (1ull << 20) /* of what sandboxes share: links and a few lines of text */
#define CELLAR_BYTES (64ull << 20) /* of the cellar's own directory: one entry for each volume, 16,384 of them */
#define BOX_TERMINALS_MAX 64 /* of one sandbox: all sandboxes of the machine have 3,072 together, the host 1,024 for itself */
#define BOX_ARGS_MAX  64 /* options of PID 1 */
#define BOX_COMMAND_MAX 8192 /* words of its main command */
#define BOX_NAME_MAX_BYTES 128 /* of a sandbox; it is the name of a directory too */
#define BOX_UNENFORCED_MAX_BYTES 64 /* names of limits */

/* Ids of root's sandboxes (id_range.h). The first ranges are above what systemd-nspawn takes (up to 0x6fff0000) and below
 * 2^31, where some programs stop counting: 4,095 of 65,536 ids. The others are above 2^31: a machine holds 5,000 sandboxes,
 * and a third of all is in use then, so that a free one is found at once. */
#define IDS_BASE  0x70000000u
#define IDS_HIGH_BASE 0x80000000u
#define IDS_COUNT 65536u
/* From one range to the next. Not 65,536: the kernel finds a user by the low bits of its id, in 128 lists, and all users of
 * all ranges would be in one of them: with 2,000 sandboxes each change of ids took 0.2-0.4 ms. */
#define IDS_STRIDE (IDS_COUNT + 1)
#define IDS_LOW_SLOTS 4095u
#define IDS_SLOTS 16383u

/* Bytes of a TCP socket inside: least, at first, most. The host's most, 6 MiB and more, is for long ways. */
#define SOCKET_READ_SIZES  "4096 131072 262144"
#define SOCKET_WRITE_SIZES "4096 16384 262144"
#define BOX_OOM_SCORE_ADJ     500 /* of all in sandboxes: as if each had half of the machine's memory besides its own */
#define DEFAULT_PIDS          1024         /* of a sandbox without a limit of its own: a build tool's; a fork bomb ends there */
#define DEFAULT_CPU_SHARES    1024 /* of each sandbox among them, and of all together beside one process of the machine's */
#define DEFAULT_RESERVE_BYTES (1ull << 30) /* of memory, at least, that all sandboxes together leave to the machine */
#define DEFAULT_RESERVE_PART  10           /* or this part of it, where that is more */

#define WATCH_STEP_MS      50  /* between two looks at the machine's memory, at least */
#define WATCH_REST_MS      1000 /* and at most */
#define WATCH_BYTES_PER_MS (16ull << 20) /* nobody takes memory faster: a page is cleared first, by each of a few processors */
#define WATCH_LEAST_BYTES  (64ull << 20) /* ending one that has less would help nobody */

#define BOX_KILL_TIMEOUT_MS 10000 /* a killed PID 1 that takes longer sits in the kernel; then an error */

#define BOX_FREEZE_TIMEOUT_MS 2000 /* freezing takes milliseconds; a task in the kernel's hands may take longer */

#define TREE_MAX 32768 /* processes of one sandbox that we walk; the kernel's own default for a machine */

#define SPEC_MAX_BYTES      (128 * 1024) /* of one sandbox: a request is one packet, and packets end at about 200 KiB */
#define SPEC_NODES_MAX      32768        /* words, variables and volumes of it */
#define SPEC_TIMEOUT_MAX_MS (100ull * 365 * 24 * 3600 * 1000)
#define WIRE_MAX_BYTES      (SPEC_MAX_BYTES + 4096) /* of one packet */
#define STATE_MAX_BYTES     (16 * 1024)  /* five paths of cgroups and a few numbers */

#define LOG_MAX_BYTES        (8 << 20) /* of a sandbox's log; then it becomes the old one and a new one begins: two at most */
#define LOG_LINE_MAX_BYTES   (16 * 1024) /* then it is cut in pieces, as the kubelet's runtimes do */
#define KEEPER_LOG_MAX_BYTES (1 << 20)
#define KEEPER_LINGER_MS     3000  /* a keeper without sandboxes and callers ends after this long */
#define KEEPER_CLIENTS_MAX   1024  /* callers at once; more wait to be accepted */
#define KEEPER_START_MS      10000 /* for a keeper to come up on a busy machine */
#define ENGINE_CREATE_MS     60000 /* for a sandbox to be made on a machine that is busy with hundreds */
#define YARD_NETWORKS        8     /* network namespaces made ahead: about 220 KiB of kernel memory each */
#define SPAWNER_TRIES        3     /* spawners that may die over one sandbox; then it is given up */
#define SPAWNER_RETRY_MS     100   /* between the death of a spawner and the next one's start, when they die at once */

/* clang-format on */

#endif
