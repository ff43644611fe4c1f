/* limits: the ceilings and pauses of this room. */
#ifndef SILICA_UP_LIMITS_H
#define SILICA_UP_LIMITS_H

#define PART_ARGS_MAX 64
#define PART_LINE_MAX_BYTES                                                                        \
    (64 * 1024) /* of a line to us: a ready line has the addresses of a few listeners */
#define PART_PIECE_BYTES (64 * 1024) /* of a log, read at once: a pipe holds as much */
#define PART_WORDS_MAX_BYTES                                                                       \
    (4 * 1024) /* of why a part could not start: a message, its hint, the lines before */
#define PART_WAIT_MIN_MS 20   /* before one that died is started again: callers hardly notice */
#define PART_WAIT_MAX_MS 5000 /* that wait doubles up to here while it dies young */
#define PART_STEADY_MS   2000 /* one that lived as long did not die young */

#define PORTS_TRIED 32 /* in a row, from the usual one */
#define UP_NAP_MS   10 /* between two looks at what is about to end */
#define UP_REST_MS                                                                                 \
    10000 /* for the parts of a killed one to be gone: the kernel kills them at once */

#define GATE_RETRY_MS    5000 /* until port 80 is asked for again */
#define GATE_PATIENCE_MS 5000 /* for the router at a Gateway's address to end its requests */

#define SCHEDULE_TELL_MS                                                                           \
    20 /* after a Pod was bound, its Event: its sandbox begins in that time, which somebody may wait for */
#define SCHEDULE_EVENTS_MAX 32 /* at a time: the loop has more to do */
#define SCHEDULE_ROOM_MS                                                                           \
    10 /* after a Pod has ended, for those that wait for room: often several end */
#define SCHEDULE_RETRY_MS 1000 /* after a binding that the store did not take */

#define TOKEN_LIFE_S (7 * 24 * 3600) /* of a part's token */
#define TOKEN_RENEWAL_MS                                                                           \
    (12 * 3600 * 1000) /* it gets another long before, so that a laptop may sleep over a weekend */
#define TOKEN_RETRY_MS 10000

#define UP_FILE_MAX_BYTES (64 * 1024) /* up.json */

#endif
