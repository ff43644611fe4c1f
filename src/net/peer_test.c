/* Whose the other end is: ours, for all kinds of local connections; nobody's, where it is gone. */
#include "net/peer.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void connect_pair(const char *where, int ret[2], struct net_addr *ret_peer)
{
    struct net_addr at;
    struct err e;
    int listener;

    assert_int_equal(net_addr_parse(where, &at, &e), 0);
    listener = socket(at.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at.sa, at.len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at.sa, &at.len), 0);
    ret[0] = socket(at.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(ret[0], (struct sockaddr *)&at.sa, at.len), 0);
    ret_peer->len = sizeof ret_peer->sa;
    ret[1] = accept(listener, (struct sockaddr *)&ret_peer->sa, &ret_peer->len);
    assert_true(ret[1] >= 0);
    (void)close(listener);
}

static void test_tcp(void **state)
{
    static const char *const places[] = { "127.0.0.1:0", "127.5.6.7:0", "[::1]:0" };
    struct net_addr peer;
    uid_t uid;
    int fds[2];

    (void)state;
    EACH(place, places) {
        connect_pair(*place, fds, &peer);
        uid = (uid_t)-1;
        assert_true(net_peer_uid(fds[1], &peer, &uid));
        assert_int_equal(uid, geteuid());
        /* A reset leaves no socket behind that could be asked about. */
        assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
                                    sizeof(struct linger)),
                         0);
        (void)close(fds[0]);
        assert_false(net_peer_uid(fds[1], &peer, &uid));
        (void)close(fds[1]);
    }
}

static void test_unix(void **state)
{
    struct net_addr peer = { .sa.ss_family = AF_UNIX, .len = sizeof(sa_family_t) };
    uid_t uid = (uid_t)-1;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_true(net_peer_uid(fds[0], &peer, &uid));
    assert_int_equal(uid, geteuid());
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* An address that is not the connection's is nobody's, and neither is another family's. */
static void test_wrong_address(void **state)
{
    struct net_addr peer, other;
    uid_t uid;
    int fds[2];

    (void)state;
    connect_pair("127.0.0.1:0", fds, &peer);
    assert_true(net_addr_of_ip(SPAN("127.0.0.9"), net_addr_port(&peer), &other));
    assert_false(net_peer_uid(fds[1], &other, &uid));
    assert_true(net_addr_of_ip(SPAN("::1"), net_addr_port(&peer), &other));
    assert_false(net_peer_uid(fds[1], &other, &uid));
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tcp), cmocka_unit_test(test_unix),
                                        cmocka_unit_test(test_wrong_address) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
