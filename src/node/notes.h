/* notes: what is to be told about a Pod besides its status: Events that whoever decides has still to write.
 *
 * Owns:     copies of the messages, NOTES_MAX at most; what comes beyond is counted.
 * Used by:  env, images, volumes and security, which do no I/O; the lifecycle makes Events of them.
 */
#ifndef SILICA_NODE_NOTES_H
#define SILICA_NODE_NOTES_H

#include "base/err.h"

#define NOTES_MAX 32 /* of one container's start: an Event each */

struct note {
    const char *reason; /* of the Event; a constant */
    char *message;
};

/* Zeroed is empty. */
struct notes {
    struct note v[NOTES_MAX];
    size_t n;
    size_t dropped;
};

/* The same note twice is one. */
void notes_add(struct notes *ns, const char *reason, const char *fmt, ...) PRINTF(3, 4);
void notes_done(struct notes *ns);

#endif
