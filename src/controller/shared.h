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
#include "kube/informer.h"

/* Indexes, by their place. */
enum { PODS_BY_TRACKING };
enum { SANDBOXES_BY_POOL };
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

struct figures;
struct events;

struct shared {
    struct kube_client *client;
    struct figures *figures;           /* controller.c's */
    struct events *events;             /* the same */
    struct informer *of[SHARED_COUNT]; /* those of the extensions are NULL without them */
    size_t waiting;                    /* that are not synced yet */
    void (*synced)(void *ctx);
    void *ctx;
};

/* `synced` comes once, when all copies are whole. */
int shared_open(struct shared *s, struct kube_client *client,
                const struct controller_config *config, void (*synced)(void *ctx), void *ctx,
                struct err *e);
void shared_close(struct shared *s);

/* The sandboxes', ... copies; for reading code aloud. */
static inline struct object *shared_get(const struct shared *s, enum shared_kind kind,
                                        const char *namespace, const char *name)
{
    return informer_get(s->of[kind], namespace, name);
}
/* Puts the answer of a write into the copy of its kind. */
void shared_learn(struct shared *s, struct object *o);

#endif
