/* The suite of the controllers on a server that runs already:
 *
 *     controller_suite KUBECONFIG
 *
 * ONE_VERSION in the environment: the server has no other versions than the stored ones. NODES_PID: the process that plays its
 * nodes. tests/conformance runs it on the real control plane. */
#include "base/log.h"
#include "base/str.h"
#include "controller/suite.h"
#include "ev/loop.h"
#include "kubeclient/kubeclient.h"

#include <limits.h>
#include <stdio.h>

struct target {
    struct ev_loop *loop;
    const char *file;
};

static struct kube_client *open_client(void *ctx)
{
    struct target *t = ctx;
    struct kubeconfig k;
    struct kube_client *c;
    struct err e;

    if (kubeconfig_load(&(struct kubeconfig_choice){ .file = t->file }, &k, &e) < 0 ||
        kubeclient_new(t->loop, &(struct kubeclient_config){ .kubeconfig = &k }, &c, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        exit(1);
    }
    return c;
}

int main(int argc, char **argv)
{
    struct target t = { .file = argv[1] };
    struct client_suite suite = { .open = open_client, .is_remote = true, .ctx = &t };
    const char *nodes = getenv("NODES_PID");
    uint64_t pid = 0;
    struct err e;
    int failed;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: controller_suite KUBECONFIG\n");
        return 2;
    }
    log_open(STDERR_FILENO, LOG_WARN, LOG_TEXT);
    if (ev_loop_new(&t.loop, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    suite.loop = t.loop;
    suite.has_one_version = getenv("ONE_VERSION") != NULL;
    if (nodes && !str_u64(span_cstr(nodes), INT_MAX, &pid)) {
        (void)fprintf(stderr, "NODES_PID is '%s', not a process\n", nodes);
        return 2;
    }
    suite.nodes_pid = (pid_t)pid;
    failed = controller_suite_run(&suite);
    ev_loop_free(t.loop);
    return failed;
}
