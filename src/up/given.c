#include "up/given.h"

#include "base/json.h"
#include "up/names.h"

#include <stdio.h>

static const struct kind *the_kind(const struct given *w)
{
    const struct kind *kind = kind_find(w->group, NULL, w->plural);

    assert(kind);
    return kind;
}

void given_create(struct kube_client *client, const struct given *w, kube_done_fn done, void *ctx)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *object = NULL;
    struct err e;

    if (json_parse(span_cstr(w->text), NULL, &doc, &e) < 0 ||
        object_parse(the_kind(w), json_doc_root(doc), &object, &e) < 0)
        abort();
    (void)kube_call_start(client,
                          &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .kind = the_kind(w),
                                                  .namespace = w->namespace,
                                                  .object = object,
                                                  .manager = UP_MANAGER },
                          done, ctx);
}

void given_apply(struct kube_client *client, const struct given *w, const char *name,
                 kube_done_fn done, void *ctx)
{
    OWN(buf_done) struct buf body = BUF_INIT(2 * GIVEN_TEXT_MAX_BYTES);
    const struct kind *kind = the_kind(w);
    struct err e;

    if (buf_addf(&body, &e, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",%s",
                 kind_api_version(kind, &kind->versions[0]), kind->name, w->text + 1) < 0)
        abort();
    (void)kube_call_start(client,
                          &(struct kube_request){ .verb = KUBE_PATCH,
                                                  .kind = kind,
                                                  .namespace = w->namespace,
                                                  .name = name,
                                                  .body = buf_span(&body),
                                                  .patch = KUBE_PATCH_APPLY,
                                                  .is_forced = true,
                                                  .manager = UP_MANAGER },
                          done, ctx);
}

void given_status(struct kube_client *client, const struct given *w, const char *name,
                  kube_done_fn done, void *ctx)
{
    (void)kube_call_start(client,
                          &(struct kube_request){ .verb = KUBE_PATCH,
                                                  .kind = the_kind(w),
                                                  .namespace = w->namespace,
                                                  .name = name,
                                                  .sub = "status",
                                                  .body = span_cstr(w->text),
                                                  .patch = KUBE_PATCH_MERGE,
                                                  .manager = UP_MANAGER },
                          done, ctx);
}
