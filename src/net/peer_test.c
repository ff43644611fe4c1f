/* The account at the other end: this process's, for all kinds of local connections; none, once no process holds that end, whatever
 * the kernel has at its address by then. */
#include "net/peer.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
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

static const char *const places[] = { "127.0.0.1:0", "127.5.6.7:0", "[::1]:0" };

static void reset(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    (void)close(fd);
}

static int socket_at(const struct net_addr *at)
{
    int fd = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at->sa, at->len), 0);
    return fd;
}

static void assert_ours(int fd, const struct net_addr *peer)
{
    uid_t uid = (uid_t)-1;

    assert_true(net_peer_uid(fd, peer, &uid));
    assert_int_equal(uid, geteuid());
    assert_true(net_peer_is_ours(fd, peer));
}

static void assert_none(int fd, const struct net_addr *peer)
{
    uid_t uid = 4711;

    assert_false(net_peer_uid(fd, peer, &uid));
    assert_int_equal(uid, 4711);
    assert_false(net_peer_is_ours(fd, peer));
}

static void test_held(void **state)
{
    struct net_addr peer;
    int fds[2];

    (void)state;
    EACH(place, places) {
        connect_pair(*place, fds, &peer);
        assert_ours(fds[1], &peer);
        assert_int_equal(send(fds[0], "x", 1, 0), 1);
        assert_int_equal(shutdown(fds[0], SHUT_WR), 0); /* no more requests; it still reads */
        assert_ours(fds[1], &peer);
        (void)close(fds[0]);
        (void)close(fds[1]);
    }
}

/* What it sent stays readable. The kernel says uid 0 of the orphan, and of nothing once it is gone. */
static void test_closed(void **state)
{
    struct net_addr peer;
    char byte;
    int fds[2];

    (void)state;
    EACH(place, places) {
        for (int is_reset = 0; is_reset < 2; is_reset++) {
            connect_pair(*place, fds, &peer);
            assert_int_equal(send(fds[0], "x", 1, 0), 1);
            if (is_reset)
                reset(fds[0]);
            else
                (void)close(fds[0]);
            assert_none(fds[1], &peer);
            assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), 1);
            (void)close(fds[1]);
        }
    }
}

/* After a reset this account's own listener, or connection, has the address and port that another account's connection had. */
static void test_successors(void **state)
{
    struct net_addr peer, own;
    int fds[2], listener, later;

    (void)state;
    EACH(place, places) {
        connect_pair(*place, fds, &peer);
        reset(fds[0]);
        later = socket_at(&peer);
        assert_int_equal(listen(later, 1), 0);
        assert_none(fds[1], &peer);
        (void)close(later);
        (void)close(fds[1]);

        connect_pair(*place, fds, &peer);
        own.len = sizeof own.sa;
        assert_int_equal(getsockname(fds[1], (struct sockaddr *)&own.sa, &own.len), 0);
        assert_int_equal(send(fds[0], "x", 1, 0), 1);
        reset(fds[0]);
        listener = socket_at(&own);
        assert_int_equal(listen(listener, 1), 0);
        later = socket_at(&peer);
        assert_int_equal(connect(later, (struct sockaddr *)&own.sa, own.len), 0);
        assert_none(fds[1], &peer);
        (void)close(later);
        (void)close(listener);
        (void)close(fds[1]);
    }
}

/* A listener of both families shows its IPv4 peers as IPv6 ones. */
static void test_mapped(void **state)
{
    struct net_addr at, peer = { .len = sizeof peer.sa };
    int listener, fds[2];
    struct err e;

    (void)state;
    assert_int_equal(net_addr_parse("[::]:0", &at, &e), 0);
    listener = socket_at(&at);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at.sa, &at.len), 0);
    assert_true(net_addr_of_ip(SPAN("127.0.0.1"), net_addr_port(&at), &at));
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&at.sa, at.len), 0);
    fds[1] = accept(listener, (struct sockaddr *)&peer.sa, &peer.len);
    assert_int_equal(peer.sa.ss_family, AF_INET6);
    assert_ours(fds[1], &peer);
    (void)close(fds[0]);
    assert_none(fds[1], &peer);
    (void)close(fds[1]);
    (void)close(listener);
}

/* Answers go to the process that asked: a fork does not share the socket. */
static void test_fork(void **state)
{
    struct net_addr peer;
    int fds[2], status;
    pid_t pid;

    (void)state;
    connect_pair("127.0.0.1:0", fds, &peer);
    assert_ours(fds[1], &peer);
    pid = fork();
    assert_true(pid >= 0);
    for (int i = 0; i < 2000; i++)
        if (!net_peer_is_ours(fds[1], &peer)) {
            if (!pid)
                _exit(1);
            fail();
        }
    if (!pid)
        _exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
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

/* An address that is not the connection's has no account, and neither has one of another family. */
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),          cmocka_unit_test(test_closed),
        cmocka_unit_test(test_successors),    cmocka_unit_test(test_mapped),
        cmocka_unit_test(test_fork),          cmocka_unit_test(test_unix),
        cmocka_unit_test(test_wrong_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
