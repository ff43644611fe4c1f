/* testca: certificates for tests, made on the spot: nothing to commit that expires or leaks.
 *
 * Owns:     a struct testca holds one key and one self-signed certificate that signs others.
 * Used by:  tests only.
 */
#ifndef SILICA_NET_TESTCA_H
#define SILICA_NET_TESTCA_H

#include "base/buf.h"

struct testca;

struct testcert {
    struct buf cert_pem, key_pem;
};

/* What to put into a certificate. */
struct testcert_spec {
    const char *cn;
    const char *const *orgs; /* NULL-terminated, or NULL */
    const char *san;         /* "DNS:localhost,IP:127.0.0.1", or NULL */
    int from_s, until_s;     /* relative to now */
};

struct testca *testca_new(const char *cn);
void testca_free(struct testca *ca);
struct span testca_pem(const struct testca *ca);
void testca_issue(struct testca *ca, const struct testcert_spec *spec, struct testcert *ret);
void testcert_done(struct testcert *c);

#endif
