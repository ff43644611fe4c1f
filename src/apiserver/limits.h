/* limits: the numbers of the API server that have a reason. */
#ifndef SILICA_APISERVER_LIMITS_H
#define SILICA_APISERVER_LIMITS_H

#define DISK_PATH_MAX_BYTES  4096
#define DISK_BUSY_TIMEOUT_MS 5000 /* the other connection's checkpoint, at its worst */
#define DISK_CHECKPOINT_PAGES                                                                      \
    4000 /* 16 MiB of log; commits stay under 5 ms at p99 where the default's 4 MiB gives 7-19 */
#define DISK_RESERVE_BYTES                                                                         \
    (32 << 20) /* for a full disk: what is in the log must fit into the file, and then deletes */
#define DISK_RESERVE_PART 16 /* and at most this part of the disk; the log is shorter then */
#define DISK_PAGE_BYTES   4096

#define STORE_BATCH_ROWS_MAX  1024 /* of one commit: more would only make its first waiter wait */
#define STORE_BATCH_BYTES_MAX (8 << 20) /* the same in bytes */
#define STORE_GATHER_ROWS_MAX                                                                      \
    64 /* a batch that has as many is committed at once: there is enough to share its price */
#define STORE_GATHER_US                                                                            \
    2000 /* a smaller one waits at most so long for what its writes bring about: twice what a claim's take together */
#define STORE_BODIES_KEPT_BYTES                                                                    \
    (1 << 20)                         /* of the block that rows are written in, between commits */
#define STORE_PENDING_MAX       65536 /* writes not on disk yet; then ERR_BUSY, which clients retry */
#define STORE_PENDING_MAX_BYTES (256u << 20)
#define STORE_PENDING_CALM                                                                         \
    4096 /* beyond, writers in this process are answered when theirs is on disk, as all others are: they
          * cannot be faster than the disk for long, only fill memory */
#define STORE_HISTORY_MAX                                                                          \
    10000 /* superseded states kept, on disk and in memory, for watches that come back */
#define STORE_HISTORY_MAX_BYTES                                                                    \
    (32                                                                                            \
     << 20) /* the same as JSON: trees take two to three times that, and objects may have 1 MiB */
#define STORE_HISTORY_FULL 0 /* the same while the disk is full */
#define STORE_GARBAGE_BATCH_MAX                                                                    \
    512 /* rows removed within one commit, beside two for each row that it adds: as many as that can supersede */
#define STORE_FRESH_MAX 1024 /* writes that stay trees, as who made them may look again; some MB */
#define STORE_FRESH_MS  1000 /* the same in time: between this and twice as long */
#define STORE_SWEEP_MS                                                                             \
    60000 /* trees that readers made of what rests live between this and twice as long */
#define STORE_REST_SLICE      32   /* objects that are packed in one turn, some us each */
#define STORE_SWEEP_SLICE     256  /* objects that are looked at in one turn */
#define STORE_ROOM_RETRY_MS   2000 /* how often a full disk is looked at again */
#define STORE_PUMP_EVENTS_MAX 512  /* deliveries to watchers in one turn of the loop */

#define API_HEAD_MAX_BYTES      (1 << 20)   /* exec has its whole command in the request line */
#define STREAM_CALLER_MAX_BYTES (32 * 1024) /* who asks, as JSON; one of a longer name is refused */
#define STREAM_TARGET_EXTRA_BYTES                                                                  \
    (4096 + 3 * STREAM_CALLER_MAX_BYTES) /* names that a request gets on its way to the pod side */
#define STREAMS_MAX 4096 /* then 429: each is two connections, and a few things of the pod's */
#define STREAMS_PER_NAMESPACE_MAX                                                                  \
    (STREAMS_MAX / 4) /* the same, of one namespace's Pods: others still have theirs */
#define STREAM_WAITING_MAX_BYTES                                                                   \
    (64 << 20) /* of requests without an answer yet, then 429: each is held three times meanwhile */
#define STREAM_HEAD_MS 30000 /* a pod side that died is started again within this */
#define STREAM_IDLE_MS                                                                             \
    1 /* sockets to a pod side cost nothing, and a kept one may be that of a process which died */

#define LIST_SLICE_BYTES                                                                           \
    (64 * 1024) /* of one turn; encrypting them takes 0.1 ms (slices.h has the time) */
#define LIST_SLICE_OBJECTS   256           /* the same where few are selected */
#define COLLECT_SLICE        128           /* objects looked at in one turn */
#define COLLECT_RESTORE_MS   1500          /* a client that waits for a delete sees that it went */
#define API_IDLE_TIMEOUT_MS  (10 * 60000)  /* clients keep connections for their next call */
#define DELETE_SLICE_OBJECTS 64            /* each is a write */
#define EVENT_TTL_MS         (3600 * 1000) /* as the public server keeps them */
#define EVENTS_MAX                                                                                 \
    10000 /* about 25 MB of memory; a controller in a fit writes that in seconds, and its hour would be gigabytes */
#define LEASE_TTL_MS    (24ull * 3600 * 1000) /* its holder has long been replaced, or given up */
#define LEASES_MAX      20000
#define EXPIRE_PAUSE_MS 60000
#define WATCHES_PER_USER_MAX                                                                       \
    2000 /* then 429: each is some KiB, and a look at each change; a client has some twenty */
#define WATCH_BOOKMARK_MS 60000 /* about once a minute, as clients expect */
#define WATCH_FAR_BEHIND                                                                           \
    1000 /* writes; a tenth of the history: then its first bookmark comes soon, */
#define WATCH_CATCH_UP_MS 100          /* with what it has to catch up told before */
#define WATCH_TIMEOUT_MS  (30 * 60000) /* when the client names none: it comes back by itself */

#endif
