/* suite: the client suite (kube/client_suite.h) on a server that runs already.
 *
 *     kubeclient_suite KUBECONFIG [STRANGER-KUBECONFIG]
 *
 * ONE_VERSION in the environment: the server has no other versions than the stored ones.
 * tests/conformance runs it on the real control plane and on `silica apiserver`. Tests only. */
#include "kube/client_suite.h"
#include "kubeclient/kubeclient.h"

#include "ev/loop.h"

#include <stdio.h>

struct files {
    struct ev_loop *loop;
    const char *own, *stranger;
};

static struct kube_client *open_file(struct files *f, const char *file)
{
    struct kubeconfig k;
    struct kube_client *c;
    struct err e;

    if (kubeconfig_load(&(struct kubeconfig_choice){ .file = file }, &k, &e) < 0 ||
        kubeclient_new(f->loop, &(struct kubeclient_config){ .kubeconfig = &k, .page_items = 7 },
                       &c, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        exit(1);
    }
    return c;
}

static struct kube_client *open_client(void *ctx)
{
    struct files *f = ctx;

    return open_file(f, f->own);
}

static struct kube_client *open_stranger(void *ctx)
{
    struct files *f = ctx;

    return open_file(f, f->stranger);
}

int main(int argc, char **argv)
{
    struct files f = { .own = argv[1], .stranger = argc > 2 ? argv[2] : NULL };
    struct client_suite suite = { .open = open_client, .ctx = &f };
    struct err e;
    int failed;

    if (argc != 2 && argc != 3) {
        (void)fprintf(stderr, "usage: kubeclient_suite KUBECONFIG [STRANGER-KUBECONFIG]\n");
        return 2;
    }
    if (ev_loop_new(&f.loop, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    suite.loop = f.loop;
    suite.has_one_version = getenv("ONE_VERSION") != NULL;
    if (f.stranger)
        suite.open_stranger = open_stranger;
    failed = client_suite_run(&suite);
    ev_loop_free(f.loop);
    return failed;
}
