/* HTTP/2 connections that fell silent, and such as are to be replaced. */
#include "http/client.h"

#include "http/limits.h"
#include "http/testdesk.h"
#include "http/testserver.h"

struct world {
    struct desk desk;
    struct net_listener *l;
    struct http_client *client;
    struct http_head head;
    uint16_t port;
    size_t accepted;
};

struct result {
    struct http_call *call;
    unsigned dones;
    int status;
    bool has_left;
    struct err err;
};

static void on_head(void *ctx, const struct http_head *head)
{
    ((struct result *)ctx)->status = head->status;
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct result *r = ctx;

    (void)trailers;
    r->dones++;
    r->has_left = http_call_has_left(r->call);
    if (e)
        r->err = *e;
}

static const struct http_call_events events = { on_head, NULL, NULL, on_done, NULL };

static bool is_done(void *ctx)
{
    return ((struct result *)ctx)->dones > 0;
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct world *w = ctx;

    w->accepted++;
    http_server_take(w->desk.server, fd, NULL, peer);
}

static void open_world(struct world *w, const struct http_client_config *config)
{
    struct net_addr a;
    struct err e;

    *w = (struct world){ 0 };
    desk_open(&w->desk, NULL);
    w->client = http_client_new(w->desk.loop, config);
    assert_int_equal(net_addr_parse("127.0.0.1:0", &a, &e), 0);
    assert_int_equal(net_listen(w->desk.loop, &a, on_accept, w, &w->l, &e), 0);
    w->port = net_addr_port(net_listener_addr(w->l));
    http_head_init(&w->head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
}

static void close_world(struct world *w)
{
    http_client_free(w->client);
    side_idle(w->desk.loop, 5);
    net_listener_close(w->l);
    http_head_done(&w->head);
    desk_close(&w->desk);
}

static void start(struct world *w, const char *method, uint16_t port, struct result *r)
{
    struct err e;

    assert_int_equal(http_head_set_request(&w->head, span_cstr(method), SPAN("/wait"), &e), 0);
    r->call = http_call_start(
        w->client,
        &(struct http_call_spec){ .to = { .host = "127.0.0.1", .port = port, .version = HTTP_V2 },
                                  .head = &w->head,
                                  .events = &events,
                                  .ctx = r });
}

static void await(struct world *w, struct result *r)
{
    assert_true(side_wait(w->desk.loop, is_done, r));
    assert_int_equal(r->dones, 1);
}

static void test_a_silent_server_that_answers_pings_is_waited_for(void **state)
{
    struct result r = { 0 };
    struct world w;

    (void)state;
    open_world(&w, &(struct http_client_config){ .ping_idle_ms = 10, .ping_wait_ms = 5000 });
    start(&w, "GET", w.port, &r);
    (void)desk_wait_call(&w.desk, 0);
    side_idle(w.desk.loop, 100); /* several pings */
    assert_int_equal(r.dones, 0);
    desk_answer(desk_wait_call(&w.desk, 0), 200, "late");
    await(&w, &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.err.code, ERR_NONE);
    assert_int_equal(w.accepted, 1);
    close_world(&w);
}

static void test_a_server_that_is_gone_without_a_word_is_noticed(void **state)
{
    static const struct answer script[] = {
        { "PRI * HTTP/2.0", BYTES("\0\0\0\4\0\0\0\0\0"), THEN_SILENCE },
    };
    struct result r[2] = { { 0 } };
    struct testserver s;
    struct world w;

    (void)state;
    open_world(&w, &(struct http_client_config){ .ping_idle_ms = 20, .ping_wait_ms = 30 });
    testserver_open(&s, w.desk.loop, "127.0.0.1:0");
    testserver_script(&s, script, LEN(script));
    start(&w, "GET", s.port, &r[0]);
    start(&w, "POST", s.port, &r[1]);
    for (int i = 0; i < 2; i++) {
        await(&w, &r[i]);
        assert_int_equal(r[i].err.code, ERR_TIMEOUT);
        assert_non_null(strstr(r[i].err.msg, "did not answer a ping"));
        assert_true(r[i].has_left);
    }
    assert_true(s.heard.n > 0);
    side_idle(w.desk.loop, 5);
    assert_int_equal(http_client_connections(w.client), 0);
    testserver_close(&s);
    close_world(&w);
}

static void test_a_connection_that_is_forgotten_serves_its_calls_and_gets_no_more(void **state)
{
    struct result r[2] = { { 0 } };
    struct world w;

    (void)state;
    open_world(&w, &(struct http_client_config){ 0 });
    start(&w, "GET", w.port, &r[0]);
    (void)desk_wait_call(&w.desk, 0);
    http_client_forget_idle(w.client);
    start(&w, "GET", w.port, &r[1]);
    (void)desk_wait_call(&w.desk, 1);
    assert_int_equal(w.accepted, 2);
    for (int i = 0; i < 2; i++) {
        desk_answer(desk_wait_call(&w.desk, (size_t)i), 200, "still here");
        await(&w, &r[i]);
        assert_int_equal(r[i].status, 200);
        assert_int_equal(r[i].err.code, ERR_NONE);
    }
    side_idle(w.desk.loop, 20);
    assert_int_equal(http_client_connections(w.client), 1);
    close_world(&w);
}

static bool has_heard(void *ctx)
{
    const struct testserver *s = ctx;

    return s->heard.n > 100; /* the preface, settings and a request */
}

static bool has_two(void *ctx)
{
    return ((const struct testserver *)ctx)->conn_count == 2;
}

static void test_a_full_connection_gets_company(void **state)
{
    static const struct answer script[] = {
        { "PRI * HTTP/2.0", BYTES("\0\0\6\4\0\0\0\0\0\0\3\0\0\0\1"),
          THEN_SILENCE }, /* one stream */
        { "PRI * HTTP/2.0", BYTES("\0\0\0\4\0\0\0\0\0"), THEN_SILENCE },
    };
    struct result r[3] = { { 0 } };
    struct testserver s;
    struct world w;

    (void)state;
    open_world(&w, &(struct http_client_config){ 0 });
    testserver_open(&s, w.desk.loop, "127.0.0.1:0");
    testserver_script(&s, script, LEN(script));
    start(&w, "GET", s.port, &r[0]);
    assert_true(side_wait(w.desk.loop, has_heard, &s));
    side_idle(w.desk.loop, 30); /* its settings have come */
    start(&w, "GET", s.port, &r[1]);
    assert_true(side_wait(w.desk.loop, has_two, &s));
    side_idle(w.desk.loop, 30);
    start(&w, "GET", s.port, &r[2]); /* the second one has room */
    side_idle(w.desk.loop, 30);
    assert_int_equal(s.conn_count, 2);
    http_client_free(w.client);
    w.client = NULL;
    side_idle(w.desk.loop, 10);
    testserver_close(&s);
    close_world(&w);
}

static void test_a_call_that_nobody_heard_of_says_so(void **state)
{
    struct result r = { 0 };
    struct world w;
    uint16_t port;

    (void)state;
    open_world(&w, &(struct http_client_config){ 0 });
    port = w.port;
    net_listener_close(w.l);
    w.l = NULL;
    start(&w, "POST", port, &r);
    await(&w, &r);
    assert_int_equal(r.err.code, ERR_UNAVAILABLE);
    assert_false(r.has_left);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_silent_server_that_answers_pings_is_waited_for),
        cmocka_unit_test(test_a_server_that_is_gone_without_a_word_is_noticed),
        cmocka_unit_test(test_a_connection_that_is_forgotten_serves_its_calls_and_gets_no_more),
        cmocka_unit_test(test_a_full_connection_gets_company),
        cmocka_unit_test(test_a_call_that_nobody_heard_of_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
