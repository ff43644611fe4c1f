/* inside: the words by which one process asks another for sockets made in the network of a Pod. The router asks, the node
 * answers; packets of a unix socket (SOCK_SEQPACKET), each one JSON object.
 *
 *     ask      {"id":7,"pod":"3f0c...","family":4,"count":2}
 *     answer   {"id":7}                                         with as many descriptors beside it, not connected
 *              {"id":7,"error":"...","unknown":true}            with none
 *
 * Owns:     nothing; does no I/O. Both sides read the other's words with care: either may have been taken over by
 *           what it talks to.
 * Used by:  node/sockets.c, router/sockets.c.
 */
#ifndef SILICA_NET_INSIDE_H
#define SILICA_NET_INSIDE_H

#include "base/buf.h"

/* clang-format off */
#define INSIDE_ASK_MAX_BYTES    256
#define INSIDE_ANSWER_MAX_BYTES 1024
#define INSIDE_POD_BYTES        64 /* a uid has 36 characters */
#define INSIDE_COUNT_MAX        4  /* sockets at once: one that is needed, some ahead */
#define INSIDE_ERROR_BYTES      400
/* clang-format on */

struct inside_ask {
    uint64_t id; /* chosen by who asks; comes back with the answer */
    char pod
        [INSIDE_POD_BYTES]; /* its uid: letters, digits, '-' and '.'; no later Pod of that name or address is meant */
    int family;     /* AF_INET, AF_INET6 */
    unsigned count; /* 1 to INSIDE_COUNT_MAX */
};

struct inside_answer {
    uint64_t id;
    bool is_unknown;                /* no such Pod is here: somebody else may have it */
    char error[INSIDE_ERROR_BYTES]; /* "": sockets came */
};

/* ERR_INVALID, ERR_LIMIT: it is not an ask; nobody of ours sends such. */
int inside_ask_read(struct span text, struct inside_ask *ret, struct err *e);
int inside_ask_write(const struct inside_ask *ask, struct buf *out, struct err *e);
int inside_answer_read(struct span text, struct inside_answer *ret, struct err *e);
int inside_answer_write(const struct inside_answer *answer, struct buf *out, struct err *e);

#endif
