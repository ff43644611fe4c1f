/* What the client interface on the store costs a controller in the same process: creates, gets, updates of the status and
 * lists of Sandboxes, one after the other, each started from the answer before it, on a data directory of its own.
 *
 *     kube_local DIR COUNT        one JSON line: calls per second, the same until all of it is on disk, and the processor
 *                                 time of the loop's thread for each call, which the load of the machine does not move
 */
#include "apiserver/local.h"
#include "base/str.h"
#include "base/time.h"

#include <stdio.h>
#include <time.h>

struct bench {
    struct ev_loop *loop;
    struct kube_client *client;
    const struct kind *kind;
    enum { CREATE, GET, STATUS, PATCH, LIST, DELETE } step;
    uint64_t count, at, began_us;
    double began_cpu_us;
    struct object **objects;
    struct store_wait wait;
    struct store *store;
};

static const char *const names[] = { "create", "get", "status", "patch", "list", "delete" };

static const char body[] =
    "{\"metadata\":{\"generateName\":\"bench-\",\"labels\":{\"app\":\"bench\"}},\"spec\":{\"podTemplate\":{\"spec\":{"
    "\"containers\":[{\"name\":\"main\",\"image\":\"busybox\",\"resources\":{\"limits\":{\"memory\":\"64Mi\"}},\"env\":[{"
    "\"name\":\"A\",\"value\":\"1\"}]}]}}}}";
static const char status[] =
    "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"DependenciesReady\",\"message\":\"\","
    "\"lastTransitionTime\":\"2030-01-01T00:00:00Z\"}]}";

static void next(struct bench *b);

static double cpu_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void begin_step(struct bench *b)
{
    b->at = 0;
    b->began_us = time_mono_us();
    b->began_cpu_us = cpu_us();
    next(b);
}

static void on_durable(void *ctx, const struct err *e)
{
    struct bench *b = ctx;

    printf(",\"%s_durable\":%.0f", names[b->step],
           e ? 0 : (double)b->at * 1e6 / (double)(time_mono_us() - b->began_us));
    b->step++;
    begin_step(b);
}

static void on_done(void *ctx, const struct kube_answer *a)
{
    struct bench *b = ctx;

    if (a->refusal) {
        (void)fprintf(stderr, "%s: %s\n", names[b->step], buf_cstr(&a->refusal->message));
        exit(1);
    }
    if (b->step != LIST && b->step != DELETE) {
        object_unref(b->objects[b->at]);
        b->objects[b->at] = object_ref(a->object);
    }
    b->at++;
    next(b);
}

static struct object *with_status(struct object *o)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *made = NULL;
    struct err e;

    if (json_parse(SPAN(status), NULL, &doc, &e) < 0 ||
        object_with(o, "status", doc, &made, &e) < 0)
        abort();
    return made;
}

static void call(struct bench *b, struct kube_request *rq)
{
    rq->kind = b->kind;
    rq->namespace = "default";
    (void)kube_call_start(b->client, rq, on_done, b);
}

static void write_one(struct bench *b)
{
    OWN(object_done) struct object *o = NULL;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (b->step == STATUS) {
        o = with_status(b->objects[b->at]);
        call(b, &(struct kube_request){
                    .verb = KUBE_UPDATE, .name = object_name(o), .sub = "status", .object = o });
        return;
    }
    if (json_parse(SPAN(body), NULL, &doc, &e) < 0 ||
        object_parse(b->kind, json_doc_root(doc), &o, &e) < 0)
        abort();
    call(b, &(struct kube_request){ .verb = KUBE_CREATE, .object = o });
}

static void next(struct bench *b)
{
    uint64_t count = b->step == LIST ? 100 : b->count;

    if (b->step > DELETE) {
        ev_loop_stop(b->loop);
        return;
    }
    if (b->at == count) {
        printf("%s\"%s\":%.0f,\"%s_cpu_us\":%.1f", b->step ? "," : "{", names[b->step],
               (double)count * 1e6 / (double)(time_mono_us() - b->began_us), names[b->step],
               (cpu_us() - b->began_cpu_us) / (double)count);
        store_wait(b->store, &b->wait, store_version(b->store, STORE_HEAD), on_durable, b);
        return;
    }
    switch (b->step) {
    case CREATE:
    case STATUS:
        write_one(b);
        break;
    case GET:
        call(b, &(struct kube_request){ .verb = KUBE_GET, .name = object_name(b->objects[b->at]) });
        break;
    case PATCH:
        call(b, &(struct kube_request){
                    .verb = KUBE_PATCH,
                    .name = object_name(b->objects[b->at]),
                    .patch = KUBE_PATCH_MERGE,
                    .body = SPAN("{\"metadata\":{\"annotations\":{\"bench\":\"patched\"}}}") });
        break;
    case LIST:
        call(b, &(struct kube_request){ .verb = KUBE_LIST });
        break;
    case DELETE:
        call(b, &(struct kube_request){ .verb = KUBE_DELETE,
                                        .name = object_name(b->objects[b->at]),
                                        .uid = object_uid(b->objects[b->at]) });
        break;
    }
}

int main(int argc, char **argv)
{
    struct bench b = { .kind = kind_find("agents.x-k8s.io", NULL, "sandboxes") };
    struct apiserver *s = NULL;
    struct err e;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: kube_local DIR COUNT\n");
        return 2;
    }
    if (!str_u64(span_cstr(argv[2]), 1000000, &b.count)) {
        (void)fprintf(stderr, "kube_local: COUNT is a number\n");
        return 2;
    }
    b.objects = own_array(b.count, sizeof *b.objects);
    if (ev_loop_new(&b.loop, &e) < 0 ||
        apiserver_open(b.loop,
                       &(struct apiserver_config){ .data = argv[1], .listen = "127.0.0.1:0" }, &s,
                       &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    b.store = s->store;
    b.client = local_client_new(s, "bench");
    begin_step(&b);
    ev_loop_run(b.loop);
    printf("}\n");
    for (uint64_t i = 0; i < b.count; i++)
        object_unref(b.objects[i]);
    free(b.objects);
    kube_client_free(b.client);
    apiserver_close(s);
    ev_loop_free(b.loop);
    return 0;
}
