/* Which addresses are this machine's, also after some came and went. */
#include "net/host_addrs.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <cmocka.h>

static bool has(struct host_addrs *h, const char *ip)
{
    struct net_addr a;

    assert_true(net_addr_of_ip(span_cstr(ip), 80, &a));
    return host_addrs_has(h, &a);
}

/* Of lo, under another name: "lo:1". NULL: it goes. */
static void set_address(const char *ip)
{
    OWN_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq rq = { .ifr_name = "lo:1" };
    struct sockaddr_in at = { .sin_family = AF_INET };

    if (ip) {
        assert_int_equal(inet_pton(AF_INET, ip, &at.sin_addr), 1);
        memcpy(&rq.ifr_addr, &at, sizeof at);
        assert_int_equal(ioctl(fd, SIOCSIFADDR, &rq), 0);
    } else {
        rq.ifr_flags = 0;
        assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &rq), 0);
    }
}

static void test_changes(void **state)
{
    struct host_addrs *h = *state;

    assert_false(has(h, "192.0.2.1"));
    set_address("192.0.2.1");
    assert_true(has(h, "192.0.2.1"));
    assert_false(has(h, "192.0.2.2"));
    assert_false(has(h, "2001:db8::1"));
    set_address("192.0.2.2");
    assert_true(has(h, "192.0.2.2"));
    assert_false(has(h, "192.0.2.1"));
    for (int i = 0; i < 3000; i++) /* more than the kernel keeps for who does not look */
        set_address(i % 2 ? "192.0.2.3" : "192.0.2.4");
    assert_true(has(h, "192.0.2.3"));
    assert_false(has(h, "192.0.2.2"));
    set_address(NULL);
    assert_false(has(h, "192.0.2.3"));
}

static int set_up(void **state)
{
    struct host_addrs *h;
    struct err e;

    if (host_addrs_open(&h, &e) < 0)
        return -1;
    *state = h;
    return 0;
}

static int tear_down(void **state)
{
    host_addrs_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_changes, set_up,
                                                                        tear_down) };

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
        (void)fprintf(stderr, "skipped: no network namespace can be made here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
