/* line: commands of one sandbox on the stream to its PID 1, as proto/talk has them.
 *
 * Owns:     the connection, what waits to be sent, the list of calls; not the calls.
 * Used by:  sandbox.c.
 * Threads:  the loop's.
 * Life:     a call is in its owner's struct. It is on the line from line_start until line_leave, or until its on_gone ran.
 *           No event runs inside a verb; frames of one turn leave in one piece.
 * Hostile:  frames are judged by proto/talk; those of calls that are not on the line are dropped; texts that become errors
 *           hold no control characters.
 */
#ifndef SILICA_SANDBOX_LINE_H
#define SILICA_SANDBOX_LINE_H

#include "ev/loop.h"
#include "proto/talk.h"

struct line;

struct line_call {
    struct line_call *next;
    uint32_t id; /* 0: not on the line */
    /* A frame of this call, borrowed. */
    void (*on_frame)(void *ctx, const struct talk_frame *f);
    /* It is off the line: ERR_CLOSED, ERR_PROTOCOL, ERR_CANCELED. */
    void (*on_gone)(void *ctx, const struct err *e);
    void *ctx;
};

/* Takes fd, also on failure. */
int line_open(struct ev_loop *loop, int fd, struct line **ret, struct err *e);
/* In a later turn: calls that are still there get ERR_CANCELED, then the connection is closed. Tolerates NULL. */
void line_close(struct line *l);

/* -1: ERR_CLOSED, ERR_BUSY when SANDBOX_CALLS_MAX are under way, and what talk_add_start says. */
int line_start(struct line *l, struct line_call *c, const struct talk_start *start, struct err *e);
void line_leave(struct line *l, struct line_call *c);
/* About a call on the line; else nothing happens. */
void line_send(struct line *l, const struct line_call *c, enum talk_kind kind, struct span bytes);
void line_send_number(struct line *l, const struct line_call *c, enum talk_kind kind,
                      uint32_t number);
/* PID 1 breaks the rules. From events only: it is the end of all calls. */
void line_break(struct line *l, const struct err *e);

/* Copies a text of PID 1 as it may be shown on a terminal: what is no printable UTF-8 becomes '?'. */
void line_clean_text(struct span text, struct buf *out);

#endif
