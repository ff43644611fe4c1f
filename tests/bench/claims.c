/* claims: how fast claims get their sandboxes, with API server, controllers, a stand-in for nodes and the load in one process;
 * or with the last two only, against an API server and controllers that run already.
 *
 *     claims DIR|KUBECONFIG RATE SECONDS POOL [BURST]
 *
 * RATE claims a second for so long, each deleted 5 s after it was ready; or BURST claims at once, which stay, with RATE 0. The
 * time of a claim ends when its Ready is on disk, which is when anybody outside could know. One line of JSON on stdout. */
#include "apiserver/local.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "controller/condition.h"
#include "controller/controller.h"
#include "controller/step.h"
#include "ev/timer.h"
#include "kube/informer.h"
#include "kube/queue.h"
#include "kubeclient/kubeclient.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DWELL_MS   5000
#define CLAIMS_MAX 1000000
#define NAMESPACE  "bench"

struct claim {
    struct bench *bench;
    uint64_t begun_us, seen_us, ready_us; /* seen: in this process; ready: on disk */
    struct store_wait wait;
    struct ev_timer dwell;
    bool has_failed;
};

/* What there was so far; differences are what the claims cost. */
struct tally {
    uint64_t writes, cpu_us,
        loop_us;        /* loop: of the thread of the loop, without that of the disk */
    uint64_t passes[4]; /* of the controllers' queues, in their order */
};

struct bench {
    struct ev_loop *loop;
    struct apiserver *server;      /* NULL: it runs elsewhere, */
    struct controller *controller; /* as these then */
    struct kube_client *client;
    struct informer *pods, *claims, *pools;
    struct ev_timer tick, limit;
    uint64_t rate, seconds, pool, burst;
    uint64_t started_us;
    struct tally start;
    uint64_t third_rss_kib; /* when a third of the claims were ready */
    struct claim *all;
    size_t made, ready, failed, most;
    unsigned prepared; /* things that claims need, and that are there */
    bool has_started;
};

/* ---- what it costs ---- */

static uint64_t cpu_us(int who)
{
    struct rusage use;

    (void)getrusage(who, &use);
    return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static struct tally tally(struct bench *b)
{
    struct tally t = { .cpu_us = cpu_us(RUSAGE_SELF), .loop_us = cpu_us(RUSAGE_THREAD) };

    if (b->server)
        t.writes = store_version(b->server->store, STORE_HEAD);
    for (size_t i = 0; b->controller && i < LEN(t.passes); i++) {
        struct queue *q = controller_queue(b->controller, i);
        struct queue_stats s;

        if (!q)
            continue;
        queue_stats(q, &s);
        t.passes[i] = s.done + s.done_after + s.retries;
    }
    return t;
}

static uint64_t rss_kib(void)
{
    OWN_FD int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char text[128] = "";
    struct span rest, size, resident;
    uint64_t pages = 0;

    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return 0;
    rest = span_cstr(text);
    if (span_cut(&rest, ' ', &size) && span_cut(&rest, ' ', &resident))
        (void)str_u64(resident, UINT64_MAX, &pages);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static const struct kind *kind_of_ns(void)
{
    return kind_find("", "v1", "namespaces");
}

static void on_any(void *ctx, const struct kube_answer *answer)
{
    struct bench *b = ctx;

    if (answer->refusal && answer->refusal->code != 404 && answer->refusal->code != 409 &&
        answer->refusal->code != 0) {
        b->failed++;
        (void)fprintf(stderr, "refused: %s\n", buf_cstr(&answer->refusal->message));
    }
}

static void create(struct bench *b, const struct kind *kind, const char *json, kube_done_fn done)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    struct err e;

    if (json_parse(span_cstr(json), NULL, &doc, &e) < 0 ||
        object_parse(kind, json_doc_root(doc), &o, &e) < 0)
        abort();
    (void)kube_call_start(
        b->client,
        &(struct kube_request){ .verb = KUBE_CREATE,
                                .kind = kind,
                                .namespace = kind_is_namespaced(kind) ? NAMESPACE : NULL,
                                .object = o },
        done, b);
}

/* ---- the stand-in for nodes ---- */

static void make_run(struct bench *b, const struct object *pod)
{
    static const char running[] =
        "{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.1.0.1\",\"podIPs\":[{\"ip\":"
        "\"127.1.0.1\"}],\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},{\"type\":"
        "\"Ready\",\"status\":\"True\"}]}}";
    const char *phase = object_text(pod, "status.phase");

    if (object_is_deleting(pod) || (phase && strcmp(phase, "Pending") != 0))
        return;
    (void)kube_call_start(b->client,
                          &(struct kube_request){ .verb = KUBE_PATCH,
                                                  .kind = object_kind(pod),
                                                  .namespace = object_namespace(pod),
                                                  .name = object_name(pod),
                                                  .sub = "status",
                                                  .patch = KUBE_PATCH_MERGE,
                                                  .body = SPAN(running) },
                          on_any, b);
}

static void on_pod(void *ctx, struct object *o, bool is_initial)
{
    (void)is_initial;
    make_run(ctx, o);
}

/* ---- claims ---- */

static void finish(void *ctx)
{
    ev_loop_stop(((struct bench *)ctx)->loop);
}

static void on_dwelt(void *ctx)
{
    struct claim *c = ctx;
    char name[24];

    (void)snprintf(name, sizeof name, "c%zu", (size_t)(c - c->bench->all));
    (void)kube_call_start(c->bench->client,
                          &(struct kube_request){ .verb = KUBE_DELETE,
                                                  .kind = known_kinds()->claim,
                                                  .namespace = NAMESPACE,
                                                  .name = name },
                          on_any, c->bench);
}

static void on_disk(void *ctx, const struct err *e)
{
    struct claim *c = ctx;
    struct bench *b = c->bench;

    c->has_failed = e != NULL;
    c->ready_us = time_mono_us();
    b->ready++;
    if (b->ready == b->most / 3)
        b->third_rss_kib = rss_kib();
    if (b->rate)
        ev_timer_start(b->loop, &c->dwell, DWELL_MS, on_dwelt, c);
    if (b->ready == b->most)
        finish(b);
}

static void look_at(struct bench *b, const struct object *o)
{
    uint64_t i;
    struct claim *c;

    if (!condition_is(object_at(o, "status.conditions"), "Ready", "True") ||
        !str_u64(span_skip(span_cstr(object_name(o)), 1), b->made, &i))
        return;
    c = &b->all[i];
    if (c->seen_us)
        return;
    c->seen_us = time_mono_us();
    if (b->server)
        store_wait(b->server->store, &c->wait, object_version(o), on_disk, c);
    else
        on_disk(c, NULL);
}

static void on_claim(void *ctx, struct object *o, bool is_initial)
{
    (void)is_initial;
    look_at(ctx, o);
}

static void on_claim_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    look_at(ctx, now);
}

static void make_claim(struct bench *b)
{
    char json[192];
    struct claim *c = &b->all[b->made];

    (void)snprintf(json, sizeof json,
                   "{\"metadata\":{\"name\":\"c%zu\"},\"spec\":{\"warmPoolRef\":{\"name\":\"p\"}}}",
                   b->made++);
    c->bench = b;
    c->begun_us = time_mono_us();
    create(b, known_kinds()->claim, json, on_any);
}

static void on_tick(void *ctx)
{
    struct bench *b = ctx;
    uint64_t due = b->rate ? (time_mono_us() - b->started_us) * b->rate / 1000000 : b->most;

    while (b->made < MIN(due, (uint64_t)b->most))
        make_claim(b);
    if (b->made < b->most)
        ev_timer_start(b->loop, &b->tick, 1, on_tick, b);
}

static void on_pool_update(void *ctx, struct object *old, struct object *now)
{
    struct bench *b = ctx;
    int64_t ready = 0;

    (void)old;
    (void)json_i64(object_at(now, "status.readyReplicas"), &ready);
    if (b->has_started || (uint64_t)ready < b->pool)
        return;
    b->has_started = true;
    b->start = tally(b);
    b->started_us = time_mono_us();
    on_tick(b);
}

/* ---- results ---- */

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

    return (a > b) - (a < b);
}

static void report(struct bench *b)
{
    uint64_t *disk = own_array(b->most + 1, sizeof *disk),
             *seen = own_array(b->most + 1, sizeof *seen);
    uint64_t last = 0;
    struct tally end = tally(b);
    size_t n = 0;

    for (size_t i = 0; i < b->made; i++) {
        struct claim *c = &b->all[i];

        if (!c->ready_us || c->has_failed)
            continue;
        disk[n] = c->ready_us - c->begun_us;
        seen[n++] = c->seen_us - c->begun_us;
        last = MAX(last, c->ready_us);
    }
    qsort(disk, n, sizeof *disk, by_number);
    qsort(seen, n, sizeof *seen, by_number);
    printf("{\"claims\":%zu,\"ready\":%zu,\"refused\":%zu,\"disk_p50_us\":%" PRIu64
           ",\"disk_p99_us\":%" PRIu64 ",\"seen_p50_us\":%" PRIu64 ",\"seen_p99_us\":%" PRIu64
           ",\"all_us\":%" PRIu64 ",",
           b->made, n, b->failed, n ? disk[n / 2] : 0, n ? disk[n * 99 / 100] : 0,
           n ? seen[n / 2] : 0, n ? seen[n * 99 / 100] : 0, last - b->started_us);
    printf("\"cpu_us\":%" PRIu64 ",\"loop_us\":%" PRIu64 ",\"writes\":%" PRIu64
           ",\"passes\":{\"sandbox\":%" PRIu64 ",\"template\":%" PRIu64 ",\"pool\":%" PRIu64
           ",\"claim\":%" PRIu64 "},\"third_rss_kib\":%" PRIu64 ",\"rss_kib\":%" PRIu64 "}\n",
           end.cpu_us - b->start.cpu_us, end.loop_us - b->start.loop_us,
           end.writes - b->start.writes, end.passes[0] - b->start.passes[0],
           end.passes[1] - b->start.passes[1], end.passes[2] - b->start.passes[2],
           end.passes[3] - b->start.passes[3], b->third_rss_kib, rss_kib());
    free(disk);
    free(seen);
}

/* ---- life ---- */

static struct informer *listen_to(struct bench *b, const struct kind *kind,
                                  const struct informer_listener *listener)
{
    struct informer *inf;
    struct err e;

    if (informer_new(b->client, &(struct informer_spec){ .kind = kind, .namespace = NAMESPACE },
                     &inf, &e) < 0)
        abort();
    informer_listen(inf, listener, b);
    informer_start(inf);
    return inf;
}

/* Namespace, template, pool: each once the one before is there. */
static void prepare(void *ctx);

static void on_prepared(void *ctx, const struct kube_answer *answer)
{
    on_any(ctx, answer);
    prepare(ctx);
}

static void prepare(void *ctx)
{
    struct bench *b = ctx;
    char json[192];

    switch (b->prepared++) {
    case 0:
        create(b, kind_of_ns(), "{\"metadata\":{\"name\":\"" NAMESPACE "\"}}", on_prepared);
        break;
    case 1:
        create(b, known_kinds()->template,
               "{\"metadata\":{\"name\":\"t\"},\"spec\":{\"podTemplate\":{\"spec\":{"
               "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
               on_prepared);
        break;
    case 2:
        (void)snprintf(json, sizeof json,
                       "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"replicas\":%" PRIu64
                       ",\"sandboxTemplateRef\":{\"name\":\"t\"}}}",
                       b->pool);
        create(b, known_kinds()->pool, json, on_any);
        break;
    }
}

static int open_here(struct bench *b, const char *dir, struct err *e)
{
    struct apiserver_config config = { .data = dir, .listen = "127.0.0.1:0" };

    if (apiserver_open(b->loop, &config, &b->server, e) < 0)
        return -1;
    b->client = local_client_new(b->server, "bench");
    return 0;
}

static int open_there(struct bench *b, const char *file, struct err *e)
{
    struct kubeconfig k;

    return kubeconfig_load(&(struct kubeconfig_choice){ .file = file }, &k, e) < 0
               ? -1
               : kubeclient_new(b->loop, &(struct kubeclient_config){ .kubeconfig = &k },
                                &b->client, e);
}

static int run(struct bench *b, const char *where, struct err *e)
{
    static const struct informer_listener pods = { .on_add = on_pod };
    static const struct informer_listener claims = { .on_add = on_claim,
                                                     .on_update = on_claim_update };
    static const struct informer_listener pools = { .on_update = on_pool_update };
    struct controller_config config = CONTROLLER_CONFIG_INIT;
    struct stat st;
    bool is_there = stat(where, &st) == 0 && S_ISREG(st.st_mode);

    config.started = prepare;
    config.ctx = b;
    if (ev_loop_new(&b->loop, e) < 0 ||
        (is_there ? open_there(b, where, e) : open_here(b, where, e)) < 0)
        return -1;
    b->pods = listen_to(b, known_kinds()->pod, &pods);
    b->claims = listen_to(b, known_kinds()->claim, &claims);
    b->pools = listen_to(b, known_kinds()->pool, &pools);
    if (is_there)
        prepare(b);
    else if (controller_open(b->client, &config, &b->controller, e) < 0)
        return -1;
    ev_timer_start(b->loop, &b->limit, (b->seconds + 60) * 1000, finish, b);
    ev_loop_run(b->loop);
    report(b);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = { 0 };
    struct err e;

    log_open(2, LOG_WARN, LOG_TEXT);
    if (argc < 5 || !str_u64(span_cstr(argv[2]), 100000, &b.rate) ||
        !str_u64(span_cstr(argv[3]), 3600, &b.seconds) ||
        !str_u64(span_cstr(argv[4]), 100000, &b.pool) ||
        (argc > 5 && !str_u64(span_cstr(argv[5]), 100000, &b.burst))) {
        (void)fprintf(stderr, "usage: claims DIR|KUBECONFIG RATE SECONDS POOL [BURST]\n");
        return 2;
    }
    b.most = MIN(b.rate ? b.rate * b.seconds : b.burst, (uint64_t)CLAIMS_MAX);
    b.all = own_array(b.most + 1, sizeof *b.all);
    if (run(&b, argv[1], &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    return 0; /* what is under way ends with the process */
}
