/* A server of pod streams for tests, with commands and ports of this machine behind them; not installed.
 *
 *     podstream_testserver --listen 127.0.0.1:0 --relay 127.0.0.1:0 --ready-fd 3 -- MAIN COMMAND
 *
 * Serves /api/v1/namespaces/NS/pods/POD/{exec,attach,portforward} of one pod, and as much else of a Kubernetes API as
 * kubectl asks for on the way: what there is, and the pod itself. At --relay the same is served by passing streams on to
 * --listen, as an API server does. Refuses to run unless SILICA_TEST is 1: whoever can
 * connect runs what they like. */
#include "podstream/podstream.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/opt.h"
#include "http/relay.h"
#include "net/listen.h"
#include "podstream/local_exec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HEAD_MAX_BYTES (2 << 20) /* a request line of 1 MiB, and more */

struct settings {
    const char *listen;
    const char *relay;
    const char *pod;
    uint64_t ready_fd;
    bool is_verbose;
};

static const struct opt opts[] = {
    { "--listen", NULL, OPT_STR, offsetof(struct settings, listen), "127.0.0.1:0", 0, 0,
      "HOST:PORT", "where to listen", NULL, 0 },
    { "--relay", NULL, OPT_STR, offsetof(struct settings, relay), "127.0.0.1:0", 0, 0, "HOST:PORT",
      "where to pass streams on", NULL, 0 },
    { "--pod", NULL, OPT_STR, offsetof(struct settings, pod), "local", 0, 0, "NAME",
      "the name of the pod", NULL, 0 },
    { "--ready-fd", NULL, OPT_U64, offsetof(struct settings, ready_fd), "0", 0, 1024, "N",
      "say there when it serves", NULL, 0 },
    { "--verbose", NULL, OPT_BOOL, offsetof(struct settings, is_verbose), NULL, 0, 0, NULL,
      "log more", NULL, 0 },
};

static const struct opt_program program = {
    .name = "podstream_testserver",
    .usage = "[options] [-- MAIN COMMAND]",
    .example = "SILICA_TEST=1 podstream_testserver -- cat",
    .opts = opts,
    .opt_count = LEN(opts),
};

struct passing {
    struct passing *next, **at;
    struct http_relay *relay;
};

struct test_server {
    struct ev_loop *loop;
    struct podstream *streams;
    struct pod_backend *backend;
    struct http_client *client;
    struct passing *passing;
    uint16_t port; /* where --listen is */
    const char *pod;
};

/* ---- what kubectl asks for besides ---- */

static const char versions[] =
    "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[]}";
static const char groups[] = "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[]}";
static const char resources[] =
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":["
    "{\"name\":\"pods\",\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\","
    "\"shortNames\":[\"po\"],\"verbs\":[\"get\"]}]}";

static void add_pod(struct buf *out, const char *pod)
{
    struct err e;

    (void)buf_addf(out, &e,
                   "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
                   "\"namespace\":\"default\"},\"spec\":{\"containers\":[{\"name\":\"main\","
                   "\"image\":\"none\",\"stdin\":true,\"tty\":true}]},\"status\":{\"phase\":"
                   "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                   pod);
}

static void on_other(struct test_server *t, struct http_exchange *x)
{
    OWN(buf_done) struct buf pod = BUF_INIT(4096), pod_path = BUF_INIT(1024);
    struct span path = http_path(x);
    struct err e;

    (void)buf_addf(&pod_path, &e, "/pods/%s", t->pod);
    if (span_is(path, "/api")) {
        http_answer(x, 200, "application/json", SPAN(versions));
    } else if (span_is(path, "/apis")) {
        http_answer(x, 200, "application/json", SPAN(groups));
    } else if (span_is(path, "/api/v1")) {
        http_answer(x, 200, "application/json", SPAN(resources));
    } else if (span_ends(path, buf_cstr(&pod_path))) {
        add_pod(&pod, t->pod);
        http_answer(x, 200, "application/json", buf_span(&pod));
    } else {
        http_answer(x, 404, "application/json",
                    SPAN("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                         "\"reason\":\"NotFound\",\"message\":\"not found\",\"code\":404}"));
    }
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct test_server *t = ctx;

    if (!podstream_serve(t->streams, x))
        on_other(t, x);
}

/* ---- passing streams on ---- */

static void on_failed(void *ctx, struct http_exchange *x, const struct err *e)
{
    (void)ctx;
    http_answer(x, 502, "text/plain", span_cstr(e->msg));
}

static void on_passed(void *ctx)
{
    struct passing *p = ctx;

    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    free(p);
}

static void on_relay_request(void *ctx, struct http_exchange *x)
{
    struct test_server *t = ctx;
    struct http_relay_spec spec = { .client = t->client,
                                    .to = { .host = "127.0.0.1", .port = t->port },
                                    .on_failed = on_failed,
                                    .on_done = on_passed };
    struct passing *p;

    if (!http_upgrade(x).p) {
        on_other(t, x);
        return;
    }
    p = NEW(struct passing);
    p->at = &t->passing;
    p->next = t->passing;
    if (p->next)
        p->next->at = &p->next;
    t->passing = p;
    spec.ctx = p;
    p->relay = http_relay_start(x, &spec);
}

/* ---- life ---- */

static void on_signal(void *ctx, int number)
{
    struct test_server *t = ctx;

    (void)number;
    ev_loop_stop(t->loop);
}

static int say_ready(const struct settings *s, struct net_listener *const *l, struct err *e)
{
    OWN(buf_done) struct buf line = BUF_INIT(512);
    char first[NET_ADDR_TEXT_BYTES], second[NET_ADDR_TEXT_BYTES];

    if (!s->ready_fd)
        return 0;
    if (buf_addf(&line, e, "{\"listen\":[\"%s\",\"%s\"]}\n",
                 net_addr_text(net_listener_addr(l[0]), first),
                 net_addr_text(net_listener_addr(l[1]), second)) < 0)
        return -1;
    return fd_write_all((int)s->ready_fd, buf_span(&line), e);
}

/* Ends what is under way, inner things last. */
static void end(struct test_server *t, struct http_server *https[2])
{
    for (struct passing *p = t->passing; p; p = p->next)
        http_relay_close(p->relay);
    http_server_free(https[1]);
    while (t->passing)
        ev_loop_turn(t->loop);
    http_client_free(t->client);
    http_server_free(https[0]);
    podstream_free(t->streams);
    local_exec_free(t->backend);
}

static int listen_at(struct test_server *t, const char *at,
                     void (*on)(void *, struct http_exchange *), struct http_server **ret,
                     struct net_listener **ret_listener, struct err *e)
{
    const struct http_server_config config = { .on_request = on,
                                               .ctx = t,
                                               .head_max_bytes = HEAD_MAX_BYTES };
    struct net_addr addr;

    if (net_addr_parse(at, &addr, e) < 0)
        return -1;
    *ret = http_server_new(t->loop, &config);
    return net_listen(t->loop, &addr, http_server_accept, *ret, ret_listener, e);
}

static int serve(const struct settings *s, char *const *main_argv, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    const struct http_client_config calls = { .request_max_bytes = HEAD_MAX_BYTES };
    struct test_server t = { .pod = s->pod };
    struct ev_children *kids = NULL;
    struct net_listener *listeners[2];
    struct http_server *https[2];

    if (ev_loop_new(&t.loop, e) < 0 ||
        ev_children_open(t.loop, signals, on_signal, &t, &kids, e) < 0)
        return -1;
    t.backend = local_exec_new(t.loop, kids, s->pod, main_argv);
    t.streams = podstream_new(t.loop, t.backend);
    t.client = http_client_new(t.loop, &calls);
    if (listen_at(&t, s->listen, on_request, &https[0], &listeners[0], e) < 0 ||
        listen_at(&t, s->relay, on_relay_request, &https[1], &listeners[1], e) < 0)
        return -1;
    t.port = net_addr_port(net_listener_addr(listeners[0]));
    if (say_ready(s, listeners, e) < 0)
        return -1;
    ev_loop_run(t.loop);
    net_listener_close(listeners[0]);
    net_listener_close(listeners[1]);
    end(&t, https);
    ev_children_close(kids);
    ev_loop_free(t.loop);
    return 0;
}

int main(int argc, char **argv)
{
    static char cat[] = "cat";
    static char *const echo[] = { cat, NULL };
    const char *allowed = getenv("SILICA_TEST");
    struct settings s = { 0 };
    struct err e;
    int rest;

    log_open(2, LOG_INFO, LOG_TEXT);
    if (!allowed || strcmp(allowed, "1") != 0) {
        (void)fprintf(stderr, "podstream_testserver: for tests only: set SILICA_TEST=1\n");
        return 2;
    }
    if (opt_parse(&program, argc, argv, &s, &rest, &e) < 0) {
        (void)fprintf(stderr, "podstream_testserver: %s\n", e.msg);
        return 2;
    }
    log_set_level(s.is_verbose ? LOG_DEBUG : LOG_INFO);
    (void)signal(SIGPIPE, SIG_IGN);
    if (serve(&s, rest < argc ? argv + rest : echo, &e) < 0) {
        (void)fprintf(stderr, "podstream_testserver: %s\n", e.msg);
        return 1;
    }
    return 0;
}
