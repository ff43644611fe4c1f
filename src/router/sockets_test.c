#include "router/sockets.h"

#include "base/packet.h"
#include "base/scratch.h"
#include "ev/io.h"
#include "net/inside.h"
#include "net/listen.h"
#include "net/testside.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

/* What the node of these tests does with an ask. */
enum manner { GIVES, KNOWS_NOBODY, HAS_NONE, SAYS_NOTHING, DIES, BABBLES };

struct world {
    struct ev_loop *loop;
    char path[200];
    struct net_addr at;
    struct net_listener *node, *pod;
    uint16_t port; /* of the pod */
    int fd;        /* of who asks */
    struct ev_io io;
    enum manner manner;
    struct inside_ask asks[16];
    size_t ask_count, accepted;
    struct dial_plug *sockets;
};

struct result {
    unsigned dones;
    int fd;
    struct err e;
};

static void hang_up(struct world *w)
{
    if (w->fd < 0)
        return;
    ev_io_close(&w->io);
    own_fd_close(&w->fd);
}

static void answer(struct world *w, const struct inside_ask *ask)
{
    OWN(buf_done) struct buf text = BUF_INIT(INSIDE_ANSWER_MAX_BYTES);
    struct inside_answer a = { .id = ask->id, .is_unknown = w->manner == KNOWS_NOBODY };
    int fds[INSIDE_COUNT_MAX];
    struct iovec part;
    size_t n = 0;
    struct err e;

    if (w->manner == KNOWS_NOBODY || w->manner == HAS_NONE)
        (void)snprintf(a.error, sizeof a.error, "there is none");
    while (w->manner == GIVES && n < ask->count)
        fds[n++] = socket(ask->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inside_answer_write(&a, &text, &e), 0);
    if (w->manner == BABBLES) {
        buf_clear(&text);
        assert_int_equal(buf_add(&text, SPAN("{\"id\":[]}"), &e), 0);
        w->manner = GIVES;
    }
    part = (struct iovec){ text.p, text.n };
    assert_int_equal(packet_send(w->fd, &part, 1, fds, n, &e), 0);
    while (n)
        (void)close(fds[--n]);
}

static void on_asked(void *ctx, unsigned ready)
{
    struct world *w = ctx;
    uint8_t bytes[INSIDE_ASK_MAX_BYTES];
    struct iovec part = { bytes, sizeof bytes };
    struct inside_ask *ask = &w->asks[w->ask_count];
    struct err e;
    size_t n;

    (void)ready;
    if (packet_receive(w->fd, &part, 1, &n, NULL, NULL, &e) < 0) {
        if (e.code != ERR_BUSY)
            hang_up(w);
        return;
    }
    assert_int_equal(inside_ask_read(span_of(bytes, n), ask, &e), 0);
    assert_true(w->ask_count + 1 < LEN(w->asks));
    w->ask_count++;
    if (w->manner == DIES) {
        w->manner = GIVES;
        hang_up(w);
    } else if (w->manner != SAYS_NOTHING) {
        answer(w, ask);
    }
}

static void on_asker(void *ctx, int fd, const struct net_addr *peer)
{
    struct world *w = ctx;
    struct err e;

    (void)peer;
    hang_up(w);
    w->fd = fd;
    assert_int_equal(ev_io_open(&w->io, w->loop, fd, on_asked, w, &e), 0);
    ev_io_want(&w->io, EV_READ);
}

static void on_client(void *ctx, int fd, const struct net_addr *peer)
{
    (void)peer;
    ((struct world *)ctx)->accepted++;
    (void)close(fd);
}

static void start_node(struct world *w)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct err e;

    (void)unlink(w->path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&w->at.sa, w->at.len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(net_listen_fd(w->loop, fd, on_asker, w, &w->node, &e), 0);
}

static void open_world(struct world *w, const struct scratch *dir)
{
    struct net_addr pod;
    char text[NET_ADDR_TEXT_BYTES];
    struct err e;

    *w = (struct world){ .fd = -1 };
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    (void)snprintf(w->path, sizeof w->path, "%s/s", dir->path);
    (void)snprintf(text, sizeof text, "unix:%.90s", w->path);
    assert_int_equal(net_addr_parse(text, &w->at, &e), 0);
    assert_int_equal(net_addr_parse("127.0.0.1:0", &pod, &e), 0);
    assert_int_equal(net_listen(w->loop, &pod, on_client, w, &w->pod, &e), 0);
    w->port = net_addr_port(net_listener_addr(w->pod));
    w->sockets = sockets_new(w->loop, &w->at);
}

static void close_world(struct world *w)
{
    sockets_free(w->sockets);
    side_idle(w->loop, 5);
    hang_up(w);
    if (w->node)
        net_listener_close(w->node);
    if (w->pod)
        net_listener_close(w->pod);
    side_idle(w->loop, 5);
    ev_loop_free(w->loop);
}

static void on_done(void *ctx, int fd, const struct err *e)
{
    struct result *r = ctx;

    r->dones++;
    r->fd = fd;
    if (e)
        r->e = *e;
    else
        (void)close(fd);
}

static bool is_done(void *ctx)
{
    return ((struct result *)ctx)->dones > 0;
}

static struct dial_errand *go(struct world *w, struct result *r)
{
    *r = (struct result){ .fd = -1 };
    return w->sockets->ops->start(w->sockets, "some-uid", w->port, on_done, r);
}

static enum err_code outcome(struct world *w)
{
    struct result r;

    (void)go(w, &r);
    assert_int_equal(r.dones, 0); /* never inside the verb */
    assert_true(side_wait(w->loop, is_done, &r));
    assert_int_equal(r.dones, 1);
    return r.e.code;
}

static void test_a_socket_is_asked_for_and_connected(void **state)
{
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    assert_int_equal(outcome(&w), ERR_NONE);
    assert_string_equal(w.asks[0].pod, "some-uid");
    assert_int_equal(w.asks[0].count, 1);
    /* Asked for a second time: some are made ahead, and nobody is asked for those. */
    for (int i = 0; i < 1 + INSIDE_COUNT_MAX; i++)
        assert_int_equal(outcome(&w), ERR_NONE);
    assert_int_equal(w.ask_count, 3);
    assert_int_equal(w.asks[1].count, INSIDE_COUNT_MAX);
    close_world(&w);
}

static void test_a_port_where_nobody_listens_is_tried_in_both_families(void **state)
{
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    net_listener_close(take_ptr(&w.pod));
    assert_int_equal(outcome(&w), ERR_UNAVAILABLE);
    assert_int_equal(w.ask_count, 2);
    assert_int_equal(w.asks[0].family, AF_INET);
    assert_int_equal(w.asks[1].family, AF_INET6);
    close_world(&w);
}

/* Its network may be that of a sandbox that is gone. */
static void test_who_is_refused_on_one_made_ahead_gets_a_new_one(void **state)
{
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    assert_int_equal(outcome(&w), ERR_NONE);
    assert_int_equal(outcome(&w), ERR_NONE);
    assert_int_equal(w.ask_count, 2);
    net_listener_close(take_ptr(&w.pod));
    assert_int_equal(outcome(&w), ERR_UNAVAILABLE);
    assert_int_equal(w.ask_count, 4);
    assert_int_equal(w.asks[2].family, AF_INET);
    assert_int_equal(w.asks[3].family, AF_INET6);
    close_world(&w);
}

static void test_what_the_node_says_is_told(void **state)
{
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    w.manner = KNOWS_NOBODY;
    assert_int_equal(outcome(&w), ERR_NOT_FOUND);
    w.manner = HAS_NONE;
    assert_int_equal(outcome(&w), ERR_UNAVAILABLE);
    close_world(&w);
}

static void test_a_node_that_comes_late_is_waited_for(void **state)
{
    struct result r;
    struct world w;

    open_world(&w, *state);
    (void)go(&w, &r);
    side_idle(w.loop, 30);
    assert_int_equal(r.dones, 0);
    start_node(&w);
    assert_true(side_wait(w.loop, is_done, &r));
    assert_int_equal(r.e.code, ERR_NONE);
    close_world(&w);
}

static void test_a_node_that_dies_or_babbles_is_asked_again(void **state)
{
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    w.manner = DIES;
    assert_int_equal(outcome(&w), ERR_NONE);
    w.manner = BABBLES;
    assert_int_equal(outcome(&w), ERR_NONE);
    assert_int_equal(w.ask_count, 4);
    close_world(&w);
}

static void test_a_node_that_says_nothing_is_given_up(void **state)
{
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    w.manner = SAYS_NOTHING;
    assert_int_equal(outcome(&w), ERR_UNAVAILABLE);
    close_world(&w);
}

static bool has_asked(void *ctx)
{
    return ((struct world *)ctx)->ask_count > 0;
}

static void test_who_changes_his_mind_is_told_once(void **state)
{
    struct dial_errand *x;
    struct result r;
    struct world w;

    open_world(&w, *state);
    start_node(&w);
    w.manner = SAYS_NOTHING;
    x = go(&w, &r);
    assert_true(side_wait(w.loop, has_asked, &w));
    w.sockets->ops->cancel(x);
    assert_int_equal(r.dones, 0);
    w.manner = GIVES;
    answer(&w, &w.asks[0]); /* too late: closed, and nobody's */
    side_idle(w.loop, 10);
    assert_int_equal(r.dones, 1);
    assert_int_equal(r.e.code, ERR_CANCELED);
    close_world(&w);
}

static size_t fds_before;

static int make_dir(void **state)
{
    static struct scratch dir;

    fds_before = side_fd_count();
    scratch_make(&dir);
    *state = &dir;
    return 0;
}

static int remove_dir(void **state)
{
    scratch_remove(*state);
    assert_int_equal(side_fd_count(), fds_before);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_socket_is_asked_for_and_connected),
        cmocka_unit_test(test_a_port_where_nobody_listens_is_tried_in_both_families),
        cmocka_unit_test(test_who_is_refused_on_one_made_ahead_gets_a_new_one),
        cmocka_unit_test(test_what_the_node_says_is_told),
        cmocka_unit_test(test_a_node_that_comes_late_is_waited_for),
        cmocka_unit_test(test_a_node_that_dies_or_babbles_is_asked_again),
        cmocka_unit_test(test_a_node_that_says_nothing_is_given_up),
        cmocka_unit_test(test_who_changes_his_mind_is_told_once),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
