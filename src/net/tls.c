#include "net/tls.h"

#include "ev/io.h"
#include "net/addr.h"
#include "net/tls_ctx.h"

#include <errno.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define TLS_ALPN_MAX_BYTES 64 /* our own list; "h2,http/1.1" has 11 */

/* Names as on the wire: each behind its length. */
struct alpn {
    uint8_t p[TLS_ALPN_MAX_BYTES];
    unsigned n;
};

struct tls {
    struct conn_filter_maker maker;
    enum tls_role role;
    bool is_insecure;
    struct alpn alpn;
    SSL_CTX *ctx;
};

struct filter {
    struct conn_filter base;
    SSL *ssl;
    int fd;
    bool is_server, is_open, is_eof, is_broken;
    bool is_stranger; /* showed a certificate that did not verify, where one is optional */
    unsigned wants;
    struct alpn alpn; /* a copy: t may be gone before the handshake */
    int sys;          /* errno of the failure, told again at each later call */
    char peer[256];
    char protocol[TLS_ALPN_MAX_BYTES];
    char error[TLS_ERROR_MAX_BYTES];
};

static const struct conn_filter_ops filter_ops;

/* The socket behind a session: send() without SIGPIPE, which OpenSSL's own socket BIO does not offer. */

static int bio_write(BIO *b, const char *p, size_t n, size_t *ret_n)
{
    const struct filter *f = BIO_get_data(b);
    ssize_t r = send(f->fd, p, n, MSG_NOSIGNAL);

    BIO_clear_retry_flags(b);
    if (r < 0) {
        if (errno == EAGAIN || errno == EINTR)
            BIO_set_retry_write(b);
        return 0;
    }
    *ret_n = (size_t)r;
    return 1;
}

static int bio_read(BIO *b, char *p, size_t n, size_t *ret_n)
{
    const struct filter *f = BIO_get_data(b);
    ssize_t r = recv(f->fd, p, n, 0);

    BIO_clear_retry_flags(b);
    if (r <= 0) {
        if (r < 0 && (errno == EAGAIN || errno == EINTR))
            BIO_set_retry_read(b);
        if (r == 0)
            BIO_set_flags(b, BIO_FLAGS_IN_EOF);
        return 0;
    }
    *ret_n = (size_t)r;
    return 1;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)num, (void)ptr;
    if (cmd == BIO_CTRL_FLUSH)
        return 1;
    return cmd == BIO_CTRL_EOF ? BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0 : 0;
}

static const BIO_METHOD *socket_method(void)
{
    static BIO_METHOD *method;

    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "silica socket");
        assert(method);
        (void)BIO_meth_set_write_ex(method, bio_write);
        (void)BIO_meth_set_read_ex(method, bio_read);
        (void)BIO_meth_set_ctrl(method, bio_ctrl);
    }
    return method;
}

/* The server's choice: our order decides. Nothing in common: no protocol rather than a failed handshake, so that
 * clients with an odd list still get HTTP/1.1. */
static int choose_alpn(SSL *ssl, const uint8_t **ret, uint8_t *ret_n, const uint8_t *in,
                       unsigned in_n, void *ctx)
{
    const struct filter *f = SSL_get_app_data(ssl);
    uint8_t *chosen;

    (void)ctx;
    if (SSL_select_next_proto(&chosen, ret_n, f->alpn.p, f->alpn.n, in, in_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* An optional certificate that does not verify counts as none, as Kubernetes has it: the caller may have a token. */
static int note_stranger(int is_fine, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct filter *f = SSL_get_app_data(ssl);

    if (!is_fine)
        f->is_stranger = true;
    return 1;
}

static int read_alpn(const char *list, struct alpn *ret, struct err *e)
{
    struct span rest = span_cstr(list), name;
    struct alpn a = { .n = 0 };

    while (span_cut(&rest, ',', &name)) {
        if (name.n == 0 || a.n + 1 + name.n > sizeof a.p)
            return err_set(e, ERR_INVALID,
                           "the protocol list '%s' has an empty name or is too long", list);
        a.p[a.n++] = (uint8_t)name.n;
        memcpy(a.p + a.n, name.p, name.n);
        a.n += (unsigned)name.n;
    }
    *ret = a;
    return 0;
}

int tls_reload(struct tls *t, const struct tls_config *config, struct err *e)
{
    struct alpn alpn;
    SSL_CTX *ctx;

    if (config->role != t->role)
        return err_set(e, ERR_INVALID, "a TLS client cannot become a server, nor the reverse");
    if (read_alpn(config->alpn, &alpn, e) < 0 || tls_ctx_new(config, &ctx, e) < 0)
        return -1;
    if (alpn.n && t->role == TLS_SERVER)
        SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    else if (alpn.n)
        (void)SSL_CTX_set_alpn_protos(ctx, alpn.p, alpn.n);
    if (t->role == TLS_SERVER && config->client_verify == TLS_VERIFY_OPTIONAL)
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, note_stranger);
    SSL_CTX_free(t->ctx); /* counted: sessions made with it keep it */
    t->ctx = ctx;
    t->alpn = alpn;
    t->is_insecure = config->is_insecure;
    return 0;
}

static int make_filter(struct conn_filter_maker *m, int fd, const char *peer_name,
                       struct conn_filter **ret, struct err *e)
{
    return tls_filter_new(CONTAINER(m, struct tls, maker), fd, peer_name, ret, e);
}

int tls_new(const struct tls_config *config, struct tls **ret, struct err *e)
{
    struct tls *t = NEW(struct tls);

    t->maker.make = make_filter;
    t->role = config->role;
    if (tls_reload(t, config, e) < 0) {
        free(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

struct conn_filter_maker *tls_maker(struct tls *t)
{
    return &t->maker;
}

static struct filter *of(const struct conn_filter *base)
{
    return CONTAINER(base, struct filter, base);
}

/* Names go into SNI and are matched against DNS names; addresses are matched against IP SANs and have no SNI
 * (RFC 6066 3). Brackets of IPv6 and a name's final dot are not part of it. */
static int expect_peer(struct filter *f, const char *server_name, bool is_checked, struct err *e)
{
    struct span s = span_cstr(server_name);

    if (span_starts(s, "[") && span_ends(s, "]"))
        s = span_slice(s, 1, s.n - 1);
    else if (span_ends(s, "."))
        s = span_slice(s, 0, s.n - 1);
    if (s.n == 0 || s.n >= sizeof f->peer)
        return err_set(e, ERR_INVALID, "'%s' cannot be the name of a TLS server", server_name);
    memcpy(f->peer, s.p, s.n);
    if (net_host_is_ip(s)) {
        if (is_checked && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(f->ssl), f->peer) != 1)
            return err_set(e, ERR_INVALID, "'%s' cannot be checked against a certificate", f->peer);
        return 0;
    }
    SSL_set_hostflags(f->ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (SSL_set_tlsext_host_name(f->ssl, f->peer) != 1 ||
        (is_checked && SSL_set1_host(f->ssl, f->peer) != 1)) {
        ERR_clear_error();
        return err_set(e, ERR_INVALID, "'%s' cannot be the name of a TLS server", server_name);
    }
    return 0;
}

static void filter_free(struct conn_filter *base)
{
    struct filter *f = of(base);

    SSL_free(f->ssl); /* and the BIO */
    free(f);
}

int tls_filter_new(struct tls *t, int fd, const char *server_name, struct conn_filter **ret,
                   struct err *e)
{
    struct filter *f = NEW(struct filter);
    BIO *b = BIO_new(socket_method());

    f->base.ops = &filter_ops;
    f->ssl = SSL_new(t->ctx);
    assert(b && f->ssl); /* out of memory */
    f->fd = fd;
    f->is_server = t->role == TLS_SERVER;
    f->alpn = t->alpn;
    (void)snprintf(f->peer, sizeof f->peer, "the peer");
    BIO_set_data(b, f);
    BIO_set_init(b, 1);
    SSL_set_bio(f->ssl, b, b);
    SSL_set_app_data(f->ssl, f);
    if (f->is_server)
        SSL_set_accept_state(f->ssl);
    else
        SSL_set_connect_state(f->ssl);
    f->wants = f->is_server ? EV_READ : EV_WRITE;
    if (!f->is_server && server_name) {
        memset(f->peer, 0, sizeof f->peer);
        if (expect_peer(f, server_name, !t->is_insecure, e) < 0) {
            filter_free(&f->base);
            return -1;
        }
    }
    *ret = &f->base;
    return 0;
}

/* The session is over; why, in words. */
static void fail(struct filter *f, int sys, const char *what)
{
    char why[TLS_ERROR_MAX_BYTES];
    long verdict = SSL_get_verify_result(f->ssl);

    f->is_broken = true;
    f->wants = 0;
    f->sys = sys;
    if (!f->is_open && verdict != X509_V_OK && SSL_get_verify_mode(f->ssl) != SSL_VERIFY_NONE)
        (void)snprintf(f->error, sizeof f->error, "cannot verify the certificate of '%s': %s",
                       f->peer, X509_verify_cert_error_string(verdict));
    else
        (void)snprintf(f->error, sizeof f->error, "%s '%s': %s", what, f->peer,
                       ERR_peek_error() ? tls_queue_words(why) : strerror(sys));
    ERR_clear_error();
}

/* Judges the return value of an SSL call. Sets errno as a system call would; true when the peer said goodbye. */
static bool judge(struct filter *f, int r, const char *what)
{
    int sys = errno;

    switch (SSL_get_error(f->ssl, r)) {
    case SSL_ERROR_WANT_READ:
        if (!f->is_open)
            f->wants = EV_READ;
        errno = EAGAIN;
        return false;
    case SSL_ERROR_WANT_WRITE:
        if (!f->is_open)
            f->wants = EV_WRITE;
        errno = EAGAIN;
        return false;
    case SSL_ERROR_ZERO_RETURN:
        return true;
    case SSL_ERROR_SYSCALL:
        if (sys == 0 || sys == EAGAIN)
            sys = ECONNRESET;
        break;
    default:
        sys = EPROTO;
        /* The end of the stream where a record should be: the peer left without close_notify, or was cut off. */
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
            sys = ECONNRESET;
    }
    fail(f, sys, what);
    errno = sys;
    return false;
}

static int again(const struct filter *f)
{
    errno = f->sys;
    return -1;
}

static int filter_handshake(struct conn_filter *base)
{
    struct filter *f = of(base);
    const uint8_t *name;
    unsigned n;
    int r;

    if (f->is_broken)
        return again(f);
    f->wants = 0;
    if (f->is_open)
        return 0;
    ERR_clear_error();
    errno = 0;
    r = SSL_do_handshake(f->ssl);
    if (r != 1) {
        if (judge(f, r, "TLS handshake failed with")) {
            fail(f, ECONNRESET, "TLS handshake failed with");
            errno = ECONNRESET;
        }
        return -1;
    }
    f->is_open = true;
    SSL_get0_alpn_selected(f->ssl, &name, &n);
    if (n < sizeof f->protocol)
        memcpy(f->protocol, name ? name : (const uint8_t *)"", n);
    return 0;
}

/* Fills p as far as the records at hand go: one is at most 16 KiB, and each call here costs its caller a turn. */
static ssize_t filter_read(struct conn_filter *base, void *p, size_t n)
{
    struct filter *f = of(base);
    size_t done = 0;

    if (!f->is_open && filter_handshake(base) < 0)
        return -1;
    while (done < n && !f->is_eof && !f->is_broken) {
        size_t got = 0;
        int r;

        ERR_clear_error();
        errno = 0;
        r = SSL_read_ex(f->ssl, (uint8_t *)p + done, n - done, &got);
        if (r == 1) {
            done += got;
            continue;
        }
        f->is_eof = judge(f, r, "TLS failed with");
        if (!f->is_eof && !f->is_broken) {
            if (SSL_want_write(f->ssl))
                f->wants = EV_WRITE; /* a key update has to be answered first */
            break;
        }
    }
    if (done)
        return (ssize_t)done; /* the rest is told at the next call: has_pending says so */
    if (f->is_eof)
        return 0;
    if (!f->is_broken)
        errno = EAGAIN;
    return f->is_broken ? again(f) : -1;
}

static ssize_t filter_write(struct conn_filter *base, const void *p, size_t n)
{
    struct filter *f = of(base);
    size_t done = 0;
    int r;

    if (f->is_broken)
        return again(f);
    if (!f->is_open && filter_handshake(base) < 0)
        return -1;
    if (n == 0)
        return 0;
    ERR_clear_error();
    errno = 0;
    r = SSL_write_ex(f->ssl, p, n, &done);
    if (r == 1)
        return (ssize_t)done;
    if (judge(f, r, "TLS failed with")) {
        fail(f, EPIPE, "TLS failed with");
        errno = EPIPE;
    }
    return -1;
}

static unsigned filter_wants(const struct conn_filter *base)
{
    return of(base)->wants;
}

static bool filter_has_pending(const struct conn_filter *base)
{
    const struct filter *f = of(base);

    return f->is_open && (SSL_pending(f->ssl) > 0 || f->is_eof || f->is_broken);
}

static bool filter_finish(struct conn_filter *base)
{
    struct filter *f = of(base);
    int r;

    if (!f->is_open || f->is_broken)
        return true;
    ERR_clear_error();
    errno = 0;
    r = SSL_shutdown(f->ssl);
    if (r < 0 && SSL_get_error(f->ssl, r) == SSL_ERROR_WANT_WRITE) {
        f->wants = EV_WRITE;
        return false;
    }
    ERR_clear_error();
    return true;
}

static const char *filter_error(const struct conn_filter *base)
{
    return of(base)->error;
}

static const char *filter_protocol(const struct conn_filter *base)
{
    return of(base)->protocol;
}

static const struct conn_filter_ops filter_ops = {
    .handshake = filter_handshake,
    .read = filter_read,
    .write = filter_write,
    .wants = filter_wants,
    .has_pending = filter_has_pending,
    .finish = filter_finish,
    .error = filter_error,
    .protocol = filter_protocol,
    .free = filter_free,
};

const char *tls_version(const struct conn_filter *base)
{
    return SSL_get_version(of(base)->ssl);
}

bool tls_peer_subject(const struct conn_filter *base, enum tls_subject what, size_t i,
                      struct buf *out)
{
    const struct filter *f = of(base);
    X509 *cert = f->is_open ? SSL_get0_peer_certificate(f->ssl) : NULL;
    int nid = what == TLS_SUBJECT_CN ? NID_commonName : NID_organizationName;
    X509_NAME *name;
    uint8_t *text = NULL;
    int at = -1, n;
    bool is_fine;
    struct err e;

    if (!cert || f->is_stranger || SSL_get_verify_mode(f->ssl) == SSL_VERIFY_NONE ||
        SSL_get_verify_result(f->ssl) != X509_V_OK)
        return false;
    name = X509_get_subject_name(cert);
    for (size_t k = 0; k <= i; k++) {
        at = X509_NAME_get_index_by_NID(name, nid, at);
        if (at < 0)
            return false;
    }
    n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    is_fine =
        n >= 0 && !memchr(text, '\0', (size_t)n) && buf_add(out, span_of(text, (size_t)n), &e) == 0;
    OPENSSL_free(text);
    ERR_clear_error();
    return is_fine;
}
