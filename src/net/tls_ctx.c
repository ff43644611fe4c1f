#include "net/tls_ctx.h"

#include "base/fd.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

const char *tls_queue_words(char text[TLS_ERROR_MAX_BYTES])
{
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    if (reason)
        (void)snprintf(text, TLS_ERROR_MAX_BYTES, "%s", reason);
    else if (code)
        ERR_error_string_n(code, text, TLS_ERROR_MAX_BYTES);
    else
        (void)snprintf(text, TLS_ERROR_MAX_BYTES, "no reason given");
    ERR_clear_error();
    return text;
}

static int fail_queue(struct err *e, const char *what, const char *where)
{
    char text[TLS_ERROR_MAX_BYTES];

    return err_set(e, ERR_INVALID, "cannot use %s %s%s%s: %s", what, where ? "'" : "given as bytes",
                   where ? where : "", where ? "'" : "", tls_queue_words(text));
}

/* A memory BIO of the file, or of the bytes. NULL: there are none. -1: the file cannot be read. */
static int open_pem(const char *file, struct span pem, struct buf *space, BIO **ret, struct err *e)
{
    BIO *b = NULL;

    if (file && fd_read_file(file, space, e) < 0)
        return -1;
    if (file)
        pem = buf_span(space);
    if (pem.n > TLS_PEM_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "certificates of %zu bytes; at most %d", pem.n,
                       TLS_PEM_MAX_BYTES);
    if (file || pem.n) {
        b = BIO_new_mem_buf(pem.p ? pem.p : (const uint8_t *)"", (int)pem.n);
        assert(b);
    }
    *ret = b;
    return 0;
}

/* Reads every certificate; the loop ends at the first thing that is not one, which must be the end. */
static bool at_pem_end(void)
{
    unsigned long code = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;

    if (is_end)
        ERR_clear_error();
    return is_end;
}

/* A key with a passphrase would make OpenSSL ask on the terminal. */
static int no_passphrase(char *p, int size, int is_writing, void *ctx)
{
    (void)p, (void)size, (void)is_writing, (void)ctx;
    return -1;
}

static bool use_chain(SSL_CTX *ctx, BIO *b)
{
    X509 *cert = PEM_read_bio_X509_AUX(b, NULL, no_passphrase, NULL);
    bool is_fine = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

    X509_free(cert);
    while (is_fine && (cert = PEM_read_bio_X509(b, NULL, no_passphrase, NULL))) {
        is_fine = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
        if (!is_fine)
            X509_free(cert);
    }
    return is_fine && at_pem_end();
}

static bool use_key(SSL_CTX *ctx, BIO *b)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL);
    bool is_fine =
        key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;

    EVP_PKEY_free(key);
    return is_fine;
}

/* A server also tells clients the names of the CAs it takes. */
static bool use_cas(SSL_CTX *ctx, BIO *b, bool is_server)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    size_t n = 0;
    bool is_fine = true;
    X509 *cert;

    while (is_fine && (cert = PEM_read_bio_X509(b, NULL, no_passphrase, NULL))) {
        is_fine = X509_STORE_add_cert(store, cert) == 1 &&
                  (!is_server || SSL_CTX_add_client_CA(ctx, cert) == 1);
        X509_free(cert);
        n++;
    }
    return is_fine && n && at_pem_end();
}

typedef bool (*use_fn)(SSL_CTX *ctx, BIO *b);

static bool use_client_cas(SSL_CTX *ctx, BIO *b)
{
    return use_cas(ctx, b, true);
}

static bool use_server_cas(SSL_CTX *ctx, BIO *b)
{
    return use_cas(ctx, b, false);
}

/* 1: used, 0: there is none, -1. */
static int use_pem(SSL_CTX *ctx, const char *what, const char *file, struct span pem, use_fn use,
                   struct err *e)
{
    OWN(buf_done) struct buf space = BUF_INIT(TLS_PEM_MAX_BYTES);
    BIO *b = NULL;
    bool is_fine;

    if (open_pem(file, pem, &space, &b, e) < 0)
        return err_wrap(e, "cannot read %s", what);
    if (!b)
        return 0;
    is_fine = use(ctx, b);
    BIO_free(b);
    if (space.p)
        OPENSSL_cleanse(space.p, space.n);
    return is_fine ? 1 : fail_queue(e, what, file);
}

static int use_identity(SSL_CTX *ctx, const struct tls_config *config, struct err *e)
{
    int cert = use_pem(ctx, "the certificate", config->cert_file, config->cert_pem, use_chain, e);
    int key = cert < 0
                  ? -1
                  : use_pem(ctx, "the private key", config->key_file, config->key_pem, use_key, e);

    if (key < 0)
        return -1;
    if (cert != key)
        return err_set(e, ERR_INVALID,
                       "a certificate and its key belong together: one of them is missing");
    if (!cert && config->role == TLS_SERVER)
        return err_set(e, ERR_INVALID, "a TLS server needs a certificate");
    return 0;
}

static int use_trust(SSL_CTX *ctx, const struct tls_config *config, struct err *e)
{
    bool is_server = config->role == TLS_SERVER;
    int r = use_pem(ctx, "the CA certificates", config->ca_file, config->ca_pem,
                    is_server ? use_client_cas : use_server_cas, e);

    if (r < 0)
        return -1;
    if (is_server && config->client_verify != TLS_VERIFY_NONE && !r)
        return err_set(e, ERR_INVALID, "client certificates cannot be verified without a CA");
    if (!is_server && !r && !config->is_insecure && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return fail_queue(e, "the system's CA certificates", NULL);
    ERR_clear_error();
    return 0;
}

static int verify_mode(const struct tls_config *config)
{
    if (config->role == TLS_CLIENT)
        return config->is_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
    if (config->client_verify == TLS_VERIFY_NONE)
        return SSL_VERIFY_NONE;
    return SSL_VERIFY_PEER |
           (config->client_verify == TLS_VERIFY_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
}

int tls_ctx_new(const struct tls_config *config, SSL_CTX **ret, struct err *e)
{
    SSL_CTX *ctx =
        SSL_CTX_new(config->role == TLS_SERVER ? TLS_server_method() : TLS_client_method());

    if (!ctx)
        return fail_queue(e, "OpenSSL", NULL);
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    /* Resumption would carry a client's identity over a reload that no longer trusts it: no tickets, no cache. */
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(ctx, 0);
    /* Released buffers: an idle connection costs 34 KB less. */
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(ctx, verify_mode(config), NULL);
    if (use_identity(ctx, config, e) < 0 || use_trust(ctx, config, e) < 0) {
        SSL_CTX_free(ctx);
        return -1;
    }
    *ret = ctx;
    return 0;
}
