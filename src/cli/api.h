/* api: calls to the API server that is up, for commands that wait for the answer.
 *
 *     OWN(api_done) struct api api = API_INIT;
 *     api_open(&api, kubeconfig, e), api_call(&api, &request, on_answer, ctx, e)
 *
 * Owns:     a loop and a client of it. Everything blocks; each call has the client's deadline.
 */
#ifndef SILICA_CLI_API_H
#define SILICA_CLI_API_H

#include "kube/client.h"

struct api {
    struct ev_loop *loop;
    struct kube_client *client;
};

/* clang-format off */
#define API_INIT { NULL, NULL }
/* clang-format on */

int api_open(struct api *a, const char *kubeconfig, struct err *e);
void api_done(struct api *a);
/* fn gets what was done (or is NULL); a refusal is an error. ERR_EXISTS: 409; ERR_NOT_FOUND: 404. */
int api_call(struct api *a, const struct kube_request *rq, kube_done_fn fn, void *ctx,
             struct err *e);

#endif
