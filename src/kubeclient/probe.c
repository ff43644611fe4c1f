/* probe: a client on its own, for tests that kill servers and cut connections, and to measure it.
 *
 *     kubeclient_probe KUBECONFIG NAMESPACE create COUNT IN-FLIGHT [quiet]
 *         config maps p0, p1, ...: "ok NAME VERSION", "lost NAME" where no answer came, "refused NAME CODE MESSAGE"; then
 *         "done N SECONDS"
 *     kubeclient_probe KUBECONFIG NAMESPACE follow
 *         the config maps of now ("has NAME VERSION", then "list VERSION"), then what happens to them ("+NAME VERSION",
 *         "~", "-"); "gone" where a list is needed again, and then that; until standard input ends
 *     kubeclient_probe KUBECONFIG NAMESPACE get NAME
 *         once for each line of standard input: "ok NAME VERSION", "lost ...", "refused ..."
 *
 * PING_MS in the environment: a silent connection is asked after so long. Tests only. */
#include "base/str.h"
#include "base/time.h"
#include "ev/child.h"
#include "ev/io.h"
#include "ev/loop.h"
#include "kubeclient/kubeclient.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define COUNT_MAX 10000000

struct probe {
    struct ev_loop *loop;
    struct kube_client *client;
    const struct kind *maps;
    const char *namespace, *name;
    struct ev_io input;
    /* create */
    uint64_t next, count, done, failed;
    bool is_quiet;
    uint64_t began_us;
    bool is_over;
};

/* One of those in flight. */
struct lane {
    struct probe *probe;
    char name[32];
};

static void follow(struct probe *p);

static void print_outcome(const char *name, const struct kube_answer *a)
{
    if (!a->refusal)
        (void)printf("ok %s %llu\n", name, (unsigned long long)object_version(a->object));
    else if (a->refusal->code == 0)
        (void)printf("lost %s %s\n", name, buf_cstr(&a->refusal->message));
    else
        (void)printf("refused %s %d %s\n", name, a->refusal->code, buf_cstr(&a->refusal->message));
    (void)fflush(stdout);
}

/* ---- create ---- */

static void on_created(void *ctx, const struct kube_answer *a);

static void create_next(struct lane *l)
{
    struct probe *p = l->probe;
    struct kube_request rq = { .verb = KUBE_CREATE, .kind = p->maps, .namespace = p->namespace };
    OWN(buf_done) struct buf body = BUF_INIT(1024);
    struct err e;

    if (p->next == p->count)
        return;
    (void)snprintf(l->name, sizeof l->name, "p%llu", (unsigned long long)p->next++);
    /* Fits: two short names. */
    (void)buf_addf(&body, &e,
                   "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
                   "\"data\":{\"n\":\"%200s\"}}",
                   l->name, l->name);
    rq.body = buf_span(&body);
    (void)kube_call_start(p->client, &rq, on_created, l);
}

static void on_created(void *ctx, const struct kube_answer *a)
{
    struct lane *l = ctx;
    struct probe *p = l->probe;

    p->failed += a->refusal != NULL;
    if (!p->is_quiet || a->refusal)
        print_outcome(l->name, a);
    if (++p->done == p->count) {
        (void)printf("done %llu %.3f\n", (unsigned long long)(p->done - p->failed),
                     (double)(time_mono_us() - p->began_us) / 1e6);
        ev_loop_stop(p->loop);
        return;
    }
    create_next(l);
}

/* ---- follow ---- */

static void on_event(void *ctx, enum kube_event type, struct object *o, uint64_t version)
{
    (void)ctx;
    if (o)
        (void)printf("%c%s %llu\n", "+~-"[type], object_name(o), (unsigned long long)version);
    (void)fflush(stdout);
}

static void on_end(void *ctx, const struct status *why)
{
    struct probe *p = ctx;

    if (p->is_over)
        return;
    (void)printf("gone %d %s\n", why->code, buf_cstr(&why->message));
    (void)fflush(stdout);
    if (why->code == 410)
        follow(p);
    else
        ev_loop_stop(p->loop);
}

static const struct kube_watch_events watch_events = { on_event, on_end };

static void on_listed(void *ctx, const struct kube_answer *a)
{
    struct probe *p = ctx;
    const struct kube_watch_spec spec = { .kind = p->maps,
                                          .namespace = p->namespace,
                                          .from_version = a->version };

    if (p->is_over)
        return;
    if (a->refusal) {
        print_outcome("list", a);
        follow(p);
        return;
    }
    for (size_t i = 0; i < a->item_count; i++)
        (void)printf("has %s %llu\n", object_name(a->items[i]),
                     (unsigned long long)object_version(a->items[i]));
    (void)printf("list %llu\n", (unsigned long long)a->version);
    (void)fflush(stdout);
    (void)kube_watch_start(p->client, &spec, &watch_events, p);
}

static void follow(struct probe *p)
{
    (void)kube_call_start(
        p->client,
        &(struct kube_request){ .verb = KUBE_LIST, .kind = p->maps, .namespace = p->namespace },
        on_listed, p);
}

/* ---- get ---- */

static void on_got(void *ctx, const struct kube_answer *a)
{
    struct probe *p = ctx;

    print_outcome(p->name, a);
}

static void on_input(void *ctx, unsigned ready)
{
    struct probe *p = ctx;
    char bytes[256];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

    (void)ready;
    if (n <= 0)
        ev_loop_stop(p->loop);
    for (ssize_t i = 0; i < n && p->name; i++) {
        if (bytes[i] == '\n')
            (void)kube_call_start(
                p->client,
                &(struct kube_request){
                    .verb = KUBE_GET, .kind = p->maps, .namespace = p->namespace, .name = p->name },
                on_got, p);
    }
}

/* ---- all of it ---- */

static int fail(const struct err *e)
{
    (void)fprintf(stderr, "%s\n", e->msg);
    return 1;
}

static int run(struct probe *p, int argc, char **argv, struct err *e)
{
    uint64_t in_flight = 0;
    struct lane *lanes;

    p->namespace = argv[2];
    p->maps = kind_find("", NULL, "configmaps");
    if (strcmp(argv[3], "create") == 0 && argc >= 6 &&
        str_u64(span_cstr(argv[4]), COUNT_MAX, &p->count) &&
        str_u64(span_cstr(argv[5]), 1024, &in_flight)) {
        lanes = own_array(in_flight, sizeof *lanes);
        p->is_quiet = argc > 6;
        p->began_us = time_mono_us();
        for (uint64_t i = 0; i < in_flight; i++) {
            lanes[i].probe = p;
            create_next(&lanes[i]);
        }
        ev_loop_run(p->loop);
        free(lanes);
        return 0;
    }
    p->name = strcmp(argv[3], "get") == 0 && argc == 5 ? argv[4] : NULL;
    if (!p->name && strcmp(argv[3], "follow") != 0)
        return err_set(e, ERR_USAGE, "see the top of probe.c for what it does");
    if (ev_io_open_shared(&p->input, p->loop, STDIN_FILENO, on_input, p, e) < 0)
        return -1;
    ev_io_want(&p->input, EV_READ);
    if (!p->name)
        follow(p);
    ev_loop_run(p->loop);
    ev_io_close(&p->input);
    return 0;
}

int main(int argc, char **argv)
{
    const char *ping = getenv("PING_MS");
    struct kubeclient_config config = { 0 };
    struct kubeconfig k;
    struct probe p = { 0 };
    struct err e = { 0 };
    int r;

    if (argc < 4) {
        (void)fprintf(stderr, "usage: kubeclient_probe KUBECONFIG NAMESPACE VERB ...\n");
        return 2;
    }
    if (ping && !str_u64(span_cstr(ping), 60000, &config.ping_idle_ms))
        return 2;
    config.ping_wait_ms = config.ping_idle_ms;
    config.kubeconfig = &k;
    if (ev_loop_new(&p.loop, &e) < 0 ||
        ev_children_open(p.loop, NULL, NULL, NULL, &config.children, &e) < 0 ||
        kubeconfig_load(&(struct kubeconfig_choice){ .file = argv[1] }, &k, &e) < 0 ||
        kubeclient_new(p.loop, &config, &p.client, &e) < 0)
        return fail(&e);
    r = run(&p, argc, argv, &e);
    p.is_over = true;
    kube_client_free(p.client);
    for (int i = 0; i < 100; i++)
        ev_loop_turn(p.loop);
    ev_children_close(config.children);
    ev_loop_free(p.loop);
    return r < 0 ? fail(&e) : 0;
}
