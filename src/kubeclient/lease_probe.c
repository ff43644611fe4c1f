/* lease_probe: one who wants a Lease, for tests where the public library competes with him.
 *
 *     lease_probe KUBECONFIG NAMESPACE NAME IDENTITY SECONDS
 *
 * Prints a line for each turn of events. The end of its standard input makes it give the Lease back and go. Tests only. */
#include "ev/io.h"
#include "kube/lease.h"
#include "kubeclient/kubeclient.h"

#include "base/str.h"

#include <stdio.h>

struct probe {
    struct ev_loop *loop;
    struct lease *lease;
    struct ev_io input;
};

static void say(const char *what, const char *who)
{
    (void)printf("%s%s%s\n", what, *who ? " " : "", who);
    (void)fflush(stdout);
}

static void on_started(void *ctx)
{
    (void)ctx;
    say("leads", "");
}

static void on_stopped(void *ctx)
{
    (void)ctx;
    say("lost", "");
}

static void on_leader(void *ctx, const char *identity)
{
    (void)ctx;
    say("leader", *identity ? identity : "nobody");
}

static void on_closed(void *ctx)
{
    struct probe *p = ctx;

    say("closed", "");
    ev_loop_stop(p->loop);
}

static void on_input(void *ctx, unsigned ready)
{
    struct probe *p = ctx;
    char byte;

    (void)ready;
    if (read(STDIN_FILENO, &byte, 1) > 0)
        return;
    ev_io_close(&p->input);
    lease_close(p->lease, on_closed, p);
}

static int run(char **argv, uint64_t seconds, struct err *e)
{
    struct probe p = { 0 };
    struct kubeconfig k;
    struct kube_client *c;

    if (ev_loop_new(&p.loop, e) < 0 ||
        kubeconfig_load(&(struct kubeconfig_choice){ .file = argv[1] }, &k, e) < 0 ||
        kubeclient_new(p.loop, &(struct kubeclient_config){ .kubeconfig = &k }, &c, e) < 0 ||
        ev_io_open_shared(&p.input, p.loop, STDIN_FILENO, on_input, &p, e) < 0)
        return -1;
    p.lease = lease_start(c, &(struct lease_spec){ .namespace = argv[2],
                                                   .name = argv[3],
                                                   .identity = argv[4],
                                                   .duration_ms = seconds * 1000,
                                                   .renew_ms = seconds * 1000 * 2 / 3,
                                                   .retry_ms = 200,
                                                   .on_started = on_started,
                                                   .on_stopped = on_stopped,
                                                   .on_leader = on_leader,
                                                   .ctx = &p });
    ev_io_want(&p.input, EV_READ);
    ev_loop_run(p.loop);
    kube_client_free(c);
    ev_loop_free(p.loop);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t seconds;
    struct err e;

    if (argc != 6 || !str_u64(span_cstr(argv[5]), 3600, &seconds) || seconds == 0) {
        (void)fprintf(stderr, "usage: lease_probe KUBECONFIG NAMESPACE NAME IDENTITY SECONDS\n");
        return 2;
    }
    if (run(argv, seconds, &e) == 0)
        return 0;
    (void)fprintf(stderr, "lease_probe: %s\n", e.msg);
    return 1;
}
