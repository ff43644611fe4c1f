/* The numbers of this room, each with what happens there. */
#ifndef SILICA_NODE_LIMITS_H
#define SILICA_NODE_LIMITS_H

/* clang-format off */
/* The kubelet's: the first restart comes at once, the second after the first pause. */
#define LIFE_PAUSE_FIRST_MS 10000
#define LIFE_PAUSE_MOST_MS  300000
#define LIFE_STEADY_MS      600000 /* a container that ran as long starts counting anew */
#define LIFE_AFTER_HOOK_MS  2000   /* what a container has at least after its preStop hook, whatever that took */
#define HOOK_MOST_MS        3600000 /* a postStart hook that takes longer has failed; the kubelet waits for ever */
#define LIFE_TRY_FIRST_MS   1000   /* what cannot be started for another reason (no such image, no such ConfigMap) */
#define LIFE_TRY_MOST_MS    300000

#define NODE_ENGINE_THREADS 4    /* calls of the engine at once: they block, and it makes one sandbox after the other */
#define NODE_POD_WORKERS    64   /* Pods looked at at once */
#define NODE_RETRY_MOST_MS  30000 /* between two tries for a Pod that failed for a reason of ours, or the API server's */
#define NODE_SETTLE_MS      50   /* the status waits so long for a container that has just begun to be ready */
#define NODE_CONTAINERS_MAX 64   /* of one Pod; then it fails with an Event */
#define NODE_STATUS_MAX_BYTES (1 << 20) /* of one Pod, then it is not written and the log says so */
#define NODE_STDIN_HIGH_BYTES (512 * 1024) /* input of an exec that waits for its sandbox; then no more is read from the client */
#define NODE_STDIN_MAX_BYTES (1 << 20) /* the same with what had been read by then; never reached, else the exec fails */
#define NODE_PORTS_MAX      32   /* of one Pod that are served on its address; those beyond are reached by port-forward */
#define NODE_PORT_RETRY_MS  2000 /* a port at a Pod's address that another program has is tried again */
#define ADDRESS_HOLD_MS     3000 /* after a start: until then a session connects again, which is tried every second */
#define ADDRESS_SESSIONS_MAX 1024 /* connections that ask for Pods' addresses; more are closed */
#define NODE_SOCKET_ASKERS_MAX 64 /* routers that ask for sockets: the workers of one, and those at Gateways */
#define NODE_SOCKET_ASKS_MAX 64  /* of one of them at once; more wait in its socket */
#define NODE_DIAL_MS        10000 /* to a port of a sandbox */
#define NODE_EXEC_TIMEOUT   "3600s" /* a command of /execute is ended then, unless its Pod says otherwise; the router waits as long */
#define NODE_EXIT_LOOK_MS   1000 /* between two looks at a sandbox whose end cannot be told by the kernel */

#define EVENTS_WAIT_MS      20    /* before an Event is written: by then a container that has just begun is mostly ready */
#define EVENTS_WAITING_MAX  1024  /* then the first of them is written at once */

#define TEND_EVERY_MS       10000 /* between two looks at a Pod's volumes: as often as the kubelet measures */

#define VOLUME_LET_PASS_PART 10      /* a volume may hold a tenth more than its size: blocks are measured, and after the fact */
#define VOLUME_OVER_MS       1000    /* more than that for so long is too much */
#define VOLUME_GROWTH_BYTES  (1 << 20) /* what a volume that held too much already may grow by, for blocks of directories */
#define VOLUME_HELD_ENTRIES  5000    /* of a claim that are looked at before its Pod starts; then it is measured when it runs */

#define DISK_LOOK_MS      100   /* between two looks at the free space, while a Pod has volumes on disk */
#define DISK_FULL_LOOK_MS 10000 /* a volume is measured once in so long if free space changed at all: what one wrote another may have freed */
#define DISK_TURN_MAX     64    /* volumes measured in one turn, */
#define DISK_TURN_MS      50    /* or as many as this allows */
#define DISK_WALK_MOST_MS 2000  /* for one of them; then what was counted is the least it holds */
#define DISK_REST_TIMES   3     /* a turn is followed by so many times its own length of rest, */
#define DISK_REST_MOST_MS 300   /* but no more than this */
#define DISK_GREW_BYTES   (1 << 20) /* growth that counts as writing when the disk is nearly full */
#define DISK_THAW_PART    4     /* of the floor: so much more has to be free before the frozen go on */

#define NODE_LEASE_SECONDS  40    /* the kubelet's */
#define NODE_LEASE_RENEW_MS 10000
#define NODE_STATUS_EVERY_MS 300000 /* the Node object is written again, with nothing new to say */

#define LOG_PIECE_BYTES  (64 * 1024) /* read at once */
#define LOG_OUTPUT_MAX   (8 << 20)   /* of one piece: each of its lines may gain a time */
#define LOG_LOOK_AGAIN_MS 50
/* clang-format on */

#endif
