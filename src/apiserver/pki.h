/* pki: the certificate authority of a data directory, and what it signs.
 *
 * Owns:     DIR/pki: ca.crt, ca.key, server.crt, server.key, sa.key (which signs service-account tokens), each made at
 *           the first start and kept; keys are ECDSA P-256, mode 0600, written to a temporary name, synced and renamed.
 * Used by:  server.c, token.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_APISERVER_PKI_H
#define SILICA_APISERVER_PKI_H

#include "net/cert.h"

#define PKI_PEM_MAX_BYTES (64 * 1024)

struct pki;

int pki_open(const char *dir, struct pki **ret, struct err *e);
void pki_close(struct pki *p); /* tolerates NULL */

struct span pki_ca_pem(const struct pki *p);
EVP_PKEY *pki_token_key(const struct pki *p);
/* A certificate and its key, as PEM. */
int pki_issue(struct pki *p, const struct cert_subject *subject, struct buf *cert, struct buf *key,
              struct err *e);
/* The server's, for these names: the one on disk while it fits and two thirds of its time have not passed, else a new
 * one. *ret_is_new says which. */
int pki_server(struct pki *p, const char *const *alt_names, struct buf *cert, struct buf *key,
               bool *ret_is_new, struct err *e);

/* A file below the data directory, whole or not at all: temporary name, sync, rename, sync of the directory. */
int pki_write_file(int dir_fd, const char *name, struct span bytes, struct err *e);

#endif
