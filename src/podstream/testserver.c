/* A server of pod streams for tests, with commands and ports of this machine behind them; not installed.
 *
 *     podstream_testserver --listen 127.0.0.1:0 --ready-fd 3 -- MAIN COMMAND
 *
 * Serves /api/v1/namespaces/NS/pods/POD/{exec,attach,portforward} of one pod, and as much else of a Kubernetes API as
 * kubectl asks for on the way: what there is, and the pod itself. Refuses to run unless SILICA_TEST is 1: whoever can
 * connect runs what they like. */
#include "podstream/podstream.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/opt.h"
#include "net/listen.h"
#include "podstream/local_exec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HEAD_MAX_BYTES (2 << 20) /* a request line of 1 MiB, and more */

struct settings {
    const char *listen;
    const char *pod;
    uint64_t ready_fd;
    bool is_verbose;
};

static const struct opt opts[] = {
    { "--listen", NULL, OPT_STR, offsetof(struct settings, listen), "127.0.0.1:0", 0, 0,
      "HOST:PORT", "where to listen", NULL, 0 },
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

struct test_server {
    struct ev_loop *loop;
    struct podstream *streams;
    struct pod_backend *backend;
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

static void on_request(void *ctx, struct http_exchange *x)
{
    struct test_server *t = ctx;
    OWN(buf_done) struct buf pod = BUF_INIT(4096), pod_path = BUF_INIT(1024);
    struct span path = http_path(x);
    struct err e;

    if (podstream_serve(t->streams, x))
        return;
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

/* ---- life ---- */

static void on_signal(void *ctx, int number)
{
    struct test_server *t = ctx;

    (void)number;
    ev_loop_stop(t->loop);
}

static int say_ready(const struct settings *s, const struct net_listener *l, struct err *e)
{
    OWN(buf_done) struct buf line = BUF_INIT(256);
    char text[NET_ADDR_TEXT_BYTES];

    if (!s->ready_fd)
        return 0;
    if (buf_addf(&line, e, "{\"listen\":[\"%s\"]}\n", net_addr_text(net_listener_addr(l), text)) <
        0)
        return -1;
    return fd_write_all((int)s->ready_fd, buf_span(&line), e);
}

static int serve(const struct settings *s, char *const *main_argv, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    struct test_server t = { .pod = s->pod };
    const struct http_server_config config = { .on_request = on_request,
                                               .ctx = &t,
                                               .head_max_bytes = HEAD_MAX_BYTES };
    struct ev_children *kids = NULL;
    struct net_listener *listener;
    struct http_server *http;
    struct net_addr at;

    if (net_addr_parse(s->listen, &at, e) < 0 || ev_loop_new(&t.loop, e) < 0 ||
        ev_children_open(t.loop, signals, on_signal, &t, &kids, e) < 0)
        return -1;
    t.backend = local_exec_new(t.loop, kids, s->pod, main_argv);
    t.streams = podstream_new(t.loop, t.backend);
    http = http_server_new(t.loop, &config);
    if (net_listen(t.loop, &at, http_server_accept, http, &listener, e) < 0 ||
        say_ready(s, listener, e) < 0)
        return -1;
    ev_loop_run(t.loop);
    net_listener_close(listener);
    http_server_free(http);
    podstream_free(t.streams);
    local_exec_free(t.backend);
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
