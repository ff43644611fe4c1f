/* Numbers of the sandboxd contract, with their reasons. */
#ifndef SILICA_RUNTIME_SANDBOXD_LIMITS_H
#define SILICA_RUNTIME_SANDBOXD_LIMITS_H

/* clang-format off */
#define SANDBOXD_MESSAGE_MAX_BYTES   (4 * 1024 * 1024) /* one gRPC request, then RESOURCE_EXHAUSTED: what clients know as the default */
#define SANDBOXD_EXECUTE_DRAIN_MS    10000 /* after Execute's command ended, for pipes held by what it left in the background */
#define SANDBOXD_START_DRAIN_MS      5000  /* the same for Start */
#define SANDBOXD_NOTICE_MAX_BYTES    256   /* the line in stderr that says output was cut */
#define SANDBOXD_STREAM_SHARE_BYTES  (64 * 1024) /* of Execute's ceiling that a flood on the other stream cannot take: the error is often the last line */
#define SANDBOXD_PROGRAM_MAX_BYTES   256   /* of a program's name in messages and logs */
#define SANDBOXD_REFLECT_MAX_BYTES   (64 * 1024)  /* one question of reflection: names are short */
#define SANDBOXD_REFLECT_QUEUE_BYTES (512 * 1024) /* questions waiting while the client does not read answers; then RESOURCE_EXHAUSTED */
#define SANDBOXD_QUERY_MAX_BYTES     4096  /* a query value that is shown in an error */
/* clang-format on */

#endif
