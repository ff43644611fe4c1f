#include "net/listen.h"

#include "net/limits.h"

#include "base/log.h"
#include "ev/timer.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

struct door {
    struct ev_loop *loop;
    struct net_listener *l;
    int fds[200];
    size_t n, want;
    struct net_addr peer;
    bool is_late, close_at_first;
    struct ev_timer deadline;
};

static void too_late(void *ctx)
{
    struct door *d = ctx;

    d->is_late = true;
    ev_loop_stop(d->loop);
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct door *d = ctx;

    d->fds[d->n++] = fd;
    d->peer = *peer;
    if (d->close_at_first)
        net_listener_close(take_ptr(&d->l));
    if (d->n >= d->want)
        ev_loop_stop(d->loop);
}

static void open_door(struct door *d, const char *at)
{
    struct net_addr a;
    struct err e;

    *d = (struct door){ .want = 1 };
    assert_int_equal(net_addr_parse(at, &a, &e), 0);
    assert_int_equal(ev_loop_new(&d->loop, &e), 0);
    assert_int_equal(net_listen(d->loop, &a, on_accept, d, &d->l, &e), 0);
}

static void wait_for(struct door *d, size_t want, uint64_t ms)
{
    d->want = want;
    ev_timer_start(d->loop, &d->deadline, ms, too_late, d);
    ev_loop_run(d->loop);
    ev_timer_stop(d->loop, &d->deadline);
}

static void close_door(struct door *d)
{
    net_listener_close(d->l);
    for (size_t i = 0; i < d->n; i++)
        (void)close(d->fds[i]);
    ev_loop_free(d->loop);
}

static int knock(const struct net_addr *at)
{
    int fd = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at->sa, at->len), 0);
    return fd;
}

static void test_port_zero_becomes_a_real_one_and_accepts(void **state)
{
    struct door d;
    int fd;

    (void)state;
    open_door(&d, "127.0.0.1:0");
    assert_int_not_equal(net_addr_port(net_listener_addr(d.l)), 0);
    fd = knock(net_listener_addr(d.l));
    wait_for(&d, 1, 5000);
    assert_int_equal(d.n, 1);
    assert_true(fcntl(d.fds[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(d.fds[0], F_GETFD) & FD_CLOEXEC);
    assert_true(net_addr_is_loopback(&d.peer));
    (void)close(fd);
    close_door(&d);
}

static void assert_option(int fd, int level, int option, int want)
{
    int is = -1;
    socklen_t n = sizeof is;

    assert_int_equal(getsockopt(fd, level, option, &is, &n), 0);
    assert_int_equal(is, want);
}

/* Our end of the one connection, which d.fds[0] is the other end of. */
static int open_and_knock(struct door *d, const char *where)
{
    int fd;

    open_door(d, where);
    fd = knock(net_listener_addr(d->l));
    wait_for(d, 1, 5000);
    return fd;
}

static void test_connections_have_what_their_listener_has(void **state)
{
    struct door d;
    int fd;

    (void)state;
    fd = open_and_knock(&d, "127.0.0.1:0");
    assert_option(d.fds[0], IPPROTO_TCP, TCP_NODELAY, 1);
    assert_option(d.fds[0], SOL_SOCKET, SO_KEEPALIVE, 1);
    assert_option(d.fds[0], IPPROTO_TCP, TCP_KEEPIDLE, NET_KEEPALIVE_S);
    (void)close(fd);
    close_door(&d);
}

static void assert_congestion(int fd, const char *want)
{
    char is[16] = "";
    socklen_t n = sizeof is - 1;

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, is, &n), 0);
    assert_string_equal(is, want);
}

/* Whatever the host has for its network, which is what a listener at all addresses keeps. */
static void test_only_the_loopback_has_no_model_of_its_path(void **state)
{
    char hosts[16] = "";
    socklen_t n = sizeof hosts - 1;
    OWN_FD int plain_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct door d;
    int fd;

    (void)state;
    fd = open_and_knock(&d, "127.0.0.1:0");
    assert_congestion(d.fds[0], "reno");
    (void)close(fd);
    close_door(&d);
    assert_int_equal(getsockopt(plain_fd, IPPROTO_TCP, TCP_CONGESTION, hosts, &n), 0);
    fd = open_and_knock(&d, "0.0.0.0:0");
    assert_congestion(d.fds[0], hosts);
    (void)close(fd);
    close_door(&d);
}

static void test_a_dead_socket_file_is_replaced_a_live_one_is_not(void **state)
{
    char path[] = "/tmp/silica-listen-XXXXXX", text[64];
    struct net_listener *second = NULL;
    struct net_addr a;
    struct door d;
    struct err e;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(path));
    (void)snprintf(text, sizeof text, "unix:%s/s", path);
    assert_int_equal(net_addr_parse(text, &a, &e), 0);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a.sa, a.len), 0);
    (void)close(fd); /* the file stays, as after a kill */
    open_door(&d, text);
    assert_int_equal(net_listen(d.loop, &a, on_accept, &d, &second, &e), -1);
    assert_non_null(strstr(e.msg, "Address already in use"));
    fd = knock(&a);
    wait_for(&d, 2, 5000); /* the second listener looked whether anybody answers */
    assert_int_equal(d.n, 2);
    (void)close(fd);
    close_door(&d);
    (void)unlink(text + 5);
    (void)rmdir(path);
}

static void test_a_file_that_is_no_socket_is_spared(void **state)
{
    char path[] = "/tmp/silica-listen-XXXXXX", text[64];
    struct net_listener *l = NULL;
    struct ev_loop *loop;
    struct net_addr a;
    struct err e;
    int fd = mkstemp(path);

    (void)state;
    (void)snprintf(text, sizeof text, "unix:%s", path);
    assert_int_equal(net_addr_parse(text, &a, &e), 0);
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    assert_int_equal(net_listen(loop, &a, on_accept, NULL, &l, &e), -1);
    assert_int_equal(access(path, F_OK), 0);
    (void)close(fd);
    (void)unlink(path);
    ev_loop_free(loop);
}

static void test_a_socket_file_is_its_owners(void **state)
{
    char path[] = "/tmp/silica-listen-XXXXXX", text[64];
    mode_t before = umask(0); /* which takes nothing away */
    struct stat st;
    struct door d;

    (void)state;
    assert_non_null(mkdtemp(path));
    (void)snprintf(text, sizeof text, "unix:%s/s", path);
    open_door(&d, text);
    (void)umask(before);
    assert_int_equal(stat(text + 5, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    close_door(&d);
    (void)unlink(text + 5);
    (void)rmdir(path);
}

static void test_a_taken_port_is_said_with_a_hint(void **state)
{
    struct net_listener *second = NULL;
    struct door d;
    struct err e;

    (void)state;
    open_door(&d, "127.0.0.1:0");
    assert_int_equal(net_listen(d.loop, net_listener_addr(d.l), on_accept, &d, &second, &e), -1);
    assert_non_null(strstr(e.msg, "cannot listen on '127.0.0.1:"));
    assert_non_null(strstr(e.hint, "--listen"));
    close_door(&d);
}

static void test_out_of_descriptors_it_waits_and_goes_on(void **state)
{
    struct rlimit old, low;
    struct door d;
    int fd, last;

    (void)state;
    open_door(&d, "127.0.0.1:0");
    fd = knock(net_listener_addr(d.l));
    last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(last);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){ (rlim_t)last, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    wait_for(&d, 1, 120);
    assert_true(d.is_late);
    assert_int_equal(d.n, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    wait_for(&d, 1, 5000);
    assert_int_equal(d.n, 1);
    (void)close(fd);
    close_door(&d);
}

static void test_it_may_be_closed_inside_its_own_callback(void **state)
{
    struct door d;
    int a, b;

    (void)state;
    open_door(&d, "127.0.0.1:0");
    d.close_at_first = true;
    a = knock(net_listener_addr(d.l));
    b = knock(net_listener_addr(d.l));
    wait_for(&d, 2, 100);
    assert_int_equal(d.n, 1);
    (void)close(a);
    (void)close(b);
    close_door(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_port_zero_becomes_a_real_one_and_accepts),
        cmocka_unit_test(test_connections_have_what_their_listener_has),
        cmocka_unit_test(test_only_the_loopback_has_no_model_of_its_path),
        cmocka_unit_test(test_a_dead_socket_file_is_replaced_a_live_one_is_not),
        cmocka_unit_test(test_a_file_that_is_no_socket_is_spared),
        cmocka_unit_test(test_a_socket_file_is_its_owners),
        cmocka_unit_test(test_a_taken_port_is_said_with_a_hint),
        cmocka_unit_test(test_out_of_descriptors_it_waits_and_goes_on),
        cmocka_unit_test(test_it_may_be_closed_inside_its_own_callback),
    };

    log_set_level(LOG_OFF);
    return cmocka_run_group_tests_name("net/listen", tests, NULL, NULL);
}
