/* pick: where a sandbox is. Whoever knows stands behind an interface: known.h by the cluster's Pods; sockets into sandboxes
 * of this machine are another.
 *
 * Owns:     requests that wait: a sandbox made a moment ago may not have been heard of yet.
 * Used by:  the router, after it knows which sandbox is meant and that the client may have it.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_PICK_H
#define SILICA_ROUTER_PICK_H

#include "ev/timer.h"
#include "router/match.h"

struct picker;
struct pick;

/* PICK_WAITING: it may come yet. */
enum pick_verdict { PICK_FOUND, PICK_REFUSED, PICK_WAITING };

struct picked {
    const char *source;         /* "pod-ip", "cache", "cache-name", "dns": in logs */
    char host[PICK_HOST_BYTES]; /* an IP literal, or a name to resolve */
    char uid[TARGET_UID_BYTES]; /* of its Pod; "": not known */
    /* Who was found, for unreachable(). Empty where nobody was looked up. */
    char pod[256];
    uint64_t version;
};

/* Embedded as the first member by those who implement it. */
struct picker {
    const struct picker_ops *ops;
    struct ev_loop *loop;
    struct pick *waiting;
    size_t waiting_count;
};
struct picker_ops {
    /* *why is filled unless it was found: what to say now, or when waiting was in vain. */
    enum pick_verdict (*find)(struct picker *p, const struct target *t, struct picked *ret,
                              struct refusal *why);
    /* Nobody is there: not to be found again until something about it changes. True: that is news. */
    bool (*unreachable)(struct picker *p, const struct target *t, const struct picked *at);
    void (*free)(struct picker *p);
};

typedef void (*pick_fn)(void *ctx, enum pick_verdict verdict, const struct picked *at,
                        const struct refusal *why);

/* One request that waits; embedded by it. */
struct pick {
    struct pick *next, **link;
    struct picker *picker;
    const struct target *target;
    struct ev_timer timer;
    pick_fn done;
    void *ctx;
};

/* Found and refused at once: *ret or *why. PICK_WAITING: done(ctx, ...) once, in a later turn, unless pick_cancel comes
 * first; the target must live until then. */
enum pick_verdict pick_start(struct pick *w, struct picker *p, const struct target *t,
                             struct picked *ret, struct refusal *why, pick_fn done, void *ctx);
void pick_cancel(struct pick *w); /* harmless when it does not wait */

/* For implementations: something changed in this namespace, or in all (NULL); those who wait look again. */
void picker_changed(struct picker *p, const char *namespace);

#endif
