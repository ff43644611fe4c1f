/* secure: the TLS side of a router: its certificate, kept up to date, and whom it asks for one.
 *
 * Owns:     the TLS settings. The files of certificate and key are looked at every second, through links, so a secret that
 *           Kubernetes swaps is seen like a file that is renamed; a pair that cannot be read leaves the old one in place.
 *           The CA is read once.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_SECURE_H
#define SILICA_ROUTER_SECURE_H

#include "net/tls.h"
#include "router/tally.h"

struct secure;

struct secure_config {
    const char *cert_file, *key_file;
    const char *ca_file; /* of clients; NULL: they are not asked */
    enum tls_verify client_verify;
};

/* Fails where certificate, key or CA cannot be read. */
int secure_open(struct ev_loop *loop, const struct secure_config *config, struct tally *tally,
                struct secure **ret, struct err *e);
int secure_filter(struct secure *s, int fd, struct conn_filter **ret, struct err *e);
void secure_close(struct secure *s); /* tolerates NULL; connections live on */

#endif
