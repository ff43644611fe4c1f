/* limits: the numbers of the controllers, each with its reason. */
#ifndef SILICA_CONTROLLER_LIMITS_H
#define SILICA_CONTROLLER_LIMITS_H

/* Domains whose labels claims may use; an operator lists a handful. */
#define DOMAINS_MAX            256
#define DOMAINS_FILE_MAX_BYTES (64u * 1024)
/* Sets of labels over all metrics; a histogram of each is some 20 lines. Labels of one are names of 253 bytes at most. */
#define FIGURES_SERIES_MAX       1000
#define FIGURES_LABELS_MAX_BYTES 2048

/* How often memory is given back to the system, if there was work and all is quiet: walking a heap takes milliseconds. */
#define TRIM_MS 2000
/* Copies of objects that are moved in one turn: each takes some us. */
#define PACK_OBJECTS 64
/* Memory of one pass: the largest object the API takes, a few times over. */
#define PASS_MAX_BYTES (32u * 1024 * 1024)
/* A patch or body that is sent; the API server takes no more. */
#define BODY_MAX_BYTES (3u * 1024 * 1024)
/* The API has this ceiling for a condition's message; a longer error is cut. */
#define MESSAGE_MAX_BYTES 32768
/* Keys of labels and annotations in one list: the API's ceiling for all annotations of an object. */
#define KEYS_MAX_BYTES (256u * 1024)
/* A sandbox that expires sooner is looked at after this: two passes follow each other anyway. */
#define EXPIRY_MIN_WAIT_MS 2000
/* The second pass of an expiry comes at once, but after the first one's writes. */
#define EXPIRY_NEXT_PASS_MS 1
/* A note of an Event; the API has this ceiling. */
#define EVENT_NOTE_MAX_BYTES 1024
/* A warning that is given again within this is counted in the same Event, as the public recorder does. */
#define EVENT_SERIES_MS (6 * 60 * 1000)
/* Warnings that are remembered for that; beyond it the oldest is forgotten, and would be an Event of its own. */
#define EVENT_SERIES_MAX 1024
/* Pods that a sandbox owns, and are looked at: one is right, two are a conflict, more need no room of their own. */
#define OWN_PODS_MAX 16
/* Patches of one Pod or Service in a pass while others write it too; the next event tells of the rest. */
#define PATCHES_MAX 3
/* A sandbox whose Pod has not begun says nothing for so long: mostly it is ready by then. For a member of a pool nobody waits, and on
 * a busy cluster its Pod takes longer than that to be scheduled. */
#define FIRST_STATUS_MS  50
#define MEMBER_STATUS_MS 1000
/* The Pod of a pool's member is made so long after it on a cluster: the garbage collector hears of both by streams of their own, and
 * asks the server for an owner that it has not heard of, and for the owner's owner. Nobody waits for a member. */
#define MEMBER_POD_MS 50
/* What is written down of a claim that is ready, and says nothing new, waits so long where the store is ours: as long as its
 * Events, so that all of it is one commit, and not the one that the claim waits for. */
#define AFTERWARDS_MS 20
/* Whatever the operator says, labels of a Pod wait no longer: the router looks at them. */
#define WRITE_BEHIND_MAX_MS 1000
/* A member that is not ready at the end of its grace is looked at this much later: its last status may be under way. */
#define POOL_GRACE_MARGIN_MS 2000
#define POOL_FINISHED_MS                                                                           \
    10000 /* the age from which a member that has ended is replaced: a template whose Pods end at once is not tried faster */
/* A pool that waits for what it asked for looks again then, if no event comes. */
#define POOL_HELD_MS 30000
/* Members are looked at one by one at least so often while a pool is busy; in between their numbers are enough. What the numbers
 * cannot show is seen at once otherwise (pools.c), so this is for what we did not think of. */
#define POOL_LOOK_MS    10000
#define POOL_CROWDED_MS 1000 /* until a pool without room for more is looked at again */
/* A pool's status is written at most this often: at a thousand claims a second every number is old when it is read. While members are
 * on their way its numbers wait longer: each claim takes one away, and mostly the next has come by then. Under claims that never end
 * they wait much longer as long as what was told is right but for this part of the pool: a write a second, which says little, is a
 * tenth of what a claim costs at ten claims a second. */
#define POOL_STATUS_MS 100
#define POOL_UNEVEN_MS 1000
#define POOL_MOVING_MS 30000
#define POOL_NEAR_PART 8
/* Writes of a batch (or this part of what is left), and Events, that are under way at a time while claims wait: they come in
 * between. On a cluster the same goes for sandboxes: there it is the server's time that claims wait for. */
#define BATCH_BUSY      4
#define BATCH_BUSY_PART 32
/* The same on a cluster while none waits: more at once do not get done sooner there, and a claim that comes, the scheduler and the
 * nodes would find a long line before them. */
#define BATCH_REMOTE 16
#define EVENTS_BUSY  2
#define EVENTS_IDLE  64
#define EVENTS_HELD_MS                                                                             \
    10                   /* those that wait for a claim look so often whether it has come through */
#define EVENTS_REMOTE  8 /* the same on a cluster, where the server's time is everybody's */
#define SANDBOXES_BUSY 8
/* What no claim waits for is not begun beside one on a cluster, for so long after the last moment without any: several times what a claim
 * takes there. By then it is no single claim but load, and the bounds above hold. */
#define HOLD_MAX_MS 200
/* A pool on a cluster is not filled while claims wait, as long as it has a member for each of them and this part of itself to spare;
 * and not for longer than this: by then it is no burst but the usual load. It looks so often whether they still wait: well within a
 * claim's time, or looks would fall in step with claims that come evenly, and see one wait each time. */
#define GATE_SPARE_PART   8
#define GATE_YIELD_MAX_MS 10000
#define POOL_YIELD_MS     10
/* What went well is written so long after: what it tells of is on its way to whoever waits, and would wait behind it. */
#define EVENTS_PAUSE_MS 20
/* A pool looks so long after a member was taken: what it writes to replace that would be committed before the claim is told, and
 * its sandbox would begin while the client's first request does. */
#define POOL_TAKEN_MS 5
/* Events that wait; beyond it they are written at once. */
#define EVENTS_WAITING_MAX 4096
/* A claim waits this long after its creation for a member that has no address yet; then it gets a new one. It is woken when one
 * has it, and looks so often besides, as the public controller does. */
#define CLAIM_PATIENCE_MS 2000
#define CLAIM_POLL_MS     500
/* Adoptions of one sandbox that are tried in one pass while others write it. */
#define CLAIM_TRIES_MAX 5
/* A claim without pool or template looks again then, if no event comes; one whose sandbox is not in the copy yet, then. */
#define CLAIM_MISSING_MS 60000
#define CLAIM_CREATED_MS 200

/* Lines about failed passes in the log. Where the server refuses everything each of a thousand objects would have its own. */
#define COMPLAINTS_A_MINUTE 20

/* A ConversionReview, then 413: an API server sends a list as one of them, and some ten thousand claims are 64 MiB. */
#define REVIEW_MAX_BYTES (64u * 1024 * 1024)
#define REVIEW_NODES_MAX (8u * 1024 * 1024)
/* One object in it and what its conversion takes; etcd has none above 1.5 MiB, and its state may be in it once more. */
#define REVIEW_OBJECT_MAX_BYTES (32u * 1024 * 1024)
/* An answer is larger than its review by the annotation that holds the older version. */
#define REVIEW_ANSWER_MAX_BYTES (3 * REVIEW_MAX_BYTES)
/* Bytes of reviews at once, then 503 and come again: anybody in the cluster may send them. */
#define WEBHOOK_BYTES_MAX       (128u * 1024 * 1024)
#define WEBHOOK_CONNECTIONS_MAX 256 /* API servers have a few each */
/* One that has come whole is converted by one of so many threads: a large one takes a second. */
#define WEBHOOK_THREADS 2

#endif
