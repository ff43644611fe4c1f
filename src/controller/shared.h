/* shared: the copies of objects that the reconcilers of one process look at, and the client they write with.
 *
 * Owns:     the informers, from shared_open to shared_close. Reconcilers start once all of them are synced: on a copy
 *           that is not whole, everything would look as if it were missing.
 * Used by:  controller.c, which owns it, and the reconcilers.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_SHARED_H
#define SILICA_CONTROLLER_SHARED_H

#include "controller/controller.h"
#include "kube/backoff.h"
#include "kube/informer.h"

/* Indexes, by their place. */
enum { PODS_BY_TRACKING };
enum { SANDBOXES_BY_POOL, SANDBOXES_BY_STATE };
enum { POOLS_BY_TEMPLATE };
enum { CLAIMS_BY_POOL };

enum shared_kind {
    SHARED_SANDBOXES,
    SHARED_PODS,
    SHARED_SERVICES,
    SHARED_VOLUMES,
    SHARED_CORE_COUNT,
    SHARED_TEMPLATES = SHARED_CORE_COUNT,
    SHARED_POOLS,
    SHARED_CLAIMS,
    SHARED_POLICIES,
    SHARED_COUNT,
};

struct events;
struct figures;
struct queue;

/* Writes that are remembered until their echo comes back; one that is forgotten costs a pass that finds nothing to do. */
#define SHARED_ECHOES 1024

struct shared {
    struct kube_client *client;
    bool is_remote;                    /* it is no store of this process */
    struct bucket complaints;          /* lines in the log about passes that failed */
    uint64_t held_back;                /* that were not written since the last one that was */
    struct figures *figures;           /* controller.c's */
    struct events *events;             /* the same */
    struct queue *urgent;              /* whose keys go first: somebody waits for them; or NULL */
    struct informer *of[SHARED_COUNT]; /* those of the extensions are NULL without them */
    struct {
        uint64_t version; /* no two writes have the same */
        const struct queue *writer;
    } echoes[SHARED_ECHOES];
    size_t waiting; /* that are not synced yet */
    void (*synced)(void *ctx);
    void *ctx;
};

/* `synced` comes once, when all copies are whole. */
int shared_open(struct shared *s, struct kube_client *client,
                const struct controller_config *config, void (*synced)(void *ctx), void *ctx,
                struct err *e);
void shared_close(struct shared *s);

const char *shared_kind_name(enum shared_kind kind);
/* Appends how the copies are kept up, by kind. */
int shared_metrics_write(const struct shared *s, struct buf *out, struct err *e);

/* The sandboxes', ... copies; for reading code aloud. */
static inline struct object *shared_get(const struct shared *s, enum shared_kind kind,
                                        const char *namespace, const char *name)
{
    return informer_get(s->of[kind], namespace, name);
}
/* Something urgent is to be done: the rest takes small steps, so that it comes in between. */
bool shared_is_busy(const struct shared *s);
/* The same on a cluster, and it is soon done: the rest waits until it is. Beside a claim on its way to ready whatever else is asked
 * for takes the API server's time from it; where claims never end everybody has a share again (HOLD_MAX_MS). */
bool shared_holds(const struct shared *s);
/* Puts the answer of a write into the copy of its kind. writer: the queue whose passes know of it already; or NULL. */
void shared_learn(struct shared *s, struct object *o, const struct queue *writer);
/* The change is one that a pass of this queue made, and has looked at. */
bool shared_is_echo(const struct shared *s, const struct object *o, const struct queue *writer);

#endif
