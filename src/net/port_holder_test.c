#include "net/port_holder.h"

#include "net/listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

static int listen_at(const char *text, struct net_addr *ret)
{
    struct net_addr at;
    struct err e;
    int fd = -1;

    assert_int_equal(net_addr_parse(text, &at, &e), 0);
    if (net_listen_socket(&at, &fd, &e) < 0)
        return -1;
    ret->len = sizeof ret->sa;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&ret->sa, &ret->len), 0);
    return fd;
}

static struct net_addr at_port(const struct net_addr *listening)
{
    struct net_addr at;
    char text[64];
    struct err e;

    (void)snprintf(text, sizeof text, "127.64.1.2:%u", net_addr_port(listening));
    assert_int_equal(net_addr_parse(text, &at, &e), 0);
    return at;
}

static void test_places(void **state)
{
    static const struct row {
        const char *listens;
        bool is_found, is_everywhere;
    } rows[] = {
        { "0.0.0.0:0", true, true },     { "[::]:0", true, true },
        { "127.64.1.2:0", true, false }, { "127.64.1.3:0", false, false },
        { "[::1]:0", false, false },
    };
    char want[64];

    (void)state;
    assert_int_equal(prctl(PR_SET_NAME, "a\tholder"), 0);
    (void)snprintf(want, sizeof want, "a?holder (pid %d, user %u)", getpid(), geteuid());
    EACH(r, rows) {
        struct net_port_holder found = { "", (uid_t)-1, false };
        struct net_addr listening, at;
        int fd = listen_at(r->listens, &listening);

        if (fd < 0)
            continue; /* a machine without IPv6 */
        at = at_port(&listening);
        if (net_port_holder_find(&at, &found) != r->is_found ||
            found.is_everywhere != r->is_everywhere ||
            (r->is_found && (strcmp(found.text, want) != 0 || found.uid != geteuid())))
            fail_msg("%s: found '%s', everywhere %d", r->listens, found.text, found.is_everywhere);
        (void)close(fd);
        assert_false(net_port_holder_find(&at, &found));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_places) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
