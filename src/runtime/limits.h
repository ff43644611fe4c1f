/* Numbers of the runtime, with their reasons. What an operator may change is in options.c. */
#ifndef SILICA_RUNTIME_LIMITS_H
#define SILICA_RUNTIME_LIMITS_H

/* Blocking file work; more only queues at the disk */
#define RUNTIME_FILE_THREADS 4
/* A JSON request body; /write carries a file in one, as base64 */
#define RUNTIME_JSON_MAX_BYTES (64 * 1024 * 1024)
/* A JSON body with a command; the kernel takes 2 MiB of arguments */
#define RUNTIME_EXECUTE_MAX_BYTES (4 * 1024 * 1024)
/* A JSON answer: an output ceiling's worth, each byte escaped, or a listing */
#define RUNTIME_ANSWER_MAX_BYTES (128 * 1024 * 1024)
/* Of an upload per trip to a worker; two of them are in memory at most */
#define STORE_PIECE_BYTES (1024 * 1024)
/* Of a body whose file failed: read and dropped, so that the client sees the answer */
#define STORE_ALL_MAX_BYTES                                                                        \
    (64 * 1024 * 1024) /* of all uploads together in memory; then each sender waits for its disk */
#define STORE_SINK_MAX_BYTES (16 * 1024 * 1024)

#endif
