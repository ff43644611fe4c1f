#include "net/addr.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* text NULL: refused, and `want` is the message. */
static const struct row {
    const char *name, *in, *text, *want;
    uint16_t port;
    bool is_loopback;
} rows[] = {
    { "IPv4", "127.0.0.1:8888", "127.0.0.1:8888", NULL, 8888, true },
    { "IPv6", "[::1]:80", "[::1]:80", NULL, 80, true },
    { "all addresses", ":8080", "0.0.0.0:8080", NULL, 8080, false },
    { "localhost", "localhost:0", "127.0.0.1:0", NULL, 0, true },
    { "another of 127/8", "127.9.8.7:1", "127.9.8.7:1", NULL, 1, true },
    { "elsewhere", "10.0.0.1:65535", "10.0.0.1:65535", NULL, 65535, false },
    { "a socket file", "unix:/run/x.sock", "unix:/run/x.sock", NULL, 0, true },
    { "no port", "127.0.0.1", NULL, "address '127.0.0.1': want HOST:PORT", 0, false },
    { "a port too large", "127.0.0.1:65536", NULL,
      "address '127.0.0.1:65536': the port must be a number from 0 to 65535", 0, false },
    { "an empty port", "127.0.0.1:", NULL,
      "address '127.0.0.1:': the port must be a number from 0 to 65535", 0, false },
    { "IPv6 without brackets", "::1:80", NULL,
      "address '::1:80': an IPv6 host needs brackets, as in [::1]:80", 0, false },
    { "an open bracket", "[::1:80", NULL, "address '[::1:80': want [IPV6]:PORT", 0, false },
    { "a name", "example.org:80", NULL,
      "address 'example.org:80': the host is not an IP address or localhost", 0, false },
    { "no path", "unix:", NULL, "address 'unix:': a socket's path has 1 to 107 bytes", 0, false },
};

static void test_texts_become_addresses_and_back(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct net_addr a = { .len = 77 };
        char text[NET_ADDR_TEXT_BYTES];
        struct err e = { 0 };
        int got = net_addr_parse(r->in, &a, &e);

        print_message("%s\n", r->name);
        if (!r->text) {
            assert_int_equal(got, -1);
            assert_string_equal(e.msg, r->want);
            assert_int_equal(e.code, ERR_INVALID);
            assert_int_equal(a.len, 77);
            continue;
        }
        assert_int_equal(got, 0);
        assert_string_equal(net_addr_text(&a, text), r->text);
        assert_int_equal(net_addr_port(&a), r->port);
        assert_int_equal(net_addr_is_loopback(&a), r->is_loopback);
    }
}

static void test_a_path_of_any_length_fits_or_is_refused(void **state)
{
    char text[200] = "unix:", back[NET_ADDR_TEXT_BYTES];
    struct net_addr a;
    struct err e;

    (void)state;
    memset(text + 5, 'p', 107);
    text[5 + 107] = '\0';
    assert_int_equal(net_addr_parse(text, &a, &e), 0);
    assert_string_equal(net_addr_text(&a, back), text);
    memset(text + 5, 'p', 108);
    text[5 + 108] = '\0';
    assert_int_equal(net_addr_parse(text, &a, &e), -1);
}

static void test_ip_literals_are_told_from_names(void **state)
{
    (void)state;
    assert_true(net_host_is_ip(SPAN("10.1.2.3")));
    assert_true(net_host_is_ip(SPAN("::1")));
    assert_true(net_host_is_ip(SPAN("[fe80::1]")));
    assert_false(net_host_is_ip(SPAN("10.1.2")));
    assert_false(net_host_is_ip(SPAN("localhost")));
    assert_false(net_host_is_ip(SPAN("")));
    assert_false(net_host_is_ip(SPAN("[")));
}

/* As the C library has it, which says no to more than it says yes to. */
static void test_ip_literals_are_the_librarys(void **state)
{
    static const char *const texts[] = {
        "1.2.3.4",    "0.0.0.0",  "255.255.255.255",   "256.1.1.1", "1.2.3.999", "1.2.3.1000",
        "01.2.3.4",   "1.2.3.04", "1.2.3.00",          "1.2.3",     "1.2.3.",    "1.2..4",
        ".1.2.3",     "1.2.3.4.", "1.2.3.4.5",         "1.2.3.4 ",  " 1.2.3.4",  "1.2.3.4x",
        "0x1.2.3.4",  "-1.2.3.4", "1.2.3.99999999999", "::1",       "::1.2.3.4", "1.2.3.4:80",
        "127.0.0.01", "a.b.c.d",  "1,2,3,4",           "",
    };
    struct net_addr a;
    uint8_t want[16];

    (void)state;
    EACH(text, texts) {
        bool is_v4 = inet_pton(AF_INET, *text, want) == 1;
        bool is_v6 = !is_v4 && inet_pton(AF_INET6, *text, want) == 1;

        assert_int_equal(net_addr_of_ip(span_cstr(*text), 7, &a), is_v4 || is_v6);
        assert_int_equal(net_host_is_ip(span_cstr(*text)), is_v4 || is_v6);
        if (is_v4)
            assert_memory_equal(&((struct sockaddr_in *)(void *)&a.sa)->sin_addr, want, 4);
    }
}

static void test_addresses_without_their_ports(void **state)
{
    static const char *const texts[][2] = { { "0.0.0.0:1", "0.0.0.0" },
                                            { "9.10.99.100:1", "9.10.99.100" },
                                            { "127.64.0.255:8080", "127.64.0.255" },
                                            { "[fe80::1]:8080", "fe80::1" },
                                            { "unix:/tmp/s", "" } };
    char text[NET_ADDR_TEXT_BYTES];
    struct net_addr a;
    struct err e;

    (void)state;
    EACH(row, texts) {
        assert_int_equal(net_addr_parse((*row)[0], &a, &e), 0);
        assert_string_equal(net_addr_ip_text(&a, text), (*row)[1]);
    }
}

static void test_addresses_of_other_machines(void **state)
{
    static const struct {
        const char *ip;
        bool is_unicast;
    } ips[] = {
        { "10.0.0.1", true },
        { "192.168.1.1", true },
        { "8.8.8.8", true },
        { "169.253.1.1", true },
        { "2001:db8::1", true },
        { "fd00::2", true },
        { "::ffff:10.0.0.1", true },
        { "64:ff9b::a00:1", true },
        { "127.0.0.1", false },
        { "127.255.1.2", false },
        { "0.0.0.0", false },
        { "0.1.2.3", false },
        { "169.254.169.254", false },
        { "224.0.0.1", false },
        { "239.255.255.250", false },
        { "255.255.255.255", false },
        { "::", false },
        { "::1", false },
        { "fe80::1", false },
        { "febf::1", false },
        { "ff02::1", false },
        { "::ffff:127.0.0.1", false },
        { "::ffff:169.254.169.254", false },
        { "::ffff:0.0.0.0", false },
        { "::127.0.0.1", false },
        { "64:ff9b::127.0.0.1", false },
        { "64:ff9b::a9fe:a9fe", false },
        { "::ffff:224.0.0.1", false },
    };

    (void)state;
    EACH(row, ips) {
        struct net_addr a;

        assert_true(net_addr_of_ip(span_cstr(row->ip), 80, &a));
        if (net_addr_is_unicast(&a) != row->is_unicast)
            fail_msg("%s", row->ip);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_become_addresses_and_back),
        cmocka_unit_test(test_a_path_of_any_length_fits_or_is_refused),
        cmocka_unit_test(test_ip_literals_are_told_from_names),
        cmocka_unit_test(test_ip_literals_are_the_librarys),
        cmocka_unit_test(test_addresses_without_their_ports),
        cmocka_unit_test(test_addresses_of_other_machines),
    };

    return cmocka_run_group_tests_name("net/addr", tests, NULL, NULL);
}
