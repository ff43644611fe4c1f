#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define assert_span(have, text)                                                                    \
    do {                                                                                           \
        struct span got_ = (have);                                                                 \
        assert_int_equal(got_.n, strlen(text));                                                    \
        assert_memory_equal(got_.p, text, got_.n);                                                 \
    } while (0)

static int add(struct http_head *h, const char *name, const char *value)
{
    struct err e;

    return http_head_add(h, span_cstr(name), span_cstr(value), &e);
}

static void test_fields(void **state)
{
    struct span name, value;
    struct http_head h;
    size_t iter = 0;

    http_head_init(&h, 4096, 40);
    assert_null(http_head_get(&h, "host").p);
    assert_int_equal(add(&h, "Host", "a.example"), 0);
    assert_int_equal(add(&h, "X-Empty", ""), 0);
    for (int i = 0; i < 30; i++) /* growth moves both arrays; offsets must not care */
        assert_int_equal(add(&h, "Set-Cookie", i == 29 ? "last" : "some"), 0);
    assert_span(http_head_get(&h, "host"), "a.example");
    assert_non_null(http_head_get(&h, "x-empty").p);
    assert_int_equal(http_head_get(&h, "x-empty").n, 0);
    for (int i = 0; i < 30; i++)
        assert_span(http_head_next(&h, "set-cookie", &iter), i == 29 ? "last" : "some");
    assert_null(http_head_next(&h, "set-cookie", &iter).p);
    http_head_field(&h, 1, &name, &value);
    assert_span(name, "x-empty");
    assert_int_equal(http_head_count(&h), 32);
    assert_int_equal(http_head_remove(&h, "set-cookie"), 30);
    assert_int_equal(http_head_remove(&h, "set-cookie"), 0);
    assert_int_equal(http_head_count(&h), 2);
    http_head_done(&h);
}

static void test_room_ahead(void **state)
{
    struct http_head h;
    const uint8_t *p;

    (void)state;
    http_head_init(&h, 4096, 40);
    http_head_reserve(&h, 8192); /* as much as there may be */
    p = h.text.p;
    while (h.text.n + 10 <= 4096)
        if (add(&h, "a", "123456789") < 0)
            break;
    assert_ptr_equal(h.text.p, p);
    http_head_done(&h);
}

static void test_ceilings(void **state)
{
    struct http_head h;
    struct err e;

    http_head_init(&h, 16, 2);
    assert_int_equal(add(&h, "a", "123456789"), 0);
    assert_int_equal(http_head_add(&h, SPAN("name"), SPAN("value"), &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(http_head_count(&h), 1);
    assert_int_equal(http_head_addf(&h, "b", &e, "%d", 123456), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(h.text.n, 10);
    assert_int_equal(http_head_addf(&h, "B", &e, "%d", 12), 0);
    assert_span(http_head_get(&h, "b"), "12");
    assert_int_equal(http_head_add(&h, SPAN("c"), SPAN(""), &e), -1);
    assert_string_equal(e.msg, "more than 2 header fields");
    assert_int_equal(h.text.n, 13);
    http_head_done(&h);
}

static void test_first_line(void **state)
{
    struct http_head h, copy;
    struct err e;

    http_head_init(&h, 1024, 8);
    http_head_init(&copy, 1024, 8);
    assert_null(http_head_method(&h).p);
    assert_int_equal(http_head_set_request(&h, SPAN("GET"), SPAN("/x?y"), &e), 0);
    assert_int_equal(http_head_set_authority(&h, SPAN("h:80"), &e), 0);
    assert_int_equal(http_head_set_scheme(&h, SPAN("https"), &e), 0);
    assert_int_equal(http_head_set_protocol(&h, SPAN("websocket"), &e), 0);
    assert_int_equal(add(&h, "Via", "one"), 0);
    assert_int_equal(http_head_copy(&copy, &h, &e), 0);
    http_head_clear(&h);
    assert_null(http_head_target(&h).p);
    assert_int_equal(http_head_count(&h), 0);
    assert_span(http_head_method(&copy), "GET");
    assert_span(http_head_target(&copy), "/x?y");
    assert_span(http_head_authority(&copy), "h:80");
    assert_span(http_head_scheme(&copy), "https");
    assert_span(http_head_protocol(&copy), "websocket");
    assert_span(http_head_get(&copy, "via"), "one");
    assert_int_equal(http_head_set(&copy, SPAN("Via"), SPAN("two"), &e), 0);
    assert_span(http_head_get(&copy, "via"), "two");
    assert_int_equal(http_head_count(&copy), 1);
    http_head_done(&h);
    http_head_done(&copy);
}

static void test_copy_ceilings(void **state)
{
    struct http_head h, small, narrow;
    struct err e;

    http_head_init(&h, 1024, 8);
    http_head_init(&small, 4, 8);
    http_head_init(&narrow, 1024, 1);
    assert_int_equal(add(&h, "a", "12345"), 0);
    assert_int_equal(add(&h, "b", "1"), 0);
    assert_int_equal(http_head_copy(&small, &h, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(http_head_copy(&narrow, &h, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    http_head_done(&h);
}

static void test_tokens(void **state)
{
    static const struct row {
        const char *first, *second, *token;
        bool want;
    } rows[] = {
        { "close", NULL, "close", true },
        { "Close", NULL, "close", true },
        { "keep-alive, \tUpgrade ,x", NULL, "upgrade", true },
        { "keep-alive", "a,close", "close", true },
        { "closed", NULL, "close", false },
        { "not close", NULL, "close", false },
        { "", ",,", "close", false },
        { NULL, NULL, "close", false },
    };

    EACH(r, rows) {
        struct http_head h;

        http_head_init(&h, 1024, 8);
        if (r->first)
            assert_int_equal(add(&h, "Connection", r->first), 0);
        if (r->second)
            assert_int_equal(add(&h, "connection", r->second), 0);
        assert_int_equal(http_head_has_token(&h, "connection", r->token), r->want);
        /* The letters of an item count, and that is all the difference. */
        assert_int_equal(http_head_has_item(&h, "connection", r->token),
                         r->want && !span_is(span_cstr(r->first), "Close") &&
                             !span_is(span_cstr(r->token), "upgrade"));
        http_head_done(&h);
    }
}

static void test_valid(void **state)
{
    static const struct row {
        struct span text;
        bool name, value;
    } rows[] = {
        { BYTES("x-Good_1~!"), true, true }, { BYTES(""), false, true },
        { BYTES("a b"), false, true },       { BYTES("a:b"), false, true },
        { BYTES("tab\there"), false, true }, { BYTES("\xc3\xa9"), false, true },
        { BYTES("a\rb"), false, false },     { BYTES("a\nb"), false, false },
        { BYTES("a\0b"), false, false },     { BYTES("\x7f"), false, false },
    };

    EACH(r, rows) {
        assert_int_equal(http_name_is_valid(r->text), r->name);
        assert_int_equal(http_value_is_valid(r->text), r->value);
    }
}

static void test_fields_of_another(void **state)
{
    struct http_head from, to;
    struct span name, value;
    struct err e;

    (void)state;
    http_head_init(&from, 4096, 40);
    http_head_init(&to, 20, 2);
    assert_int_equal(add(&from, "X-One", "1"), 0);
    assert_int_equal(add(&from, "X-Empty", ""), 0);
    assert_int_equal(add(&from, "X-Long", "12345678901234567890"), 0);
    assert_int_equal(http_head_add_from(&to, &from, 1, &e), 0);
    assert_int_equal(http_head_add_from(&to, &from, 2, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(http_head_add_from(&to, &from, 0, &e), 0);
    assert_int_equal(http_head_add_from(&to, &from, 1, &e), -1); /* a third */
    assert_int_equal(http_head_count(&to), 2);
    http_head_field(&to, 0, &name, &value);
    assert_span(name, "x-empty");
    assert_int_equal(value.n, 0);
    assert_span(http_head_get(&to, "x-one"), "1");
    http_head_done(&from);
    http_head_done(&to);
}

/* Names are folded eight bytes at a time: likewise. */
/* Fields of ours count as looked at when their values are fit, and all before them are. */
static void test_fields_of_ours(void **state)
{
    struct http_head h;
    struct err e;

    (void)state;
    http_head_init(&h, 4096, 4);
    assert_int_equal(http_head_add_ours(&h, SPAN("a"), SPAN("fit"), &e), 0);
    assert_int_equal(http_head_add_ours(&h, SPAN("b"), SPAN(""), &e), 0);
    assert_int_equal(h.sound, 2);
    assert_int_equal(http_head_add_ours(&h, SPAN("c"), SPAN("un\rfit"), &e), 0);
    assert_int_equal(http_head_add_ours(&h, SPAN("d"), SPAN("fit"), &e), 0);
    assert_int_equal(h.sound, 2);
    assert_int_equal(http_head_add_ours(&h, SPAN("e"), SPAN("fit"), &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_span(http_head_get(&h, "d"), "fit");
    http_head_done(&h);
}

/* Names of every length are found, beside others of the same and of no length that was asked for. */
static void test_names_of_every_length(void **state)
{
    char name[64], other[64];
    struct http_head h, copy;
    struct err e;

    (void)state;
    http_head_init(&h, 64 * 1024, 64);
    http_head_init(&copy, 64 * 1024, 64);
    for (size_t n = 1; n < sizeof name - 1; n += 2) {
        memset(name, 'a', n);
        memset(other, 'b', n);
        name[n] = other[n] = '\0';
        assert_null(http_head_get(&h, name).p);
        assert_int_equal(add(&h, name, "here"), 0);
        assert_span(http_head_get(&h, name), "here");
        assert_null(http_head_get(&h, other).p);
        assert_int_equal(http_head_remove(&h, other), 0);
        name[n] = 'a', name[n + 1] = '\0';
        assert_null(http_head_get(&h, name).p);
    }
    assert_int_equal(http_head_copy(&copy, &h, &e), 0);
    assert_span(http_head_get(&copy, "aaa"), "here");
    assert_int_equal(http_head_remove(&copy, "aaa"), 1);
    assert_null(http_head_get(&copy, "aaa").p);
    http_head_clear(&h);
    assert_null(http_head_get(&h, "aaa").p);
    http_head_done(&h);
    http_head_done(&copy);
}

static void test_memory_is_passed_on(void **state)
{
    struct http_head a, b;
    const uint8_t *p;

    (void)state;
    http_head_init(&a, 4096, 40);
    http_head_init(&b, 64, 2);
    assert_int_equal(add(&a, "name", "value"), 0);
    p = a.text.p;
    http_head_pass_memory(&a, &b);
    assert_null(a.text.p);
    assert_int_equal(http_head_count(&a) + http_head_count(&b), 0);
    assert_null(http_head_get(&b, "name").p);
    assert_int_equal(add(&b, "x", "1"), 0);
    assert_ptr_equal(b.text.p, p);
    assert_int_equal(add(&b, "y", "2"), 0);
    assert_int_equal(add(&b, "z", "3"), -1); /* its own ceilings hold */
    assert_int_equal(add(&a, "name", "again"), 0);
    assert_span(http_head_get(&a, "name"), "again");
    http_head_done(&a);
    http_head_done(&b);
}

static void test_every_letter_is_folded_everywhere(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++)
        for (size_t n = 1; n < 20; n++)
            for (size_t at = 0; at < n; at++) {
                uint8_t text[20], want[20];
                struct span name, value;
                struct http_head h;
                struct err e;

                memset(text, 'Q', sizeof text);
                memset(want, 'q', sizeof want);
                text[at] = (uint8_t)c;
                want[at] = (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
                http_head_init(&h, 100, 1);
                assert_int_equal(http_head_add(&h, span_of(text, n), SPAN("V"), &e), 0);
                http_head_field(&h, 0, &name, &value);
                assert_int_equal(name.n, n);
                assert_memory_equal(name.p, want, n);
                assert_true(span_is(value, "V"));
                http_head_done(&h);
            }
}

/* Values are checked eight bytes at a time: each byte must count the same at each place. */
static void test_every_byte_everywhere(void **state)
{
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 20; at++) {
            uint8_t value[20];

            memset(value, 'x', sizeof value);
            value[at] = (uint8_t)c;
            assert_int_equal(http_value_is_valid(span_of(value, sizeof value)),
                             c == '\t' || (c >= 0x20 && c != 0x7f));
            for (size_t n = at + 1; n < sizeof value; n++)
                assert_int_equal(http_value_is_valid(span_of(value, n)),
                                 c == '\t' || (c >= 0x20 && c != 0x7f));
            memset(value, '\t', at);
            assert_int_equal(http_value_is_valid(span_of(value, sizeof value)),
                             c == '\t' || (c >= 0x20 && c != 0x7f));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_room_ahead),
        cmocka_unit_test(test_first_line),
        cmocka_unit_test(test_copy_ceilings),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_fields_of_another),
        cmocka_unit_test(test_fields_of_ours),
        cmocka_unit_test(test_names_of_every_length),
        cmocka_unit_test(test_memory_is_passed_on),
        cmocka_unit_test(test_every_byte_everywhere),
        cmocka_unit_test(test_every_letter_is_folded_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
