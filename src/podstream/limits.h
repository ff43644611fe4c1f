/* The numbers of this room, each with what happens there. */
#ifndef SILICA_PODSTREAM_LIMITS_H
#define SILICA_PODSTREAM_LIMITS_H

/* Of a request: what the API server takes, and the names it adds. */
#define POD_HEAD_MAX_BYTES (2 << 20)
/* Then 429. A session is a connection of ours and a few pipes or sockets of the pod. */
#define POD_SESSIONS_MAX 4096
/* Decoded words of a command, then 400. Long request lines are how files are written through exec: 1 MiB must pass. */
#define POD_COMMAND_MAX_BYTES (1 << 20)
#define POD_COMMAND_MAX_WORDS 65536
/* Ports of one WebSocket port-forward, then 400: each has two channels, and a channel is a byte. */
#define POD_PORTS_MAX 64
/* One message of a WebSocket, then close code 1009; the kubelet's number. Only a piece of it is ever in memory. */
#define POD_MESSAGE_MAX_BYTES (32 << 20)
/* The same for the base64 protocols, whose messages are decoded whole. */
#define POD_BASE64_MAX_BYTES (1 << 20)
/* Written to one output frame at most: clients decode frame by frame. */
#define POD_FRAME_MAX_BYTES (32 * 1024)
/* A terminal's size, one JSON object; longer ones are dropped. */
#define POD_RESIZE_MAX_BYTES 256
/* The kubelet's: streams that belong together must all have come by then. */
#define POD_STREAMS_TIMEOUT_MS 30000
/* Input that came before its command runs, or its port answers; then the session, or the connection, ends. */
#define POD_EARLY_MAX_BYTES  (512 * 1024)
#define POD_EARLY_HIGH_BYTES (64 * 1024) /* from which nothing more is read */
/* A byte that may begin a character waits this long for the rest, then goes alone: what it belongs to is not text. On a busy
 * machine a program that fills its pipe in the middle of one is not asked for more at once: 20 ms were too few. */
#define POD_CHARACTER_WAIT_MS 200
/* How often a client is asked at the end whether it has read all that was said (remote_ws.c), how long an answer is waited for
 * (clients that answer no pings have this pause instead), and the moment it has after it. */
#define POD_END_ASKS         2
#define POD_ECHO_PATIENCE_MS 50
#define POD_ECHO_REST_MS     2
/* A port that refuses is asked again for this long: clients of a server that has just been started come too early, and
 * kubectl gives the whole forward up at the first refusal. */
#define POD_DIAL_PATIENCE_MS 1000
#define POD_DIAL_FIRST_MS    20
#define POD_DIAL_TIMEOUT_MS  10000

#endif
