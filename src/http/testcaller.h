/* testcaller: an HTTP/2 client of the test desk, on the desk's loop.
 *
 * Used by:  tests only.
 */
#ifndef SILICA_HTTP_TESTCALLER_H
#define SILICA_HTTP_TESTCALLER_H

#include "http/h2.h"
#include "http/testdesk.h"

#define CALLER_REPLIES_MAX 8192

/* A request and what became of it. */
struct reply {
    struct caller *caller;
    struct h2_stream *stream; /* NULL once closed */
    struct http_head head, trailers;
    struct buf body;
    bool has_head, ends_with_head, is_ended, is_closed;
    uint32_t code;
    bool holds; /* gives the server no credit */
};

struct caller {
    struct desk *desk;
    struct conn *conn; /* NULL once closed */
    struct h2 *h2;
    struct reply *replies[CALLER_REPLIES_MAX];
    size_t n;
    bool has_goaway, is_eof;
    uint32_t goaway_code, goaway_last;
};

void caller_open(struct caller *c, struct desk *d);
void caller_close(struct caller *c);
/* fields: "name: value\n..." or NULL. Not flushed. */
struct reply *caller_start(struct caller *c, const char *method, const char *path,
                           const char *fields, bool is_end);
/* The same, and flushes. */
struct reply *caller_ask(struct caller *c, const char *method, const char *path, const char *fields,
                         bool is_end);
void caller_send(struct reply *r, struct span bytes, bool is_end);
void caller_reset(struct reply *r);
void caller_flush(struct caller *c);
/* For side_wait: of a reply, of a caller. */
bool reply_is_closed(void *reply);
bool reply_has_head(void *reply);
bool caller_is_closed(void *caller);
/* Waits for its end: status, body. NULL body is not compared. */
void reply_expect(struct reply *r, int status, const char *body);

#endif
