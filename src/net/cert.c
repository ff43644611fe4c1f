#include "net/cert.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#define BACKDATE_S    3600
#define SERIAL_BYTES  16
#define ALT_MAX_BYTES 8192

void cert_done(X509 **x)
{
    X509_free(*x);
}

void cert_key_done(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

static void bio_done(BIO **b)
{
    BIO_free(*b);
}

static int crypto_fail(struct err *e, const char *what)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    (void)err_set(e, ERR_INTERNAL, "cannot %s: %s", what, reason ? reason : "OpenSSL failed");
    ERR_clear_error();
    return -1;
}

static int take_bio(BIO *bio, struct buf *out, struct err *e)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);

    return buf_add(out, span_of(p, n > 0 ? (size_t)n : 0), e);
}

int cert_write(X509 *x, struct buf *out, struct err *e)
{
    OWN(bio_done) BIO *bio = BIO_new(BIO_s_mem());

    if (!bio || PEM_write_bio_X509(bio, x) != 1)
        return crypto_fail(e, "write a certificate");
    return take_bio(bio, out, e);
}

int cert_key_write(EVP_PKEY *k, struct buf *out, struct err *e)
{
    OWN(bio_done) BIO *bio = BIO_new(BIO_s_secmem());

    if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, k, NULL, NULL, 0, NULL, NULL) != 1)
        return crypto_fail(e, "write a key");
    return take_bio(bio, out, e);
}

int cert_key_write_ec(EVP_PKEY *k, struct buf *out, struct err *e)
{
    OWN(bio_done) BIO *bio = BIO_new(BIO_s_secmem());

    if (!bio || PEM_write_bio_PrivateKey_traditional(bio, k, NULL, NULL, 0, NULL, NULL) != 1)
        return crypto_fail(e, "write a key");
    return take_bio(bio, out, e);
}

X509 *cert_read(struct span pem)
{
    OWN(bio_done) BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);

    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    ERR_clear_error();
    return x;
}

/* A key under a password is no key here: OpenSSL would ask at the terminal. */
static int no_password(char *buf, int size, int is_writing, void *ctx)
{
    return -1;
}

EVP_PKEY *cert_key_read(struct span pem)
{
    OWN(bio_done) BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);

    EVP_PKEY *k = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;

    ERR_clear_error();
    return k;
}

/* ---- made ---- */

int cert_key_new(EVP_PKEY **ret, struct err *e)
{
    *ret = EVP_EC_gen("P-256");
    return *ret ? 0 : crypto_fail(e, "make a key");
}

static int set_serial(X509 *x)
{
    uint8_t bytes[SERIAL_BYTES];
    BIGNUM *n;
    int ok;

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return 0;
    bytes[0] &= 0x7f;
    n = BN_bin2bn(bytes, sizeof bytes, NULL);
    ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
    BN_free(n);
    return ok;
}

static int add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *ext;
    X509V3_CTX ctx;
    int ok;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ok = ext && X509_add_ext(x, ext, -1);
    X509_EXTENSION_free(ext);
    return ok;
}

static bool is_address(const char *text)
{
    uint8_t bytes[16];

    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* A name that could change the meaning of OpenSSL's list ("DNS:a,IP:b") is not one. */
static bool is_plain(const char *name)
{
    return *name && !strpbrk(name, ",: \t\n\"\\") && strlen(name) < 254;
}

static int alt_text(const char *const *names, struct buf *out, struct err *e)
{
    for (; *names; names++) {
        bool is_ip = is_address(*names);

        if (!is_ip && !is_plain(*names))
            return err_set(e, ERR_INVALID, "'%s' is neither a host name nor an address", *names);
        if (buf_addf(out, e, "%s%s:%s", out->n ? "," : "", is_ip ? "IP" : "DNS", *names) < 0)
            return -1;
    }
    return 0;
}

static int add_names(X509_NAME *to, const struct cert_subject *s)
{
    int ok = 1;

    for (const char *const *o = s->organizations; o && *o && ok; o++)
        ok = X509_NAME_add_entry_by_NID(to, NID_organizationName, MBSTRING_UTF8,
                                        (const uint8_t *)*o, -1, -1, 0);
    return ok && X509_NAME_add_entry_by_NID(to, NID_commonName, MBSTRING_UTF8,
                                            (const uint8_t *)s->name, -1, -1, 0);
}

static int add_role(X509 *x, X509 *ca, const struct cert_subject *s, bool is_ca, struct err *e)
{
    OWN(buf_done) struct buf names = BUF_INIT(ALT_MAX_BYTES);
    int ok;

    if (is_ca) {
        ok = add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE") &&
             add_extension(x, x, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign") &&
             add_extension(x, x, NID_subject_key_identifier, "hash");
        return ok ? 0 : crypto_fail(e, "make a certificate");
    }
    ok = add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(x, ca, NID_key_usage, "critical,digitalSignature") &&
         add_extension(x, ca, NID_ext_key_usage, s->alt_names ? "serverAuth" : "clientAuth") &&
         add_extension(x, ca, NID_authority_key_identifier, "keyid");
    if (!ok)
        return crypto_fail(e, "make a certificate");
    if (!s->alt_names)
        return 0;
    if (alt_text(s->alt_names, &names, e) < 0)
        return -1;
    return add_extension(x, ca, NID_subject_alt_name, buf_cstr(&names))
               ? 0
               : crypto_fail(e, "name the server in its certificate");
}

int cert_new(X509 *ca, EVP_PKEY *ca_key, EVP_PKEY *key, const struct cert_subject *s, X509 **ret,
             struct err *e)
{
    OWN(cert_done) X509 *x = X509_new();
    X509_NAME *name;

    if (!x || !X509_set_version(x, 2) || !set_serial(x))
        return crypto_fail(e, "make a certificate");
    name = X509_get_subject_name(x);
    if (!X509_gmtime_adj(X509_getm_notBefore(x), -BACKDATE_S) ||
        !X509_time_adj_ex(X509_getm_notAfter(x), (int)s->days, 0, NULL) || !add_names(name, s) ||
        !X509_set_issuer_name(x, ca ? X509_get_subject_name(ca) : name) || !X509_set_pubkey(x, key))
        return crypto_fail(e, "make a certificate");
    if (add_role(x, ca, s, !ca, e) < 0)
        return -1;
    if (!X509_sign(x, ca_key, EVP_sha256()))
        return crypto_fail(e, "sign a certificate");
    *ret = take_ptr(&x);
    return 0;
}

bool cert_has_name(X509 *x, const char *name)
{
    return is_address(name)
               ? X509_check_ip_asc(x, name, 0) == 1
               : X509_check_host(x, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

static int64_t seconds_between(const ASN1_TIME *from, const ASN1_TIME *to)
{
    int days = 0, seconds = 0;

    return ASN1_TIME_diff(&days, &seconds, from, to) ? (int64_t)days * 86400 + seconds : INT64_MIN;
}

int64_t cert_seconds_left(X509 *x, time_t now)
{
    ASN1_TIME *at = ASN1_TIME_set(NULL, now);
    int64_t left = at ? seconds_between(at, X509_get0_notAfter(x)) : INT64_MIN;

    ASN1_TIME_free(at);
    return left;
}

int64_t cert_seconds(X509 *x)
{
    return seconds_between(X509_get0_notBefore(x), X509_get0_notAfter(x));
}
