/* Numbers of the network room, with their reasons. */
#ifndef SILICA_NET_LIMITS_H
#define SILICA_NET_LIMITS_H

/* A burst of new connections waits in the kernel; it cuts to somaxconn */
#define NET_BACKLOG 4096
/* Then the loop looks at other events: a flood of connects starves nobody */
#define NET_ACCEPTS_PER_TURN 64
/* Out of descriptors: wait for some to be closed, then accept again */
#define NET_ACCEPT_PAUSE_MS 50
/* Of EV_SCRATCH_BYTES each, before other connections get theirs */
#define CONN_READS_PER_TURN 4
/* Turns of reading after a failed write: 6 MiB, a receive buffer's usual ceiling */
#define CONN_LAST_READS 24
#define CONN_HIGH_BYTES (256 * 1024) /* queued output from which conn_is_full() says stop */
#define CONN_LOW_BYTES  (64 * 1024)  /* on_drain when a full connection falls to it */
/* Small writes share a block of this size in the queue */
#define CONN_CHUNK_BYTES (16 * 1024)
/* After a final answer, read and drop until nothing came for this long: an early close would
 * reset it away */
#define CONN_LINGER_MS     2000
#define CONN_LINGER_MAX_MS 30000 /* then close although bytes still come */
/* A peer that takes nothing of the last bytes for this long has gone */
#define CONN_FLUSH_STALL_MS 30000
/* Per trip to a worker: a trip costs about 30 us, this much about 1 ms */
#define CONN_SENDFILE_BYTES  (4 << 20)
#define CONN_FILE_READ_BYTES (256 * 1024) /* the same where bytes must pass through a filter */
/* An address that has not answered by then gets company (RFC 8305 section 5) */
#define DIAL_STAGGER_MS 250
/* A unix listener whose queue is full cannot be waited for, only asked again */
#define DIAL_UNIX_RETRY_MS 10
/* The same of a client, which may be a laptop that sleeps: two minutes */
#define NET_KEEPALIVE_S 60
/* A peer that is gone without a word is known after a minute */
#define DIAL_KEEPALIVE_S 15
/* One server, one try; resolvers on a loaded node take a second */
#define RESOLVE_TRY_MS 2000
#define RESOLVE_TRIES  3 /* then the name cannot be resolved now */

/* Where the kernel does not say that an address came or went */
#define HOST_ADDRS_MS 1000

#endif
