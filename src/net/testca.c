#include "net/testca.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define PEM_MAX_BYTES (16 * 1024)

struct testca {
    EVP_PKEY *key;
    X509 *cert;
    struct buf pem;
    long serial;
};

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;

    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert(ext && X509_add_ext(cert, ext, -1) == 1);
    X509_EXTENSION_free(ext);
}

static void add_name(X509_NAME *name, const char *what, const char *value)
{
    int r =
        X509_NAME_add_entry_by_txt(name, what, MBSTRING_UTF8, (const uint8_t *)value, -1, -1, 0);

    assert(r == 1);
}

static X509 *make_cert(EVP_PKEY *key, long serial, const struct testcert_spec *spec)
{
    X509 *cert = X509_new();

    assert(cert && key);
    (void)X509_set_version(cert, X509_VERSION_3);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), spec->from_s);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), spec->until_s);
    (void)X509_set_pubkey(cert, key);
    add_name(X509_get_subject_name(cert), "CN", spec->cn);
    for (const char *const *o = spec->orgs; o && *o; o++)
        add_name(X509_get_subject_name(cert), "O", *o);
    return cert;
}

static void put_pem(struct buf *out, X509 *cert, EVP_PKEY *key)
{
    BIO *b = BIO_new(BIO_s_mem());
    const uint8_t *p;
    struct err e;
    long n;
    int r;

    r = cert ? PEM_write_bio_X509(b, cert)
             : PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL);
    assert(r == 1);
    n = BIO_get_mem_data(b, &p);
    r = buf_add(out, span_of(p, (size_t)n), &e);
    assert(r == 0);
    BIO_free(b);
}

struct testca *testca_new(const char *cn)
{
    const struct testcert_spec spec = { .cn = cn, .from_s = -3600, .until_s = 3600 };
    struct testca *ca = NEW(struct testca);
    int r;

    ca->pem.max = PEM_MAX_BYTES;
    ca->serial = 1;
    ca->key = EVP_EC_gen("P-256");
    ca->cert = make_cert(ca->key, ca->serial, &spec);
    (void)X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert));
    add_extension(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    r = X509_sign(ca->cert, ca->key, EVP_sha256());
    assert(r > 0);
    put_pem(&ca->pem, ca->cert, NULL);
    return ca;
}

void testca_free(struct testca *ca)
{
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
    buf_done(&ca->pem);
    free(ca);
}

struct span testca_pem(const struct testca *ca)
{
    return buf_span(&ca->pem);
}

void testca_issue(struct testca *ca, const struct testcert_spec *spec, struct testcert *ret)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = make_cert(key, ++ca->serial, spec);
    int r;

    (void)X509_set_issuer_name(cert, X509_get_subject_name(ca->cert));
    if (spec->san)
        add_extension(cert, ca->cert, NID_subject_alt_name, spec->san);
    r = X509_sign(cert, ca->key, EVP_sha256());
    assert(r > 0);
    *ret = (struct testcert){ BUF_INIT(PEM_MAX_BYTES), BUF_INIT(PEM_MAX_BYTES) };
    put_pem(&ret->cert_pem, cert, NULL);
    put_pem(&ret->key_pem, NULL, key);
    X509_free(cert);
    EVP_PKEY_free(key);
}

void testcert_done(struct testcert *c)
{
    buf_done(&c->cert_pem);
    buf_done(&c->key_pem);
}
