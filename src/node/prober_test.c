#include "node/prober.h"

#include "http/grpc_serve.h"
#include "http/testserver.h"
#include "node/testpod.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ANSWER(text, t)                                                                            \
    {                                                                                              \
        NULL, BYTES(text), t                                                                       \
    }

struct world {
    struct ev_loop *loop;
    struct testserver server;
    unsigned dones;
    bool is_success, is_in_verb;
    char message[PROBER_MESSAGE_MAX_BYTES];
};

static int set_up(void **state)
{
    struct world *w = NEW(struct world);
    struct err e;

    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    testserver_open(&w->server, w->loop, "127.0.0.1:0");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    testserver_close(&w->server);
    ev_loop_free(w->loop);
    free(w);
    testpod_free();
    return 0;
}

static void on_done(void *ctx, bool is_success, const char *message)
{
    struct world *w = ctx;

    assert_false(w->is_in_verb);
    w->dones++;
    w->is_success = is_success;
    (void)snprintf(w->message, sizeof w->message, "%s", message);
}

static bool is_done(void *ctx)
{
    return ((struct world *)ctx)->dones > 0;
}

static struct prober *start(struct world *w, const char *probe, uint64_t timeout_ms)
{
    OWN_MEM char *container = NULL, *text = NULL;
    struct prober *p;

    assert_true(
        asprintf(&container, "{'ports':[{'name':'web','containerPort':%u}]}", w->server.port) > 0);
    assert_true(asprintf(&text, probe, w->server.port) > 0);
    w->dones = 0;
    w->is_in_verb = true;
    p = prober_start(&(struct prober_spec){
        .loop = w->loop,
        .probe = testpod_value(text),
        .container = testpod_value(container),
        .pod_ip = "127.64.0.1",
        .timeout_ms = timeout_ms,
        .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        .done = on_done,
        .ctx = w,
    });
    w->is_in_verb = false;
    return p;
}

static void finish(struct world *w, const char *name, const char *want)
{
    assert_true(side_wait(w->loop, is_done, w));
    side_idle(w->loop, 20);
    assert_int_equal(w->dones, 1);
    if (w->is_success != !want[0] || (want[0] ? !strstr(w->message, want) : w->message[0] != 0))
        fail_msg("%s: '%s', not '%s'", name, w->message, want);
}

static const struct row {
    const char *name, *probe;
    struct answer answer;
    const char *want;  /* a part of the message; "": success */
    const char *heard; /* a part of the request; or NULL */
    uint64_t timeout_ms;
} rows[] = {
    { "200", "{'httpGet':{'port':%u,'path':'/healthz?a=b'}}",
      ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", THEN_KEEP), "",
      "GET /healthz?a=b HTTP/1.1\r\n" },
    { "a port by name", "{'httpGet':{'port':'web'}}", ANSWER("HTTP/1.1 204 No\r\n\r\n", THEN_KEEP),
      "", "GET / HTTP/1.1\r\n" },
    { "a redirect", "{'httpGet':{'port':%u}}",
      ANSWER("HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", THEN_KEEP), "", NULL },
    { "500", "{'httpGet':{'port':%u}}",
      ANSWER("HTTP/1.1 500 Bad\r\nContent-Length: 0\r\n\r\n", THEN_KEEP),
      "HTTP probe failed with statuscode: 500", "user-agent: kube-probe/" },
    { "headers",
      "{'httpGet':{'port':%u,'httpHeaders':[{'name':'Host','value':'me'},{'name':'X-A',"
      "'value':'1'},{'name':'User-Agent','value':'u'}]}}",
      ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_KEEP), "", "host: me\r\n" },
    { "a header that is none",
      "{'httpGet':{'port':%u,'httpHeaders':[{'name':'A','value':'x\\r\\nB: y'}]}}",
      { 0 },
      "header 'A' cannot be sent",
      NULL },
    { "a path with blanks", "{'httpGet':{'port':%u,'path':'a b\\r\\nX: y'}}",
      ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_KEEP), "",
      "GET /a%20b%0D%0AX:%20y HTTP/1.1\r\n" },
    { "a body without end", "{'httpGet':{'port':%u}}",
      ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nbegin", THEN_SILENCE), "", NULL },
    { "nonsense", "{'httpGet':{'port':%u}}", ANSWER("hello\r\n\r\n", THEN_CLOSE),
      "Get \"http://127", NULL },
    { "silence", "{'httpGet':{'port':%u,'host':'h'}}", ANSWER("", THEN_SILENCE),
      "Get \"http://h:", NULL, 30 },
    { "a reset", "{'httpGet':{'port':%u}}", ANSWER("", THEN_RESET), "Get \"http://", NULL },
    { "no such port",
      "{'httpGet':{'port':'none'}}",
      { 0 },
      "port is none of the container's",
      NULL },
    { "no TLS here",
      "{'httpGet':{'port':%u,'scheme':'HTTPS'}}",
      { 0 },
      "HTTPS is not served",
      NULL },
    { "a connection", "{'tcpSocket':{'port':%u}}", { 0 }, "", NULL },
    { "refused", "{'tcpSocket':{'port':1}}", { 0 }, "dial tcp 127.64.0.1:1: ", NULL },
    { "refused by HTTP", "{'httpGet':{'port':1}}", { 0 }, "Get \"http://127.64.0.1:1/\": ", NULL },
    { "nothing to ask", "{}", { 0 }, "says nothing of what to ask", NULL },
    { "no sandbox for a command",
      "{'exec':{'command':['true']}}",
      { 0 },
      "the sandbox cannot be reached",
      NULL },
    { "no gRPC at all", "{'grpc':{'port':%u}}", ANSWER("HTTP/1.1 400 No\r\n\r\n", THEN_CLOSE),
      "error: health rpc failed: ", NULL },
    { "gRPC's silence",
      "{'grpc':{'port':%u}}",
      { 0 },
      "timeout: failed to connect service",
      NULL,
      30 },
};

static void asked(void **state)
{
    struct world *w = *state;

    EACH(r, rows) {
        testserver_script(&w->server, &r->answer, r->answer.bytes.p != NULL);
        buf_clear(&w->server.heard);
        (void)start(w, r->probe, r->timeout_ms ? r->timeout_ms : 20000);
        finish(w, r->name, r->want);
        if (r->heard && span_find_str(buf_span(&w->server.heard), span_cstr(r->heard)) == SIZE_MAX)
            fail_msg("%s: '%s' has no '%s'", r->name, buf_cstr(&w->server.heard), r->heard);
    }
}

/* A service of the public health protocol: what it says is the service's name in the question. */
static void *health(void *ctx, struct grpc_stream *s, struct span msg)
{
    struct span service = span_skip(msg, 2);

    (void)ctx;
    if (span_is(service, "none"))
        grpc_stream_finish(s, GRPC_NOT_FOUND, "unknown service");
    else {
        grpc_stream_send(s, service.n ? SPAN("\x08\x02") : SPAN("\x08\x01"));
        grpc_stream_finish(s, GRPC_OK, "");
    }
    return NULL;
}

static void on_request(void *ctx, struct http_exchange *x)
{
    if (span_is(http_path(x), "/grpc.health.v1.Health/Check"))
        grpc_unary(x, 100, health, ctx, NULL);
    else
        grpc_refuse(x, GRPC_UNIMPLEMENTED, "");
}

static void grpc_services(void **state)
{
    static const struct {
        const char *name, *probe, *want;
    } services[] = {
        { "serving", "{'grpc':{'port':%u}}", "" },
        { "not serving", "{'grpc':{'port':%u,'service':'ill'}}",
          "service unhealthy (responded with \"NOT_SERVING\")" },
        { "unknown", "{'grpc':{'port':%u,'service':'none'}}",
          "error: health rpc failed: unknown service" },
    };
    struct world *w = *state;
    const struct http_server_config config = { .on_request = on_request, .ctx = w };
    struct http_server *server = http_server_new(w->loop, &config);
    uint16_t port = w->server.port;
    struct net_listener *l;
    struct net_addr at;
    struct err e;

    assert_int_equal(net_addr_parse("127.0.0.1:0", &at, &e), 0);
    assert_int_equal(net_listen(w->loop, &at, http_server_accept, server, &l, &e), 0);
    w->server.port = net_addr_port(net_listener_addr(l));
    EACH(s, services) {
        (void)start(w, s->probe, 20000);
        finish(w, s->name, s->want);
    }
    w->server.port = port;
    net_listener_close(l);
    http_server_free(server);
}

static void called_off(void **state)
{
    static const char *const probes[] = { "{'httpGet':{'port':%u}}", "{'tcpSocket':{'port':%u}}",
                                          "{'grpc':{'port':%u}}", "{}" };
    struct world *w = *state;

    for (size_t i = 0; i < LEN(probes); i++) {
        struct prober *p;

        testserver_script(&w->server, NULL, 0);
        p = start(w, probes[i], 20000);
        w->is_in_verb = true;
        prober_cancel(p);
        w->is_in_verb = false;
        assert_true(side_wait(w->loop, is_done, w));
        assert_int_equal(w->dones, 1);
        assert_false(w->is_success);
    }
    side_idle(w->loop, 20);
}

static void nothing_leaks(void **state)
{
    static const struct answer ok =
        ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", THEN_CLOSE);
    struct world *w = *state;
    size_t before = side_fd_count();

    for (int i = 0; i < 20; i++) {
        testserver_script(&w->server, &ok, 1);
        (void)start(w, "{'httpGet':{'port':%u}}", 20000);
        finish(w, "again", "");
    }
    side_idle(w->loop, 50);
    assert_int_equal(side_fd_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(grpc_services, set_up, tear_down),
        cmocka_unit_test_setup_teardown(called_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_leaks, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
