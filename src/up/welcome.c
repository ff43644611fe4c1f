#include "up/welcome.h"

#include "base/json_edit.h"
#include "up/names.h"
#include "up/given.h"

#include <stdio.h>
#include <string.h>

#define RECORD_NAME "silica-welcome"

/* What sandboxes of the SDKs' examples are made of. The image names no registry: the node knows it. */
#define PROBE "{\"httpGet\":{\"path\":\"/\",\"port\":8888},\"periodSeconds\":1}"
#define CONTAINER_(name, more)                                                                     \
    "{\"name\":\"" name "\",\"image\":\"silica/python-runtime-sandbox:latest\","                   \
    "\"ports\":[{\"containerPort\":8888,\"name\":\"http\"}],\"readinessProbe\":" PROBE more "}"
#define PODS_(containers)                                                                          \
    "\"podTemplate\":{\"spec\":{\"containers\":[" containers                                       \
    "],\"restartPolicy\":\"OnFailure\",\"terminationGracePeriodSeconds\":5,"                       \
    "\"automountServiceAccountToken\":false}}"
#define WORKSPACE                                                                                  \
    "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"workspace\"},\"spec\":{\"accessModes\":"  \
    "[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}],"                   \
    "\"volumeClaimTemplatesPolicy\":\"Overrides\""
#define TEMPLATE(name, spec)                                                                       \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\"},\"spec\":{\"envVarsInjectionPolicy\":\"Overrides\"," spec "}}"
#define POOL(name, template, n)                                                                    \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"replicas\":" n                              \
    ",\"sandboxTemplateRef\":{\"name\":\"" template "\"}}}"

/* clang-format off */
static const struct welcome_row {
    const char *key, *plural, *text; /* key: in the record, for ever */
} rows[] = {
    { "template.python-sandbox-template", "sandboxtemplates", TEMPLATE("python-sandbox-template", PODS_(CONTAINER_("python-runtime", ",\"volumeMounts\":[{\"name\":\"workspace\",\"mountPath\":\"/workspace\"}]")) "," WORKSPACE) },
    { "template.simple-sandbox-template", "sandboxtemplates", TEMPLATE("simple-sandbox-template", PODS_(CONTAINER_("sandbox", ",\"volumeMounts\":[{\"name\":\"workspace\",\"mountPath\":\"/workspace\"}]")) "," WORKSPACE) },
    { "pool.python-sandbox-pool", "sandboxwarmpools", POOL("python-sandbox-pool", "python-sandbox-template", "4") },
    { "pool.python-sandbox-warmpool", "sandboxwarmpools", POOL("python-sandbox-warmpool", "python-sandbox-template", "2") },
};
/* clang-format on */

struct welcome {
    struct kube_client *client;
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
    size_t waiting; /* for answers */
    struct err e;
    bool has_failed;
};

static void finish(struct welcome *w)
{
    w->done(w->ctx, w->has_failed ? &w->e : NULL);
    free(w);
}

static bool is_given(const struct object *record, const struct welcome_row *row)
{
    return record && json_get(object_at(record, "data"), row->key);
}

static void note(struct welcome *w, const struct kube_answer *answer)
{
    if (!answer->refusal || answer->refusal->code == 409 || w->has_failed)
        return;
    w->has_failed = true;
    (void)err_set(&w->e, ERR_INTERNAL, "cannot make what a new directory has: %s",
                  buf_cstr(&answer->refusal->message));
}

static void on_recorded(void *ctx, const struct kube_answer *answer)
{
    note(ctx, answer);
    finish(ctx);
}

/* After the objects: killed in between, the next start meets them and goes on. */
static void record(struct welcome *w)
{
    OWN(buf_done) struct buf text = BUF_INIT(GIVEN_TEXT_MAX_BYTES);
    struct json_out out;
    struct err e;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "metadata"), json_out_object_begin(&out);
    json_out_key(&out, "name"), json_out_cstr(&out, RECORD_NAME);
    json_out_object_end(&out);
    json_out_key(&out, "data"), json_out_object_begin(&out);
    EACH(row, rows) {
        json_out_key(&out, row->key), json_out_cstr(&out, "given");
    }
    json_out_object_end(&out);
    json_out_object_end(&out);
    if (json_out_end(&out, &e) < 0)
        abort(); /* constants */
    given_apply(w->client, &(struct given){ "", "configmaps", UP_NAMESPACE, buf_cstr(&text) },
                RECORD_NAME, on_recorded, w);
}

static void on_given(void *ctx, const struct kube_answer *answer)
{
    struct welcome *w = ctx;

    note(w, answer);
    if (--w->waiting > 0)
        return;
    if (w->has_failed)
        finish(w);
    else
        record(w);
}

static void on_record(void *ctx, const struct kube_answer *answer)
{
    struct welcome *w = ctx;

    if (answer->refusal && answer->refusal->code != 404) {
        note(w, answer);
        finish(w);
        return;
    }
    w->waiting = 1; /* this one, until all are begun */
    EACH(row, rows) {
        if (is_given(answer->object, row))
            continue;
        w->waiting++;
        given_create(w->client,
                     &(struct given){ EXTENSIONS_GROUP, row->plural, "default", row->text },
                     on_given, w);
    }
    on_given(w, &(struct kube_answer){ 0 });
}

struct welcome *welcome_start(struct kube_client *client,
                              void (*done)(void *ctx, const struct err *e), void *ctx)
{
    struct welcome *w = NEW(struct welcome);

    w->client = client;
    w->done = done;
    w->ctx = ctx;
    (void)kube_call_start(client,
                          &(struct kube_request){ .verb = KUBE_GET,
                                                  .kind = kind_find("", NULL, "configmaps"),
                                                  .namespace = UP_NAMESPACE,
                                                  .name = RECORD_NAME },
                          on_record, w);
    return w;
}
