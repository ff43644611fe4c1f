/* key_limit: at most so many of something at once for each key, such as connections of a client or streams of a namespace.
 *
 * Owns:     a row for each key that has some.
 * Threads:  one; each process counts its own.
 */
#ifndef SILICA_KUBE_KEY_LIMIT_H
#define SILICA_KUBE_KEY_LIMIT_H

#include "kube/keymap.h"

struct key_limit {
    uint64_t max; /* 0: any number, and none is counted */
    struct keymap rows;
};

struct key_limit_row;

/* One more. False: the key has as many as it may. True: *ret is for key_limit_leave, or NULL where none is counted. */
bool key_limit_enter(struct key_limit *l, const char *key, struct key_limit_row **ret);
void key_limit_leave(struct key_limit *l, struct key_limit_row *row); /* NULL is fine */
/* All have left. */
void key_limit_done(struct key_limit *l);

#endif
