#include "kube/binding.h"

#include <string.h>

#define BODY_MAX_BYTES 4096 /* two names of at most 253 bytes */

bool binding_is_wanted(const struct object *pod)
{
    const char *node = object_text(pod, "spec.nodeName");
    const char *scheduler = object_text(pod, "spec.schedulerName");

    return (!node || !*node) && !object_is_deleting(pod) &&
           json_count(object_at(pod, "spec.schedulingGates")) == 0 &&
           (!scheduler || strcmp(scheduler, "default-scheduler") == 0);
}

void binding_start(struct kube_client *client, const struct object *pod, const char *node,
                   kube_done_fn done, void *ctx)
{
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct err e;

    /* Fits: two names of 253 bytes. */
    (void)buf_addf(&body, &e,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
                   "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\"}}",
                   object_name(pod), node);
    (void)kube_call_start(client,
                          &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .kind = object_kind(pod),
                                                  .namespace = object_namespace(pod),
                                                  .name = object_name(pod),
                                                  .sub = "binding",
                                                  .body = buf_span(&body) },
                          done, ctx);
}
