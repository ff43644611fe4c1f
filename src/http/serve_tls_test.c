/* The same server behind TLS: what a filter changes is where bytes wait. */
#include "http/testdesk.h"

#include "net/testca.h"
#include "net/tls.h"

struct stage {
    struct desk d;
    struct testca *ca;
    struct testcert cert;
    struct tls *server, *client;
    struct side side;
};

static void up(struct stage *s, const struct http_server_config *config)
{
    const struct testcert_spec spec = {
        .cn = "desk", .san = "DNS:localhost", .from_s = -60, .until_s = 3600
    };
    struct net_addr peer = { .len = sizeof peer.sa };
    struct conn_filter *a, *b;
    struct tls_config tls;
    struct err e;
    int fds[2];

    desk_open(&s->d, config);
    s->ca = testca_new("ca");
    testca_issue(s->ca, &spec, &s->cert);
    tls = (struct tls_config){ .role = TLS_SERVER,
                               .cert_pem = buf_span(&s->cert.cert_pem),
                               .key_pem = buf_span(&s->cert.key_pem) };
    assert_int_equal(tls_new(&tls, &s->server, &e), 0);
    tls = (struct tls_config){ .role = TLS_CLIENT, .ca_pem = testca_pem(s->ca) };
    assert_int_equal(tls_new(&tls, &s->client, &e), 0);
    side_socket_pair(fds);
    assert_int_equal(getpeername(fds[1], (struct sockaddr *)&peer.sa, &peer.len), 0);
    assert_int_equal(tls_filter_new(s->server, fds[1], NULL, &a, &e), 0);
    assert_int_equal(tls_filter_new(s->client, fds[0], "localhost", &b, &e), 0);
    http_server_take(s->d.server, fds[1], a, &peer);
    side_open(&s->side, s->d.loop, fds[0], b);
}

static void down(struct stage *s)
{
    side_done(&s->side);
    desk_close(&s->d);
    tls_free(s->server);
    tls_free(s->client);
    testcert_done(&s->cert);
    testca_free(s->ca);
}

static bool has_hello(void *ctx)
{
    return span_ends(buf_span(&((struct side *)ctx)->in), "hello\n");
}

static void test_answers_and_files_arrive(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    struct stage s = { 0 };
    size_t at;

    (void)state;
    side_fill(&content, DESK_FILE_BYTES);
    up(&s, NULL);
    desk_say(&s.side, "GET /file?n=5000000&at=3000000 HTTP/1.1\r\nhost: x\r\n\r\n"
                      "GET /flow?n=9000000 HTTP/1.1\r\nhost: x\r\n\r\n"
                      "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_true(desk_wait(&s.d, has_hello, &s.side));
    at = span_find_str(buf_span(&s.side.in), SPAN("\r\n\r\n")) + 4;
    assert_memory_equal(s.side.in.p + at, content.p + 3000000, 5000000);
    desk_expect_end(&s.side);
    assert_false(s.side.is_failed); /* close_notify came: nothing looks cut */
    down(&s);
}

static void test_a_paused_upload_goes_on(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    struct stage s = { 0 };
    struct desk_call *c;

    (void)state;
    up(&s, NULL);
    s.d.pauses = true;
    side_fill(&content, 3 << 20);
    desk_say(&s.side, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 3145728\r\n\r\n");
    conn_write(s.side.conn, buf_span(&content));
    c = desk_wait_call(&s.d, 0);
    side_idle(s.d.loop, 30);
    assert_in_range(c->body.n, 1, 64 * 1024);
    VERB(&s.d, http_body_pause(c->x, false));
    while (!c->ends)
        side_idle(s.d.loop, 5);
    assert_int_equal(c->body.n, content.n);
    assert_memory_equal(c->body.p, content.p, content.n);
    desk_answer(c, 200, "hello\n");
    assert_true(desk_wait(&s.d, has_hello, &s.side));
    down(&s);
}

static void test_other_protocols_do_not_stay(void **state)
{
    const struct http_server_config config = { .idle_timeout_ms = 50 };
    struct side plain, silent;
    struct stage s = { 0 };
    struct net_addr peer = { .len = sizeof peer.sa };
    struct conn_filter *f;
    struct err e;
    int fds[2];

    (void)state;
    up(&s, &config);
    for (int i = 0; i < 2; i++) {
        side_socket_pair(fds);
        assert_int_equal(getpeername(fds[1], (struct sockaddr *)&peer.sa, &peer.len), 0);
        assert_int_equal(tls_filter_new(s.server, fds[1], NULL, &f, &e), 0);
        http_server_take(s.d.server, fds[1], f, &peer);
        side_open(i ? &plain : &silent, s.d.loop, fds[0], NULL);
    }
    desk_say(&plain, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    desk_expect_end(&plain);
    desk_expect_end(&silent); /* a handshake that never comes has the idle time */
    assert_int_equal(s.d.n, 0);
    side_done(&plain);
    side_done(&silent);
    down(&s);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_answers_and_files_arrive),
        cmocka_unit_test(test_a_paused_upload_goes_on),
        cmocka_unit_test(test_other_protocols_do_not_stay),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
