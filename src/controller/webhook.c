#include "controller/webhook.h"

#include "base/log.h"
#include "base/metric.h"
#include "base/time.h"
#include "controller/limits.h"
#include "ev/worker.h"
#include "http/serve.h"
#include "net/listen.h"
#include "net/tls.h"

#define ALPN          "h2,http/1.1"
#define COME_AGAIN_S  "1"
#define TOO_LARGE     "a ConversionReview has at most 64 MiB"
#define METRIC_LABELS "webhook=\"/convert\""
#define METRIC_CODES  6

static const struct metric_bound bound_rows[] = {
    { .005, "0.005" }, { .01, "0.01" }, { .025, "0.025" }, { .05, "0.05" },
    { .1, "0.1" },     { .25, "0.25" }, { .5, "0.5" },     { 1, "1" },
    { 2.5, "2.5" },    { 5, "5" },      { 10, "10" },
};
static const struct metric_bounds bounds = { bound_rows, LEN(bound_rows) };
static const int codes[METRIC_CODES] = { 200, 400, 404, 405, 413, 503 };

struct webhook {
    struct ev_loop *loop;
    struct review_config review;
    struct tls *tls;
    struct ev_pool *pool;
    struct http_server *http;
    struct net_listener *listener;
    char address[NET_ADDR_TEXT_BYTES];
    size_t held_bytes; /* of reviews under way, as far as they have come */
    size_t under_way;
    uint64_t answered[METRIC_CODES], failures, objects;
    struct metric_histogram took;
};

/* A review from its head to its answer. */
struct job {
    struct ev_work work;
    struct webhook *w;
    struct http_exchange *x; /* NULL: who asked has gone */
    uint64_t id, began_us;
    struct buf body, answer;
    struct review_verdict verdict;
    struct err e;
    int rc;
};

/* ---- answers ---- */

static void count(struct webhook *w, int code)
{
    for (size_t i = 0; i < METRIC_CODES; i++)
        if (codes[i] == code)
            w->answered[i]++;
}

static void refuse(struct webhook *w, struct http_exchange *x, int code, const char *text)
{
    count(w, code);
    http_answer_detail(x, code, text);
}

static void job_free(struct job *j)
{
    j->w->held_bytes -= j->body.n;
    j->w->under_way--;
    buf_done(&j->body);
    buf_done(&j->answer);
    free(j);
}

static void answer(struct job *j)
{
    struct webhook *w = j->w;

    metric_observe(&w->took, &bounds, (double)(time_mono_us() - j->began_us) / 1e6);
    if (j->rc < 0) {
        log_warn("webhook.refused", KV("request", j->id), KV("err", &j->e));
        refuse(w, j->x, j->e.code == ERR_LIMIT ? 413 : 400, j->e.msg);
        return;
    }
    w->objects += j->verdict.objects;
    w->failures += j->verdict.is_failure;
    if (j->verdict.is_failure)
        log_warn("webhook.convert", KV("request", j->id), KV("err", (const char *)j->verdict.why));
    else
        log_debug("webhook.convert", KV("request", j->id), KV("objects", j->verdict.objects));
    count(w, 200);
    http_answer(j->x, 200, "application/json", buf_span(&j->answer));
}

/* ---- a review ---- */

static void convert(void *ctx)
{
    struct job *j = ctx;

    j->rc = review_answer(buf_span(&j->body), &j->w->review, &j->answer, &j->verdict, &j->e);
}

static void on_converted(void *ctx)
{
    struct job *j = ctx;

    if (j->x && j->work.is_canceled)
        refuse(j->w, j->x, 503, "the controller ends");
    else if (j->x)
        answer(j);
    job_free(j);
}

static void on_gone(void *ctx)
{
    struct job *j = ctx;

    j->x = NULL;
    if (!j->work.pool)
        job_free(j); /* its body had not come whole */
}

static void on_data(void *ctx, struct span bytes)
{
    struct job *j = ctx;
    struct http_exchange *x = j->x;
    struct webhook *w = j->w;
    bool is_room = bytes.n <= WEBHOOK_BYTES_MAX - w->held_bytes;
    struct err e;

    if (is_room && buf_add(&j->body, bytes, &e) == 0) {
        w->held_bytes += bytes.n;
        return;
    }
    job_free(j);
    if (is_room) {
        refuse(w, x, 413, TOO_LARGE);
        return;
    }
    http_answer_field(x, "retry-after", SPAN(COME_AGAIN_S));
    refuse(w, x, 503, "too many reviews at once");
}

static void on_end(void *ctx, const struct err *e)
{
    struct job *j = ctx;
    struct http_exchange *x = j->x;
    struct webhook *w = j->w;

    if (!e) {
        ev_pool_submit(w->pool, &j->work, convert, on_converted, j);
        return;
    }
    job_free(j);
    refuse(w, x, 400, e->msg);
}

static void take(struct webhook *w, struct http_exchange *x)
{
    static const struct http_body_events events = { on_data, on_end };
    struct job *j = NEW(struct job);

    j->w = w;
    j->x = x;
    j->id = http_id(x);
    j->began_us = time_mono_us();
    j->body.max = REVIEW_MAX_BYTES;
    j->answer.max = REVIEW_ANSWER_MAX_BYTES;
    w->under_way++;
    http_on_gone(x, on_gone, j);
    http_body_read(x, &events, j);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    uint64_t bytes = http_body_length(x);
    struct webhook *w = ctx;

    if (!span_is(http_path(x), "/convert")) {
        refuse(w, x, 404, "only /convert is here");
    } else if (!http_method_is(x, "POST")) {
        http_answer_field(x, "allow", SPAN("POST"));
        refuse(w, x, 405, "only POST");
    } else if (bytes != UINT64_MAX && bytes > REVIEW_MAX_BYTES) {
        refuse(w, x, 413, TOO_LARGE);
    } else {
        take(w, x);
    }
}

/* ---- life ---- */

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct webhook *w = ctx;
    struct conn_filter *filter;
    struct err e;

    if (tls_filter_new(w->tls, fd, NULL, &filter, &e) < 0) {
        log_warn("webhook.accept", KV("err", &e));
        (void)close(fd);
        return;
    }
    http_server_take(w->http, fd, filter, peer);
}

static struct tls_config tls_of(const struct webhook_pair *pair)
{
    return (struct tls_config){
        .role = TLS_SERVER, .cert_pem = pair->cert, .key_pem = pair->key, .alpn = ALPN
    };
}

int webhook_renew(struct webhook *w, const struct webhook_pair *pair, struct err *e)
{
    const struct tls_config config = tls_of(pair);

    return tls_reload(w->tls, &config, e);
}

static int open_all(struct webhook *w, const struct webhook_config *config, struct err *e)
{
    const struct http_server_config http = { .on_request = on_request,
                                             .ctx = w,
                                             .head_max_bytes = HTTP_SERVER_HEAD_MAX_BYTES,
                                             .head_timeout_ms = HTTP_SERVER_HEAD_TIMEOUT_MS,
                                             .idle_timeout_ms = HTTP_SERVER_IDLE_TIMEOUT_MS,
                                             .stall_timeout_ms = HTTP_SERVER_STALL_TIMEOUT_MS,
                                             .max_connections = WEBHOOK_CONNECTIONS_MAX };
    const struct tls_config tls = tls_of(&config->pair);
    struct net_addr at;

    if (net_addr_parse(config->listen, &at, e) < 0 || tls_new(&tls, &w->tls, e) < 0 ||
        ev_pool_new(w->loop, "convert", WEBHOOK_THREADS, &w->pool, e) < 0)
        return -1;
    w->http = http_server_new(w->loop, &http);
    if (net_listen(w->loop, &at, on_accept, w, &w->listener, e) < 0)
        return -1;
    (void)net_addr_text(net_listener_addr(w->listener), w->address);
    return 0;
}

int webhook_open(struct ev_loop *loop, const struct webhook_config *config, struct webhook **ret,
                 struct err *e)
{
    struct webhook *w = NEW(struct webhook);

    w->loop = loop;
    w->review = config->review;
    if (open_all(w, config, e) < 0) {
        webhook_free(w);
        return err_wrap(e, "cannot serve conversions at '%s'", config->listen);
    }
    *ret = w;
    return 0;
}

const char *webhook_address(const struct webhook *w)
{
    return w->address;
}

void webhook_drain(struct webhook *w, void (*done)(void *ctx), void *ctx)
{
    net_listener_close(take_ptr(&w->listener));
    http_server_drain(w->http, done, ctx);
}

void webhook_free(struct webhook *w)
{
    if (!w)
        return;
    if (w->listener)
        net_listener_close(w->listener);
    if (w->http)
        http_server_free(w->http);
    if (w->pool)
        ev_pool_free(w->pool);
    tls_free(w->tls);
    free(w);
}

/* ---- what is shown ---- */

static int write_requests(const struct webhook *w, struct buf *out, struct err *e)
{
    static const char name[] = "controller_runtime_webhook_requests_total";

    if (metric_head(out, name, "counter", "Answers by status.", e) < 0)
        return -1;
    for (size_t i = 0; i < METRIC_CODES; i++) {
        OWN(buf_done) struct buf labels = BUF_INIT(64);

        if (buf_addf(&labels, e, METRIC_LABELS ",code=\"%d\"", codes[i]) < 0 ||
            metric_u64(out, name, buf_cstr(&labels), w->answered[i], e) < 0)
            return -1;
    }
    return 0;
}

int webhook_metrics_write(const struct webhook *w, struct buf *out, struct err *e)
{
    static const char in_flight[] = "controller_runtime_webhook_requests_in_flight",
                      seconds[] = "controller_runtime_webhook_latency_seconds",
                      objects[] = "silica_webhook_objects_total",
                      failures[] = "silica_webhook_failures_total";

    return write_requests(w, out, e) < 0 ||
                   metric_head(out, in_flight, "gauge", "Reviews under way.", e) < 0 ||
                   metric_u64(out, in_flight, METRIC_LABELS, w->under_way, e) < 0 ||
                   metric_head(out, seconds, "histogram", "From a review's head to its answer.",
                               e) < 0 ||
                   metric_histogram(out, seconds, METRIC_LABELS, &bounds, &w->took, e) < 0 ||
                   metric_head(out, objects, "counter", "Objects converted.", e) < 0 ||
                   metric_u64(out, objects, "", w->objects, e) < 0 ||
                   metric_head(out, failures, "counter",
                               "Reviews with an object that cannot be converted.", e) < 0 ||
                   metric_u64(out, failures, "", w->failures, e) < 0
               ? -1
               : 0;
}
