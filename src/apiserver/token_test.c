#include "apiserver/token.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct token_claims robot = { .namespace = "default",
                                           .name = "robot",
                                           .uid = "1-2-3",
                                           .id = "t1",
                                           .audiences = { TOKEN_ISSUER },
                                           .audience_count = 1,
                                           .issued_s = 1000,
                                           .expires_s = 2000 };

static void sign(EVP_PKEY *key, struct buf *out)
{
    struct err e;

    *out = (struct buf)BUF_INIT(TOKEN_MAX_BYTES);
    assert_int_equal(token_sign(key, &robot, out, &e), 0);
}

static void test_a_token_says_who_it_is_for(void **state)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct token_claims claims;
    struct buf token;
    const char *why;

    (void)state;
    sign(key, &token);
    assert_true(token_verify(key, buf_span(&token), 1500, &claims, &why));
    assert_string_equal(claims.namespace, "default");
    assert_string_equal(claims.name, "robot");
    assert_string_equal(claims.uid, "1-2-3");
    assert_int_equal(claims.bound, TOKEN_BOUND_NONE);
    assert_int_equal(claims.audience_count, 1);
    assert_string_equal(claims.audiences[0], TOKEN_ISSUER);
    buf_done(&token);
    EVP_PKEY_free(key);
}

static void test_what_it_is_bound_to(void **state)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    for (enum token_bound b = TOKEN_BOUND_POD; b <= TOKEN_BOUND_NODE; b++) {
        OWN(buf_done) struct buf token = BUF_INIT(TOKEN_MAX_BYTES);
        struct token_claims given = robot, claims;
        const char *why;
        struct err e;

        given.bound = b;
        memcpy(given.bound_name, "it", 3), memcpy(given.bound_uid, "4-5", 4);
        assert_int_equal(token_sign(key, &given, &token, &e), 0);
        assert_true(token_verify(key, buf_span(&token), 1500, &claims, &why));
        assert_int_equal(claims.bound, b);
        assert_string_equal(claims.bound_name, "it");
        assert_string_equal(claims.bound_uid, "4-5");
    }
    EVP_PKEY_free(key);
}

static void test_a_token_has_its_time(void **state)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct token_claims claims;
    struct buf token;
    const char *why;

    (void)state;
    sign(key, &token);
    assert_false(token_verify(key, buf_span(&token), 2000, &claims, &why));
    assert_string_equal(why, "expired");
    assert_false(token_verify(key, buf_span(&token), 900, &claims, &why));
    buf_done(&token);
    EVP_PKEY_free(key);
}

/* Whatever single byte changes, it is no token any more: the text is a signature's, or signed. */
static void test_no_byte_of_a_token_can_be_changed(void **state)
{
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
    struct token_claims claims;
    struct buf token;
    const char *why;

    (void)state;
    sign(key, &token);
    assert_false(token_verify(other, buf_span(&token), 1500, &claims, &why));
    for (size_t i = 0; i + 1 < token.n; i++) { /* the last one's low bits are padding */
        uint8_t kept = token.p[i];

        token.p[i] = kept == 'A' ? 'B' : 'A';
        if (token_verify(key, buf_span(&token), 1500, &claims, &why))
            fail_msg("byte %zu can be changed", i);
        token.p[i] = kept;
    }
    for (size_t n = 0; n < token.n; n++)
        assert_false(token_verify(key, span_slice(buf_span(&token), 0, n), 1500, &claims, &why));
    buf_done(&token);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

static void test_a_token_without_signature_is_none(void **state)
{
    static const char *const forged[] = {
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        /* {"alg":"none"} and claims of an administrator */
        "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.",
        "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ",
    };
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct token_claims claims;
    const char *why;

    (void)state;
    EACH(text, forged) {
        assert_false(token_verify(key, span_cstr(*text), 1500, &claims, &why));
    }
    EVP_PKEY_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_says_who_it_is_for),
        cmocka_unit_test(test_what_it_is_bound_to),
        cmocka_unit_test(test_a_token_has_its_time),
        cmocka_unit_test(test_no_byte_of_a_token_can_be_changed),
        cmocka_unit_test(test_a_token_without_signature_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
