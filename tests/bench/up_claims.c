/* up_claims: how long a client of `silica up`, or of a cluster, waits for sandboxes: from the start of a claim's creation until a
 * watch of the same client shows it ready, over HTTPS on connections that are kept.
 *
 *     up_claims KUBECONFIG POOL each COUNT        one claim after the other; each is deleted, and the next made when all is quiet:
 *                                                 what the one before left to do is not this one's
 *     up_claims KUBECONFIG POOL stay COUNT        all of them at once, and they stay
 *     up_claims KUBECONFIG POOL rate COUNT RATE   so many a second, whether the ones before are ready or not, and they stay
 *     up_claims KUBECONFIG POOL loop COUNT MOST   at most so many that are not ready; each that is makes room, and they stay
 *
 * NAMESPACE names another namespace than default. But for "each" it is the caller who sees to a full pool. Unready ones are those
 * whose creation was asked for.
 * A pool with sandboxes gives warm ones, a pool of none cold ones. One line of JSON on stdout. */
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "bench/measure.h"
#include "controller/condition.h"
#include "ev/timer.h"
#include "kube/informer.h"
#include "kubeclient/kubeclient.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define COUNT_MAX 100000
#define AT_ONCE   32 /* creations on their way */
#define LOOK_MS   10 /* between two looks whether all is quiet */
#define QUIET_LOOKS                                                                                \
    5 /* that find nothing new, one after the other: Events are written 20 ms late */
#define PATIENCE_MS 60000 /* for the next thing to happen */
#define TICK_MS     2     /* between two looks at what the rate asks for */
#define GROUP       "extensions.agents.x-k8s.io"

struct claim {
    struct bench *bench;
    int64_t begun, answered, ready; /* ns; 0: not yet */
};

struct bench {
    struct ev_loop *loop;
    struct kube_client *client;
    struct informer *claims;
    struct ev_timer look, patience, tick;
    const char *pool, *namespace;
    char prefix[32]; /* of its claims: others may be there from runs before */
    bool is_each;
    double rate; /* claims a second; 0: as they are answered */
    size_t most; /* unready at a time; 0: any number */
    size_t count, made, answered, ready;
    size_t pods;      /* when all is quiet; SIZE_MAX: not known yet */
    uint64_t version; /* of the store, at the last look */
    unsigned quiet;   /* looks since it changed */
    int64_t started;
    struct claim *all;
};

static void look(void *ctx);

static void lose_patience(void *ctx)
{
    struct bench *b = ctx;

    (void)fprintf(stderr, "up_claims: nothing happened for %d s; %zu made, %zu ready\n",
                  PATIENCE_MS / 1000, b->made, b->ready);
    exit(1);
}

static void progress(struct bench *b)
{
    ev_timer_start(b->loop, &b->patience, PATIENCE_MS, lose_patience, b);
}

static void must_be_done(const struct kube_answer *answer, const char *what)
{
    if (!answer->refusal)
        return;
    (void)fprintf(stderr, "up_claims: %s: %s\n", what, buf_cstr(&answer->refusal->message));
    exit(1);
}

/* ---- one claim ---- */

static void make_some(struct bench *b);

static void on_created(void *ctx, const struct kube_answer *answer)
{
    struct claim *c = ctx;

    must_be_done(answer, "create");
    c->answered = now_ns();
    c->bench->answered++;
    make_some(c->bench);
}

static void make_claim(struct bench *b)
{
    const struct kind *kind = kind_find(GROUP, NULL, "sandboxclaims");
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    struct claim *c = &b->all[b->made];
    char json[256];
    struct err e;

    (void)snprintf(json, sizeof json,
                   "{\"metadata\":{\"name\":\"%s%zu\"},"
                   "\"spec\":{\"warmPoolRef\":{\"name\":\"%s\"}}}",
                   b->prefix, b->made++, b->pool);
    must(json_parse(span_cstr(json), NULL, &doc, &e) == 0 &&
             object_parse(kind, json_doc_root(doc), &o, &e) == 0,
         "a claim");
    c->bench = b;
    c->begun = now_ns();
    (void)kube_call_start(
        b->client,
        &(struct kube_request){
            .verb = KUBE_CREATE, .kind = kind, .namespace = b->namespace, .object = o },
        on_created, c);
}

static void make_some(struct bench *b)
{
    while (!b->is_each && b->rate <= 0 && b->made < b->count && b->made - b->answered < AT_ONCE &&
           (!b->most || b->made - b->ready < b->most))
        make_claim(b);
}

/* What the rate asks for by now; one that comes late does not make the next ones late. */
static void make_due(void *ctx)
{
    struct bench *b = ctx;
    double due = (double)(now_ns() - b->started) / 1e9 * b->rate;

    while (b->made < b->count && (double)b->made <= due)
        make_claim(b);
    if (b->made < b->count)
        ev_timer_start(b->loop, &b->tick, TICK_MS, make_due, b);
}

static void on_deleted(void *ctx, const struct kube_answer *answer)
{
    struct bench *b = ctx;

    must_be_done(answer, "delete");
    ev_timer_start(b->loop, &b->look, LOOK_MS, look, b);
}

static void delete_claim(struct bench *b, const struct object *o)
{
    (void)kube_call_start(b->client,
                          &(struct kube_request){ .verb = KUBE_DELETE,
                                                  .kind = object_kind(o),
                                                  .namespace = b->namespace,
                                                  .name = object_name(o) },
                          on_deleted, b);
}

/* What the watch shows of a claim. */
static void see(struct bench *b, const struct object *o)
{
    struct span name = span_cstr(object_name(o));
    struct claim *c;
    uint64_t i;

    if (!span_starts(name, b->prefix) ||
        !str_u64(span_skip(name, strlen(b->prefix)), COUNT_MAX, &i) || i >= b->made ||
        b->all[i].ready || !condition_is(object_at(o, "status.conditions"), "Ready", "True"))
        return;
    c = &b->all[i];
    c->ready = now_ns();
    b->ready++;
    progress(b);
    if (b->is_each)
        delete_claim(b, o);
    else if (b->ready == b->count)
        ev_loop_stop(b->loop);
    else
        make_some(b);
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    (void)is_initial;
    see(ctx, o);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    see(ctx, now);
}

/* ---- quiet: the pool is full, Pods are as many as they were, and nobody writes ---- */

static bool is_quiet(struct bench *b, uint64_t version)
{
    b->quiet = version == b->version ? b->quiet + 1 : 0;
    b->version = version;
    return b->quiet >= QUIET_LOOKS;
}

static void on_pods(void *ctx, const struct kube_answer *answer)
{
    struct bench *b = ctx;

    must_be_done(answer, "list pods");
    if (b->pods == SIZE_MAX)
        b->pods = answer->item_count;
    if (!is_quiet(b, answer->version) || answer->item_count != b->pods) {
        ev_timer_start(b->loop, &b->look, LOOK_MS, look, b);
        return;
    }
    if (b->ready == b->count) {
        ev_loop_stop(b->loop);
        return;
    }
    if (!b->started)
        b->started = now_ns();
    make_claim(b);
}

static void on_pool(void *ctx, const struct kube_answer *answer)
{
    struct bench *b = ctx;
    int64_t wanted = 0, ready = 0;

    must_be_done(answer, "get the pool");
    (void)json_i64(object_at(answer->object, "spec.replicas"), &wanted);
    (void)json_i64(object_at(answer->object, "status.readyReplicas"), &ready);
    if (ready != wanted)
        ev_timer_start(b->loop, &b->look, LOOK_MS, look, b);
    else
        (void)kube_call_start(b->client,
                              &(struct kube_request){ .verb = KUBE_LIST,
                                                      .kind = kind_find("", "v1", "pods"),
                                                      .namespace = b->namespace },
                              on_pods, b);
}

static void look(void *ctx)
{
    struct bench *b = ctx;

    (void)kube_call_start(
        b->client,
        &(struct kube_request){ .verb = KUBE_GET,
                                .kind = kind_find(GROUP, NULL, "sandboxwarmpools"),
                                .namespace = b->namespace,
                                .name = b->pool },
        on_pool, b);
}

static void on_synced(void *ctx)
{
    struct bench *b = ctx;

    if (b->is_each) {
        look(b);
        return;
    }
    b->started = now_ns();
    if (b->rate > 0)
        make_due(b);
    else
        make_some(b);
}

/* ---- life ---- */

static void report(const struct bench *b)
{
    int64_t *ready = calloc(b->count, sizeof *ready),
            *answered = calloc(b->count, sizeof *answered);
    int64_t last = b->started;

    must(ready && answered, "memory");
    for (size_t i = 0; i < b->count; i++) {
        ready[i] = b->all[i].ready - b->all[i].begun;
        answered[i] = b->all[i].answered - b->all[i].begun;
        last = MAX(last, b->all[i].ready);
    }
    sort_values(ready, b->count);
    sort_values(answered, b->count);
    printf("{\"count\":%zu,\"p50_us\":%.0f,\"p90_us\":%.0f,\"p99_us\":%.0f,\"max_us\":%.0f,"
           "\"answer_p50_us\":%.0f,\"all_us\":%" PRId64 ",\"took_us\":[",
           b->count, percentile_us(ready, b->count, 0.5), percentile_us(ready, b->count, 0.9),
           percentile_us(ready, b->count, 0.99), percentile_us(ready, b->count, 1),
           percentile_us(answered, b->count, 0.5), (last - b->started) / 1000);
    for (size_t i = 0; i < b->count; i++) /* for those who put several runs together */
        printf("%s%" PRId64, i ? "," : "", ready[i] / 1000);
    printf("]}\n");
    free(ready);
    free(answered);
}

static int run(struct bench *b, const char *file, struct err *e)
{
    static const struct informer_listener listener = { .on_add = on_add,
                                                       .on_update = on_update,
                                                       .on_synced = on_synced };
    struct kubeconfig k;

    if (ev_loop_new(&b->loop, e) < 0 ||
        kubeconfig_load(&(struct kubeconfig_choice){ .file = file }, &k, e) < 0 ||
        kubeclient_new(b->loop, &(struct kubeclient_config){ .kubeconfig = &k }, &b->client, e) <
            0 ||
        informer_new(b->client,
                     &(struct informer_spec){ .kind = kind_find(GROUP, NULL, "sandboxclaims"),
                                              .namespace = b->namespace },
                     &b->claims, e) < 0)
        return -1;
    informer_listen(b->claims, &listener, b);
    informer_start(b->claims);
    progress(b);
    ev_loop_run(b->loop);
    report(b);
    return 0;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: up_claims KUBECONFIG POOL each|stay COUNT\n"
                          "       up_claims KUBECONFIG POOL rate COUNT RATE\n"
                          "       up_claims KUBECONFIG POOL loop COUNT MOST\n");
    return 2;
}

/* more: what stands behind the count; or NULL. */
static bool set_mode(struct bench *b, const char *mode, const char *more)
{
    long n = more ? number(more, "rate or most") : 0;

    b->is_each = strcmp(mode, "each") == 0;
    if (b->is_each || strcmp(mode, "stay") == 0)
        return !more;
    if (strcmp(mode, "rate") == 0)
        b->rate = (double)n;
    else if (strcmp(mode, "loop") == 0)
        b->most = (size_t)n;
    return n > 0 && (b->rate > 0 || b->most);
}

int main(int argc, char **argv)
{
    static struct bench b = { .pods = SIZE_MAX };
    struct err e;

    log_open(2, LOG_WARN, LOG_TEXT);
    if (argc != 5 && argc != 6)
        return usage();
    b.pool = argv[2];
    b.namespace = getenv("NAMESPACE") ? getenv("NAMESPACE") : "default";
    (void)snprintf(b.prefix, sizeof b.prefix, "bench-%ld-", (long)getpid());
    if (!set_mode(&b, argv[3], argv[5]))
        return usage();
    b.count = (size_t)number(argv[4], "count");
    must(b.count > 0 && b.count <= COUNT_MAX, "count");
    b.all = calloc(b.count, sizeof *b.all);
    must(b.all != NULL, "memory");
    if (run(&b, argv[1], &e) < 0) {
        (void)fprintf(stderr, "up_claims: %s\n", e.msg);
        return 1;
    }
    return 0; /* what is under way ends with the process */
}
