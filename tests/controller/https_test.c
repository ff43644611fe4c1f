/* The suite of the controllers over HTTPS: client and server on one loop, TLS and HTTP/2 between them. */
#include "apiserver/apiserver.h"
#include "base/log.h"
#include "base/scratch.h"
#include "controller/suite.h"
#include "kubeclient/kubeclient.h"

#include <stdio.h>

static struct kube_client *open_client(void *ctx)
{
    struct apiserver *server = ctx;
    struct kube_client *c = NULL;
    struct kubeconfig k;
    struct err e;

    if (kubeconfig_load(&(struct kubeconfig_choice){ .file = server->kubeconfig }, &k, &e) < 0 ||
        kubeclient_new(server->loop, &(struct kubeclient_config){ .kubeconfig = &k }, &c, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        exit(1);
    }
    return c;
}

int main(void)
{
    struct apiserver *server = NULL;
    struct client_suite suite = { .open = open_client, .is_remote = true };
    struct scratch dir;
    struct err e;
    int failed;

    log_open(STDERR_FILENO, LOG_WARN, LOG_TEXT);
    scratch_make(&dir);
    if (ev_loop_new(&suite.loop, &e) < 0 ||
        apiserver_open(suite.loop,
                       &(struct apiserver_config){ .data = dir.path, .listen = "127.0.0.1:0" },
                       &server, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    suite.ctx = server;
    failed = controller_suite_run(&suite);
    apiserver_close(server);
    ev_loop_free(suite.loop);
    scratch_remove(&dir);
    return failed;
}
