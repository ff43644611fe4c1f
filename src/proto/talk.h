/* talk: what the owner of a sandbox and its PID 1 say to each other on the control stream. HTTP and gRPC are spoken there,
 * too; this is for commands, of which most are over in a millisecond, and then the reading of heads is what takes time.
 *
 *     -> TALK_PREFACE, once                       no HTTP begins with its first byte
 *     -> START(program, variables, directory)     INPUT* END?  SIGNAL* RESIZE* CREDIT* CANCEL?
 *     <- STARTED (OUT | ERR | TAKEN | SHUT)* EXIT   or FAILED alone
 *
 * A frame is its kind (1 byte), the length of what follows (3), the command it is about (4), all big-endian, and that many
 * bytes. The owner gives commands their numbers. PID 1 sends no more than TALK_WINDOW_BYTES of a command's output that
 * CREDIT has not given back. INPUT is answered by TAKEN when the command's pipe has it, or by SHUT when nobody reads; the
 * next one follows then.
 *
 * Owns:     a part of one frame, never more than the longest that may come from the other side.
 * Used by:  sandbox/line.c and runtime/owner.c. Does no I/O, reads no clock.
 * Hostile:  both sides are. Kinds of the wrong side, lengths that do not fit the kind, texts that are not UTF-8: ERR_PROTOCOL.
 */
#ifndef SILICA_PROTO_TALK_H
#define SILICA_PROTO_TALK_H

#include "base/buf.h"
#include "http/feed.h"

#define TALK_PREFACE         "\0silica1"
#define TALK_PREFACE_BYTES   8
#define TALK_HEAD_BYTES      8
#define TALK_START_MAX_BYTES (4 * 1024 * 1024) /* more than exec takes */
#define TALK_TEXTS_MAX       65536             /* arguments and variables of one command */
#define TALK_INPUT_MAX_BYTES (256 * 1024)      /* each waits for the answer to the one before */
#define TALK_PIECE_MAX_BYTES (64 * 1024)       /* of output */
#define TALK_WINDOW_BYTES    (256 * 1024)      /* of output under way */
#define TALK_WORDS_MAX_BYTES 1024              /* why a command could not be started */

enum talk_kind {
    TALK_START = 1,
    TALK_INPUT,   /* bytes */
    TALK_END,     /* end of the input */
    TALK_SIGNAL,  /* 1 byte: to the command's group */
    TALK_RESIZE,  /* columns and rows, 2 bytes each */
    TALK_CREDIT,  /* 4 bytes: so much output was used */
    TALK_CANCEL,  /* kill it with all that descends from it; no answer */
    TALK_STARTED, /* it runs */
    TALK_OUT,     /* bytes */
    TALK_ERR,     /* bytes */
    TALK_TAKEN,
    TALK_SHUT,
    TALK_EXIT,   /* 1 byte: its code, 128 + N when signal N killed it; the last of a command */
    TALK_FAILED, /* 1 byte: a gRPC status; why, in words; the last and only one */
};

enum talk_side { TALK_OWNER, TALK_PID1 };

struct talk_frame {
    enum talk_kind kind;
    uint32_t call;
    struct span bytes;
};

struct talk {
    enum talk_side from; /* who sends what is read here */
    struct buf part;     /* of a frame, its head included */
    bool is_broken;
};

/* `from`: whose frames are fed. */
void talk_init(struct talk *t, enum talk_side from);
void talk_done(struct talk *t);
/* Takes at most one frame. FEED_DONE: *ret is it, borrowed from `in` or from t until the next feed. */
enum feed talk_feed(struct talk *t, struct span in, size_t *ret_used, struct talk_frame *ret,
                    struct err *e);

/* Adds a frame; what it holds must fit its kind. -1: ERR_LIMIT of the buf. */
int talk_add(struct buf *out, enum talk_kind kind, uint32_t call, struct span bytes, struct err *e);
int talk_add_number(struct buf *out, enum talk_kind kind, uint32_t call, uint32_t number,
                    struct err *e); /* EXIT, SIGNAL, RESIZE (columns << 16 | rows), CREDIT */
/* Of one of those. */
uint32_t talk_number(const struct talk_frame *f);

/* What START holds. */
struct talk_start {
    bool has_tty;
    uint16_t cols, rows;
    char *cwd;   /* NULL: none was named */
    char **argv; /* NULL-terminated, one at least */
    char **env;  /* NAME=value; NULL-terminated */
    size_t argc, env_count;
    char *text; /* of a read one: what the others point into */
};

/* All of it is borrowed. -1: ERR_INVALID (no program, not UTF-8, no NAME=), ERR_LIMIT; nothing was added then. */
int talk_add_start(struct buf *out, uint32_t call, const struct talk_start *start, struct err *e);
/* Until talk_start_done. ERR_PROTOCOL. */
int talk_read_start(struct span bytes, struct talk_start *ret, struct err *e);
void talk_start_done(struct talk_start *start);

#endif
