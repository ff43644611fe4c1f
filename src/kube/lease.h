/* lease: who of several does the work: leader election on a Lease (coordination.k8s.io/v1).
 *
 *     struct lease *l = lease_start(client, &(struct lease_spec){ .namespace = "agent-sandbox-system",
 *         .name = "a3317529.agent-sandbox.x-k8s.io", .identity = "host_4711", .on_started = lead, .on_stopped = quit });
 *
 * Protocol: the public client library's, so that both may compete for one Lease. Whoever holds it writes renewTime
 *           every retry_ms. Others take it when it has not changed for leaseDurationSeconds by their own clock; times
 *           in the Lease are for people and are never compared. Every write carries the version it stands on.
 * Held:     until close, or until no renewal went through for renew_ms, which is less than the duration: so it is over
 *           here before it can begin elsewhere, as long as the clocks run at about the same speed. Somebody else's name
 *           in the Lease ends it at once. Once lost it does not compete again: start a new one.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBE_LEASE_H
#define SILICA_KUBE_LEASE_H

#include "kube/client.h"

struct lease;

#define LEASE_DURATION_MS 15000
#define LEASE_RENEW_MS    10000
#define LEASE_RETRY_MS    2000

struct lease_spec {
    const char *namespace, *name;
    const char *identity; /* of nobody else, ever: a host's name and something random */
    uint64_t duration_ms; /* whole seconds are written; 0: LEASE_DURATION_MS */
    uint64_t renew_ms;    /* less than that; 0: LEASE_RENEW_MS */
    uint64_t retry_ms;    /* less than that, by jitter too; 0: LEASE_RETRY_MS */
    /* Any of them may be NULL. */
    void (*on_started)(void *ctx);
    void (*on_stopped)(
        void *
            ctx); /* once after on_started, unless it was closed: nothing may be written from now on */
    void (*on_leader)(
        void *ctx, const char *identity); /* another name in the Lease, also our own; "": nobody */
    void *ctx;
};

/* Texts are copied. The client must outlive it. */
struct lease *lease_start(struct kube_client *client, const struct lease_spec *spec);
/* By the clock of this moment: false as soon as another may have it, whether or not on_stopped has come yet. */
bool lease_is_held(const struct lease *l);
/* Gives it back if it is held, so that another need not wait; no callback any more but `closed`, once, when it is gone. */
void lease_close(struct lease *l, void (*closed)(void *ctx), void *ctx);

#endif
