/* http1: HTTP/1.0 and 1.1 messages, read from and written to bytes.
 *
 *     while ((ev = http1_feed(&p, in, &used, &data, &e)) != HTTP1_MORE) {
 *         in = span_skip(in, used);
 *         switch (ev) { ... HTTP1_END: answer, then http1_next(&p) ... }
 *     }
 *
 * Owns:     the head of the message under way and its trailers; never a body. Between messages nothing
 *           large is held once http1_release() was called, so idle connections are cheap.
 * Used by:  server connections (requests), clients and the router's backends (responses). No I/O, no clock.
 * Strict:   whatever two implementations could read differently is refused (RFC 9112 11.2): two framings,
 *           repeated or unclean lengths, folded lines, bare CR or LF, blanks before a colon, control bytes.
 *           Where the stream is cut never changes the answer.
 * Threads:  a parser belongs to one loop. Input is borrowed for the call.
 */
#ifndef SILICA_HTTP_HTTP1_H
#define SILICA_HTTP_HTTP1_H

#include "http/head.h"

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };

enum http1_event {
    HTTP1_MORE, /* all input is used, the message goes on */
    HTTP1_HEAD, /* p->head is complete and lives until http1_next() */
    HTTP1_DATA, /* *ret_data is body, a part of `in` */
    HTTP1_END,  /* the message is complete; p->trailers may have come */
    HTTP1_BAD, /* *e: ERR_PROTOCOL or ERR_LIMIT; answer p->bad_status and close. The parser stays broken */
};

struct http1_limits {
    size_t head_bytes;      /* first line and fields together: 431, 414 within the first line */
    size_t head_fields;     /* 431 */
    size_t line_bytes;      /* one line: 431, the first one 414 */
    size_t trailer_bytes;   /* 431 */
    size_t trailer_fields;  /* 431 */
    size_t chunk_ext_bytes; /* chunk extensions of one body together: 400 */
    uint64_t body_bytes;    /* 413, at the head when the length is declared */
};
extern const struct http1_limits http1_limits_default; /* limits.h; bodies without a ceiling */

enum http1_state {
    HTTP1_AT_START,    /* between messages */
    HTTP1_AT_START_LF, /* behind the CR of the one blank line a request may follow (RFC 9112 2.2) */
    HTTP1_AT_FIRST_LINE,
    HTTP1_AT_FIELD_START, /* a field or the blank line may come */
    HTTP1_AT_FIELD,
    HTTP1_AT_HEAD_LF,
    HTTP1_AT_LENGTH, /* `left` body bytes to come, perhaps none */
    HTTP1_AT_CLOSE,  /* the body lasts until the peer closes */
    HTTP1_AT_CHUNK_SIZE,
    HTTP1_AT_CHUNK_EXT,
    HTTP1_AT_CHUNK_SIZE_LF,
    HTTP1_AT_CHUNK_DATA,
    HTTP1_AT_CHUNK_CR,
    HTTP1_AT_CHUNK_LF,
    HTTP1_AT_TRAILER_START,
    HTTP1_AT_TRAILER,
    HTTP1_AT_TRAILER_LF,
    HTTP1_AT_END, /* complete; waits for http1_next() */
    HTTP1_AT_BROKEN,
};

struct http1 {
    struct http_head head;
    struct http_head *trailers; /* NULL when none came */
    const struct http1_limits *limits;
    uint64_t
        content_length;  /* of the body that follows: 0 when none does, UINT64_MAX when unknown */
    uint64_t body_bytes; /* of the body so far */
    uint64_t left;       /* of a counted body, or of the chunk */
    uint32_t line_at;    /* where the line under way began in the text */
    uint32_t ext_bytes;  /* chunk extensions so far */
    uint16_t bad_status;
    uint8_t digits;      /* of the chunk size under way */
    uint8_t kind, state; /* enum http1_kind, enum http1_state */
    bool is_chunked : 1;
    bool keep_alive : 1;       /* another message may follow this one */
    bool expects_continue : 1; /* the client waits for 100 before it sends the body */
    bool is_upgrade : 1;       /* a request that asks for http1_upgrade(), if the server likes */
    bool
        is_switched : 1; /* a 101, or a 2xx to CONNECT: behind END the bytes are another protocol's */
    bool answers_head : 1, answers_connect : 1;
    bool had_blank_line : 1;
    /* what the fields said, until the head is judged as a whole */
    bool has_length : 1, has_coding : 1, has_host : 1, has_close : 1, has_keep_alive : 1,
        has_upgrade : 1;
    bool has_upgrade_token : 1, has_expect : 1;
};

/* limits NULL means the defaults; they are borrowed for the parser's life. Allocates nothing. */
void http1_init(struct http1 *p, enum http1_kind kind, const struct http1_limits *limits);
void http1_done(struct http1 *p);

/* Responses only: the method of the request that this message answers. HEAD and CONNECT change where it
 * ends. Forgotten at http1_next(), except behind an interim (1xx) response. */
void http1_set_method(struct http1 *p, struct span method);

/* Consumes some of `in`, returns one event. Call again with the rest until HTTP1_MORE: even with nothing
 * left to read there may be an END to report. Behind END nothing is consumed and END comes again, until
 * http1_next(): what follows may be the next message, or another protocol's bytes. */
enum http1_event http1_feed(struct http1 *p, struct span in, size_t *ret_used,
                            struct span *ret_data, struct err *e);
/* What the peer's end of stream means: MORE when nothing was under way, END when it ends a body without
 * length, BAD when it cuts a message (ERR_CLOSED). */
enum http1_event http1_eof(struct http1 *p, struct err *e);
/* Begins the next message; only behind END. */
void http1_next(struct http1 *p);
/* Gives the memory back while a connection idles. Does nothing while a message is under way. */
void http1_release(struct http1 *p);

/* The protocol asked for (its first choice) or switched to; p is NULL when there is none. */
struct span http1_upgrade(const struct http1 *p);
/* May this stand in Host or as an authority: host or [v6] with an optional port? Empty is allowed. */
bool http1_host_is_valid(struct span host);

/* Writers. -1 with ERR_INVALID for what must not go on the wire (a control byte in a value, a blank in a
 * target: that is how responses are split), ERR_LIMIT at out's ceiling; then *out is as before.
 * Framing fields are the caller's: content-length or transfer-encoding stand in the head like any other. */
int http1_write_request(struct buf *out, const struct http_head *h, struct err *e);
int http1_write_response(struct buf *out, const struct http_head *h, struct err *e);
/* The same in pieces, for answers that need no head: status line, fields, then CRLF. */
int http1_write_status(struct buf *out, int status, struct err *e);
int http1_write_field(struct buf *out, struct span name, struct span value, struct err *e);
/* The same for a name of ours, which is a token. */
int http1_write_ours(struct buf *out, struct span name, struct span value, struct err *e);
int http1_write_fields(struct buf *out, const struct http_head *h, struct err *e);
int http1_write_field_u64(struct buf *out, const char *name, uint64_t value, struct err *e);
int http1_write_head_end(struct buf *out, struct err *e);
/* "1f4\r\n"; n bytes and "\r\n" must follow. n is not 0: that would end the body. */
int http1_write_chunk_head(struct buf *out, uint64_t n, struct err *e);
/* A whole chunk; an empty one is left out. */
int http1_write_chunk(struct buf *out, struct span data, struct err *e);
/* Ends a chunked body; trailers may be NULL. */
int http1_write_last_chunk(struct buf *out, const struct http_head *trailers, struct err *e);
/* "Not Found"; "" for a status without a name. */
const char *http1_reason(int status);

#endif
