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

#include "base/err.h"

struct controller;
struct kube_client;
struct queue;

struct controller_config {
    bool has_extensions;        /* templates, claims and pools too */
    const char *cluster_domain; /* "cluster.local"; borrowed, as the client is */
    unsigned sandbox_workers;
    void (*started)(void *ctx); /* the copies are whole, work begins; or NULL */
    void *ctx;
};

int controller_open(struct kube_client *client, const struct controller_config *config,
                    struct controller **ret, struct err *e);
/* Ends what is under way first; `closed` comes in a later turn, then all is freed. */
void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx);
/* Queues for metrics; *ret_count of them, none before `started`. */
struct queue *const *controller_queues(struct controller *c, size_t *ret_count);

#endif
