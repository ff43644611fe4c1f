/* tls: TLS 1.2 and 1.3 as a filter of a connection, on OpenSSL. A library of its own (net_tls): programs without
 * TLS do not carry it.
 *
 * Owns:     a struct tls holds certificates, trust and settings (an SSL_CTX); each filter holds one session and a
 *           reference to what it was made with, so a reload does not touch connections that live.
 * Used by:  the daemons that listen or dial; they hand tls_maker() to dial and the HTTP client.
 * Threads:  the loop's.
 * Rules:    a server name is always checked unless is_insecure: names against DNS names, IP literals against
 *           IP addresses of the certificate, never the common name. An end of stream without close_notify is an
 *           error (ECONNRESET), as a cut answer must not look whole. No renegotiation, no compression.
 */
#ifndef SILICA_NET_TLS_H
#define SILICA_NET_TLS_H

#include "net/conn.h"

struct tls;

enum tls_role { TLS_CLIENT, TLS_SERVER };
enum tls_verify { TLS_VERIFY_NONE, TLS_VERIFY_OPTIONAL, TLS_VERIFY_REQUIRED };

/* A file of certificates; the system's whole bundle has 220 KB */
#define TLS_PEM_MAX_BYTES (4 << 20)

/* All PEM. A file wins over the bytes beside it. Borrowed for the call, but files are named again by tls_reload. */
struct tls_config {
    enum tls_role role;
    const char *cert_file; /* ours, then its chain; a server must have one */
    const char *key_file;
    struct span cert_pem;
    struct span key_pem;
    const char *ca_file; /* whom to believe. A client with neither takes the system's. */
    struct span ca_pem;
    /* Server: ask clients for a certificate; wants a CA. Where it is optional, one that does not verify counts as none. */
    enum tls_verify client_verify;
    bool is_insecure; /* client: believe everybody */
    const char *alpn; /* "h2,http/1.1", best first; NULL for none */
};

int tls_new(const struct tls_config *config, struct tls **ret, struct err *e);
/* Takes new certificates and CAs for the connections to come; on failure the old ones stay. */
int tls_reload(struct tls *t, const struct tls_config *config, struct err *e);
void tls_free(struct tls *t); /* filters live on */
/* For dial and the HTTP client. Lives as long as t. */
struct conn_filter_maker *tls_maker(struct tls *t);

/* A session on a non-blocking socket, which stays the caller's. server_name: whom a client wants to meet, a name or
 * an IP literal; NULL for servers, and for clients that take any name. */
int tls_filter_new(struct tls *t, int fd, const char *server_name, struct conn_filter **ret,
                   struct err *e);

/* What was agreed on; after the handshake. ALPN is the filter's protocol(). */
const char *tls_version(const struct conn_filter *f); /* "TLSv1.3" */

/* A name out of the peer's verified certificate, as Kubernetes reads x509 users: CN is the user, each O a group. */
enum tls_subject { TLS_SUBJECT_CN, TLS_SUBJECT_O };
/* The i-th; adds it to out, UTF-8. False when there is none, no certificate was shown or it was not verified, or the
 * name holds a NUL byte or does not fit. */
bool tls_peer_subject(const struct conn_filter *f, enum tls_subject what, size_t i,
                      struct buf *out);

#endif
