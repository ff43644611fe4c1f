#include "controller/certs.h"

#include "base/json.h"
#include "base/str.h"
#include "kube/object.h"
#include "net/cert.h"

#include <openssl/x509.h>
#include <stdio.h>

#define CA_NAME    "agent-sandbox-conversion-webhook-ca" /* the public controller's */
#define DAYS       365
#define NEXT_FROM  "silica.dev/webhook-next-from" /* an annotation */
#define RENEW_PART 3                              /* with less than this part of its life left */

static void wipe(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->n);
    buf_done(b);
}

void certs_done(struct certs *c)
{
    buf_done(&c->ca);
    buf_done(&c->cert);
    wipe(&c->key);
    buf_done(&c->next_cert);
    wipe(&c->next_key);
}

/* ---- made ---- */

/* Appends the new authority to ca. */
static int make_pair(const struct certs_names *names, struct buf *ca, struct buf *cert,
                     struct buf *key, struct err *e)
{
    static const struct cert_subject authority = { .name = CA_NAME, .days = DAYS };
    const struct cert_subject server = { .name = names->at[0],
                                         .alt_names = names->at,
                                         .days = DAYS };
    OWN(cert_key_done) EVP_PKEY *ca_key = NULL, *own_key = NULL;
    OWN(cert_done) X509 *x = NULL, *own = NULL;

    if (cert_key_new(&ca_key, e) < 0 || cert_key_new(&own_key, e) < 0 ||
        cert_new(NULL, ca_key, ca_key, &authority, &x, e) < 0 ||
        cert_new(x, ca_key, own_key, &server, &own, e) < 0)
        return -1;
    buf_clear(cert);
    buf_clear(key);
    return cert_write(x, ca, e) < 0 || cert_write(own, cert, e) < 0 ||
                   cert_key_write_ec(own_key, key, e) < 0
               ? -1
               : 0;
}

int certs_make(struct certs *c, const struct certs_names *names, struct err *e)
{
    buf_clear(&c->ca);
    buf_clear(&c->next_cert);
    buf_clear(&c->next_key);
    return make_pair(names, &c->ca, &c->cert, &c->key, e);
}

/* ---- read ---- */

static bool is_pair(const struct buf *cert, const struct buf *key)
{
    OWN(cert_done) X509 *x = cert_read(buf_span(cert));
    OWN(cert_key_done) EVP_PKEY *k = cert_key_read(buf_span(key));

    return x && k && X509_check_private_key(x, k) == 1;
}

/* The authority in ca.crt that signed what is served; NULL: none did. *ret_pem: its text. */
static X509 *authority_of(const struct certs *c, struct span *ret_pem)
{
    OWN(cert_done) X509 *own = cert_read(buf_span(&c->cert));
    struct span rest = buf_span(&c->ca), end = SPAN("-----END CERTIFICATE-----\n");

    while (own && rest.n) {
        size_t n = span_find_str(rest, end);
        struct span one = n == SIZE_MAX ? rest : span_slice(rest, 0, n + end.n);
        X509 *x = cert_read(one);

        if (x && X509_verify(own, X509_get0_pubkey(x)) == 1) {
            *ret_pem = one;
            return x;
        }
        X509_free(x);
        rest = span_skip(rest, one.n);
    }
    return NULL;
}

static int read_member(const struct object *secret, const char *name, struct buf *out,
                       struct err *e)
{
    const struct json *v = json_get(object_member(secret, "data"), name);

    buf_clear(out);
    if (!v)
        return 0;
    if (str_base64_decode(json_str(v), out, e) < 0)
        return err_wrap(e, "'%s' in it", name);
    return 0;
}

static void read_next(struct certs *c, const struct object *secret)
{
    const char *from = object_annotation(secret, NEXT_FROM);
    uint64_t at = 0;
    struct err e;

    if (read_member(secret, "next.crt", &c->next_cert, &e) == 0 &&
        read_member(secret, "next.key", &c->next_key, &e) == 0 && from &&
        str_u64(span_cstr(from), INT64_MAX, &at) && is_pair(&c->next_cert, &c->next_key)) {
        c->next_from = (time_t)at;
        return;
    }
    buf_clear(&c->next_cert);
    buf_clear(&c->next_key);
}

int certs_read(struct certs *c, const struct object *secret, struct err *e)
{
    OWN(cert_done) X509 *ca = NULL;
    struct span pem;

    if (read_member(secret, "ca.crt", &c->ca, e) < 0 ||
        read_member(secret, "tls.crt", &c->cert, e) < 0 ||
        read_member(secret, "tls.key", &c->key, e) < 0)
        return -1;
    if (!is_pair(&c->cert, &c->key))
        return err_set(e, ERR_INVALID,
                       "its tls.crt and tls.key are no pair of certificate and key");
    ca = authority_of(c, &pem);
    if (!ca)
        return err_set(e, ERR_INVALID, "its ca.crt holds nobody who signed its tls.crt");
    read_next(c, secret);
    c->version = object_version(secret);
    return 0;
}

struct webhook_pair certs_pair(const struct certs *c)
{
    return (struct webhook_pair){ buf_span(&c->cert), buf_span(&c->key) };
}

/* ---- what is to be done ---- */

static int64_t seconds_left(const struct certs *c, time_t now, int64_t *ret_life)
{
    OWN(cert_done) X509 *own = cert_read(buf_span(&c->cert));
    struct span pem;
    OWN(cert_done) X509 *ca = authority_of(c, &pem);

    if (!own || !ca)
        return *ret_life = 0;
    *ret_life = MIN(cert_seconds(own), cert_seconds(ca));
    return MIN(cert_seconds_left(own, now), cert_seconds_left(ca, now));
}

time_t certs_end(const struct certs *c, time_t now)
{
    int64_t life;

    return now + (time_t)seconds_left(c, now, &life);
}

static bool has_names(const struct buf *cert, const struct certs_names *names)
{
    OWN(cert_done) X509 *x = cert_read(buf_span(cert));

    for (size_t i = 0; x && i < names->n; i++)
        if (!cert_has_name(x, names->at[i]))
            return false;
    return x;
}

enum certs_step certs_next(const struct certs *c, const struct certs_names *names, bool is_believed,
                           time_t now)
{
    int64_t life, left = seconds_left(c, now, &life);

    if (left <= 0)
        return CERTS_REPLACE;
    if (c->next_cert.n && has_names(&c->next_cert, names))
        return is_believed && now >= c->next_from ? CERTS_SWITCH : CERTS_STAY;
    return left < life / RENEW_PART || !has_names(&c->cert, names) ? CERTS_STAGE : CERTS_STAY;
}

static int stage(struct certs *c, const struct certs_names *names, time_t from, struct err *e)
{
    OWN(buf_done) struct buf ca = BUF_INIT(CERTS_MAX_BYTES);
    struct span old = SPAN_NONE;
    OWN(cert_done) X509 *signer = authority_of(c, &old);

    if (make_pair(names, &ca, &c->next_cert, &c->next_key, e) < 0 ||
        (signer && buf_add(&ca, old, e) < 0))
        return -1;
    buf_done(&c->ca);
    buf_move(&c->ca, &ca);
    c->next_from = from;
    return 0;
}

int certs_apply(struct certs *c, enum certs_step step, const struct certs_names *names, time_t from,
                struct err *e)
{
    switch (step) {
    case CERTS_STAY:
        return 0;
    case CERTS_STAGE:
        return stage(c, names, from, e);
    case CERTS_SWITCH:
        buf_done(&c->cert);
        wipe(&c->key);
        buf_move(&c->cert, &c->next_cert);
        buf_move(&c->key, &c->next_key);
        return 0;
    case CERTS_REPLACE:
        return certs_make(c, names, e);
    }
    return 0;
}

/* ---- written ---- */

static void add_data(struct json_out *o, const char *name, const struct buf *pem, bool is_patch)
{
    OWN(wipe) struct buf text = BUF_INIT(2 * CERTS_MAX_BYTES);
    struct err e;

    if (!pem->n && !is_patch)
        return;
    json_out_key(o, name);
    if (!pem->n)
        json_out_null(o);
    else if (str_base64_encode(buf_span(pem), &text, &e) == 0)
        json_out_str(o, buf_span(&text));
    else
        json_out_null(o);
}

static void add_next_from(struct json_out *o, const struct certs *c)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%lld", (long long)c->next_from);
    json_out_key(o, "annotations"), json_out_object_begin(o);
    json_out_key(o, NEXT_FROM), json_out_cstr(o, c->next_cert.n ? text : NULL);
    json_out_object_end(o);
}

static void add_meta(struct json_out *o, const struct certs *c, const char *name, bool is_patch)
{
    char version[24];

    json_out_key(o, "metadata"), json_out_object_begin(o);
    if (!is_patch) {
        json_out_key(o, "name"), json_out_cstr(o, name);
    } else {
        (void)snprintf(version, sizeof version, "%llu", (unsigned long long)c->version);
        json_out_key(o, "resourceVersion"), json_out_cstr(o, version);
        add_next_from(o, c);
    }
    json_out_object_end(o);
}

int certs_write(const struct certs *c, const char *name, bool is_patch, struct buf *out,
                struct err *e)
{
    struct json_out o;

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    add_meta(&o, c, name, is_patch);
    if (!is_patch) {
        json_out_key(&o, "apiVersion"), json_out_cstr(&o, "v1");
        json_out_key(&o, "kind"), json_out_cstr(&o, "Secret");
        json_out_key(&o, "type"), json_out_cstr(&o, "Opaque");
    }
    json_out_key(&o, "data"), json_out_object_begin(&o);
    add_data(&o, "ca.crt", &c->ca, is_patch);
    add_data(&o, "tls.crt", &c->cert, is_patch);
    add_data(&o, "tls.key", &c->key, is_patch);
    add_data(&o, "next.crt", &c->next_cert, is_patch);
    add_data(&o, "next.key", &c->next_key, is_patch);
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}
