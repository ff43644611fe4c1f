#include "apiserver/pki.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#define CA_DAYS     3650
#define SERVER_DAYS 365

struct pki {
    int dir_fd;
    X509 *ca;
    EVP_PKEY *ca_key, *token_key;
    struct buf ca_pem;
};

/* ---- files ---- */

int pki_write_file(int dir_fd, const char *name, struct span bytes, struct err *e)
{
    OWN(buf_done) struct buf temporary = BUF_INIT(512);
    OWN_FD int fd = -1;

    if (buf_addf(&temporary, e, "%s.new", name) < 0)
        return -1;
    (void)unlinkat(dir_fd, buf_cstr(&temporary), 0);
    fd = openat(dir_fd, buf_cstr(&temporary), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                0600);
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

static int save_key(struct pki *p, const char *name, EVP_PKEY *key, struct err *e)
{
    OWN(buf_done) struct buf pem = BUF_INIT(PKI_PEM_MAX_BYTES);

    return cert_key_write(key, &pem, e) < 0 ? -1
                                            : pki_write_file(p->dir_fd, name, buf_span(&pem), e);
}

/* The key of that name; made where there is none. */
static int have_key(struct pki *p, const char *name, EVP_PKEY **ret, struct err *e)
{
    OWN(buf_done) struct buf pem = BUF_INIT(PKI_PEM_MAX_BYTES);

    if (!read_file(p->dir_fd, name, &pem))
        return cert_key_new(ret, e) < 0 ? -1 : save_key(p, name, *ret, e);
    *ret = cert_key_read(buf_span(&pem));
    if (*ret)
        return 0;
    (void)err_set(e, ERR_INVALID, "'pki/%s' in the data directory is not a private key", name);
    err_hint(e, "restore it, or remove the pki directory: clients then need the new kubeconfig");
    ERR_clear_error();
    return -1;
}

int pki_issue(struct pki *p, const struct cert_subject *subject, struct buf *cert, struct buf *key,
              struct err *e)
{
    OWN(cert_done) X509 *x = NULL;
    OWN(cert_key_done) EVP_PKEY *k = NULL;

    if (cert_key_new(&k, e) < 0 || cert_new(p->ca, p->ca_key, k, subject, &x, e) < 0)
        return -1;
    return cert_write(x, cert, e) < 0 || cert_key_write(k, key, e) < 0 ? -1 : 0;
}

/* ---- the server's ---- */

static bool still_fits(struct pki *p, struct span pem, const char *const *names)
{
    OWN(cert_done) X509 *x = cert_read(pem);
    int days = 0, seconds;

    if (!x || X509_verify(x, X509_get0_pubkey(p->ca)) != 1)
        return false;
    if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x)) || days < SERVER_DAYS / 3)
        return false;
    for (; *names; names++)
        if (!cert_has_name(x, *names))
            return false;
    return true;
}

int pki_server(struct pki *p, const char *const *alt_names, struct buf *cert, struct buf *key,
               bool *ret_is_new, struct err *e)
{
    struct cert_subject s = { .name = "kube-apiserver",
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
        pki_write_file(p->dir_fd, "server.key", buf_span(key), e) < 0 ||
        pki_write_file(p->dir_fd, "server.crt", buf_span(cert), e) < 0)
        return -1;
    *ret_is_new = true;
    return 0;
}

/* ---- the authority ---- */

static int have_ca(struct pki *p, struct err *e)
{
    static const struct cert_subject self = { .name = "silica", .days = CA_DAYS };
    bool has_cert = read_file(p->dir_fd, "ca.crt", &p->ca_pem);

    if (have_key(p, "ca.key", &p->ca_key, e) < 0)
        return -1;
    if (has_cert) {
        p->ca = cert_read(buf_span(&p->ca_pem));
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
    if (cert_new(NULL, p->ca_key, p->ca_key, &self, &p->ca, e) < 0 ||
        cert_write(p->ca, &p->ca_pem, e) < 0)
        return -1;
    return pki_write_file(p->dir_fd, "ca.crt", buf_span(&p->ca_pem), e);
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
