/* Under which names a server on loopback is itself. */
#include "http/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum server { ROUTER = 1, RUNTIME = 2, BOTH = 3 };

/* clang-format off */
static const struct row {
    const char *host;
    enum server who; /* at whom it is taken */
} rows[] = {
    /* addresses */
    { "127.0.0.1", BOTH }, { "127.0.0.1:8080", BOTH }, { "10.1.2.3:1", BOTH }, { "127.0.0.1.", BOTH }, { "[::1]", BOTH }, { "[::1]:8080", BOTH },
    { "::1", BOTH }, { "[::ffff:127.0.0.1]:1", BOTH }, { "", BOTH },
    { ":80", 0 }, { ":", 0 }, { ".", 0 }, { "..", 0 }, { "[::1", 0 }, { "[::1]evil.example", 0 }, { "[::1].evil.example:80", 0 }, { "[evil.example]", 0 },
    { "[]", 0 }, { "127.0.0.1:80:90", 0 }, { "127.0.0.1:80@evil.example", 0 }, { "127.0.0.1:x", 0 }, { "127.0.0.1:800000", 0 }, { "127.0.0.1.evil.example", 0 },
    { "127.0.0.1@evil.example", 0 }, { "evil.example:127.0.0.1", 0 }, { "2130706433", 0 }, { "127.1", 0 }, { "0x7f.0.0.1", 0 },
    /* localhost */
    { "localhost", BOTH }, { "LocalHost:1", BOTH }, { "localhost.", BOTH }, { "app.localhost", BOTH }, { "a.b.LOCALHOST:80", BOTH },
    { "localhost.evil.example", 0 }, { "notlocalhost", 0 }, { ".localhost", 0 }, { "a..localhost", 0 }, { "localhost..", 0 }, { "a/b.localhost", 0 },
    /* Services: NAME.NAMESPACE.svc, and with the cluster's domain */
    { "sandbox-router-svc.default.svc", BOTH }, { "sandbox-router-svc.team-a.svc.cluster.test:8080", BOTH }, { "SANDBOX-ROUTER-SVC.Default.SVC.Cluster.Test.", BOTH },
    { "sandbox-router-svc.default.svc.:8080", BOTH },
    { "box.default.svc", RUNTIME }, { "box.default.svc:8888", RUNTIME }, { "b-1.ns-2.svc.cluster.test", RUNTIME }, { "box.default.svc.cluster.test.:8888", RUNTIME },
    { "sandbox-router-svc", 0 }, { "sandbox-router-svc.default", 0 }, { "box", 0 }, { "box.default", 0 }, { "svc", 0 }, { ".svc", 0 }, { "x.svc", 0 },
    { "a.b.c.svc", 0 }, { "a.b.c.svc.cluster.test", 0 }, { "sandbox-router-svc.a.b.svc", 0 }, { "x.sandbox-router-svc.default.svc", 0 },
    { "a.b.svc.evil.example", 0 }, { "sandbox-router-svc.default.svc.evil.example", 0 }, { "a.svc.evil.example", 0 }, { "evil.svc.example", 0 },
    { "sandbox-router-svc.default.svc.cluster.test.evil.example", 0 }, { "sandbox-router-svc.default.svc.evil.cluster.test", 0 },
    { "sandbox-router-svc.default.svc.cluster", 0 }, { "sandbox-router-svc.default.svc.test", 0 }, { "sandbox-router-svc.default.svc.cluster.tes", 0 },
    { "sandbox-router-svc.default.svc.cluster.local", 0 }, { "sandbox-router-svc.default.svc.cluster.test..", 0 }, { "sandbox-router-svc.default.svc..", 0 },
    { "sandbox-router-svc.default.svcx", 0 }, { "sandbox-router-svc.default.xsvc", 0 }, { "sandbox-router-svc..svc", 0 }, { ".default.svc", 0 }, { "..svc", 0 },
    { "sandbox-router-svc.-a.svc", 0 }, { "sandbox-router-svc.a-.svc", 0 }, { "sandbox-router-svc.a_b.svc", 0 }, { "-x.default.svc", 0 }, { "a b.default.svc", 0 },
    { "a\\b.default.svc", 0 }, { "a\tb.default.svc", 0 }, { "xn--\xc3\xa4.default.svc", 0 }, { "evil.example/a.b.svc", 0 }, { "evil.example#a.b.svc", 0 }, { "evil@a.b.svc", 0 },
    { "1234567890123456789012345678901234567890123456789012345678901234.default.svc", 0 },
    { "123456789012345678901234567890123456789012345678901234567890123.default.svc", RUNTIME },
    { "sandbox-router-svc.default.svc:8080x", 0 }, { "sandbox-router-svcx.default.svc", RUNTIME },
    /* what is allowed, whole */
    { "mine.example", BOTH }, { "MINE.example.:1", BOTH }, { "x.mine.example", 0 }, { "mine.example.evil", 0 }, { "ine.example", 0 }, { "evil.example", 0 },
};
/* clang-format on */

static bool is_local(const char *host, const struct guard_names *names)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 4096, 10);
    assert_int_equal(http_head_set_authority(&head, span_cstr(host), &e), 0);
    return guard_is_local_host(&head, names);
}

static void test_hosts(void **state)
{
    static const char *const mine[] = { "mine.example" };
    struct opt_list allowed = { .n = 1 };
    struct guard_names router = { "sandbox-router-svc", "cluster.test", &allowed };
    struct guard_names runtime = { NULL, "cluster.test", &allowed };

    (void)state;
    allowed.v[0] = mine[0];
    EACH(row, rows) {
        if (is_local(row->host, &router) != !!(row->who & ROUTER) ||
            is_local(row->host, &runtime) != !!(row->who & RUNTIME))
            fail_msg("%s", row->host);
    }
    allowed.v[0] = "*";
    assert_true(is_local("evil.example:80", &router));
    assert_false(is_local("evil.example:80:", &router)); /* it is no host */
}

static void test_origins(void **state)
{
    static const struct {
        const char *origin;
        bool is_own;
    } origins[] = {
        { "http://box.test:80", true },
        { "https://page.example", true },
        { "http://box.test", false },
        { "http://box.test:80.evil.example", false },
        { "http://evil.example", false },
        { "null", false },
        { "", false },
        { "https://page.example.evil", false },
        { "https://xpage.example", false },
    };
    struct opt_list allowed = { .n = 1, .v = { "https://page.example" } };
    struct err e;

    (void)state;
    EACH(o, origins) {
        OWN(http_head_done) struct http_head head;

        http_head_init(&head, 4096, 10);
        assert_int_equal(http_head_set_authority(&head, SPAN("box.test:80"), &e), 0);
        assert_int_equal(http_head_add(&head, SPAN("origin"), span_cstr(o->origin), &e), 0);
        if (guard_is_own_origin(&head, &allowed) != o->is_own)
            fail_msg("%s", o->origin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hosts),
                                        cmocka_unit_test(test_origins) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
