/* certs_keeper: keeps the webhook's certificate where all replicas find it, and in the definitions that lead to the webhook.
 *
 *     certs_keeper_start(client, webhook, &config, &k, e) ... certs_keeper_close(k)
 *
 * Rounds:   each looks at our four CustomResourceDefinitions, at the Secret, and writes what is not as it should be: one call at
 *           a time, again and again, so a definition that was applied anew has its caBundle back soon. Definitions that do not
 *           convert by a webhook are left alone; without one that does there is no Secret either. One that names a URL keeps it,
 *           and its host is one of the certificate's names; else our Service is written into it.
 * Replicas: all do the same; writes stand on the version they were decided on, so of two the second one sees the first's.
 * Faults:   a refusal is said once, and the round begins again after growing pauses; the webhook serves what it has.
 * Owns:     its calls. Client and webhook must outlive it.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_CERTS_KEEPER_H
#define SILICA_CONTROLLER_CERTS_KEEPER_H

#include "controller/certs.h"

struct certs_keeper;
struct kube_client;

struct certs_keeper_config {
    const char *namespace;      /* of Secret and Service */
    const char *service;        /* whom API servers ask for */
    const char *cluster_domain; /* what names of Services end in */
    uint64_t check_ms;          /* between rounds */
    /* The Secret that is there cannot be used, and never could: somebody must act. Once. */
    void (*broken)(void *ctx, const struct err *e);
    void *ctx;
};

/* A pair for the webhook to begin with, until the Secret is known; also what a first Secret is made of. */
int certs_keeper_new(struct kube_client *client, const struct certs_keeper_config *config,
                     struct certs_keeper **ret, struct err *e);
struct webhook_pair certs_keeper_pair(const struct certs_keeper *k);
void certs_keeper_start(struct certs_keeper *k, struct webhook *webhook);
/* NULL: the webhook can be believed by whoever leads to it; else why not, so far. */
const char *certs_keeper_why_not(const struct certs_keeper *k);
int certs_keeper_metrics_write(const struct certs_keeper *k, struct buf *out, struct err *e);
/* Calls off what is under way; freed in a later turn. Tolerates NULL. */
void certs_keeper_close(struct certs_keeper *k);

#endif
