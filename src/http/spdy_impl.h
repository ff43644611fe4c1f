/* spdy_impl: what the files of the SPDY engine share. Not for others. spdy.c has life, verbs and sending, spdy_recv.c
 * reads frames. */
#ifndef SILICA_HTTP_SPDY_IMPL_H
#define SILICA_HTTP_SPDY_IMPL_H

#include "http/spdy.h"
#include "http/spdy_block.h"

#define SPDY_BUCKETS          64
#define SPDY_FRAME_HEAD_BYTES 8
#define SPDY_FLAG_FIN         1
#define SPDY_ID_MASK          0x7fffffffu
#define SPDY_WINDOW_MAX       0x7fffffff

enum spdy_type {
    SPDY_SYN_STREAM = 1,
    SPDY_SYN_REPLY = 2,
    SPDY_RST_STREAM = 3,
    SPDY_SETTINGS = 4,
    SPDY_PING = 6,
    SPDY_GOAWAY = 7,
    SPDY_HEADERS = 8,
    SPDY_WINDOW_UPDATE = 9,
};

enum spdy_setting { SPDY_SETTING_MAX_STREAMS = 4, SPDY_SETTING_WINDOW = 7 };

enum spdy_recv_state { SPDY_AT_HEAD, SPDY_AT_CONTROL, SPDY_AT_SKIP, SPDY_AT_DATA, SPDY_AT_LOST };

struct spdy_stream {
    struct spdy_stream *next; /* in its bucket */
    struct spdy_stream *next_closed;
    struct spdy *h;
    void *user;
    uint32_t id;
    bool is_peers;
    bool has_reply;                /* SYN_REPLY went out or came in */
    bool has_in_end;               /* the peer ended its side */
    bool has_finish;               /* we are to end ours */
    bool has_out_end;              /* we did */
    bool is_reset;                 /* by either; nothing but on_close follows */
    bool is_closed;                /* on_close is owed */
    bool was_full;                 /* on_drain is owed when the queue is low */
    uint32_t status;               /* for on_close */
    struct buf queue;              /* waits for the window */
    int64_t send_window;           /* may be negative, after SETTINGS */
    int64_t recv_window;           /* what the peer may still send */
    uint32_t unconsumed, consumed; /* given and not credited; credited and not told yet */
};

struct spdy {
    struct spdy_config config;
    const struct spdy_events *events;
    void *ctx;
    struct spdy_packer *packer;
    struct spdy_unpacker *unpacker;
    struct spdy_stream *buckets[SPDY_BUCKETS];
    struct spdy_stream *closed, **closed_end; /* in the order of their ends */
    size_t count, peers_open, ours_open;
    struct buf out;
    uint32_t next_id, last_peer_id, next_ping;
    uint32_t peer_max_streams;
    bool has_goaway, has_peer_goaway;
    int64_t peer_initial_window, send_window, recv_window;
    uint32_t consumed;
    /* the frame under way */
    enum spdy_recv_state state;
    uint8_t head[SPDY_FRAME_HEAD_BYTES];
    size_t head_n, left;
    uint8_t flags;
    uint16_t type;
    uint32_t data_id;
    struct buf control;
};

struct spdy_stream *spdy_find(struct spdy *h, uint32_t id);
struct spdy_stream *spdy_stream_new(struct spdy *h, uint32_t id, bool is_peers);
/* on_close is owed from now on; what is queued is dropped. */
void spdy_stream_close(struct spdy_stream *s, uint32_t status);
/* Closes it if both sides have ended. */
void spdy_stream_settle(struct spdy_stream *s);
/* Sends what the windows allow now. */
void spdy_stream_pump(struct spdy_stream *s);
/* Frames. */
void spdy_write_rst(struct spdy *h, uint32_t id, uint32_t status);
void spdy_write_u32s(struct spdy *h, enum spdy_type type, const uint32_t *values, size_t count);
/* The connection is over: a GOAWAY is queued. -1, *e stands. */
int spdy_lose(struct spdy *h, uint32_t status);

uint32_t spdy_be32(const uint8_t *p);

#endif
