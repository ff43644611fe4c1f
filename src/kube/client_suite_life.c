/* How calls, watches and clients end: each exactly once. */
#include "kube/client_suite_impl.h"

static void canceled_call(struct suite *s)
{
    struct kube_call *call;
    struct result *r = suite_start(
        s, &(struct kube_request){ .verb = KUBE_GET, .kind = s->namespaces, .name = "default" },
        &call);

    kube_call_cancel(call);
    assert_false(r->is_there);
    suite_until(s, &r->is_there);
    suite_turns(s);
    assert_int_equal(r->calls, 1);
    assert_true(r->is_refused);
    assert_int_equal(r->code, 0);
}

static void canceled_list(struct suite *s)
{
    struct kube_call *call;
    struct result *r =
        suite_start(s, &(struct kube_request){ .verb = KUBE_LIST, .kind = s->config_maps }, &call);

    kube_call_cancel(call);
    suite_until(s, &r->is_there);
    suite_turns(s);
    assert_int_equal(r->calls, 1);
    assert_int_equal(r->code, 0);
    assert_int_equal(r->item_count, 0);
}

/* Two calls at once are both answered. */
static void calls_at_once(struct suite *s)
{
    struct result *r[20];

    for (size_t i = 0; i < LEN(r); i++)
        r[i] =
            suite_start(s,
                        SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps,
                                 .object = suite_object(s, s->config_maps,
                                                        "{\"metadata\":{\"name\":\"a%zu\"}}", i)),
                        NULL);
    for (size_t i = 0; i < LEN(r); i++) {
        suite_until(s, &r[i]->is_there);
        assert_false(r[i]->is_refused);
        assert_int_equal(r[i]->calls, 1);
    }
}

static void freed_client(struct suite *s)
{
    struct kube_client *own = s->client;
    uint64_t version =
        suite_must(s, &(struct kube_request){ .verb = KUBE_LIST, .kind = s->config_maps })->version;
    struct result *get, *list;
    struct seen *seen;

    s->client = s->target->open(s->target->ctx);
    seen = suite_watch(
        s, &(struct kube_watch_spec){ .kind = s->config_maps, .from_version = version });
    get = suite_start(
        s, &(struct kube_request){ .verb = KUBE_GET, .kind = s->namespaces, .name = "default" },
        NULL);
    list =
        suite_start(s, &(struct kube_request){ .verb = KUBE_LIST, .kind = s->config_maps }, NULL);
    kube_client_free(s->client);
    s->client = own;
    suite_until(s, &get->is_there);
    suite_until(s, &list->is_there);
    suite_until(s, &seen->is_over);
    suite_turns(s);
    assert_int_equal(get->calls, 1);
    assert_int_equal(list->calls, 1);
    assert_int_equal(seen->ends, 1);
    assert_int_equal(get->code + list->code + seen->code, 0);
}

struct freeing {
    struct kube_client *client;
    bool is_there;
    struct ev_loop *loop;
};

static void free_inside(void *ctx, const struct kube_answer *a)
{
    struct freeing *f = ctx;

    (void)a;
    kube_client_free(f->client);
    f->is_there = true;
    ev_loop_stop(f->loop);
}

static void freed_inside_an_answer(struct suite *s)
{
    struct kube_client *own = s->client;
    struct freeing f = { .loop = s->loop };
    struct result *other;

    f.client = s->client = s->target->open(s->target->ctx);
    (void)kube_call_start(
        s->client,
        &(struct kube_request){ .verb = KUBE_GET, .kind = s->namespaces, .name = "default" },
        free_inside, &f);
    other =
        suite_start(s, &(struct kube_request){ .verb = KUBE_LIST, .kind = s->config_maps }, NULL);
    suite_until(s, &f.is_there);
    suite_until(s, &other->is_there);
    s->client = own;
    suite_turns(s);
    assert_int_equal(other->calls, 1);
}

const struct suite_row suite_life_rows[] = {
    { "a call that is canceled answers once", canceled_call },
    { "a list that is canceled answers once", canceled_list },
    { "calls at once are all answered", calls_at_once },
    { "a client that is freed ends its calls and watches", freed_client },
    { "a client that is freed inside an answer", freed_inside_an_answer },
    { 0 },
};
