/* cert: keys and certificates, made here and read from PEM: ECDSA P-256, X.509 v3. Of the library net_tls.
 *
 *     OWN(cert_key_done) EVP_PKEY *key = NULL;
 *     OWN(cert_done) X509 *ca = NULL;
 *     if (cert_key_new(&key, e) < 0 || cert_new(NULL, key, key, &(struct cert_subject){ .name = "me", .days = 365 }, &ca, e) < 0)
 *
 * Owns:     nothing; keys and certificates are the caller's.
 * Used by:  whoever signs for others: the API server of a data directory, the conversion webhook.
 */
#ifndef SILICA_NET_CERT_H
#define SILICA_NET_CERT_H

#include "base/buf.h"

#include <openssl/types.h>
#include <time.h>

/* Whom a certificate is for, and how long it holds. */
struct cert_subject {
    const char *name;                 /* CN: the user */
    const char *const *organizations; /* O: its groups; NULL-terminated, or NULL */
    const char *const *alt_names;     /* names and addresses of a server; NULL for a client */
    unsigned days;
};

int cert_key_new(EVP_PKEY **ret, struct err *e);
/* issuer NULL: it signs itself, and is an authority. It holds from an hour ago on: clocks of clients may be behind. */
int cert_new(X509 *issuer, EVP_PKEY *issuer_key, EVP_PKEY *key, const struct cert_subject *s,
             X509 **ret, struct err *e);

/* Append PEM. A key's is PKCS #8. */
int cert_write(X509 *x, struct buf *out, struct err *e);
int cert_key_write(EVP_PKEY *k, struct buf *out, struct err *e);
/* The same as "EC PRIVATE KEY", which is older; some look for that. */
int cert_key_write_ec(EVP_PKEY *k, struct buf *out, struct err *e);
/* The first in a PEM; NULL: there is none. */
X509 *cert_read(struct span pem);
EVP_PKEY *cert_key_read(struct span pem);

/* A client that wants to meet this name or address would take it. */
bool cert_has_name(X509 *x, const char *name);
/* Seconds until it ends, from `now`; below zero: it has ended. */
int64_t cert_seconds_left(X509 *x, time_t now);
/* Seconds from its beginning to its end. */
int64_t cert_seconds(X509 *x);

/* For OWN(). */
void cert_done(X509 **x);
void cert_key_done(EVP_PKEY **k);

#endif
