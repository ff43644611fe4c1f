#include "apiserver/pki.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#define CA_DAYS       3650
#define SERVER_DAYS   365
#define BACKDATE_S    3600 /* clocks of clients may be behind */
#define SERIAL_BYTES  16
#define NAMES_MAX     64
#define ALT_MAX_BYTES 8192

struct pki {
    int dir_fd;
    X509 *ca;
    EVP_PKEY *ca_key, *token_key;
    struct buf ca_pem;
};

/* ---- small parts ---- */

static void x509_done(X509 **x)
{
    X509_free(*x);
}

static void key_done(EVP_PKEY **k)
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

static int write_cert(X509 *x, struct buf *out, struct err *e)
{
    OWN(bio_done) BIO *bio = BIO_new(BIO_s_mem());

    if (!bio || PEM_write_bio_X509(bio, x) != 1)
        return crypto_fail(e, "write a certificate");
    return take_bio(bio, out, e);
}

static int write_key(EVP_PKEY *k, struct buf *out, struct err *e)
{
    OWN(bio_done) BIO *bio = BIO_new(BIO_s_secmem());

    if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, k, NULL, NULL, 0, NULL, NULL) != 1)
        return crypto_fail(e, "write a key");
    return take_bio(bio, out, e);
}

static X509 *read_cert(struct span pem)
{
    OWN(bio_done) BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);

    return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

static EVP_PKEY *read_key(struct span pem)
{
    OWN(bio_done) BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);

    return bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
}

/* ---- files ---- */

int pki_write_file(int dir_fd, const char *name, struct span bytes, unsigned mode, struct err *e)
{
    OWN(buf_done) struct buf temporary = BUF_INIT(512);
    OWN_FD int fd = -1;

    if (buf_addf(&temporary, e, "%s.new", name) < 0)
        return -1;
    (void)unlinkat(dir_fd, buf_cstr(&temporary), 0);
    fd = openat(dir_fd, buf_cstr(&temporary), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                mode);
    if (fd < 0)
        return err_sys(e, "cannot make '%s'", name);
    if (fd_write_all(fd, bytes, e) < 0)
        return err_wrap(e, "cannot write '%s'", name);
    if (fsync(fd) < 0 || renameat(dir_fd, buf_cstr(&temporary), dir_fd, name) < 0 ||
        fsync(dir_fd) < 0)
        return err_sys(e, "cannot write '%s'", name);
    return 0;
}

/* False: it is not there. */
static bool read_file(int dir_fd, const char *name, struct buf *out)
{
    OWN_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct err e;

    buf_clear(out);
    return fd >= 0 && fd_read_all(fd, out, &e) == 0;
}

static int make_key(EVP_PKEY **ret, struct err *e)
{
    *ret = EVP_EC_gen("P-256");
    return *ret ? 0 : crypto_fail(e, "make a key");
}

static int save_key(struct pki *p, const char *name, EVP_PKEY *key, struct err *e)
{
    OWN(buf_done) struct buf pem = BUF_INIT(PKI_PEM_MAX_BYTES);

    return write_key(key, &pem, e) < 0 ? -1
                                       : pki_write_file(p->dir_fd, name, buf_span(&pem), 0600, e);
}

/* The key of that name; made where there is none. */
static int have_key(struct pki *p, const char *name, EVP_PKEY **ret, struct err *e)
{
    OWN(buf_done) struct buf pem = BUF_INIT(PKI_PEM_MAX_BYTES);

    if (!read_file(p->dir_fd, name, &pem))
        return make_key(ret, e) < 0 ? -1 : save_key(p, name, *ret, e);
    *ret = read_key(buf_span(&pem));
    if (*ret)
        return 0;
    (void)err_set(e, ERR_INVALID, "'pki/%s' in the data directory is not a private key", name);
    err_hint(e, "restore it, or remove the pki directory: clients then need the new kubeconfig");
    ERR_clear_error();
    return -1;
}

/* ---- certificates ---- */

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

static int add_names(X509_NAME *to, const struct pki_subject *s)
{
    int ok = 1;

    for (const char *const *o = s->organizations; o && *o && ok; o++)
        ok = X509_NAME_add_entry_by_NID(to, NID_organizationName, MBSTRING_UTF8,
                                        (const uint8_t *)*o, -1, -1, 0);
    return ok && X509_NAME_add_entry_by_NID(to, NID_commonName, MBSTRING_UTF8,
                                            (const uint8_t *)s->name, -1, -1, 0);
}

static int add_role(X509 *x, X509 *ca, const struct pki_subject *s, bool is_ca, struct err *e)
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

/* ca NULL: signs itself. */
static int make_cert(X509 *ca, EVP_PKEY *ca_key, EVP_PKEY *key, const struct pki_subject *s,
                     X509 **ret, struct err *e)
{
    OWN(x509_done) X509 *x = X509_new();
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

int pki_issue(struct pki *p, const struct pki_subject *subject, struct buf *cert, struct buf *key,
              struct err *e)
{
    OWN(x509_done) X509 *x = NULL;
    OWN(key_done) EVP_PKEY *k = NULL;

    if (make_key(&k, e) < 0 || make_cert(p->ca, p->ca_key, k, subject, &x, e) < 0)
        return -1;
    return write_cert(x, cert, e) < 0 || write_key(k, key, e) < 0 ? -1 : 0;
}

/* ---- the server's ---- */

static bool has_name(X509 *x, const char *name)
{
    return is_address(name)
               ? X509_check_ip_asc(x, name, 0) == 1
               : X509_check_host(x, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

static bool still_fits(struct pki *p, struct span pem, const char *const *names)
{
    OWN(x509_done) X509 *x = read_cert(pem);
    int days = 0, seconds;

    if (!x || X509_verify(x, X509_get0_pubkey(p->ca)) != 1)
        return false;
    if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x)) || days < SERVER_DAYS / 3)
        return false;
    for (; *names; names++)
        if (!has_name(x, *names))
            return false;
    return true;
}

int pki_server(struct pki *p, const char *const *alt_names, struct buf *cert, struct buf *key,
               bool *ret_is_new, struct err *e)
{
    struct pki_subject s = { .name = "kube-apiserver",
                             .alt_names = alt_names,
                             .days = SERVER_DAYS };

    if (read_file(p->dir_fd, "server.crt", cert) && read_file(p->dir_fd, "server.key", key) &&
        still_fits(p, buf_span(cert), alt_names)) {
        *ret_is_new = false;
        return 0;
    }
    ERR_clear_error();
    buf_clear(cert);
    buf_clear(key);
    if (pki_issue(p, &s, cert, key, e) < 0 ||
        pki_write_file(p->dir_fd, "server.key", buf_span(key), 0600, e) < 0 ||
        pki_write_file(p->dir_fd, "server.crt", buf_span(cert), 0644, e) < 0)
        return -1;
    *ret_is_new = true;
    return 0;
}

/* ---- the authority ---- */

static int have_ca(struct pki *p, struct err *e)
{
    static const struct pki_subject self = { .name = "silica", .days = CA_DAYS };
    bool has_cert = read_file(p->dir_fd, "ca.crt", &p->ca_pem);

    if (have_key(p, "ca.key", &p->ca_key, e) < 0)
        return -1;
    if (has_cert) {
        p->ca = read_cert(buf_span(&p->ca_pem));
        if (p->ca && X509_verify(p->ca, p->ca_key) == 1)
            return 0;
        (void)err_set(e, ERR_INVALID,
                      "'pki/ca.crt' in the data directory does not fit 'pki/ca.key'");
        err_hint(e,
                 "restore both, or remove the pki directory: clients then need the new kubeconfig");
        ERR_clear_error();
        return -1;
    }
    buf_clear(&p->ca_pem);
    if (make_cert(NULL, p->ca_key, p->ca_key, &self, &p->ca, e) < 0 ||
        write_cert(p->ca, &p->ca_pem, e) < 0)
        return -1;
    return pki_write_file(p->dir_fd, "ca.crt", buf_span(&p->ca_pem), 0644, e);
}

static int open_dir(const char *dir, int *ret, struct err *e)
{
    OWN_FD int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (top < 0)
        return err_sys(e, "cannot open the data directory '%s'", dir);
    if (mkdirat(top, "pki", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s/pki'", dir);
    *ret = openat(top, "pki", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *ret < 0 ? err_sys(e, "cannot open '%s/pki'", dir) : 0;
}

int pki_open(const char *dir, struct pki **ret, struct err *e)
{
    struct pki *p = NEW(struct pki);

    p->dir_fd = -1;
    p->ca_pem.max = PKI_PEM_MAX_BYTES;
    if (open_dir(dir, &p->dir_fd, e) < 0 || have_ca(p, e) < 0 ||
        have_key(p, "sa.key", &p->token_key, e) < 0) {
        pki_close(p);
        return err_wrap(e, "cannot set up certificates");
    }
    *ret = p;
    return 0;
}

void pki_close(struct pki *p)
{
    if (!p)
        return;
    X509_free(p->ca);
    EVP_PKEY_free(p->ca_key);
    EVP_PKEY_free(p->token_key);
    buf_done(&p->ca_pem);
    own_fd_close(&p->dir_fd);
    free(p);
}

struct span pki_ca_pem(const struct pki *p)
{
    return buf_span(&p->ca_pem);
}

EVP_PKEY *pki_token_key(const struct pki *p)
{
    return p->token_key;
}
