/* kubeconfig: the file that lets the owner of the data directory in as administrator. */
#ifndef SILICA_APISERVER_KUBECONFIG_H
#define SILICA_APISERVER_KUBECONFIG_H

#include "apiserver/apiserver.h"

/* Writes DATA/kubeconfig, mode 0600, with a new client certificate in system:masters, when there is none for this
 * address and authority or half of its time has passed. */
int kubeconfig_write_admin(struct apiserver *s, struct err *e);

#endif
