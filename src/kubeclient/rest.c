/* One call: signed, sent, tried again where that does no harm, and its answer made into objects. */
#include "kubeclient/impl.h"

#include "base/time.h"
#include "kubeclient/answer.h"

enum rest_state {
    REST_WAITING, /* for its turn: a credential, the rate, the pause before another try */
    REST_SENT,
    REST_ENDING, /* the refusal stands; told in a later turn */
    REST_DONE,
};

struct rest_call {
    struct kube_call base;
    struct rest_call **at, *next;
    enum rest_state state;
    struct rest_request request;
    struct buf target;
    struct answer answer;
    bool is_whole; /* a list that is fetched in pages */
    uint64_t page; /* objects in one; 0: all */
    kube_done_fn done;
    void *ctx;
    /* tries */
    struct ev_task task;
    struct ev_timer timer;
    struct access_waiter waiter;
    struct http_call *http;
    uint64_t sent_us;
    struct backoff backoff;
    unsigned tries, generation, restarts;
    bool is_renewed, is_canceled;
    uint64_t deadline_ms;
    struct rest_verdict verdict;
    struct status refusal;
};

static struct kubeclient *client_of(const struct rest_call *x)
{
    return CONTAINER(x->base.client, struct kubeclient, base);
}

static void call_free(void *obj)
{
    struct rest_call *x = obj;

    rest_request_done(&x->request);
    buf_done(&x->target);
    answer_done(&x->answer);
    status_done(&x->refusal);
    free(x);
}

/* The only way to done(). */
static void finish(struct rest_call *x, const struct kube_answer *answer)
{
    struct kubeclient *c = client_of(x);

    assert(x->state != REST_DONE);
    x->state = REST_DONE;
    ev_timer_stop(c->base.loop, &x->timer);
    ev_post_cancel(&x->task);
    access_leave(&x->waiter);
    *x->at = x->next;
    if (x->next)
        x->next->at = x->at;
    x->done(x->ctx, answer);
    ev_free_later(c->base.loop, x, call_free);
    rest_let_go(c);
}

static void refuse(struct rest_call *x)
{
    finish(x, &(struct kube_answer){ .refusal = &x->refusal });
}

static void refuse_later(void *ctx)
{
    refuse(ctx);
}

static void fail(struct rest_call *x, const struct err *e)
{
    rest_no_answer(&x->refusal, e);
    refuse(x);
}

/* ---- tries ---- */

static void advance(void *ctx);

/* Once more after a pause, or the refusal that stands if there is no time or patience left. */
static void again(struct rest_call *x, uint64_t pause_ms)
{
    struct ev_loop *loop = x->base.client->loop;

    x->state = REST_WAITING;
    answer_drop_page(&x->answer);
    if (x->tries >= REST_TRIES_MAX || ev_now_ms(loop) + pause_ms >= x->deadline_ms)
        refuse(x);
    else
        ev_timer_start(loop, &x->timer, pause_ms, advance, x);
}

static void again_slower(struct rest_call *x)
{
    again(x, backoff_next_ms(&x->backoff));
}

/* A page, or anything else that is one request, begins. */
static void begin(struct rest_call *x)
{
    x->tries = 0;
    x->backoff = (struct backoff){ REST_PAUSE_FIRST_MS, REST_PAUSE_MAX_MS, 1, 0 };
    x->is_renewed = false;
    x->deadline_ms = ev_now_ms(x->base.client->loop) + client_of(x)->timeout_ms;
    x->state = REST_WAITING;
}

static void next_page(struct rest_call *x)
{
    begin(x);
    answer_begin_page(&x->answer);
    ev_timer_start(x->base.client->loop, &x->timer, 0, advance, x);
}

/* The pages seen so far are of a version the server no longer has. A second time all is asked for at once. */
static void restart(struct rest_call *x)
{
    x->page = x->restarts++ ? 0 : x->page;
    answer_restart(&x->answer);
    next_page(x);
}

static void on_lost(struct rest_call *x, const struct err *e)
{
    rest_no_answer(&x->refusal, e);
    if (x->is_canceled || !rest_is_passing(x->http, e) ||
        (http_call_has_left(x->http) && !x->request.is_read))
        refuse(x);
    else
        again_slower(x);
}

static void on_refused(struct rest_call *x)
{
    int status = x->verdict.status;
    bool is_busy = status == 429 || status == 502 || status == 503 || status == 504;

    rest_refusal(&x->refusal, status, answer_body(&x->answer));
    if (status == 401 && !x->is_renewed && access_renew(client_of(x)->access, x->generation)) {
        x->is_renewed = true;
        again(x, 0);
    } else if ((status == 429 || status >= 500) && x->verdict.has_retry) {
        again(x, x->verdict.retry_ms);
    } else if (is_busy && x->request.is_read) {
        again_slower(x);
    } else if (status == 410 && x->is_whole && answer_next(&x->answer) &&
               x->restarts < REST_LIST_RESTARTS) {
        restart(x);
    } else {
        refuse(x);
    }
}

static void on_answered(struct rest_call *x)
{
    struct kube_answer answer;
    struct err e;

    if (answer_read(&x->answer, &answer, &e) < 0) {
        (void)err_wrap(&e, "cannot read the server's answer");
        fail(x, &e);
    } else if (x->is_whole && answer.next) {
        next_page(x);
    } else {
        finish(x, &answer);
    }
}

/* ---- events of HTTP ---- */

static void on_head(void *ctx, const struct http_head *head)
{
    struct rest_call *x = ctx;

    rest_verdict_read(head, &x->verdict);
    answer_begin(&x->answer, head->status);
}

static void on_data(void *ctx, struct span bytes)
{
    struct rest_call *x = ctx;

    if (answer_add(&x->answer, bytes) < 0)
        http_call_cancel(x->http);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct rest_call *x = ctx;
    struct err broken;

    (void)trailers;
    counts_add(client_of(x)->counts, x->request.method, e ? 0 : x->verdict.status,
               (double)(time_mono_us() - x->sent_us) / 1e6);
    rest_note_reach(client_of(x), e);
    if (e && answer_is_broken(&x->answer, &broken)) {
        (void)err_wrap(&broken, "cannot read the server's answer");
        x->http = NULL;
        fail(x, &broken);
        return;
    }
    if (e)
        on_lost(x, e);
    else if (x->verdict.status / 100 == 2)
        on_answered(x);
    else
        on_refused(x);
    x->http = NULL;
}

static const struct http_call_events events = { on_head, on_data, NULL, on_done, NULL };

static int say(struct rest_call *x, struct err *e)
{
    struct kubeclient *c = client_of(x);
    uint64_t now = ev_now_ms(c->base.loop);
    const struct http_call_spec how = {
        .is_idempotent = x->request.is_read,
        .total_ms = x->deadline_ms > now ? x->deadline_ms - now : 1,
        .events = &events,
        .ctx = x,
    };

    buf_clear(&x->target);
    if (x->is_whole
            ? rest_request_page(&x->request, x->page, answer_next(&x->answer), &x->target, e) < 0
            : buf_add(&x->target, buf_span(&x->request.path), e) < 0 ||
                  buf_add(&x->target, buf_span(&x->request.query), e) < 0)
        return -1;
    x->verdict = (struct rest_verdict){ 0 };
    x->sent_us = time_mono_us();
    x->tries++;
    if (rest_send(c, &x->request, buf_span(&x->target), &how, &x->http, e) < 0)
        return -1;
    x->generation = access_generation(c->access);
    x->state = REST_SENT;
    return 0;
}

static void send_now(void *ctx)
{
    struct rest_call *x = ctx;
    struct err e;

    if (!access_is_ready(client_of(x)->access))
        advance(x); /* it ended while we waited for our turn */
    else if (say(x, &e) < 0)
        fail(x, &e);
}

static void on_access(void *ctx, const struct err *e)
{
    if (e)
        fail(ctx, e);
    else
        advance(ctx);
}

static void advance(void *ctx)
{
    struct rest_call *x = ctx;
    struct kubeclient *c = client_of(x);
    uint64_t wait_ms;

    if (!access_is_ready(c->access)) {
        x->waiter = (struct access_waiter){ .fn = on_access, .ctx = x };
        access_wait(c->access, &x->waiter);
        return;
    }
    wait_ms = bucket_reserve_ms(&c->bucket, ev_now_ms(c->base.loop));
    if (wait_ms)
        ev_timer_start(c->base.loop, &x->timer, wait_ms, send_now, x);
    else
        send_now(x);
}

/* ---- verbs ---- */

struct kube_call *rest_call_start(struct kube_client *base, const struct kube_request *rq,
                                  kube_done_fn done, void *ctx)
{
    struct kubeclient *c = CONTAINER(base, struct kubeclient, base);
    struct rest_call *x = NEW(struct rest_call);
    struct err e;

    x->base.client = base;
    x->done = done;
    x->ctx = ctx;
    x->target.max = 2 * REST_TARGET_MAX_BYTES;
    x->refusal = (struct status)STATUS_INIT;
    x->is_whole = rq->verb == KUBE_LIST && !rq->limit && !rq->next;
    x->page = c->page_items;
    x->at = &c->calls;
    x->next = c->calls;
    if (x->next)
        x->next->at = &x->next;
    c->calls = x;
    answer_init(&x->answer, rq);
    begin(x);
    if (rest_request_make(rq, &x->request, &e) < 0) {
        if (!rest_version(rq->kind, rq->version)) /* in the server's words, who is not asked */
            (void)status_no_resource(&x->refusal);
        else
            (void)status_bad_request(&x->refusal, "%s", e.msg);
        x->state = REST_ENDING;
        ev_post(base->loop, &x->task, refuse_later, x);
    } else {
        ev_post(base->loop, &x->task, advance, x);
    }
    return &x->base;
}

void rest_call_cancel(struct kube_call *base)
{
    struct rest_call *x = CONTAINER(base, struct rest_call, base);
    struct ev_loop *loop = base->client->loop;
    struct err e;

    if (x->state >= REST_ENDING || x->is_canceled)
        return;
    x->is_canceled = true;
    if (x->state == REST_SENT) {
        http_call_cancel(x->http); /* on_done comes, and ends it */
        return;
    }
    (void)err_set(&e, ERR_CANCELED, "the call was called off");
    rest_no_answer(&x->refusal, &e);
    x->state = REST_ENDING;
    ev_timer_stop(loop, &x->timer);
    ev_post_cancel(&x->task);
    access_leave(&x->waiter);
    ev_post(loop, &x->task, refuse_later, x);
}

void rest_calls_end(struct kubeclient *c)
{
    for (struct rest_call *x = c->calls; x; x = x->next)
        rest_call_cancel(&x->base);
}
