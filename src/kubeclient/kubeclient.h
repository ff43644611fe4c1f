/* kubeclient: the client interface (kube/client.h) on any API server, over HTTPS.
 *
 * Owns:     connections, credentials, the calls and watches under way.
 * Carries:  HTTP/2 where the server has it, all on one connection; else HTTP/1.1 on kept ones.
 * Tries:    what cannot have been done is said again, after growing pauses: refused connections, and 429 or 5xx with
 *           Retry-After; reads also after lost connections, 429, 502, 503 and 504. A write whose answer was lost is told as
 *           code 0: it may have been done. 401 renews the credential once. All within the deadline of a call.
 * Lists:    limit 0 is all of it, fetched in pages; one that grew too old on the way is begun anew. Objects are parsed one
 *           by one as they come.
 * Watches:  see watch.c: they survive disconnects, and end where a list is needed.
 * Used by:  controller, node, router, client.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBECLIENT_KUBECLIENT_H
#define SILICA_KUBECLIENT_KUBECLIENT_H

#include "kube/client.h"
#include "kubeclient/kubeconfig.h"

struct dial_resolver;
struct ev_children;

/* Zeroes and NULLs: what limits.h says, or nothing of the kind. */
struct counts;

struct kubeclient_config {
    struct kubeconfig *kubeconfig;  /* takes what is in it */
    struct ev_children *children;   /* for credential plugins; NULL: those fail */
    bool is_attended;               /* plugins may ask on our standard input */
    struct dial_resolver *resolver; /* NULL: addresses and localhost only */
    double qps; /* requests a second, after `burst` at once; 0: as many as come */
    unsigned burst;
    uint64_t timeout_ms; /* of one call, with all its tries; of a list: of one page */
    uint64_t page_items;
    uint64_t ping_idle_ms, ping_wait_ms;
    struct counts
        *counts; /* where it counts (counts.h), which outlives it; NULL: in memory of its own */
    /* Nobody answers any more, and why; then NULL: somebody does again, whatever the answer is. Only changes are told, from
     * within calls of others: not a place to start any. */
    void (*reached)(void *ctx, const struct err *e);
    void *ctx;
};

/* Reads certificates and keys, calls nobody. */
int kubeclient_new(struct ev_loop *loop, const struct kubeclient_config *config,
                   struct kube_client **ret, struct err *e);
/* Appends what was asked of the server so far, in Prometheus' text format. Of a client that kubeclient_new made. */
int kubeclient_metrics_write(const struct kube_client *client, struct buf *out, struct err *e);

#endif
