/* h2_pair: a server and a client that talk through memory, and write down what happens. For
 * tests. */
#ifndef SILICA_HTTP_H2_PAIR_H
#define SILICA_HTTP_H2_PAIR_H

#include "http/h2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

extern uint64_t clock_ms; /* what both ends take for the time */

/* One end, with everything that happened to it written down. */
struct end {
    struct h2 *h;
    struct buf log;
    struct buf wire; /* pulled and not yet fed to the other */
    struct err e;    /* of a failed feed */
    bool is_failed;
    bool is_greedy;         /* consumes in on_data */
    size_t got;             /* body bytes */
    struct h2_stream *last; /* that had on_head or was requested; NULL once closed */
    void (*serve)(struct end *end, struct h2_stream *s, const struct http_head *head);
};

void end_open(struct end *end, struct h2_config config);
void end_close(struct end *end);
/* What happened since the last time. */
void expect(struct end *end, const char *log);
/* Gives what one end has to say to the other, in pieces of at most `step`; was there anything? */
bool carry(struct end *from, struct end *to, size_t step);
/* Until both are silent. */
void talk(struct end *a, struct end *b, size_t step);
/* A request with one more field, or NULL. */
void head_of(struct http_head *head, const char *method, const char *path, const char *field,
             const char *value);
struct h2_stream *request(struct end *end, const char *method, const char *path, bool is_end);
void respond(struct h2_stream *s, int status, bool is_end);
void finish_with(struct h2_stream *s, const char *name, const char *value);
/* What the rules do not let our own client say. Lines are "name: value". */
void raw_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t id, struct span body);
void raw_head(struct buf *out, uint32_t id, uint8_t flags, const char *lines);
void raw_open(struct buf *out);

#endif
