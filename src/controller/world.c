#include "controller/world.h"

#include "base/str.h"
#include "base/time.h"
#include "controller/faults.h"
#include "controller/suite_impl.h"
#include "controller/testobject.h"
#include "ev/timer.h"
#include "kube/informer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- one call ---- */

struct asked {
    struct world *w;
    struct object *object;
    struct object *first; /* of a list */
    world_each_fn each;   /* the same; or NULL */
    void *each_ctx;
    size_t count;
    int code; /* of a refusal */
    char message[512];
};

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct asked *a = ctx;

    if (answer->refusal) {
        a->code = answer->refusal->code ? answer->refusal->code : -1;
        (void)snprintf(a->message, sizeof a->message, "%s", buf_cstr(&answer->refusal->message));
    } else if (answer->object) {
        a->object = test_keep(object_ref(answer->object));
    }
    a->count = answer->item_count;
    if (answer->item_count)
        a->first = test_keep(object_ref(answer->items[0]));
    for (size_t i = 0; a->each && i < answer->item_count; i++)
        a->each(a->each_ctx, answer->items[i]);
    a->w->is_done = true;
    ev_loop_stop(a->w->suite->loop);
}

static void run_until_done(struct world *w)
{
    while (!w->is_done)
        ev_loop_run(w->suite->loop);
    w->is_done = false;
}

static void ask(struct world *w, const struct kube_request *rq, struct asked *ret)
{
    ret->w = w;
    w->is_done = false;
    (void)kube_call_start(w->client, rq, on_answer, ret);
    run_until_done(w);
}

struct object *world_call(struct world *w, const struct kube_request *rq, int *ret_code)
{
    struct asked a = { 0 };

    ask(w, rq, &a);
    if (a.code && !ret_code)
        fail_msg("%s %s: refused with %d: %s", rq->kind->name, rq->name ? rq->name : "", a.code,
                 a.message);
    if (ret_code)
        *ret_code = a.code;
    return a.object;
}

static const char *text_of(const char *fmt, va_list ap)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct err e;

    assert_int_equal(buf_vaddf(&text, &e, fmt, ap), 0);
    return test_quoted(buf_cstr(&text));
}

struct object *world_create(struct world *w, const struct kind *kind, const char *fmt, ...)
{
    struct kube_request rq = { .verb = KUBE_CREATE, .kind = kind };
    va_list ap;

    va_start(ap, fmt);
    rq.object = test_object(kind, "%s", text_of(fmt, ap));
    va_end(ap);
    rq.namespace = kind_is_namespaced(kind) ? w->namespace : NULL;
    return world_call(w, &rq, NULL);
}

struct object *world_get(struct world *w, const struct kind *kind, const char *name)
{
    struct kube_request rq = {
        .verb = KUBE_GET, .kind = kind, .namespace = w->namespace, .name = name
    };
    int code;
    struct object *o = world_call(w, &rq, &code);

    if (code && code != 404)
        fail_msg("get %s %s: %d", kind->name, name, code);
    return o;
}

struct object *world_patch(struct world *w, const struct kind *kind, const char *name,
                           const char *sub, const char *fmt, ...)
{
    struct kube_request rq = { .verb = KUBE_PATCH,
                               .kind = kind,
                               .namespace = w->namespace,
                               .name = name,
                               .sub = sub,
                               .patch = KUBE_PATCH_MERGE };
    va_list ap;

    va_start(ap, fmt);
    rq.body = span_cstr(text_of(fmt, ap));
    va_end(ap);
    return world_call(w, &rq, NULL);
}

void world_delete(struct world *w, const struct kind *kind, const char *name)
{
    (void)world_call(
        w,
        &(struct kube_request){
            .verb = KUBE_DELETE, .kind = kind, .namespace = w->namespace, .name = name },
        NULL);
}

size_t world_count(struct world *w, const struct kind *kind, const char *labels,
                   struct object **ret_first)
{
    struct kube_request rq = {
        .verb = KUBE_LIST, .kind = kind, .namespace = w->namespace, .labels = labels
    };
    struct asked a = { 0 };

    ask(w, &rq, &a);
    assert_int_equal(a.code, 0);
    if (ret_first)
        *ret_first = a.first;
    return a.count;
}

void world_each(struct world *w, const struct kind *kind, world_each_fn fn, void *ctx)
{
    struct kube_request rq = { .verb = KUBE_LIST, .kind = kind, .namespace = w->namespace };
    struct asked a = { .each = fn, .each_ctx = ctx };

    ask(w, &rq, &a);
    assert_int_equal(a.code, 0);
}

uint64_t world_metric(struct world *w, const char *name)
{
    OWN(buf_done) struct buf text = BUF_INIT(4u << 20);
    struct span rest, line;
    uint64_t sum = 0;
    struct err e;

    assert_int_equal(controller_metrics_write(w->controller, &text, &e), 0);
    rest = buf_span(&text);
    while (span_cut(&rest, '\n', &line)) {
        struct span tail = span_skip(line, strlen(name));
        uint64_t value;

        if (!span_starts(line, name) || !tail.n ||
            (tail.p[0] != '{' && tail.p[0] != ' ' && !strchr(name, '{')))
            continue;
        while (tail.n && memchr(tail.p, ' ', tail.n))
            tail = span_skip(tail,
                             (size_t)((const uint8_t *)memchr(tail.p, ' ', tail.n) - tail.p) + 1);
        assert_true(str_u64(tail, UINT64_MAX, &value));
        sum += value;
    }
    return sum;
}

/* ---- waiting ---- */

static void on_time(void *ctx)
{
    struct world *w = ctx;

    w->is_done = true;
    ev_loop_stop(w->suite->loop);
}

void world_idle(struct world *w, uint64_t ms)
{
    struct ev_timer timer = { 0 };

    w->is_done = false;
    ev_timer_start(w->suite->loop, &timer, ms, on_time, w);
    run_until_done(w);
}

struct object *world_until(struct world *w, const struct kind *kind, const char *name,
                           const char *what, world_fn is, const void *arg)
{
    uint64_t end_ms = time_mono_ms() + WORLD_PATIENCE_MS;
    struct object *o;

    for (;;) {
        o = world_get(w, kind, name);
        if (is(w, o, arg))
            return o;
        if (time_mono_ms() > end_ms)
            break;
        world_idle(w, 2);
    }
    fail_msg("%s %s never was: %s\nit is %s", kind->name, name, what,
             o ? test_text(object_thaw(o, NULL, test_edit())) : "not there");
    return NULL;
}

struct wanted {
    const char *type, *text;
};

static bool has_condition(struct world *w, const struct object *o, const void *arg)
{
    const struct wanted *wanted = arg;

    (void)w;
    return o && suite_has_condition(o, wanted->type, wanted->text);
}

struct object *world_until_condition(struct world *w, const struct kind *kind, const char *name,
                                     const char *type, const char *text)
{
    struct wanted wanted = { type, text };

    return world_until(w, kind, name, text, has_condition, &wanted);
}

static bool is_gone(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return !o;
}

static bool is_there(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o != NULL;
}

void world_until_gone(struct world *w, const struct kind *kind, const char *name)
{
    (void)world_until(w, kind, name, "gone", is_gone, NULL);
}

struct object *world_until_there(struct world *w, const struct kind *kind, const char *name)
{
    return world_until(w, kind, name, "there", is_there, NULL);
}

/* ---- what makes Pods run ---- */

struct world_nodes {
    struct world *w;
    struct informer *pods;
    bool is_held;
};

static void on_ran(void *ctx, const struct kube_answer *answer)
{
    (void)ctx, (void)answer; /* gone meanwhile, or changed: then there is another event */
}

/* What a node would say of a Pod that runs. */
static void make_run(struct world_nodes *n, const struct object *pod)
{
    static const char running[] =
        "{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.1.0.1\",\"podIPs\":[{\"ip\":"
        "\"127.1.0.1\"}],\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},{\"type\":"
        "\"Ready\",\"status\":\"True\"}]}}";
    const char *phase = object_text(pod, "status.phase");
    struct kube_request rq = { .verb = KUBE_PATCH,
                               .kind = object_kind(pod),
                               .namespace = object_namespace(pod),
                               .name = object_name(pod),
                               .sub = "status",
                               .patch = KUBE_PATCH_MERGE,
                               .body = SPAN(running) };

    if (n->is_held || object_is_deleting(pod) || (phase && strcmp(phase, "Pending") != 0))
        return;
    (void)kube_call_start(n->w->client, &rq, on_ran, n);
}

static void on_pod_add(void *ctx, struct object *o, bool is_initial)
{
    (void)is_initial;
    make_run(ctx, o);
}

static void on_pod_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    make_run(ctx, now);
}

/* Whoever plays the nodes stands still: Pods get a node, and nobody says that they run. */
static void hold_nodes(struct world *w, bool is_held)
{
    if (kill(w->suite->nodes_pid, is_held ? SIGSTOP : SIGCONT) < 0)
        fail_msg("cannot signal process %d, which plays the nodes", (int)w->suite->nodes_pid);
}

static void hold_stand_in(struct world_nodes *n, bool is_held)
{
    OWN(informer_walk_done) struct informer_walk walk;
    struct object *pod;

    n->is_held = is_held;
    informer_walk_all(&walk, n->pods);
    while ((pod = informer_walk_next(&walk)))
        make_run(n, pod);
}

void world_hold_pods(struct world *w, bool is_held)
{
    if (w->nodes)
        hold_stand_in(w->nodes, is_held);
    else
        hold_nodes(w, is_held);
}

static void start_nodes(struct world *w)
{
    static const struct informer_listener listener = { .on_add = on_pod_add,
                                                       .on_update = on_pod_update };
    struct err e;

    w->nodes = NEW(struct world_nodes);
    w->nodes->w = w;
    if (informer_new(
            w->client,
            &(struct informer_spec){ .kind = known_kinds()->pod, .namespace = w->namespace },
            &w->nodes->pods, &e) < 0)
        fail_msg("%s", e.msg);
    informer_listen(w->nodes->pods, &listener, w->nodes);
    informer_start(w->nodes->pods);
}

/* ---- life ---- */

static void on_started(void *ctx)
{
    on_time(ctx);
}

void world_start(struct world *w)
{
    struct err e;

    w->config.is_remote = w->suite->is_remote;
    w->config.started = on_started;
    w->config.ctx = w;
    w->is_done = false;
    if (controller_open(w->client, &w->config, &w->controller, &e) < 0)
        fail_msg("%s", e.msg);
    run_until_done(w);
}

void world_stop(struct world *w)
{
    w->is_done = false;
    controller_close(take_ptr(&w->controller), on_time, w);
    run_until_done(w);
}

void world_open(struct world *w, const struct client_suite *suite)
{
    static unsigned serial;

    *w = (struct world){ .suite = suite, .config = CONTROLLER_CONFIG_INIT };
    w->config.forgets_fields = suite->is_remote; /* as `silica controller` does */
    w->client = faults_new(suite->open(suite->ctx), &w->faults);
    (void)snprintf(w->namespace, sizeof w->namespace, "suite-ctrl-%u", ++serial);
    (void)world_create(w, kind_find("", "v1", "namespaces"), "{'metadata':{'name':'%s'}}",
                       w->namespace);
    if (!suite->nodes_pid)
        start_nodes(w);
    world_start(w);
}

void world_close(struct world *w)
{
    if (w->controller)
        world_stop(w);
    if (w->nodes)
        informer_close(w->nodes->pods);
    else
        hold_nodes(w, false); /* a test may have failed while it held them */
    world_idle(w, 1);
    free(w->nodes);
    kube_client_free(w->client);
    world_idle(w, 1);
    test_objects_free();
}
