/* in_cluster: what a program finds around it in a Pod: its account's files, and names of sandboxes.
 *
 *     DIR/account/{token,ca.crt,namespace}     becomes /var/run/secrets/kubernetes.io/serviceaccount
 *     DIR/hosts                                becomes /etc/hosts, and is kept up from outside
 *
 * Used by:  in_cluster.c, which makes the files and starts itself again inside; in_cluster_inside.c, which shows them.
 */
#ifndef SILICA_CLI_IN_CLUSTER_H
#define SILICA_CLI_IN_CLUSTER_H

#include "base/err.h"

/* In a mount namespace of its own; as a user in a user namespace, too, where the ids stay what they are. */
int in_cluster_enter(const char *dir, struct err *e);

#endif
