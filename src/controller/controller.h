/* controller: the reconcilers of one process, from the copies they look at to their end.
 *
 *     controller_open(client, &config, &c, e) ... controller_close(c, closed, ctx)
 *
 * Owns:     the shared copies and the reconcilers. Nothing is written before all copies are whole.
 * Used by:  `silica controller`, and `silica up` on its own store: only the client differs.
 * Threads:  the loop's, which is the client's.
 */
#ifndef SILICA_CONTROLLER_CONTROLLER_H
#define SILICA_CONTROLLER_CONTROLLER_H

#include "base/buf.h"

struct controller;
struct kube_client;
struct queue;

struct controller_config {
    bool has_extensions;        /* templates, claims and pools too */
    bool is_remote;             /* the client is no store of this process: copies are kept small */
    const char *cluster_domain; /* borrowed, as the client is */
    unsigned sandbox_workers, template_workers, pool_workers, claim_workers;
    size_t pool_batch;        /* members a pool makes or deletes in one pass */
    uint64_t pool_grace_ms;   /* for a member to become ready */
    uint64_t pool_recheck_ms; /* of members that cannot be scheduled */
    size_t
        pods_max; /* Pods that there is room for, where that is known: pools make no more; 0: not known */
    uint64_t write_behind_ms; /* labels of Pods may wait so long for more of them; 0: not */
    uint64_t pool_delay_ms;   /* see gate.h */
    double pool_rate;         /* the same */
    bool is_pool_evictable;   /* see pool.h */
    const char *const *
        label_domains; /* whose labels claims may add to Pods; ended by NULL. NULL: sandbox.users.io */
    bool is_cache_selected; /* copies only of Pods and Services with our label */
    bool forgets_fields;    /* claims that take a member, and that member: see fields.h */
    bool has_no_claim_events, has_no_claim_times; /* no Events, no annotations that say when */
    void (*started)(void *ctx);                   /* the copies are whole, work begins; or NULL */
    void *ctx;
};
/* As the public controller's flags, extensions on. */
#define CONTROLLER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .has_extensions = true, .cluster_domain = "cluster.local", .sandbox_workers = 100,         \
        .template_workers = 1, .pool_workers = 1, .claim_workers = 50, .pool_batch = 300,          \
        .pool_grace_ms = 5 * 60 * 1000, .pool_recheck_ms = 60 * 1000, .is_pool_evictable = true    \
    }

int controller_open(struct kube_client *client, const struct controller_config *config,
                    struct controller **ret, struct err *e);
/* Ends what is under way first; `closed` comes in a later turn, then all is freed. */
void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx);
/* Queue i for metrics; NULL beyond the last, and before `started`. */
struct queue *controller_queue(struct controller *c, size_t i);
/* Row i of what its copies hold: a kind, its objects and about their bytes. False beyond the last. Walks them all: for people
 * who look, not for every scrape. */
bool controller_memory(struct controller *c, size_t i, const char **ret_kind, size_t *ret_objects,
                       size_t *ret_bytes);
/* Appends what there is to watch of queues, claims and sandboxes, in Prometheus' text format. */
int controller_metrics_write(struct controller *c, struct buf *out, struct err *e);

#endif
