/* Every rule of the contract on the fields that name a sandbox: what is taken, what is refused, and in which words. */
#include "router/match.h"

#include "http/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define ID64 "a23456789012345678901234567890123456789012345678901234567890abcd"

static const char bad_id[] = "Invalid sandbox ID format.";
static const char bad_namespace[] = "Invalid namespace format.";
static const char bad_port[] = "Invalid port format.";
static const char bad_ip[] = "Invalid target IP address.";

/* Lines end in \n; want NULL: taken. */
static const struct row {
    const char *fields, *want;
} rows[] = {
    { "", "X-Sandbox-ID header is required." },
    { "x-sandbox-id:\n", "X-Sandbox-ID header is required." },
    { "x-sandbox-namespace: ns\n", "X-Sandbox-ID header is required." },
    { "x-sandbox-id: box\n", NULL },
    { "X-Sandbox-ID: 1box\n", NULL },
    { "x-sandbox-id: bad.sandbox.id\n", bad_id },
    { "x-sandbox-id: foo.evil.com\n", bad_id },
    { "x-sandbox-id: foo/bar\n", bad_id },
    { "x-sandbox-id: foo_bar\n", bad_id },
    { "x-sandbox-id: FooBar\n", bad_id },
    { "x-sandbox-id: -foo\n", bad_id },
    { "x-sandbox-id: foo-\n", bad_id },
    { "x-sandbox-id: a\nx-sandbox-id: b\n", bad_id },
    { "x-sandbox-id: " ID64 "\n", bad_id },
    { "x-sandbox-id: box\nx-sandbox-namespace: bad name\n", bad_namespace },
    { "x-sandbox-id: box\nx-sandbox-namespace: bad!\n", bad_namespace },
    { "x-sandbox-id: box\nx-sandbox-namespace: ---\n", bad_namespace },
    { "x-sandbox-id: box\nx-sandbox-namespace:\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-namespace: a\nx-sandbox-namespace: b\n", bad_namespace },
    { "x-sandbox-id: box\nx-sandbox-port: abc\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: 0\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: -1\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: +80\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: 000080\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: 65536\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: 100000\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-port: 1\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-port: 65535\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-port: 80\nx-sandbox-port: 81\n", bad_port },
    { "x-sandbox-id: box\nx-sandbox-pod-ip:\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: not-an-ip\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 999.999.999.999\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 10.20.30\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 10.0.0.256\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 2001:db8::g\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 10.0.0.1:80\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: [::1]\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: fe80::1%eth0\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 127.0.0.1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 127.10.20.30\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: ::1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: ::ffff:127.0.0.1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: ::ffff:169.254.169.254\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 169.254.169.254\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 169.254.1.1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: fe80::1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 224.0.0.1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 239.255.255.250\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: ff02::1\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 0.0.0.0\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: ::\n", bad_ip },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 10.0.0.1\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 8.8.8.8\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 2001:0db8:0:0:0:0:0:0001\n", NULL },
    { "x-sandbox-id: box\nx-sandbox-pod-ip: 10.0.0.1\nx-sandbox-pod-ip: 10.0.0.2\n", bad_ip },
};

static bool read_text(const char *fields, bool is_loopback_allowed, struct target *t,
                      struct refusal *why)
{
    const struct match_rules rules = { is_loopback_allowed, 180000 };
    OWN(http_head_done) struct http_head head;
    struct span rest = span_cstr(fields), line;
    struct err e;

    http_head_init(&head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
    while (span_cut(&rest, '\n', &line)) {
        size_t colon = span_find(line, ':');

        assert_int_equal(http_head_add(&head, span_slice(line, 0, colon),
                                       span_trim(span_skip(line, colon + 1)), &e),
                         0);
    }
    return match_read(&head, &rules, t, why);
}

static void test_rules(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct refusal why = { 0 };
        struct target t;

        if (read_text(r->fields, false, &t, &why) == (r->want == NULL) &&
            (!r->want || (why.status == 400 && strcmp(why.detail, r->want) == 0)))
            continue;
        fail_msg("'%s': got %d '%s', want '%s'", r->fields, why.status, why.detail,
                 r->want ? r->want : "to be taken");
    }
}

static void test_target(void **state)
{
    char text[NET_ADDR_TEXT_BYTES];
    struct refusal why;
    struct target t;

    (void)state;
    assert_true(read_text("x-sandbox-id: box\n", false, &t, &why));
    assert_string_equal(t.id, "box");
    assert_string_equal(t.namespace, "default");
    assert_int_equal(t.port, 8888);
    assert_false(t.has_ip);
    assert_string_equal(t.uid, "");
    assert_true(read_text("x-sandbox-id: box\nx-sandbox-namespace: prod\nx-sandbox-port: 9999\n"
                          "x-sandbox-uid: u-1\nx-sandbox-pod-ip: 2001:0db8:0:0:0:0:0:0001\n",
                          false, &t, &why));
    assert_string_equal(t.namespace, "prod");
    assert_string_equal(t.uid, "u-1");
    assert_string_equal(net_addr_text(&t.ip, text), "[2001:db8::1]:9999");
    assert_true(
        read_text("x-sandbox-id: box\nx-sandbox-pod-ip: ::ffff:10.0.0.1\n", false, &t, &why));
    assert_string_equal(net_addr_text(&t.ip, text), "10.0.0.1:8888");
}

/* The switch lets loopback in and nothing else. */
static void test_loopback(void **state)
{
    static const struct {
        const char *ip;
        bool is_taken;
    } ips[] = { { "127.0.0.1", true },        { "127.9.8.7", true }, { "::1", true },
                { "::ffff:127.0.0.1", true }, { "0.0.0.0", false },  { "::", false },
                { "169.254.169.254", false }, { "fe80::1", false },  { "224.0.0.1", false } };
    char fields[128];
    struct refusal why;
    struct target t;

    (void)state;
    EACH(ip, ips) {
        (void)snprintf(fields, sizeof fields, "x-sandbox-id: box\nx-sandbox-pod-ip: %s\n", ip->ip);
        if (read_text(fields, true, &t, &why) != ip->is_taken)
            fail_msg("%s", ip->ip);
    }
}

static void test_timeout(void **state)
{
    static const struct {
        const char *text;
        uint64_t want_ms;
    } times[] = { { "60", 60000 },    { "0.5", 500 },  { "130.5", 130500 }, { "600", 180000 },
                  { "180", 180000 },  { "0", 180000 }, { "-1", 180000 },    { "inf", 180000 },
                  { "nan", 180000 },  { "", 180000 },  { "soon", 180000 },  { "1e-9", 1 },
                  { "1e300", 180000 } };
    char fields[128];
    struct refusal why;
    struct target t;

    (void)state;
    EACH(row, times) {
        (void)snprintf(fields, sizeof fields, "x-sandbox-id: box\nx-sandbox-timeout: %s\n",
                       row->text);
        assert_true(read_text(fields, false, &t, &why));
        if (t.timeout_ms != row->want_ms)
            fail_msg("'%s': %llu ms", row->text, (unsigned long long)t.timeout_ms);
    }
}

static void test_ours(void **state)
{
    (void)state;
    assert_true(match_is_ours(SPAN("x-sandbox-id")));
    assert_true(match_is_ours(SPAN("x-sandbox-pod-ip")));
    assert_true(match_is_ours(SPAN("x-sandbox-uid")));
    assert_false(match_is_ours(SPAN("x-sandbox-token"))); /* the runtime's */
    assert_false(match_is_ours(SPAN("x-sandbox-")));
    assert_false(match_is_ours(SPAN("x-request-id")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),    cmocka_unit_test(test_target),
        cmocka_unit_test(test_loopback), cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
