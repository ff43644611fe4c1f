#include "kube/testserver.h"

#include "ev/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void take_call(struct testserver *s, struct test_call *c)
{
    size_t i = 0;

    while (s->calls[i] != c)
        i++;
    memmove(&s->calls[i], &s->calls[i + 1], (--s->call_count - i) * sizeof s->calls[0]);
}

static void free_call(void *ctx)
{
    struct test_call *c = ctx;

    object_unref(c->object);
    free(c);
}

/* A cancel may be on its way when the test answers: it then comes to nothing. */
static void answer(struct test_call *c, const struct kube_answer *a)
{
    struct ev_loop *loop = c->server->base.loop;

    take_call(c->server, c);
    c->done(c->ctx, a);
    ev_post_cancel(&c->cancel);
    ev_free_later(loop, c, free_call);
}

static struct kube_call *on_call(struct kube_client *base, const struct kube_request *rq,
                                 kube_done_fn done, void *ctx)
{
    struct testserver *s = CONTAINER(base, struct testserver, base);
    struct test_call *c = NEW(struct test_call);

    *c = (struct test_call){
        .base = { base }, .server = s, .verb = rq->verb, .done = done, .ctx = ctx
    };
    (void)snprintf(c->name, sizeof c->name, "%s", rq->name ? rq->name : "");
    (void)snprintf(c->next, sizeof c->next, "%s", rq->next ? rq->next : "");
    c->object = rq->object ? object_ref(rq->object) : NULL;
    assert_true(s->call_count < LEN(s->calls));
    s->calls[s->call_count++] = c;
    return &c->base;
}

static void refuse(struct test_call *c, int code)
{
    OWN(status_done) struct status st = STATUS_INIT;

    st.code = code;
    answer(c, &(struct kube_answer){ .refusal = &st });
}

static void on_canceled(void *ctx)
{
    refuse(ctx, 0);
}

static void on_cancel(struct kube_call *base)
{
    struct test_call *c = CONTAINER(base, struct test_call, base);

    if (!c->cancel.is_queued)
        ev_post(c->server->base.loop, &c->cancel, on_canceled, c);
}

static struct kube_watch *on_watch(struct kube_client *base, const struct kube_watch_spec *spec,
                                   const struct kube_watch_events *events, void *ctx)
{
    struct testserver *s = CONTAINER(base, struct testserver, base);

    assert_false(s->is_watched);
    s->is_watched = true;
    s->watched_from = spec->from_version;
    s->watch = (struct kube_watch){ base };
    s->events = *events;
    s->watch_ctx = ctx;
    return &s->watch;
}

void testserver_end_watch(struct testserver *s, int code)
{
    OWN(status_done) struct status st = STATUS_INIT;

    assert_true(s->is_watched);
    st.code = code;
    s->is_watched = false;
    s->events.on_end(s->watch_ctx, &st);
}

static void on_stopped(void *ctx)
{
    testserver_end_watch(ctx, 0);
}

static void on_stop(struct kube_watch *w)
{
    struct testserver *s = CONTAINER(w, struct testserver, watch);

    ev_post(s->base.loop, &s->watch_end, on_stopped, s);
}

void testserver_init(struct testserver *s)
{
    static const struct kube_client_ops ops = {
        .call = on_call, .call_cancel = on_cancel, .watch = on_watch, .watch_stop = on_stop
    };
    struct err e;

    *s = (struct testserver){ .base = { .ops = &ops } };
    assert_int_equal(ev_loop_new(&s->base.loop, &e), 0);
}

void testserver_done(struct testserver *s)
{
    testserver_turns(s, 4);
    assert_int_equal(s->call_count, 0);
    assert_false(s->is_watched);
    ev_loop_free(s->base.loop);
}

void testserver_turns(struct testserver *s, int n)
{
    for (int i = 0; i < n; i++)
        ev_loop_turn(s->base.loop);
}

static void stop(void *ctx)
{
    ev_loop_stop(ctx);
}

void testserver_run_ms(struct testserver *s, uint64_t ms)
{
    struct ev_timer end = { 0 };

    ev_timer_start(s->base.loop, &end, ms, stop, s->base.loop);
    ev_loop_run(s->base.loop);
}

void testserver_run_until(struct testserver *s, const bool *is_done)
{
    for (int i = 0; i < 10000 && !*is_done; i++)
        testserver_run_ms(s, 1);
    assert_true(*is_done);
}

void testserver_answer(struct testserver *s, enum kube_verb verb, const struct kube_answer *a)
{
    for (int i = 0; i < 10000 && s->call_count == 0; i++)
        testserver_run_ms(s, 1);
    assert_true(s->call_count > 0);
    assert_int_equal(s->calls[0]->verb, verb);
    answer(s->calls[0], a);
}

void testserver_refuse(struct testserver *s, enum kube_verb verb, int code)
{
    OWN(status_done) struct status st = STATUS_INIT;

    st.code = code;
    testserver_answer(s, verb, &(struct kube_answer){ .refusal = &st });
}

void testserver_list(struct testserver *s, uint64_t version, const char *next,
                     struct object *const *items, size_t n)
{
    testserver_answer(
        s, KUBE_LIST,
        &(struct kube_answer){ .items = items, .item_count = n, .version = version, .next = next });
}

void testserver_event(struct testserver *s, enum kube_event type, struct object *o,
                      uint64_t version)
{
    assert_true(s->is_watched);
    s->events.on_event(s->watch_ctx, type, o, version);
}

struct object *testserver_object(const struct kind *kind, const char *json)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    if (json_parse(span_cstr(json), NULL, &doc, &e) < 0 ||
        object_parse(kind, json_doc_root(doc), &o, &e) < 0)
        fail_msg("%s", e.msg);
    return o;
}
