/* Numbers of the room, with their reasons. */
#ifndef SILICA_TRACE_LIMITS_H
#define SILICA_TRACE_LIMITS_H

/* Spans that wait for the collector, and of them in one call: OpenTelemetry's own defaults. More are dropped and counted: a
 * collector that is away must not cost the program its memory */
#define TRACE_QUEUE_MAX 2048
/* The same in bytes: most spans have 200, but clients choose the texts */
#define TRACE_QUEUE_MAX_BYTES (4 << 20)
#define TRACE_BATCH_MAX       512
/* Of one call: below what a server of gRPC takes, which is 4 MiB, with room for the rest of the message. A span has a tag and its
 * length before it */
#define TRACE_BATCH_MAX_BYTES  (3 << 20)
#define TRACE_SPAN_FRAME_BYTES 8
/* Of one text in a span, a path or a name that a client chose; the rest is cut */
#define TRACE_TEXT_MAX 1024
/* Of one span as it is sent: texts of so many attributes at most */
#define TRACE_ATTRIBUTES_MAX 8
#define TRACE_SPAN_MAX_BYTES (32 * 1024)
/* Of tracestate; the standard asks for 512 at least */
#define TRACE_STATE_MAX_BYTES 512
/* From the first span of a batch to its call */
#define TRACE_DELAY_MS 5000
/* For the collector to answer */
#define TRACE_TIMEOUT_MS 10000
/* Between tries when it is not there, doubled each time; then what was in the batch is lost */
#define TRACE_RETRY_MIN_MS 500
#define TRACE_RETRY_MAX_MS 8000
#define TRACE_TRIES_MAX    6
/* Of its answer, which has a number and perhaps a sentence */
#define TRACE_ANSWER_MAX_BYTES (64 * 1024)
/* Headers and attributes that the environment gives */
#define TRACE_PAIRS_MAX_BYTES (32 * 1024)
#define TRACE_PAIRS_MAX       64

#endif
