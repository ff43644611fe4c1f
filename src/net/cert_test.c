#include "net/cert.h"

#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define DAY_S 86400

static const char *const names[] = { "a.b.svc", "127.0.0.1", "::1", NULL };

static void test_signed_by_an_authority(void **state)
{
    const struct cert_subject root = { .name = "root", .days = 2 },
                              server = { .name = "a.b.svc", .alt_names = names, .days = 1 };
    OWN(cert_key_done) EVP_PKEY *ca_key = NULL, *key = NULL;
    OWN(cert_done) X509 *ca = NULL, *x = NULL;
    time_t now = time(NULL);
    struct err e;

    assert_int_equal(cert_key_new(&ca_key, &e), 0);
    assert_int_equal(cert_key_new(&key, &e), 0);
    assert_int_equal(cert_new(NULL, ca_key, ca_key, &root, &ca, &e), 0);
    assert_int_equal(cert_new(ca, ca_key, key, &server, &x, &e), 0);
    assert_int_equal(X509_check_ca(ca) != 0, 1);
    assert_int_equal(X509_check_ca(x), 0);
    assert_int_equal(X509_verify(x, X509_get0_pubkey(ca)), 1);
    for (const char *const *n = names; *n; n++)
        assert_true(cert_has_name(x, *n));
    assert_false(cert_has_name(x, "b.svc"));
    assert_false(cert_has_name(x, "127.0.0.2"));
    assert_in_range(cert_seconds_left(x, now), DAY_S - 60, DAY_S + 60);
    assert_true(cert_seconds_left(x, now + 2 * DAY_S) < 0);
    assert_in_range(cert_seconds(x), DAY_S + 3600 - 60, DAY_S + 3600 + 60);
}

static void test_a_name_that_is_none(void **state)
{
    static const char *const bad[] = { "a,IP:1.2.3.4", NULL };
    const struct cert_subject server = { .name = "x", .alt_names = bad, .days = 1 };
    OWN(cert_key_done) EVP_PKEY *key = NULL;
    X509 *x = NULL;
    struct err e;

    assert_int_equal(cert_key_new(&key, &e), 0);
    assert_int_equal(
        cert_new(NULL, key, key, &(struct cert_subject){ .name = "ca", .days = 1 }, &x, &e), 0);
    {
        OWN(cert_done) X509 *ca = x;

        x = NULL;
        assert_int_equal(cert_new(ca, key, key, &server, &x, &e), -1);
    }
    assert_string_equal(e.msg, "'a,IP:1.2.3.4' is neither a host name nor an address");
    assert_null(x);
}

static void test_pem_comes_back(void **state)
{
    OWN(buf_done) struct buf cert = BUF_INIT(8192), key_pem = BUF_INIT(8192), ec = BUF_INIT(8192);
    OWN(cert_key_done) EVP_PKEY *key = NULL, *read = NULL, *read_ec = NULL;
    OWN(cert_done) X509 *x = NULL, *again = NULL;
    struct err e;

    assert_int_equal(cert_key_new(&key, &e), 0);
    assert_int_equal(
        cert_new(NULL, key, key, &(struct cert_subject){ .name = "ca", .days = 1 }, &x, &e), 0);
    assert_int_equal(cert_write(x, &cert, &e) | cert_key_write(key, &key_pem, &e) |
                         cert_key_write_ec(key, &ec, &e),
                     0);
    assert_true(span_starts(buf_span(&key_pem), "-----BEGIN PRIVATE KEY-----"));
    assert_true(span_starts(buf_span(&ec), "-----BEGIN EC PRIVATE KEY-----"));
    again = cert_read(buf_span(&cert));
    read = cert_key_read(buf_span(&key_pem));
    read_ec = cert_key_read(buf_span(&ec));
    assert_int_equal(X509_cmp(x, again), 0);
    assert_int_equal(X509_check_private_key(x, read), 1);
    assert_int_equal(X509_check_private_key(x, read_ec), 1);
    assert_null(cert_read(SPAN("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")));
    assert_null(cert_key_read(SPAN("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signed_by_an_authority),
        cmocka_unit_test(test_a_name_that_is_none),
        cmocka_unit_test(test_pem_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
