#include "controller/certs.h"

#include "kube/kind.h"
#include "kube/object.h"
#include "net/cert.h"

#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define DAY_S        ((time_t)86400)
#define SECRET_BYTES (512 * 1024)

static const struct certs_names names = { .at = { "w.n.svc", "w", "127.0.0.1" }, .n = 3 };
static const struct certs_names more = { .at = { "w.n.svc", "w", "127.0.0.1", "other" }, .n = 4 };

static struct object *secret_of(const struct certs *c)
{
    OWN(buf_done) struct buf text = BUF_INIT(SECRET_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    if (certs_write(c, "s", false, &text, &e) < 0 ||
        json_parse(buf_span(&text), NULL, &doc, &e) < 0 ||
        object_parse(kind_find("", "v1", "secrets"), json_doc_root(doc), &o, &e) < 0)
        fail_msg("%s", e.msg);
    return o;
}

static void make(struct certs *c)
{
    struct err e;

    if (certs_make(c, &names, &e) < 0)
        fail_msg("%s", e.msg);
}

static void apply(struct certs *c, enum certs_step step, const struct certs_names *n, time_t from)
{
    struct err e;

    if (certs_apply(c, step, n, from, &e) < 0)
        fail_msg("%s", e.msg);
}

static bool believes(const struct buf *ca, const struct buf *cert)
{
    OWN(cert_done) X509 *own = cert_read(buf_span(cert));
    struct span rest = buf_span(ca), end = SPAN("-----END CERTIFICATE-----\n");

    while (rest.n) {
        size_t n = span_find_str(rest, end) + end.n;
        OWN(cert_done) X509 *x = cert_read(span_slice(rest, 0, n));

        if (X509_verify(own, X509_get0_pubkey(x)) == 1)
            return true;
        rest = span_skip(rest, n);
    }
    return false;
}

static void test_a_secret_comes_back(void **state)
{
    OWN(certs_done) struct certs made = CERTS_INIT, read = CERTS_INIT;
    OWN(object_done) struct object *o = NULL;
    struct err e;

    make(&made);
    o = secret_of(&made);
    assert_string_equal(object_text(o, "type"), "Opaque");
    assert_int_equal(certs_read(&read, o, &e), 0);
    assert_true(span_eq(buf_span(&made.cert), buf_span(&read.cert)));
    assert_true(span_eq(buf_span(&made.key), buf_span(&read.key)));
    assert_true(span_starts(buf_span(&read.key), "-----BEGIN EC PRIVATE KEY-----"));
    assert_int_equal(read.next_cert.n, 0);
    assert_true(believes(&read.ca, &read.cert));
}

static void test_a_secret_that_is_not_ours(void **state)
{
    OWN(certs_done) struct certs a = CERTS_INIT, b = CERTS_INIT, read = CERTS_INIT;
    OWN(object_done) struct object *o = NULL, *p = NULL;
    struct err e;

    make(&a);
    make(&b);
    buf_move(&a.key, &b.key);
    o = secret_of(&a);
    assert_int_equal(certs_read(&read, o, &e), -1);
    assert_string_equal(e.msg, "its tls.crt and tls.key are no pair of certificate and key");
    make(&a);
    buf_clear(&a.ca);
    assert_int_equal(buf_add(&a.ca, buf_span(&b.ca), &e), 0);
    p = secret_of(&a);
    assert_int_equal(certs_read(&read, p, &e), -1);
    assert_string_equal(e.msg, "its ca.crt holds nobody who signed its tls.crt");
}

/* At no step is there an API server that believes ca.crt as it is now, or as it was one step before, and not what is shown. */
static void test_renewal_never_shows_what_nobody_believes(void **state)
{
    OWN(certs_done) struct certs c = CERTS_INIT;
    OWN(buf_done) struct buf old = BUF_INIT(CERTS_MAX_BYTES);
    time_t now = time(NULL), late = now + 300 * DAY_S;
    struct err e;

    make(&c);
    assert_int_equal(certs_next(&c, &names, true, now), CERTS_STAY);
    assert_int_equal(certs_next(&c, &names, true, now + 240 * DAY_S), CERTS_STAY);
    assert_int_equal(certs_next(&c, &names, true, late), CERTS_STAGE);
    assert_int_equal(buf_add(&old, buf_span(&c.cert), &e), 0);
    apply(&c, CERTS_STAGE, &names, late + 90);
    assert_true(span_eq(buf_span(&old), buf_span(&c.cert)));
    assert_true(believes(&c.ca, &c.cert) && believes(&c.ca, &c.next_cert));
    assert_int_equal(certs_next(&c, &names, true, late + 89), CERTS_STAY);
    assert_int_equal(certs_next(&c, &names, false, late + 100), CERTS_STAY);
    assert_int_equal(certs_next(&c, &names, true, late + 100), CERTS_SWITCH);
    apply(&c, CERTS_SWITCH, &names, 0);
    assert_false(span_eq(buf_span(&old), buf_span(&c.cert)));
    assert_true(believes(&c.ca, &c.cert) && believes(&c.ca, &old));
    assert_int_equal(c.next_cert.n, 0);
    assert_int_equal(certs_next(&c, &names, true, now), CERTS_STAY);
}

static void test_a_staged_pair_is_in_the_secret(void **state)
{
    OWN(certs_done) struct certs c = CERTS_INIT;
    OWN(buf_done) struct buf patch = BUF_INIT(SECRET_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *meta;
    struct err e;

    make(&c);
    c.version = 41;
    apply(&c, CERTS_STAGE, &names, 1234);
    assert_int_equal(certs_write(&c, "s", true, &patch, &e), 0);
    assert_int_equal(json_parse(buf_span(&patch), NULL, &doc, &e), 0);
    meta = json_get(json_doc_root(doc), "metadata");
    assert_string_equal(json_cstr(json_get(meta, "resourceVersion")), "41");
    assert_string_equal(
        json_cstr(json_get(json_get(meta, "annotations"), "silica.dev/webhook-next-from")), "1234");
    assert_int_equal(json_type(json_get(json_get(json_doc_root(doc), "data"), "next.key")),
                     JSON_STRING);
    apply(&c, CERTS_SWITCH, &names, 0);
    buf_clear(&patch);
    json_doc_unref(take_ptr(&doc));
    assert_int_equal(certs_write(&c, "s", true, &patch, &e), 0);
    assert_int_equal(json_parse(buf_span(&patch), NULL, &doc, &e), 0);
    assert_int_equal(json_type(json_get(json_get(json_doc_root(doc), "data"), "next.key")),
                     JSON_NULL);
}

static void test_other_reasons_to_renew(void **state)
{
    OWN(certs_done) struct certs c = CERTS_INIT;
    time_t now = time(NULL);

    make(&c);
    assert_int_equal(certs_next(&c, &more, true, now), CERTS_STAGE);
    assert_int_equal(certs_next(&c, &names, false, now + 400 * DAY_S), CERTS_REPLACE);
    assert_in_range(certs_end(&c, now) - now, 364 * DAY_S, 366 * DAY_S);
    /* What waits is of no use either: the names have changed since. */
    apply(&c, CERTS_STAGE, &names, now);
    assert_int_equal(certs_next(&c, &more, true, now), CERTS_STAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_secret_comes_back),
        cmocka_unit_test(test_a_secret_that_is_not_ours),
        cmocka_unit_test(test_renewal_never_shows_what_nobody_believes),
        cmocka_unit_test(test_a_staged_pair_is_in_the_secret),
        cmocka_unit_test(test_other_reasons_to_renew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
