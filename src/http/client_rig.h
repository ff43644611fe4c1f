/* client_rig: a server that answers by a script, a client, and one call under test; for the tests of the client. Each test
 * program includes it once. */
#ifndef SILICA_HTTP_CLIENT_RIG_H
#define SILICA_HTTP_CLIENT_RIG_H

#include "http/client.h"

#include "ev/timer.h"
#include "http/limits.h"
#include "http/testserver.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ANSWER(text)                                                                               \
    {                                                                                              \
        NULL, BYTES(text), THEN_KEEP                                                               \
    }
#define ANSWER_THEN(text, t)                                                                       \
    {                                                                                              \
        NULL, BYTES(text), t                                                                       \
    }
#define OK_HI "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

/* One call as the test sees it. */
struct result {
    struct http_call *call;
    unsigned dones, heads, drains, upgrades;
    bool is_in_verb;
    int status;
    struct buf body;
    char type[64], trailer[64];
    bool is_failed;
    struct err err;
    /* what to do in events */
    bool cancel_in_head, cancel_in_data, pause_in_head;
    size_t pause_at; /* bytes of the body */
    struct buf upload;
    size_t uploaded;
    struct side tunnel;
};

struct world {
    struct ev_loop *loop;
    struct http_client *client;
    struct testserver server;
    struct http_head head; /* of the next request */
};

static void copy_field(char out[64], const struct http_head *h, const char *name)
{
    struct span v = h ? http_head_get(h, name) : SPAN_NONE;

    (void)snprintf(out, 64, "%.*s", SPAN_ARG(v));
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb || r->dones || r->upgrades);
    r->heads++;
    r->status = head->status;
    copy_field(r->type, head, "content-type");
    if (r->pause_in_head)
        http_call_pause(r->call, true);
    if (r->cancel_in_head)
        http_call_cancel(r->call);
}

static void on_data(void *ctx, struct span bytes)
{
    struct result *r = ctx;
    struct err e;

    assert_false(r->is_in_verb || r->dones);
    assert_int_equal(r->heads, 1);
    assert_int_equal(buf_add(&r->body, bytes, &e), 0);
    if (r->pause_at && r->body.n >= r->pause_at) {
        r->pause_at = 0;
        http_call_pause(r->call, true);
    }
    if (r->cancel_in_data)
        http_call_cancel(r->call);
}

static void upload_more(struct result *r)
{
    while (r->uploaded < r->upload.n && !http_call_is_full(r->call)) {
        size_t to = MIN(r->uploaded + 50000, r->upload.n);

        http_call_write(r->call, span_slice(buf_span(&r->upload), r->uploaded, to));
        r->uploaded = to;
    }
    if (r->upload.n && r->uploaded == r->upload.n)
        http_call_end(r->call, NULL);
}

static void on_drain(void *ctx)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb || r->dones);
    r->drains++;
    if (r->upload.n)
        upload_more(r);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb);
    r->dones++;
    r->is_failed = e != NULL;
    if (e)
        r->err = *e;
    copy_field(r->trailer, trailers, "x-sum");
    r->call = NULL;
}

static const struct http_call_events events = { on_head, on_data, on_drain, on_done, NULL };

static bool is_done(void *ctx)
{
    struct result *r = ctx;

    return r->dones || r->upgrades;
}

static void open_world(struct world *w)
{
    struct err e;

    *w = (struct world){ 0 };
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    w->client = http_client_new(w->loop, &(struct http_client_config){ 0 });
    testserver_open(&w->server, w->loop, "127.0.0.1:0");
    http_head_init(&w->head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
}

static void close_world(struct world *w)
{
    http_client_free(w->client);
    testserver_close(&w->server);
    http_head_done(&w->head);
    ev_loop_free(w->loop);
}

static struct http_call_spec make_spec(struct world *w, const char *method, struct result *r)
{
    struct err e;

    assert_int_equal(http_head_set_request(&w->head, span_cstr(method), SPAN("/path?q=1"), &e), 0);
    return (struct http_call_spec){
        .to = { .host = "127.0.0.1", .port = w->server.port },
        .head = &w->head,
        .head_ms = 5000,
        .idle_ms = 5000,
        .events = &events,
        .ctx = r,
    };
}

static void start(struct world *w, const struct http_call_spec *spec, struct result *r)
{
    r->body.max = SIDE_MAX_BYTES;
    r->is_in_verb = true;
    r->call = http_call_start(w->client, spec);
    r->is_in_verb = false;
}

static void await(struct world *w, struct result *r)
{
    if (!side_wait(w->loop, is_done, r))
        fail_msg("the call did not end; the server heard: %s", buf_cstr(&w->server.heard));
    side_idle(w->loop, 3);
    assert_int_equal(r->dones + r->upgrades, 1);
}

__attribute__((unused)) static void call(struct world *w, const char *method, struct span body,
                                         struct result *r)
{
    struct http_call_spec spec = make_spec(w, method, r);

    spec.body = body;
    start(w, &spec, r);
    await(w, r);
}

__attribute__((unused)) static void assert_message(const char *got, const char *want, uint16_t port)
{
    char text[480];
    const char *hash = strchr(want, '#');

    (void)snprintf(text, sizeof text, "%.*s%u%s", (int)(hash - want), want, port, hash + 1);
    if (strncmp(got, text, strlen(text)) != 0)
        fail_msg("'%s' does not begin with '%s'", got, text);
}

/* All of one program's, which must leave no descriptor behind. */
static int run_all(const char *name, const struct CMUnitTest *tests, size_t n)
{
    size_t fds = side_fd_count();
    int failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);

    if (!failed && side_fd_count() != fds) {
        (void)fprintf(stderr, "descriptors leaked: %zu before, %zu after\n", fds, side_fd_count());
        return 1;
    }
    return failed;
}

#endif
