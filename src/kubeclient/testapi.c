#include "kubeclient/testapi.h"

static void on_gone(void *ctx)
{
    ((struct testapi *)ctx)->open = NULL;
}

static void note_as(struct testapi_asked *a, const struct http_head *head)
{
    size_t n = 0;

    for (size_t i = 0; i < http_head_count(head); i++) {
        struct span name, value;

        http_head_field(head, i, &name, &value);
        if (span_starts(name, "impersonate-"))
            n += (size_t)snprintf(a->as + n, sizeof a->as - n, "%.*s=%.*s ",
                                  SPAN_ARG(span_skip(name, 12)), SPAN_ARG(value));
    }
}

static void note(struct testapi *t, struct http_exchange *x)
{
    OWN(buf_done) struct buf client = BUF_INIT(63);
    struct testapi_asked *a = &t->asked[t->n++];
    const struct http_head *head = http_req(x);

    assert_true(t->n < TESTAPI_ASKED_MAX);
    (void)snprintf(a->line, sizeof a->line, "%.*s %.*s", SPAN_ARG(http_head_method(head)),
                   SPAN_ARG(http_head_target(head)));
    (void)snprintf(a->authorization, sizeof a->authorization, "%.*s",
                   SPAN_ARG(http_field(x, "authorization")));
    (void)snprintf(a->agent, sizeof a->agent, "%.*s", SPAN_ARG(http_field(x, "user-agent")));
    (void)tls_peer_subject(http_filter(x), TLS_SUBJECT_CN, 0, &client);
    (void)snprintf(a->client, sizeof a->client, "%s", buf_cstr(&client));
    note_as(a, head);
    a->is_h2 = http_is_h2(x);
    a->at_ms = ev_now_ms(t->loop);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct testapi *t = ctx;
    const struct testapi_step *s = t->steps;

    note(t, x);
    if (!t->left) {
        http_answer(x, 500, "text/plain", SPAN("this was not expected"));
        return;
    }
    t->steps++;
    t->left--;
    if (s->retry_after)
        http_answer_field(x, "retry-after", span_cstr(s->retry_after));
    if (!s->status) {
        http_answer_abort(x);
        return;
    }
    if (s->then == TESTAPI_END) {
        http_answer(x, s->status, "application/json", span_cstr(s->body));
        return;
    }
    http_on_gone(x, on_gone, t);
    t->open = x;
    http_answer_begin(x, s->status, UINT64_MAX);
    testapi_say(t, s->body, s->then);
}

static void cut(void *ctx)
{
    struct testapi *t = ctx;

    if (t->open)
        http_answer_abort(take_ptr(&t->open));
}

void testapi_say(struct testapi *t, const char *text, enum testapi_then then)
{
    assert_non_null(t->open);
    for (const char *p = text; *p; p++)
        http_answer_write(t->open, span_of(p, 1));
    if (then == TESTAPI_END)
        http_answer_end(take_ptr(&t->open), NULL);
    else if (then == TESTAPI_CUT) /* what was said goes out first */
        ev_timer_start(t->loop, &t->cut, 5, cut, t);
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct testapi *t = ctx;
    struct conn_filter *f = NULL;
    struct err e;

    t->accepted++;
    assert_int_equal(tls_filter_new(t->tls, fd, NULL, &f, &e), 0);
    http_server_take(t->server, fd, f, peer);
}

void testapi_open(struct testapi *t)
{
    struct testcert cert = { 0 };
    struct tls_config config = { .role = TLS_SERVER,
                                 .client_verify = TLS_VERIFY_OPTIONAL,
                                 .alpn = "h2,http/1.1" };
    struct net_addr a;
    struct err e;

    *t = (struct testapi){ .ca = testca_new("testapi") };
    testca_issue(t->ca, &(struct testcert_spec){ "server", NULL, "IP:127.0.0.1", -60, 3600 },
                 &cert);
    config.ca_pem = testca_pem(t->ca);
    config.cert_pem = buf_span(&cert.cert_pem);
    config.key_pem = buf_span(&cert.key_pem);
    assert_int_equal(tls_new(&config, &t->tls, &e), 0);
    testcert_done(&cert);
    assert_int_equal(ev_loop_new(&t->loop, &e), 0);
    t->server = http_server_new(
        t->loop, &(struct http_server_config){ .on_request = on_request,
                                               .ctx = t,
                                               .head_max_bytes = HTTP_SERVER_HEAD_MAX_BYTES,
                                               .head_timeout_ms = HTTP_SERVER_HEAD_TIMEOUT_MS,
                                               .idle_timeout_ms = HTTP_SERVER_IDLE_TIMEOUT_MS,
                                               .stall_timeout_ms = HTTP_SERVER_STALL_TIMEOUT_MS });
    assert_int_equal(net_addr_parse("127.0.0.1:0", &a, &e), 0);
    assert_int_equal(net_listen(t->loop, &a, on_accept, t, &t->l, &e), 0);
    t->port = net_addr_port(net_listener_addr(t->l));
}

void testapi_close(struct testapi *t)
{
    side_idle(t->loop, 5);
    ev_timer_stop(t->loop, &t->cut);
    http_server_free(t->server);
    net_listener_close(t->l);
    side_idle(t->loop, 5);
    ev_loop_free(t->loop);
    tls_free(t->tls);
    testca_free(t->ca);
}

void testapi_script(struct testapi *t, const struct testapi_step *steps, size_t n)
{
    t->steps = steps;
    t->left = n;
}

void testapi_kubeconfig(const struct testapi *t, const char *token, struct kubeconfig *ret)
{
    struct span ca = testca_pem(t->ca);
    char url[64];
    struct err e;

    *ret = (struct kubeconfig){ .context = own_strdup("test"), .ca_pem = BUF_INIT(1 << 20) };
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u", t->port);
    assert_int_equal(kubeconfig_set_server(ret, span_cstr(url), &e), 0);
    assert_int_equal(buf_add(&ret->ca_pem, ca, &e), 0);
    ret->token = token ? own_strdup(token) : NULL;
}

struct kube_client *testapi_client(struct testapi *t, const char *token)
{
    struct kubeconfig k;
    struct kube_client *c;
    struct err e;

    testapi_kubeconfig(t, token, &k);
    if (kubeclient_new(t->loop, &(struct kubeclient_config){ .kubeconfig = &k, .page_items = 2 },
                       &c, &e) < 0)
        fail_msg("%s", e.msg);
    return c;
}

struct goal {
    struct testapi *t;
    size_t n;
};

static bool is_asked(void *ctx)
{
    struct goal *g = ctx;

    return g->t->n >= g->n;
}

void testapi_await(struct testapi *t, size_t n)
{
    struct goal g = { t, n };

    if (!side_wait(t->loop, is_asked, &g))
        fail_msg("%zu requests instead of %zu", t->n, n);
}

void told_done(void *ctx, const struct kube_answer *answer)
{
    struct told *r = ctx;
    size_t n = 0;

    assert_false(r->is_in_verb);
    r->times++;
    r->code = -1;
    r->version = answer->version;
    if (answer->refusal) {
        r->code = answer->refusal->code;
        r->reason = answer->refusal->reason;
        (void)snprintf(r->message, sizeof r->message, "%s", buf_cstr(&answer->refusal->message));
    }
    if (answer->object)
        (void)snprintf(r->names, sizeof r->names, "%s", object_name(answer->object));
    for (size_t i = 0; i < answer->item_count; i++)
        n += (size_t)snprintf(r->names + n, sizeof r->names - n, "%s ",
                              object_name(answer->items[i]));
}

bool told_is_there(void *ctx)
{
    return ((struct told *)ctx)->times > 0;
}

void told_call(struct testapi *t, struct kube_client *c, const struct kube_request *rq,
               struct told *r)
{
    *r = (struct told){ .is_in_verb = true };
    (void)kube_call_start(c, rq, told_done, r);
    r->is_in_verb = false;
    assert_true(side_wait(t->loop, told_is_there, r));
    side_idle(t->loop, 2);
    assert_int_equal(r->times, 1);
}
