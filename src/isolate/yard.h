/* yard: the process beside one that makes sandboxes and stays up. It does what can be done before a sandbox is asked for and
 * when it is no more, so that nobody waits for it: network namespaces are made ahead, each with its loopback up (one takes
 * as long as all the rest of a sandbox's namespaces together), what all sandboxes share of their roots is copied for each
 * (frame.h), so is an empty place to be born in (ground.h), and mount namespaces of the dead are taken apart.
 *
 *     yard --(networks and frames, YARD_NETWORKS of them)--> maker --box_start--> a sandbox
 *          <--(one was taken; a mount namespace to drop)--
 *
 * Owns:     a child process, which has nothing but its end of a socket and ends with us, or at yard_close; it is no child
 *           that a wait for any child sees. The networks that wait in the socket.
 * Used by:  box.c and box_life.c for a spec that names one; spawner.c; programs that call box_start more than once.
 * Rights:   the networks belong to the maker's user namespace, so nothing inside a sandbox could change its network even
 *           with capabilities. Who may not make any (an account outside a user namespace of its own) has a yard that is
 *           empty, as one has whose process was killed: sandboxes then make their own.
 * Threads:  one: the maker goes into a network to clone, and back.
 */
#ifndef SILICA_ISOLATE_YARD_H
#define SILICA_ISOLATE_YARD_H

#include "base/err.h"
#include "isolate/frame.h"
#include "isolate/limits.h"

struct yard;

/* From a process with one thread, which keeps its root and its mount namespace. One that could not come back to the network
 * it is in leaves it for good. */
int yard_open(struct yard **ret, struct err *e);
void yard_close(struct yard *y);
/* The caller's to close, or -1: none is ready. *ret is the caller's too, and none if there is none, or the host's files are
 * not what they were. */
int yard_take(struct yard *y, struct frame *ret);
/* Whether the sandbox that took the last one could have a frame: the next ones are made as that one was. A frame that is not
 * used costs more than its making, since whoever mounts waits while it is taken apart. */
void yard_note_use(struct yard *y, bool is_framed);
/* One may be made for the one that was taken: when the maker has no use for a second processor. */
void yard_refill(struct yard *y);
/* Whether a sandbox can be born on the ground that came with the frame (ground.h). */
bool yard_has_ground(const struct yard *y, const struct frame *f);
/* Into a network and, if it is there, onto the ground, to clone: until yard_leave no path means what it did. */
int yard_enter(struct yard *y, int net_fd, const struct frame *f, struct err *e);
/* Back where we stay. */
void yard_leave(struct yard *y);
/* Takes a mount namespace's descriptor; y may be NULL. The last one of a namespace takes it apart. */
void yard_drop(struct yard *y, int mounts_fd);
/* The same of a frame that is not used, or of what it has for the ground. */
void yard_drop_ground(struct yard *y, struct frame *f);
void yard_drop_frame(struct yard *y, struct frame *f);

#endif
