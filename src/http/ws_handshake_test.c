#include "http/ws_handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define KEY "dGhlIHNhbXBsZSBub25jZQ==" /* RFC 6455 1.3, as the answer below */

/* Fields in the order of the columns; NULL leaves one out. */
static const char *const names[] = { "connection", "upgrade", "sec-websocket-version",
                                     "sec-websocket-key" };
/* clang-format off */
static const struct row {
    const char *name;
    const char *method;
    int minor;
    const char *values[LEN(names)];
    enum err_code want;
    const char *err;
} rows[] = {
    { "as it should be", "GET", 1, { "keep-alive, Upgrade", "WebSocket", "13", KEY }, ERR_NONE, "" },
    { "a POST", "POST", 1, { "Upgrade", "websocket", "13", KEY },
      ERR_INVALID, "the request does not ask for a WebSocket" },
    { "HTTP/1.0", "GET", 0, { "Upgrade", "websocket", "13", KEY },
      ERR_INVALID, "the request does not ask for a WebSocket" },
    { "another protocol", "GET", 1, { "Upgrade", "SPDY/3.1", "13", KEY },
      ERR_INVALID, "the request does not ask for a WebSocket" },
    { "not announced", "GET", 1, { "close", "websocket", "13", KEY },
      ERR_INVALID, "the request does not ask for a WebSocket" },
    { "an old version", "GET", 1, { "Upgrade", "websocket", "8", KEY },
      ERR_UNSUPPORTED, "WebSocket version 13 is the only one" },
    { "no key", "GET", 1, { "Upgrade", "websocket", "13", NULL },
      ERR_INVALID, "sec-websocket-key is not 16 bytes in base64" },
    { "a short key", "GET", 1, { "Upgrade", "websocket", "13", "c2hvcnQ=" },
      ERR_INVALID, "sec-websocket-key is not 16 bytes in base64" },
    { "a key that is not base64", "GET", 1, { "Upgrade", "websocket", "13", "!!!!!!!!!!!!!!!!!!!!!!==" },
      ERR_INVALID, "sec-websocket-key is not 16 bytes in base64" },
};
/* clang-format on */

static void add(struct http_head *h, const char *name, const char *value)
{
    struct err e;

    assert_int_equal(http_head_add(h, span_cstr(name), span_cstr(value), &e), 0);
}

static void test_requests(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(http_head_done) struct http_head head;
        struct err e = { 0 };

        http_head_init(&head, 4096, 16);
        assert_int_equal(http_head_set_request(&head, span_cstr(r->method), SPAN("/"), &e), 0);
        head.minor = (uint8_t)r->minor;
        for (size_t i = 0; i < LEN(names); i++) {
            if (r->values[i])
                add(&head, names[i], r->values[i]);
        }
        if (ws_request_judge(&head, &e) != (r->want ? -1 : 0) || e.code != r->want)
            fail_msg("%s: %s", r->name, e.msg);
        assert_string_equal(e.msg, r->err);
    }
}

static void test_accept(void **state)
{
    char accept[WS_ACCEPT_BYTES + 1];

    (void)state;
    ws_accept(SPAN(KEY), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void test_both_sides_agree(void **state)
{
    static const uint8_t nonce[WS_NONCE_BYTES] = "the sample nonc";
    OWN(http_head_done) struct http_head req, answer;
    char accept[WS_ACCEPT_BYTES + 1];
    struct err e;

    (void)state;
    http_head_init(&req, 4096, 16);
    http_head_init(&answer, 4096, 16);
    assert_int_equal(http_head_set_request(&req, SPAN("GET"), SPAN("/"), &e), 0);
    req.minor = 1;
    assert_int_equal(ws_request_fields(&req, nonce, "v4.x", &e), 0);
    assert_int_equal(ws_request_judge(&req, &e), 0);
    ws_accept(http_head_get(&req, "sec-websocket-key"), accept);
    http_head_set_status(&answer, 101);
    assert_int_equal(ws_answer_judge(&answer, nonce, &e), -1);
    add(&answer, "connection", "Upgrade");
    add(&answer, "upgrade", "websocket");
    assert_int_equal(ws_answer_judge(&answer, nonce, &e), -1);
    assert_string_equal(e.msg, "the server's sec-websocket-accept answers another key");
    add(&answer, "sec-websocket-accept", accept);
    assert_int_equal(ws_answer_judge(&answer, nonce, &e), 0);
    add(&answer, "sec-websocket-extensions", "permessage-deflate");
    assert_int_equal(ws_answer_judge(&answer, nonce, &e), -1);
    assert_string_equal(e.msg, "the server uses an extension that was not offered");
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_both_sides_agree),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
