/* h2_impl: what h2.c (the connection), h2_recv.c (what comes in) and h2_send.c (what goes out)
 * share. Nobody else includes it. */
#ifndef SILICA_HTTP_H2_IMPL_H
#define SILICA_HTTP_H2_IMPL_H

#include "http/h2.h"

#include <nghttp2/nghttp2.h>

#define H2_SHUTDOWN_PING 0x73696c6963610001u /* our ping behind the shutdown notice */

/* Bytes waiting to be framed. Either copied behind the struct, or in a block taken from a buf. */
struct h2_chunk {
    struct h2_chunk *next;
    uint8_t *p; /* == inside, or a block of its own */
    size_t at, n, cap;
    uint8_t inside[];
};

struct h2_stream {
    struct h2 *h;
    struct h2_stream *prev, *next;
    void *user;
    int32_t id;
    struct http_head head;          /* the peer's */
    struct http_head *trailers_in;  /* while they are collected */
    struct http_head *trailers_out; /* waiting for the queue to drain */
    struct h2_chunk *first, *last;
    size_t queued;     /* bytes in the chunks */
    size_t unconsumed; /* given to on_data and not credited yet */
    size_t linger;     /* bytes the peer may still send behind our end */
    bool is_announced; /* on_close is owed */
    bool has_head;
    bool is_head_big; /* passed a ceiling; the rest is skipped */
    bool is_responded;
    bool is_finishing; /* our side ends when the queue is empty */
    bool is_deferred;  /* nghttp2 waits for us to say that there are bytes */
    bool is_peer_done;
    bool is_reset;     /* by us */
    bool is_lingering; /* closed to the user; the peer still sends */
    bool is_refused;   /* the request never left */
    bool was_full;     /* on_drain is owed */
};

/* Tokens that frames cost. The clock is looked at only when they are used up. */
struct h2_bucket {
    uint32_t left;
    uint64_t at_ms;
};

struct h2 {
    nghttp2_session *session;
    struct h2_config config;
    const struct h2_events *events;
    void *ctx;
    struct h2_stream *first;
    size_t count;    /* streams that were announced and are not closed */
    struct buf *out; /* of the h2_pull that runs */
    size_t out_end;  /* where it stops */
    bool is_out_full;
    struct h2_bucket resets, idle_frames;
    enum err_code lost; /* why no more is read; ERR_NONE while all is well */
    bool is_shut;       /* no new requests of ours */
    char why[128];      /* what nghttp2 said last about a broken peer */
};

uint64_t h2_now_ms(const struct h2 *h);
/* All that nghttp2 tells us, for the caller to delete. */
nghttp2_session_callbacks *h2_callbacks(void);
/* Ends the connection with this code; h2_feed fails from now on. */
void h2_lose(struct h2 *h, enum err_code code, uint32_t h2_code, const char *why);
struct h2_stream *h2_stream_new(struct h2 *h, int32_t id);
/* From now on the user knows it. Again does nothing. */
void h2_stream_announce(struct h2_stream *s);
void h2_stream_free(struct h2_stream *s);
/* Frees what waits to be sent. */
void h2_queue_drop(struct h2_stream *s);

/* nghttp2 asks for the next DATA frame of a stream, and lets us write it. */
ssize_t h2_on_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                   nghttp2_data_source *source, void *ctx);
int h2_on_write(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *frame_head, size_t n,
                nghttp2_data_source *source, void *ctx);
/* A server that cannot take a head. */
int h2_answer_431(struct h2_stream *s);

#endif
