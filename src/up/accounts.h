/* accounts: who the parts of `silica up` are to the API server: an account each, with no right beyond its work.
 *
 *     DIR/node.kubeconfig, DIR/node.token     mode 0600, for `silica node --kubeconfig`; the same of the router
 *
 * Owns:     the timer that renews the tokens: a part reads its file again when the token it has is refused, or is old.
 * Rights:   are rules of RBAC that everybody may look at: kubectl describe clusterrole silica:node.
 * Used by:  cli/control.c, on the store of its own process.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_ACCOUNTS_H
#define SILICA_UP_ACCOUNTS_H

#include "kube/client.h"

struct accounts;

struct accounts_config {
    struct kube_client *client;
    int dir_fd;          /* where the files go; borrowed */
    const char *address; /* of the API server: "127.0.0.1:6443" */
    struct span ca_pem;
    /* Once, in a later turn: the files are there; or why not. */
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
};

/* What is in the config is copied, but for client and dir_fd, which outlive it. */
struct accounts *accounts_open(const struct accounts_config *config);
void accounts_close(struct accounts *a); /* tolerates NULL */

#endif
