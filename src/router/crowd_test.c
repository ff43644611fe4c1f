#include "router/crowd.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct row {
    const char *peer, *forwarded[2], *want;
} rows[] = {
    { "192.0.2.1", { NULL, NULL }, "192.0.2.1" },
    { "192.0.2.1", { "198.51.100.1", NULL }, "192.0.2.1" }, /* not a proxy of ours */
    { "10.0.0.1", { NULL, NULL }, "10.0.0.1" },
    { "10.0.0.1", { "198.51.100.1", NULL }, "198.51.100.1" },
    { "10.0.0.1",
      { "203.0.113.9, 198.51.100.1", NULL },
      "198.51.100.1" }, /* the first is a claim */
    { "10.0.0.1", { "203.0.113.9, 198.51.100.1, 10.0.0.7", NULL }, "198.51.100.1" },
    { "10.0.0.1", { "203.0.113.9", "198.51.100.1 ,10.0.0.7" }, "198.51.100.1" },
    { "10.0.0.1", { "10.0.0.9, 10.0.0.8", NULL }, "10.0.0.9" }, /* all are ours */
    { "10.0.0.1", { "2001:0db8:0:0:0:0:0:0001", NULL }, "2001:db8::1" },
    { "10.0.0.1", { "nonsense", NULL }, "nonsense" },
    { "10.0.0.1", { " , ", NULL }, "10.0.0.1" },
    { "10.0.0.1", { "", NULL }, "10.0.0.1" },
};

static void test_names(void **state)
{
    struct trust proxies = { 0 };
    struct err e;

    (void)state;
    assert_int_equal(trust_add(&proxies, "10.0.0.0/8", &e), 0);
    EACH(r, rows) {
        char name[NET_ADDR_TEXT_BYTES];
        struct net_addr peer;
        struct http_head h;

        http_head_init(&h, 4096, 8);
        EACH(f, r->forwarded) {
            if (*f)
                assert_int_equal(http_head_add(&h, SPAN("x-forwarded-for"), span_cstr(*f), &e), 0);
        }
        assert_true(net_addr_of_ip(span_cstr(r->peer), 1234, &peer));
        crowd_name(&h, &peer, &proxies, name);
        assert_string_equal(name, r->want);
        http_head_done(&h);
    }
}

static void test_a_peer_without_an_address(void **state)
{
    const struct trust nobody = { 0 };
    const struct net_addr peer = { 0 };
    char name[NET_ADDR_TEXT_BYTES];
    struct http_head h;

    (void)state;
    http_head_init(&h, 4096, 8);
    crowd_name(&h, &peer, &nobody, name);
    assert_string_equal(name, "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_peer_without_an_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
