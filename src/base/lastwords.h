/* lastwords: what a main command left in its termination file, on its way from PID 1 to the keeper.
 *
 * They travel on the pipe of the sandbox's errors, which is there anyway: a pipe of their own would cost the keeper a
 * descriptor for each sandbox. PID 1 sends them when it is the only process left and all output was read, in one write to
 * an empty pipe, so they are what one read begins with.
 *
 * Owns:     nothing.
 * Used by:  runtime/init.c sends, isolate/keeper_box.c reads. Hostile: code inside can send the same. It can say no more by
 *           that than it could in the file, and what is not exactly so is output.
 */
#ifndef SILICA_BASE_LASTWORDS_H
#define SILICA_BASE_LASTWORDS_H

#include "base/buf.h"

#define LASTWORDS_MAX_BYTES 4096 /* the kubelet's ceiling; the end of a longer file */

/* The end of what is in a file: a plain one, no link. Nothing where there is none. */
void lastwords_find(const char *path, struct buf *ret);
/* To a pipe that somebody reads; waits for it to be empty, but not for ever. */
void lastwords_send(int fd, struct span words);
/* True: *in began with them; it is what follows now. */
bool lastwords_read(struct span *in, struct span *ret_words);

#endif
