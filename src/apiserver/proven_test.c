#include "apiserver/proven.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKENS (3 * PROVEN_SLOTS) /* more than have a place */

static struct {
    struct proven proven;
    EVP_PKEY *key, *other;
} t;

static int set_up(void **state)
{
    (void)state;
    t.key = EVP_EC_gen("P-256");
    t.other = EVP_EC_gen("P-256");
    return t.key && t.other ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    proven_done(&t.proven);
    EVP_PKEY_free(t.key);
    EVP_PKEY_free(t.other);
    return 0;
}

static void sign(const char *name, struct buf *out)
{
    struct token_claims claims = { .namespace = "default",
                                   .uid = "1-2-3",
                                   .id = "t1",
                                   .audiences = { TOKEN_ISSUER },
                                   .audience_count = 1,
                                   .issued_s = 1000,
                                   .expires_s = 2000 };
    struct err e;

    (void)snprintf(claims.name, sizeof claims.name, "%s", name);
    *out = (struct buf)BUF_INIT(TOKEN_MAX_BYTES);
    assert_int_equal(token_sign(t.key, &claims, out, &e), 0);
}

static bool verify(EVP_PKEY *key, const struct buf *token, int64_t now_s, struct token_claims *ret)
{
    const char *why;

    return proven_verify(&t.proven, key, buf_span(token), now_s, ret, &why);
}

/* That a signature is not looked at again shows by a key that it would not fit. */
static void test_a_signature_is_proved_once(void **state)
{
    struct token_claims claims;
    OWN(buf_done) struct buf token;

    (void)state;
    sign("robot", &token);
    assert_false(verify(t.other, &token, 1500, &claims));
    assert_true(verify(t.key, &token, 1500, &claims));
    memset(&claims, 0, sizeof claims);
    assert_true(verify(t.other, &token, 1500, &claims));
    assert_string_equal(claims.name, "robot");
    assert_int_equal(claims.audience_count, 1);
}

static void test_a_proven_token_has_its_time(void **state)
{
    struct token_claims claims;
    OWN(buf_done) struct buf token;

    (void)state;
    sign("robot", &token);
    assert_true(verify(t.key, &token, 1500, &claims));
    assert_false(verify(t.key, &token, 2000, &claims));
    assert_false(verify(t.key, &token, 900, &claims));
    assert_true(verify(t.key, &token, 1999, &claims));
}

static void test_a_changed_token_is_not_the_proven_one(void **state)
{
    struct token_claims claims;
    OWN(buf_done) struct buf token;

    (void)state;
    sign("robot", &token);
    assert_true(verify(t.key, &token, 1500, &claims));
    for (size_t i = 0; i + 1 < token.n; i += 7) {
        uint8_t kept = token.p[i];

        token.p[i] = kept == 'A' ? 'B' : 'A';
        if (verify(t.key, &token, 1500, &claims))
            fail_msg("byte %zu can be changed", i);
        token.p[i] = kept;
    }
    assert_true(verify(t.key, &token, 1500, &claims));
}

/* Each says of itself what it says, also after it lost its place to another. */
static void test_more_tokens_than_places(void **state)
{
    static struct buf tokens[TOKENS];
    struct token_claims claims;
    char name[16];

    (void)state;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < TOKENS; i++) {
            (void)snprintf(name, sizeof name, "robot-%zu", i);
            if (round == 0)
                sign(name, &tokens[i]);
            assert_true(verify(t.key, &tokens[i], 1500, &claims));
            assert_string_equal(claims.name, name);
        }
    EACH(token, tokens) {
        buf_done(token);
    }
}

static void test_what_is_too_long_is_no_token(void **state)
{
    static uint8_t text[TOKEN_MAX_BYTES + 1];
    struct token_claims claims;
    const char *why;

    (void)state;
    memset(text, 'a', sizeof text);
    assert_false(proven_verify(&t.proven, t.key, span_of(text, sizeof text), 1500, &claims, &why));
    assert_string_equal(why, "not a token of this server");
    assert_false(proven_verify(&t.proven, t.key, SPAN_NONE, 1500, &claims, &why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_signature_is_proved_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_proven_token_has_its_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_changed_token_is_not_the_proven_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_more_tokens_than_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_too_long_is_no_token, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
