#include "net/dial.h"

#include "ev/io.h"
#include "net/listen.h"
#include "net/resolve.h"
#include "net/testca.h"
#include "net/testside.h"
#include "net/tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/un.h>

#include <cmocka.h>

/* One dial as the test sees it. */
struct outcome {
    unsigned calls;
    bool is_in_verb;
    struct dial_result r;
    struct err err;
};

struct world {
    struct ev_loop *loop;
    struct net_listener *l;
    uint16_t port;
    int accepted[16];
    size_t accepted_count;
};

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct world *w = ctx;

    (void)peer;
    w->accepted[w->accepted_count++] = fd;
}

static void open_world(struct world *w)
{
    struct net_addr a;
    struct err e;

    *w = (struct world){ 0 };
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    assert_int_equal(net_addr_parse("127.0.0.1:0", &a, &e), 0);
    assert_int_equal(net_listen(w->loop, &a, on_accept, w, &w->l, &e), 0);
    w->port = net_addr_port(net_listener_addr(w->l));
}

static void close_world(struct world *w)
{
    net_listener_close(w->l);
    for (size_t i = 0; i < w->accepted_count; i++)
        (void)close(w->accepted[i]);
    ev_loop_free(w->loop);
}

static void on_done(void *ctx, struct dial_result *r, const struct err *e)
{
    struct outcome *o = ctx;

    assert_false(o->is_in_verb);
    assert_true((r == NULL) == (e != NULL));
    o->calls++;
    if (r)
        o->r = *r;
    else
        o->err = *e;
}

static bool is_done(void *ctx)
{
    return ((struct outcome *)ctx)->calls > 0;
}

static struct dial *start(struct world *w, const struct dial_spec *spec, struct outcome *o)
{
    struct dial *d;

    *o = (struct outcome){ .is_in_verb = true, .r.fd = -1 };
    d = dial_start(w->loop, spec, on_done, o);
    o->is_in_verb = false;
    return d;
}

/* Waits, and makes sure nothing comes twice. */
static void await(struct world *w, struct outcome *o)
{
    assert_true(side_wait(w->loop, is_done, o));
    side_idle(w->loop, 5);
    assert_int_equal(o->calls, 1);
}

static void drop(struct outcome *o)
{
    if (o->r.filter)
        o->r.filter->ops->free(o->r.filter);
    own_fd_close(&o->r.fd);
}

/* A listener whose queue is full: the kernel drops further attempts, as a blackhole would. */
static int deaf_listener(struct net_addr *ret, int fill[3])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct err e;

    assert_int_equal(net_addr_parse("127.0.0.1:0", ret, &e), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&ret->sa, ret->len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&ret->sa, &ret->len), 0);
    for (int i = 0; i < 3; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (const struct sockaddr *)&ret->sa, ret->len);
    }
    (void)usleep(20000);
    return fd;
}

static void hush(int fd, int fill[3])
{
    for (int i = 0; i < 3; i++)
        (void)close(fill[i]);
    (void)close(fd);
}

/* The port of a listener that is gone again. */
static uint16_t closed_port(void)
{
    struct world w;
    uint16_t port;

    open_world(&w);
    port = w.port;
    close_world(&w);
    return port;
}

static void test_texts_that_need_no_resolver(void **state)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost", "LOCALHOST.", "x.localhost" };

    (void)state;
    for (size_t i = 0; i < LEN(hosts); i++) {
        struct world w;
        struct outcome o;

        open_world(&w);
        (void)start(&w, &(struct dial_spec){ .host = hosts[i], .port = w.port, .timeout_ms = 5000 },
                    &o);
        await(&w, &o);
        assert_true(o.r.fd >= 0);
        assert_null(o.r.filter);
        assert_int_equal(net_addr_port(&o.r.peer), w.port);
        assert_int_equal(w.accepted_count, 1);
        drop(&o);
        close_world(&w);
    }
}

static void test_an_address_a_unix_socket_and_a_given_socket(void **state)
{
    char dir[] = "/tmp/silica-dial-XXXXXX", text[64];
    struct net_listener *l;
    struct net_addr a;
    struct world w;
    struct outcome o;
    struct err e;
    int fd;

    (void)state;
    open_world(&w);
    (void)start(&w, &(struct dial_spec){ .addr = net_listener_addr(w.l), .timeout_ms = 5000 }, &o);
    await(&w, &o);
    assert_true(o.r.fd >= 0);
    drop(&o);

    assert_non_null(mkdtemp(dir));
    (void)snprintf(text, sizeof text, "unix:%s/s", dir);
    assert_int_equal(net_addr_parse(text, &a, &e), 0);
    assert_int_equal(net_listen(w.loop, &a, on_accept, &w, &l, &e), 0);
    (void)start(&w, &(struct dial_spec){ .addr = &a, .timeout_ms = 5000 }, &o);
    await(&w, &o);
    assert_true(o.r.fd >= 0);
    drop(&o);
    net_listener_close(l);
    (void)unlink(text + 5);
    (void)rmdir(dir);

    fd =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* blocking, as one from elsewhere may be */
    (void)start(&w,
                &(struct dial_spec){ .addr = net_listener_addr(w.l), .fd = fd, .timeout_ms = 5000 },
                &o);
    await(&w, &o);
    assert_int_equal(o.r.fd, fd);
    drop(&o);
    assert_int_equal(w.accepted_count, 3);
    close_world(&w);
}

static void test_a_full_unix_queue_is_asked_again(void **state)
{
    char dir[] = "/tmp/silica-dial-XXXXXX", text[64];
    int fill[8], n = 0, l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct net_addr a;
    struct world w;
    struct outcome o;
    struct err e;

    (void)state;
    open_world(&w);
    assert_non_null(mkdtemp(dir));
    (void)snprintf(text, sizeof text, "unix:%s/s", dir);
    assert_int_equal(net_addr_parse(text, &a, &e), 0);
    assert_int_equal(bind(l, (const struct sockaddr *)&a.sa, a.len), 0);
    assert_int_equal(listen(l, 0), 0);
    do {
        fill[n++] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    } while (n < 8 && connect(fill[n - 1], (const struct sockaddr *)&a.sa, a.len) == 0);
    assert_int_equal(errno, EAGAIN);
    (void)start(&w, &(struct dial_spec){ .addr = &a, .timeout_ms = 5000 }, &o);
    side_idle(w.loop, 30);
    assert_int_equal(o.calls, 0);
    w.accepted[w.accepted_count++] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    await(&w, &o);
    assert_true(o.r.fd >= 0);
    drop(&o);
    while (n--)
        (void)close(fill[n]);
    (void)close(l);
    (void)unlink(text + 5);
    (void)rmdir(dir);
    close_world(&w);
}

static void test_failures_say_where_and_why(void **state)
{
    char want[200];
    uint16_t port = closed_port();
    struct net_addr a;
    struct world w;
    struct outcome o;
    struct err e;

    (void)state;
    open_world(&w);
    (void)start(&w, &(struct dial_spec){ .host = "127.0.0.1", .port = port, .timeout_ms = 5000 },
                &o);
    await(&w, &o);
    (void)snprintf(want, sizeof want, "cannot connect to '127.0.0.1:%u': Connection refused", port);
    assert_string_equal(o.err.msg, want);
    assert_int_equal(o.err.code, ERR_UNAVAILABLE);

    (void)start(&w, &(struct dial_spec){ .host = "localhost", .port = port, .timeout_ms = 5000 },
                &o);
    await(&w, &o);
    (void)snprintf(want, sizeof want, "cannot connect to 'localhost:%u' at ", port);
    assert_memory_equal(o.err.msg, want, strlen(want));

    (void)start(&w, &(struct dial_spec){ .host = "example.org", .port = 1, .timeout_ms = 5000 },
                &o);
    await(&w, &o);
    assert_string_equal(
        o.err.msg,
        "cannot connect to 'example.org': it is not an IP address, and names are not resolved here");

    assert_int_equal(net_addr_parse("unix:/nonexistent/s", &a, &e), 0);
    (void)start(&w, &(struct dial_spec){ .addr = &a, .timeout_ms = 5000 }, &o);
    await(&w, &o);
    assert_string_equal(o.err.msg,
                        "cannot connect to 'unix:/nonexistent/s': No such file or directory");
    close_world(&w);
}

static void test_the_deadline_holds_while_connecting(void **state)
{
    struct net_addr a;
    struct world w;
    struct outcome o;
    int fill[3], fd = deaf_listener(&a, fill);

    (void)state;
    open_world(&w);
    (void)start(&w, &(struct dial_spec){ .addr = &a, .timeout_ms = 60 }, &o);
    await(&w, &o);
    assert_int_equal(o.err.code, ERR_TIMEOUT);
    assert_non_null(strstr(o.err.msg, ": no answer within 60 ms"));
    hush(fd, fill);
    close_world(&w);
}

static void test_cancel_completes_once_at_every_stage(void **state)
{
    struct net_addr a;
    struct world w;
    struct outcome o;
    struct dial *d;
    int fill[3], fd = deaf_listener(&a, fill);

    (void)state;
    open_world(&w);
    for (int i = 0; i < 2; i++) {
        d = start(&w, &(struct dial_spec){ .addr = &a, .timeout_ms = 5000 }, &o);
        if (i)
            side_idle(w.loop, 10);
        o.is_in_verb = true;
        dial_cancel(d);
        dial_cancel(d); /* harmless */
        o.is_in_verb = false;
        await(&w, &o);
        assert_int_equal(o.err.code, ERR_CANCELED);
    }
    hush(fd, fill);
    close_world(&w);
}

/* ---- several addresses ---- */

struct list_resolver {
    struct dial_resolver base;
    struct ev_loop *loop;
    struct net_addr addrs[4];
    size_t n;
    struct ev_task task;
    dial_lookup_fn fn;
    void *ctx;
};

static void list_answer(void *ctx)
{
    struct list_resolver *r = ctx;

    r->fn(r->ctx, r->addrs, r->n, NULL);
}

static struct dial_lookup *list_start(struct dial_resolver *base, const char *host, uint16_t port,
                                      dial_lookup_fn fn, void *ctx)
{
    struct list_resolver *r = CONTAINER(base, struct list_resolver, base);

    (void)host, (void)port;
    r->fn = fn, r->ctx = ctx;
    ev_post(r->loop, &r->task, list_answer, r);
    return NULL;
}

static const struct dial_resolver_ops list_ops = { list_start, NULL };

static void test_a_silent_address_gets_company_and_a_dead_one_is_passed(void **state)
{
    struct net_addr silent, dead;
    struct list_resolver r = { .base.ops = &list_ops };
    char text[64];
    struct world w;
    struct outcome o;
    struct err e;
    int fill[3], fd = deaf_listener(&silent, fill);

    (void)state;
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", closed_port());
    assert_int_equal(net_addr_parse(text, &dead, &e), 0);
    open_world(&w);
    r.loop = w.loop;
    r.addrs[r.n++] = dead;
    r.addrs[r.n++] = silent;
    r.addrs[r.n++] = *net_listener_addr(w.l);
    (void)start(&w,
                &(struct dial_spec){
                    .host = "many.test", .port = 1, .timeout_ms = 5000, .resolver = &r.base },
                &o);
    await(&w, &o);
    assert_true(o.r.fd >= 0);
    assert_int_equal(net_addr_port(&o.r.peer), w.port);
    drop(&o);
    hush(fd, fill);
    close_world(&w);
}

/* ---- addresses that are not for us, and places ---- */

static bool is_port(void *ctx, const struct net_addr *to)
{
    return net_addr_port(to) == *(const uint16_t *)ctx;
}

static void test_no_address_is_connected_to_that_may_not_be(void **state)
{
    uint16_t other = 1;
    struct list_resolver r = { .base.ops = &list_ops };
    struct dial_spec spec = { .timeout_ms = 5000, .may_connect = is_port, .may_ctx = &other };
    struct world w;
    struct outcome o;

    (void)state;
    open_world(&w);
    r.loop = w.loop;
    r.addrs[0] = r.addrs[1] = *net_listener_addr(w.l);
    r.n = 2;
    for (int how = 0; how < 4;
         how++) { /* an address, a literal, localhost, a name of two addresses */
        static const char *const hosts[] = { NULL, "127.0.0.1", "localhost", "many.test" };

        spec.addr = how ? NULL : net_listener_addr(w.l);
        spec.host = hosts[how];
        spec.port = w.port;
        spec.resolver = &r.base;
        (void)start(&w, &spec, &o);
        await(&w, &o);
        assert_int_equal(o.r.fd, -1);
        assert_int_equal(o.err.code, ERR_DENIED);
    }
    side_idle(w.loop, 5);
    assert_int_equal(w.accepted_count, 0);
    /* The next one may be. */
    assert_true(net_addr_of_ip(SPAN("127.0.0.1"), 1, &r.addrs[0]));
    spec.may_ctx = &w.port;
    (void)start(&w, &spec, &o);
    await(&w, &o);
    assert_int_equal(net_addr_port(&o.r.peer), w.port);
    drop(&o);
    close_world(&w);
}

struct no_plug {
    struct dial_plug base;
    struct ev_loop *loop;
    struct ev_task task;
    dial_plug_fn fn;
    void *ctx;
};

static void know_nothing(void *ctx)
{
    struct no_plug *p = ctx;
    struct err e;

    (void)err_set(&e, ERR_NOT_FOUND, "there is no such place");
    p->fn(p->ctx, -1, &e);
}

static struct dial_errand *no_start(struct dial_plug *base, const char *place, uint16_t port,
                                    dial_plug_fn fn, void *ctx)
{
    struct no_plug *p = CONTAINER(base, struct no_plug, base);

    (void)place, (void)port;
    p->fn = fn, p->ctx = ctx;
    ev_post(p->loop, &p->task, know_nothing, p);
    return NULL;
}

static void test_a_place_that_is_not_known_is_no_address(void **state)
{
    static const struct dial_plug_ops ops = { no_start, NULL };
    struct no_plug p = { .base.ops = &ops };
    struct world w;
    struct outcome o;

    (void)state;
    open_world(&w);
    p.loop = w.loop;
    (void)start(&w,
                &(struct dial_spec){ .host = "127.0.0.1",
                                     .port = w.port,
                                     .timeout_ms = 5000,
                                     .plug = &p.base,
                                     .place = "a-pod" },
                &o);
    await(&w, &o);
    assert_int_equal(o.err.code, ERR_NOT_FOUND);
    side_idle(w.loop, 5);
    assert_int_equal(w.accepted_count, 0);
    close_world(&w);
}

/* ---- names, asked of a small DNS server ---- */

struct dns {
    struct ev_io io;
    int fd;
    char servers[NET_ADDR_TEXT_BYTES];
    unsigned asked;
};

/* The question's name in dots, from the wire. */
static size_t read_name(const uint8_t *q, size_t n, char *name)
{
    size_t at = 12, out = 0;

    while (at < n && q[at]) {
        for (size_t i = 1; i <= q[at]; i++)
            name[out++] = (char)q[at + i];
        name[out++] = '.';
        at += q[at] + 1u;
    }
    name[out ? out - 1 : 0] = '\0';
    return at + 1;
}

static void on_question(void *ctx, unsigned ready)
{
    static const uint8_t v4[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 127, 0, 0, 1 };
    struct dns *dns = ctx;
    uint8_t m[512];
    char name[256];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    ssize_t n = recvfrom(dns->fd, m, sizeof m - sizeof v4, 0, (struct sockaddr *)&from, &len);
    size_t end;
    bool is_a;

    (void)ready;
    assert_true(n > 16);
    dns->asked++;
    end = read_name(m, (size_t)n, name);
    is_a = m[end + 1] == 1;
    if (strcmp(name, "silent.test") == 0)
        return;
    m[2] |= 0x80; /* an answer */
    m[3] = strcmp(name, "here.test") && strcmp(name, "v6less.test") ? 3 : 0;
    m[6] = m[8] = m[9] = m[10] = m[11] = 0;
    m[7] = is_a && m[3] == 0;
    end += 4;
    if (m[7]) {
        memcpy(m + end, v4, sizeof v4);
        end += sizeof v4;
    }
    assert_int_equal(sendto(dns->fd, m, end, 0, (const struct sockaddr *)&from, len), end);
}

static void open_dns(struct dns *dns, struct ev_loop *loop)
{
    struct net_addr a;
    struct err e;

    *dns = (struct dns){ .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
    assert_int_equal(net_addr_parse("127.0.0.1:0", &a, &e), 0);
    assert_int_equal(bind(dns->fd, (const struct sockaddr *)&a.sa, a.len), 0);
    assert_int_equal(getsockname(dns->fd, (struct sockaddr *)&a.sa, &a.len), 0);
    (void)net_addr_text(&a, dns->servers);
    assert_int_equal(ev_io_open(&dns->io, loop, dns->fd, on_question, dns, &e), 0);
    ev_io_want(&dns->io, EV_READ);
}

static void close_dns(struct dns *dns)
{
    ev_io_close(&dns->io);
    (void)close(dns->fd);
}

static void test_names_are_resolved_without_blocking(void **state)
{
    struct resolver *r;
    struct world w;
    struct outcome o;
    struct dns dns;
    struct dial *d;
    struct err e;
    char want[200];

    (void)state;
    open_world(&w);
    open_dns(&dns, w.loop);
    assert_int_equal(
        resolver_new(w.loop,
                     &(struct resolver_config){ .servers = dns.servers, .try_ms = 100, .tries = 1 },
                     &r, &e),
        0);

    (void)start(
        &w,
        &(struct dial_spec){
            .host = "here.test", .port = w.port, .timeout_ms = 5000, .resolver = resolver_dial(r) },
        &o);
    await(&w, &o);
    assert_true(o.r.fd >= 0);
    assert_true(dns.asked >= 2); /* A and AAAA */
    drop(&o);

    (void)start(
        &w,
        &(struct dial_spec){
            .host = "nowhere.test", .port = 80, .timeout_ms = 5000, .resolver = resolver_dial(r) },
        &o);
    await(&w, &o);
    assert_int_equal(o.err.code, ERR_NOT_FOUND);
    (void)snprintf(
        want, sizeof want,
        "cannot connect to 'nowhere.test:80': cannot resolve 'nowhere.test': Domain name not found");
    assert_string_equal(o.err.msg, want);

    (void)start(
        &w,
        &(struct dial_spec){
            .host = "silent.test", .port = 80, .timeout_ms = 5000, .resolver = resolver_dial(r) },
        &o);
    await(&w, &o);
    assert_int_equal(o.err.code, ERR_TIMEOUT);

    (void)start(
        &w,
        &(struct dial_spec){
            .host = "silent.test", .port = 80, .timeout_ms = 30, .resolver = resolver_dial(r) },
        &o);
    await(&w, &o);
    assert_string_equal(
        o.err.msg, "cannot connect to 'silent.test:80': the name was not resolved within 30 ms");

    resolver_free(r);
    /* One that goes on asking, however long this process is kept waiting. */
    assert_int_equal(resolver_new(w.loop,
                                  &(struct resolver_config){
                                      .servers = dns.servers, .try_ms = 60000, .tries = 1 },
                                  &r, &e),
                     0);
    d = start(
        &w,
        &(struct dial_spec){
            .host = "silent.test", .port = 80, .timeout_ms = 60000, .resolver = resolver_dial(r) },
        &o);
    side_idle(w.loop, 10);
    dial_cancel(d);
    await(&w, &o);
    assert_int_equal(o.err.code, ERR_CANCELED);

    resolver_free(r);
    close_dns(&dns);
    close_world(&w);
}

/* The first name of /etc/hosts that is not localhost. */
static bool hosts_name(char name[64])
{
    FILE *f = fopen("/etc/hosts", "r");
    char line[512];
    bool is_found = false;

    while (f && !is_found && fgets(line, sizeof line, f)) {
        is_found = line[0] != '#' && sscanf(line, "%*s %63s", name) == 1 &&
                   strncmp(name, "localhost", 9) != 0 && strncmp(name, "ip6-", 4) != 0;
    }
    if (f)
        (void)fclose(f);
    return is_found;
}

struct found {
    unsigned calls;
    size_t n;
};

static void on_found(void *ctx, const struct net_addr *addrs, size_t n, const struct err *e)
{
    struct found *f = ctx;

    (void)addrs;
    f->calls++;
    f->n = e ? 0 : n;
}

static bool is_found(void *ctx)
{
    return ((struct found *)ctx)->calls > 0;
}

static void test_the_hosts_file_comes_first(void **state)
{
    struct found f = { 0 };
    struct resolver *r;
    struct world w;
    struct dns dns;
    struct err e;
    char name[64];

    (void)state;
    if (!hosts_name(name))
        skip(); /* nothing to look up in this machine's file */
    open_world(&w);
    open_dns(&dns, w.loop);
    assert_int_equal(
        resolver_new(w.loop, &(struct resolver_config){ .servers = dns.servers }, &r, &e), 0);
    (void)resolver_dial(r)->ops->start(resolver_dial(r), name, 80, on_found, &f);
    assert_int_equal(f.calls, 0);
    assert_true(side_wait(w.loop, is_found, &f));
    assert_true(f.n >= 1);
    assert_int_equal(dns.asked, 0);
    resolver_free(r);
    close_dns(&dns);
    close_world(&w);
}

/* ---- with a handshake ---- */

static void test_tls_is_part_of_the_dial(void **state)
{
    struct testca *ca = testca_new("dial test CA");
    struct tls_config config = { .role = TLS_SERVER, .alpn = "h2" },
                      trust = { .role = TLS_CLIENT, .ca_pem = testca_pem(ca), .alpn = "h2" };
    struct dial_spec spec = { .host = "localhost", .timeout_ms = 5000 };
    struct testcert cert;
    struct conn_filter *f;
    struct tls *server, *client;
    struct side s;
    struct world w;
    struct outcome o;
    struct err e;

    (void)state;
    testca_issue(ca, &(struct testcert_spec){ "server", NULL, "DNS:localhost", -60, 3600 }, &cert);
    config.cert_pem = buf_span(&cert.cert_pem), config.key_pem = buf_span(&cert.key_pem);
    assert_int_equal(tls_new(&config, &server, &e), 0);
    assert_int_equal(tls_new(&trust, &client, &e), 0);
    open_world(&w);
    spec.port = w.port;
    spec.maker = tls_maker(client);
    for (int i = 0; i < 3; i++) {
        spec.peer_name = i == 1 ? "other.test" : NULL;
        spec.timeout_ms = i == 2 ? 50 : 5000; /* the third time nobody shakes hands */
        (void)start(&w, &spec, &o);
        while (w.accepted_count == 0)
            ev_loop_turn(w.loop);
        w.accepted_count = 0;
        if (i < 2) {
            assert_int_equal(tls_filter_new(server, w.accepted[0], NULL, &f, &e), 0);
            side_open(&s, w.loop, w.accepted[0], f);
        }
        await(&w, &o);
        if (i == 0)
            assert_string_equal(o.r.filter->ops->protocol(o.r.filter), "h2");
        else if (i == 1)
            assert_non_null(strstr(
                o.err.msg, "cannot verify the certificate of 'other.test': hostname mismatch"));
        else
            assert_non_null(strstr(o.err.msg, "the handshake was not over within 50 ms"));
        if (i < 2)
            side_done(&s);
        else
            (void)close(w.accepted[0]);
        drop(&o);
    }
    close_world(&w);
    tls_free(server);
    tls_free(client);
    testcert_done(&cert);
    testca_free(ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_that_need_no_resolver),
        cmocka_unit_test(test_an_address_a_unix_socket_and_a_given_socket),
        cmocka_unit_test(test_a_full_unix_queue_is_asked_again),
        cmocka_unit_test(test_failures_say_where_and_why),
        cmocka_unit_test(test_the_deadline_holds_while_connecting),
        cmocka_unit_test(test_cancel_completes_once_at_every_stage),
        cmocka_unit_test(test_a_silent_address_gets_company_and_a_dead_one_is_passed),
        cmocka_unit_test(test_no_address_is_connected_to_that_may_not_be),
        cmocka_unit_test(test_a_place_that_is_not_known_is_no_address),
        cmocka_unit_test(test_names_are_resolved_without_blocking),
        cmocka_unit_test(test_the_hosts_file_comes_first),
        cmocka_unit_test(test_tls_is_part_of_the_dial),
    };
    size_t fds = side_fd_count();
    int failed = cmocka_run_group_tests_name("net/dial", tests, NULL, NULL);

    if (!failed && side_fd_count() != fds) {
        (void)fprintf(stderr, "descriptors leaked: %zu before, %zu after\n", fds, side_fd_count());
        return 1;
    }
    return failed;
}
