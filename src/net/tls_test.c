#include "net/tls.h"

#include "net/addr.h"
#include "net/testca.h"
#include "net/testside.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Certificates are made once: keys cost time. */
static struct testca *ca, *stranger;
static struct testcert good, expired, early, alice, foreign_alice, self_named;

static const char *const groups[] = { "system:masters", "dev", NULL };

struct pair {
    struct ev_loop *loop;
    struct tls *server_tls, *client_tls;
    struct side server, client;
};

static struct tls_config server_config(const struct testcert *c)
{
    return (struct tls_config){ .role = TLS_SERVER,
                                .cert_pem = buf_span(&c->cert_pem),
                                .key_pem = buf_span(&c->key_pem) };
}

static struct tls_config client_config(void)
{
    return (struct tls_config){ .role = TLS_CLIENT, .ca_pem = testca_pem(ca) };
}

static void open_pair(struct pair *p, const struct tls_config *server,
                      const struct tls_config *client, const char *name)
{
    struct conn_filter *f;
    struct err e;
    int fds[2];

    *p = (struct pair){ 0 };
    assert_int_equal(ev_loop_new(&p->loop, &e), 0);
    if (tls_new(server, &p->server_tls, &e) < 0 || tls_new(client, &p->client_tls, &e) < 0)
        fail_msg("%s", e.msg);
    side_socket_pair(fds);
    assert_int_equal(tls_filter_new(p->server_tls, fds[0], NULL, &f, &e), 0);
    side_open(&p->server, p->loop, fds[0], f);
    assert_int_equal(tls_maker(p->client_tls)->make(tls_maker(p->client_tls), fds[1], name, &f, &e),
                     0);
    side_open(&p->client, p->loop, fds[1], f);
}

static void close_pair(struct pair *p)
{
    side_done(&p->client);
    side_done(&p->server);
    tls_free(p->server_tls);
    tls_free(p->client_tls);
    ev_loop_free(p->loop);
}

static bool has_three(void *side)
{
    return ((struct side *)side)->in.n >= 3;
}

static bool is_three_or_closed(void *side)
{
    return has_three(side) || ((struct side *)side)->is_closed;
}

/* Both say three bytes; true when both heard them. */
static bool talk(struct pair *p)
{
    conn_write(p->client.conn, SPAN("abc"));
    conn_write(p->server.conn, SPAN("xyz"));
    assert_true(side_wait(p->loop, is_three_or_closed, &p->client));
    assert_true(side_wait(p->loop, is_three_or_closed, &p->server));
    return p->client.in.n == 3 && p->server.in.n == 3 && !p->client.is_closed &&
           !p->server.is_closed;
}

enum trust { BY_CA, BY_STRANGER, BY_NOBODY };

/* want "" : the two can talk. */
static const struct verify_row {
    const char *what, *name;
    struct testcert *cert;
    enum trust trust;
    bool is_insecure;
    const char *want;
} verify_rows[] = {
    { "a DNS name", "localhost", &good, BY_CA, false, "" },
    { "a DNS name with a final dot", "localhost.", &good, BY_CA, false, "" },
    { "an IPv4 address", "127.0.0.1", &good, BY_CA, false, "" },
    { "an IPv6 address in brackets", "[::1]", &good, BY_CA, false, "" },
    { "one label of a wildcard", "a.svc.test", &good, BY_CA, false, "" },
    { "two labels of a wildcard", "a.b.svc.test", &good, BY_CA, false,
      "connection lost: cannot verify the certificate of 'a.b.svc.test': hostname mismatch" },
    { "another name", "example.org", &good, BY_CA, false,
      "connection lost: cannot verify the certificate of 'example.org': hostname mismatch" },
    { "another address", "10.0.0.1", &good, BY_CA, false,
      "connection lost: cannot verify the certificate of '10.0.0.1': IP address mismatch" },
    { "the common name does not count", "cn.test", &self_named, BY_CA, false,
      "connection lost: cannot verify the certificate of 'cn.test': hostname mismatch" },
    { "an unknown CA", "localhost", &good, BY_STRANGER, false,
      "connection lost: cannot verify the certificate of 'localhost': unable to get local issuer certificate" },
    { "the system's CAs", "localhost", &good, BY_NOBODY, false,
      "connection lost: cannot verify the certificate of 'localhost': unable to get local issuer certificate" },
    { "expired", "localhost", &expired, BY_CA, false,
      "connection lost: cannot verify the certificate of 'localhost': certificate has expired" },
    { "not valid yet", "localhost", &early, BY_CA, false,
      "connection lost: cannot verify the certificate of 'localhost': certificate is not yet valid" },
    { "anything goes when insecure", "example.org", &expired, BY_STRANGER, true, "" },
};

static void test_whom_a_client_believes(void **state)
{
    (void)state;
    EACH(r, verify_rows) {
        struct tls_config server = server_config(r->cert), client = client_config();
        struct pair p;

        print_message("%s\n", r->what);
        client.is_insecure = r->is_insecure;
        client.ca_pem = r->trust == BY_CA         ? testca_pem(ca)
                        : r->trust == BY_STRANGER ? testca_pem(stranger)
                                                  : SPAN_NONE;
        open_pair(&p, &server, &client, r->name);
        if (!r->want[0]) {
            assert_true(talk(&p));
            assert_string_equal(tls_version(conn_get_filter(p.client.conn)), "TLSv1.3");
        } else {
            assert_true(side_wait(p.loop, side_is_closed, &p.client));
            assert_true(side_wait(p.loop, side_is_closed, &p.server));
            assert_string_equal(p.client.err.msg, r->want);
            assert_int_equal(p.client.err.code, ERR_PROTOCOL);
            assert_true(p.server.is_failed);
            assert_int_equal(p.server.in.n, 0);
        }
        close_pair(&p);
    }
}

static const struct client_row {
    const char *what;
    enum tls_verify verify;
    struct testcert *cert;
    bool is_welcome;
    const char *cn, *org0, *org1;
} client_rows[] = {
    { "none wanted, one shown", TLS_VERIFY_NONE, &alice, true, NULL, NULL, NULL },
    { "optional and shown", TLS_VERIFY_OPTIONAL, &alice, true, "alice", "system:masters", "dev" },
    { "optional and not shown", TLS_VERIFY_OPTIONAL, NULL, true, NULL, NULL, NULL },
    { "optional and of a stranger", TLS_VERIFY_OPTIONAL, &foreign_alice, true, NULL, NULL, NULL },
    { "required and shown", TLS_VERIFY_REQUIRED, &alice, true, "alice", "system:masters", "dev" },
    { "required and not shown", TLS_VERIFY_REQUIRED, NULL, false, NULL, NULL, NULL },
    { "required and of a stranger", TLS_VERIFY_REQUIRED, &foreign_alice, false, NULL, NULL, NULL },
};

static void assert_subject(const struct conn_filter *f, enum tls_subject what, size_t i,
                           const char *want)
{
    OWN(buf_done) struct buf name = BUF_INIT(64);
    bool is_there = tls_peer_subject(f, what, i, &name);

    assert_int_equal(is_there, want != NULL);
    assert_string_equal(buf_cstr(&name), want ? want : "");
}

static void test_whom_a_server_believes(void **state)
{
    (void)state;
    EACH(r, client_rows) {
        struct tls_config server = server_config(&good), client = client_config();
        struct pair p;

        print_message("%s\n", r->what);
        server.client_verify = r->verify;
        server.ca_pem = testca_pem(ca);
        if (r->cert) {
            client.cert_pem = buf_span(&r->cert->cert_pem);
            client.key_pem = buf_span(&r->cert->key_pem);
        }
        open_pair(&p, &server, &client, "localhost");
        if (r->is_welcome) {
            const struct conn_filter *f = conn_get_filter(p.server.conn);

            assert_subject(f, TLS_SUBJECT_CN, 0, NULL); /* not before the handshake */
            assert_true(talk(&p));
            assert_subject(f, TLS_SUBJECT_CN, 0, r->cn);
            assert_subject(f, TLS_SUBJECT_CN, 1, NULL);
            assert_subject(f, TLS_SUBJECT_O, 0, r->org0);
            assert_subject(f, TLS_SUBJECT_O, 1, r->org1);
            assert_subject(f, TLS_SUBJECT_O, 2, NULL);
        } else {
            assert_true(side_wait(p.loop, side_is_closed, &p.server));
            assert_true(side_wait(p.loop, side_is_closed, &p.client));
            assert_true(p.server.is_failed && p.client.is_failed);
        }
        close_pair(&p);
    }
}

static const struct alpn_row {
    const char *what, *server, *client, *want;
} alpn_rows[] = {
    { "both speak both, the server's order decides", "h2,http/1.1", "http/1.1,h2", "h2" },
    { "an old client", "h2,http/1.1", "http/1.1", "http/1.1" },
    { "a client without", "h2,http/1.1", NULL, "" },
    { "a server without", NULL, "h2", "" },
    { "nothing in common", "h2", "spdy/3", "" },
};

static void test_the_protocol_inside_is_agreed_on(void **state)
{
    (void)state;
    EACH(r, alpn_rows) {
        struct tls_config server = server_config(&good), client = client_config();
        struct conn_filter *a, *b;
        struct pair p;

        print_message("%s\n", r->what);
        server.alpn = r->server;
        client.alpn = r->client;
        open_pair(&p, &server, &client, "localhost");
        a = conn_get_filter(p.server.conn), b = conn_get_filter(p.client.conn);
        assert_true(talk(&p));
        assert_string_equal(a->ops->protocol(a), r->want);
        assert_string_equal(b->ops->protocol(b), r->want);
        close_pair(&p);
    }
}

static const struct config_row {
    const char *what;
    struct tls_config config;
    const char *want;
} config_rows[] = {
    { "a server without a certificate",
      { .role = TLS_SERVER },
      "a TLS server needs a certificate" },
    { "no PEM",
      { .role = TLS_SERVER, .cert_pem = BYTES("rubbish"), .key_pem = BYTES("rubbish") },
      "cannot use the certificate given as bytes: no start line" },
    { "no such file",
      { .role = TLS_CLIENT, .ca_file = "/nonexistent/ca.crt" },
      "cannot read the CA certificates: cannot open '/nonexistent/ca.crt': No such file or directory" },
    { "an empty bundle",
      { .role = TLS_CLIENT, .ca_file = "/dev/null" },
      "cannot use the CA certificates '/dev/null': no start line" },
    { "an odd protocol list",
      { .role = TLS_CLIENT, .alpn = "h2,,x" },
      "the protocol list 'h2,,x' has an empty name or is too long" },
};

static void test_bad_settings_are_refused_in_words(void **state)
{
    struct tls_config halves = server_config(&good), mixed = server_config(&good),
                      trust = server_config(&good);
    struct tls *t = NULL;
    struct err e;

    (void)state;
    EACH(r, config_rows) {
        print_message("%s\n", r->what);
        e = (struct err){ 0 };
        assert_int_equal(tls_new(&r->config, &t, &e), -1);
        assert_string_equal(e.msg, r->want);
    }
    halves.key_pem = SPAN_NONE;
    assert_int_equal(tls_new(&halves, &t, &e), -1);
    assert_string_equal(e.msg, "a certificate and its key belong together: one of them is missing");
    mixed.key_pem = buf_span(&alice.key_pem);
    assert_int_equal(tls_new(&mixed, &t, &e), -1);
    assert_string_equal(e.msg, "cannot use the private key given as bytes: key values mismatch");
    trust.client_verify = TLS_VERIFY_REQUIRED;
    assert_int_equal(tls_new(&trust, &t, &e), -1);
    assert_string_equal(e.msg, "client certificates cannot be verified without a CA");
    assert_null(t);
}

static bool has_all(void *ctx)
{
    struct pair *p = ctx;

    return p->client.in.n >= 24 << 20 && p->server.in.n >= 24 << 20;
}

static void test_large_transfers_both_ways_at_once(void **state)
{
    struct tls_config server = server_config(&good), client = client_config();
    struct buf up = { 0 }, down = { 0 };
    struct pair p;

    (void)state;
    open_pair(&p, &server, &client, "localhost");
    side_fill(&up, 24 << 20);
    side_fill(&down, 24 << 20);
    p.client.is_in_verb = p.server.is_in_verb = true;
    conn_write(p.client.conn, buf_span(&up)); /* before the handshake: waits in the queue */
    conn_write_buf(p.server.conn, &down);
    p.client.is_in_verb = p.server.is_in_verb = false;
    p.server.stop_reading_at = 1 << 20;
    while (p.client.in.n < 24 << 20)
        ev_loop_turn(p.loop);
    assert_in_range(p.server.in.n, 1 << 20, (1 << 20) + 64 * 1024);
    conn_want_read(p.server.conn, true);
    assert_true(side_wait(p.loop, has_all, &p));
    assert_memory_equal(p.server.in.p, up.p, up.n);
    assert_memory_equal(p.client.in.p, up.p, up.n);
    buf_done(&up);
    close_pair(&p);
}

static void test_a_handshake_does_not_need_a_reader(void **state)
{
    struct tls_config server = server_config(&good), client = client_config();
    struct pair p;

    (void)state;
    open_pair(&p, &server, &client, "localhost");
    conn_want_read(p.client.conn, false);
    conn_write(p.client.conn, SPAN("abc"));
    assert_true(side_wait(p.loop, has_three, &p.server));
    close_pair(&p);
}

static bool has_file(void *ctx)
{
    return ((struct side *)ctx)->in.n >= (5 << 20) + 10;
}

static void test_a_file_goes_through(void **state)
{
    struct tls_config server = server_config(&good), client = client_config();
    struct buf content = { 0 };
    struct ev_pool *pool;
    struct pair p;
    struct err e;
    int fd = memfd_create("silica-test", MFD_CLOEXEC);

    (void)state;
    open_pair(&p, &server, &client, "localhost");
    assert_int_equal(ev_pool_new(p.loop, "files", 1, &pool, &e), 0);
    side_fill(&content, 5 << 20);
    assert_int_equal(write(fd, content.p, content.n), content.n);
    conn_write(p.server.conn, SPAN("before"));
    conn_write_file(p.server.conn, pool, fd, 0, content.n);
    conn_write(p.server.conn, SPAN("tail"));
    assert_true(side_wait(p.loop, has_file, &p.client));
    assert_memory_equal(p.client.in.p, "before", 6);
    assert_memory_equal(p.client.in.p + 6, content.p, content.n);
    assert_memory_equal(p.client.in.p + 6 + content.n, "tail", 4);
    buf_done(&content);
    ev_pool_free(pool);
    close_pair(&p);
}

static void test_goodbye_is_an_end_and_silence_is_not(void **state)
{
    struct tls_config server = server_config(&good), client = client_config();
    struct pair p;

    (void)state;
    open_pair(&p, &server, &client, "localhost");
    assert_true(talk(&p));
    conn_finish(p.server.conn); /* close_notify */
    assert_true(side_wait(p.loop, side_is_eof, &p.client));
    conn_close(p.client.conn);
    assert_true(side_wait(p.loop, side_is_closed, &p.server));
    assert_false(p.server.is_failed);
    close_pair(&p);

    open_pair(&p, &server, &client, "localhost");
    assert_true(talk(&p));
    conn_close(
        p.server.conn); /* nothing but the end of the socket: an attacker could have made it */
    assert_true(side_wait(p.loop, side_is_closed, &p.client));
    assert_false(p.client.is_eof);
    assert_int_equal(p.client.err.code, ERR_CLOSED);
    assert_string_equal(
        p.client.err.msg,
        "connection lost: TLS failed with 'localhost': unexpected eof while reading");
    close_pair(&p);
}

static void test_writing_to_a_gone_peer_raises_no_signal(void **state)
{
    struct tls_config server = server_config(&good), client = client_config();
    struct linger hard = { 1, 0 };
    struct pair p;

    (void)state;
    assert_true(signal(SIGPIPE, SIG_DFL) == SIG_DFL);
    open_pair(&p, &server, &client, "localhost");
    assert_true(talk(&p));
    conn_want_read(p.client.conn, false);
    assert_int_equal(setsockopt(conn_fd(p.server.conn), SOL_SOCKET, SO_LINGER, &hard, sizeof hard),
                     0);
    conn_close(p.server.conn);
    for (int i = 0; i < 4; i++)
        conn_write(p.client.conn, SPAN("hello?"));
    assert_true(side_wait(p.loop, side_is_closed, &p.client));
    assert_int_equal(p.client.err.code, ERR_CLOSED);
    close_pair(&p);
}

static void test_bytes_that_are_no_tls_end_the_connection(void **state)
{
    struct tls_config server = server_config(&good);
    struct conn_filter *f;
    struct ev_loop *loop;
    struct side s;
    struct tls *t;
    struct err e;
    int fds[2];

    (void)state;
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    assert_int_equal(tls_new(&server, &t, &e), 0);
    side_socket_pair(fds);
    assert_int_equal(tls_filter_new(t, fds[0], NULL, &f, &e), 0);
    side_open(&s, loop, fds[0], f);
    assert_int_equal(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    assert_true(side_wait(loop, side_is_closed, &s));
    assert_int_equal(s.err.code, ERR_PROTOCOL);
    assert_string_equal(s.err.msg,
                        "connection lost: TLS handshake failed with 'the peer': http request");
    (void)close(fds[1]);
    side_done(&s);
    tls_free(t);
    ev_loop_free(loop);
}

static void test_a_reload_serves_new_connections_and_spares_old_ones(void **state)
{
    struct tls_config server = server_config(&expired), client = client_config(),
                      better = server_config(&good);
    struct tls_config bad = { .role = TLS_SERVER, .cert_file = "/nonexistent" };
    struct pair p, q;
    struct conn_filter *f;
    struct err e;
    int fds[2];

    (void)state;
    client.is_insecure = true;
    open_pair(&p, &server, &client, "localhost");
    assert_true(talk(&p));
    assert_int_equal(tls_reload(p.server_tls, &bad, &e), -1);
    assert_int_equal(tls_reload(p.server_tls, &client, &e), -1);
    assert_int_equal(tls_reload(p.server_tls, &better, &e), 0);

    client.is_insecure = false;
    q = p;
    assert_int_equal(tls_new(&client, &q.client_tls, &e), 0);
    side_socket_pair(fds);
    assert_int_equal(tls_filter_new(p.server_tls, fds[0], NULL, &f, &e), 0);
    side_open(&q.server, q.loop, fds[0], f);
    assert_int_equal(tls_filter_new(q.client_tls, fds[1], "localhost", &f, &e), 0);
    side_open(&q.client, q.loop, fds[1], f);
    tls_free(q.client_tls); /* the session outlives its context's owner */
    assert_true(talk(&q));
    buf_clear(&p.client.in);
    buf_clear(&p.server.in);
    assert_true(talk(&p));
    side_done(&q.client);
    side_done(&q.server);
    close_pair(&p);
}

/* s_server prints "ACCEPT 127.0.0.1:PORT" once it listens. -1: it never did. */
static int connect_to_announced_port(int from)
{
    OWN(buf_done) struct buf text = BUF_INIT(4096);
    struct net_addr a;
    struct err e;
    char chunk[256], *line = NULL, *end = NULL;
    ssize_t n;
    int fd;

    while (!end && (n = read(from, chunk, sizeof chunk)) > 0) {
        assert_int_equal(buf_add(&text, span_of(chunk, (size_t)n), &e), 0);
        line = strstr((char *)text.p, "ACCEPT ");
        end = line ? strchr(line, '\n') : NULL;
    }
    if (!end)
        return -1;
    *end = '\0';
    assert_int_equal(net_addr_parse(line + strlen("ACCEPT "), &a, &e), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&a.sa, a.len), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* A judge from outside, and the only TLS 1.2 in these tests. */
static void test_openssl_s_server_takes_us(void **state)
{
    char dir[] = "/tmp/silica-tls-XXXXXX", cert[64], key[64];
    struct tls_config client = client_config();
    struct conn_filter *f;
    struct ev_loop *loop;
    struct side s;
    struct tls *t;
    struct err e;
    int fds[2], out[2];
    pid_t pid;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(cert, sizeof cert, "%s/cert", dir);
    (void)snprintf(key, sizeof key, "%s/key", dir);
    file = fopen(cert, "w");
    assert_int_equal(fwrite(good.cert_pem.p, 1, good.cert_pem.n, file), good.cert_pem.n);
    (void)fclose(file);
    file = fopen(key, "w");
    assert_int_equal(fwrite(good.key_pem.p, 1, good.key_pem.n, file), good.key_pem.n);
    (void)fclose(file);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        (void)dup2(out[1], 1);
        (void)dup2(open("/dev/null", O_RDWR), 2);
        execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", cert, "-key",
               key, "-tls1_2", "-www", NULL);
        _exit(127);
    }
    (void)close(out[1]);
    fds[0] = connect_to_announced_port(out[0]);
    if (fds[0] < 0)
        skip(); /* no openssl program here */
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    assert_int_equal(tls_new(&client, &t, &e), 0);
    assert_int_equal(tls_filter_new(t, fds[0], "localhost", &f, &e), 0);
    side_open(&s, loop, fds[0], f);
    conn_write(s.conn, SPAN("GET / HTTP/1.0\r\n\r\n"));
    assert_true(side_wait(loop, side_is_eof, &s));
    assert_string_equal(tls_version(f), "TLSv1.2");
    assert_memory_equal(s.in.p, "HTTP/1.0 200 ok", 15);
    side_done(&s);
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, NULL, 0);
    (void)close(out[0]);
    (void)unlink(cert);
    (void)unlink(key);
    (void)rmdir(dir);
    tls_free(t);
    ev_loop_free(loop);
}

static int make_certificates(void **state)
{
    static const char *const nobody[] = { NULL };

    (void)state;
    ca = testca_new("silica test CA");
    stranger = testca_new("somebody else");
    testca_issue(ca,
                 &(struct testcert_spec){ "server", nobody,
                                          "DNS:localhost,DNS:*.svc.test,IP:127.0.0.1,IP:::1", -60,
                                          3600 },
                 &good);
    testca_issue(ca, &(struct testcert_spec){ "server", nobody, "DNS:localhost", -3600, -60 },
                 &expired);
    testca_issue(ca, &(struct testcert_spec){ "server", nobody, "DNS:localhost", 600, 3600 },
                 &early);
    testca_issue(ca, &(struct testcert_spec){ "alice", groups, NULL, -60, 3600 }, &alice);
    testca_issue(stranger, &(struct testcert_spec){ "alice", groups, NULL, -60, 3600 },
                 &foreign_alice);
    testca_issue(ca, &(struct testcert_spec){ "cn.test", nobody, NULL, -60, 3600 }, &self_named);
    return 0;
}

static int drop_certificates(void **state)
{
    (void)state;
    testca_free(ca);
    testca_free(stranger);
    testcert_done(&good);
    testcert_done(&expired);
    testcert_done(&early);
    testcert_done(&alice);
    testcert_done(&foreign_alice);
    testcert_done(&self_named);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whom_a_client_believes),
        cmocka_unit_test(test_whom_a_server_believes),
        cmocka_unit_test(test_the_protocol_inside_is_agreed_on),
        cmocka_unit_test(test_bad_settings_are_refused_in_words),
        cmocka_unit_test(test_large_transfers_both_ways_at_once),
        cmocka_unit_test(test_a_handshake_does_not_need_a_reader),
        cmocka_unit_test(test_a_file_goes_through),
        cmocka_unit_test(test_goodbye_is_an_end_and_silence_is_not),
        cmocka_unit_test(test_writing_to_a_gone_peer_raises_no_signal),
        cmocka_unit_test(test_bytes_that_are_no_tls_end_the_connection),
        cmocka_unit_test(test_a_reload_serves_new_connections_and_spares_old_ones),
        cmocka_unit_test(test_openssl_s_server_takes_us),
    };
    size_t fds = side_fd_count();
    int failed =
        cmocka_run_group_tests_name("net/tls", tests, make_certificates, drop_certificates);

    if (!failed && side_fd_count() != fds) {
        (void)fprintf(stderr, "descriptors leaked: %zu before, %zu after\n", fds, side_fd_count());
        return 1;
    }
    return failed;
}
