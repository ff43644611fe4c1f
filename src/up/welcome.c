#include "up/welcome.h"

#include "ev/loop.h"
#include "kube/yaml.h"
#include "up/names.h"
#include "up/given.h"

#include <stdio.h>
#include <string.h>

#define RECORD_NAME "silica-welcome"

/* What the SDKs' examples name. The image names no registry: the node knows it. */
#define TEMPLATE(name, container)                                                                  \
    "- name: " name "\n"                                                                           \
    "  spec:\n"                                                                                    \
    "    envVarsInjectionPolicy: Overrides\n"                                                      \
    "    podTemplate:\n"                                                                           \
    "      spec:\n"                                                                                \
    "        containers:\n"                                                                        \
    "        - name: " container "\n"                                                              \
    "          image: silica/python-runtime-sandbox:latest\n"                                      \
    "          ports: [{containerPort: 8888, name: http}]\n"                                       \
    "          readinessProbe: {httpGet: {path: /, port: 8888}, periodSeconds: 1}\n"               \
    "          volumeMounts: [{name: workspace, mountPath: /workspace}]\n"                         \
    "        restartPolicy: OnFailure\n"                                                           \
    "        terminationGracePeriodSeconds: 5\n"                                                   \
    "        automountServiceAccountToken: false\n"                                                \
    "    volumeClaimTemplatesPolicy: Overrides\n"                                                  \
    "    volumeClaimTemplates:\n"                                                                  \
    "    - metadata: {name: workspace}\n"                                                          \
    "      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

/* clang-format off */
static const char ours[] =
    "templates:\n"
    TEMPLATE("python-sandbox-template", "python-runtime")
    TEMPLATE("simple-sandbox-template", "sandbox")
    "pools:\n"
    "- {name: python-sandbox-pool, template: python-sandbox-template, replicas: 4}\n"
    "- {name: python-sandbox-warmpool, template: python-sandbox-template, replicas: 2}\n";
/* clang-format on */

/* One object. */
struct gift {
    char *key, *text;   /* key: in the record, for ever */
    const char *plural; /* NULL: not to be given, only written down */
};

struct welcome {
    struct kube_client *client;
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
    struct gift *gifts;
    size_t count;
    struct object *record; /* of last time; NULL: there was none */
    size_t waiting;        /* for answers */
    struct ev_task task;
    struct err e;
    bool has_failed;
};

struct json_doc *welcome_ours(void)
{
    struct json_doc *doc;
    struct err e;

    if (kube_yaml_to_doc(SPAN(ours), NULL, &doc, &e) < 0)
        abort(); /* a constant */
    return doc;
}

/* ---- what is given ---- */

static void write_spec(struct json_out *out, const struct json *row)
{
    const struct json *template = json_get(row, "template");
    uint64_t replicas = 1;

    if (!template) {
        json_out_value(out, json_get(row, "spec"));
        return;
    }
    (void)json_u64(json_get(row, "replicas"), &replicas);
    json_out_object_begin(out);
    json_out_key(out, "replicas"), json_out_u64(out, replicas);
    json_out_key(out, "sandboxTemplateRef"), json_out_object_begin(out);
    json_out_key(out, "name"), json_out_value(out, template);
    json_out_object_end(out);
    json_out_object_end(out);
}

static int write_object(const struct json *row, struct buf *text, struct err *e)
{
    struct json_out out;

    json_out_init(&out, text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "metadata"), json_out_object_begin(&out);
    json_out_key(&out, "name"), json_out_value(&out, json_get(row, "name"));
    json_out_object_end(&out);
    json_out_key(&out, "spec"), write_spec(&out, row);
    json_out_object_end(&out);
    return json_out_end(&out, e);
}

static int add_gift(struct welcome *w, const struct json *row, const char *kind, const char *plural,
                    struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(GIVEN_TEXT_MAX_BYTES);
    const char *name = json_cstr(json_get(row, "name"));
    struct gift *g;

    if (!name)
        return err_set(e, ERR_INVALID, "one of the %s to be given has no name", plural);
    if (plural && write_object(row, &text, e) < 0)
        return err_wrap(e, "'%s'", name);
    w->gifts = own_resize(w->gifts, w->count + 1, sizeof *w->gifts);
    g = &w->gifts[w->count++];
    *g = (struct gift){ .plural = plural, .text = plural ? own_strdup(buf_cstr(&text)) : NULL };
    if (asprintf(&g->key, "%s.%s", kind, name) < 0)
        abort();
    return 0;
}

static int add_gifts(struct welcome *w, const struct welcome_wishes *wishes, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = welcome_ours();
    const struct json *templates = json_get(json_doc_root(doc), "templates"),
                      *pools = json_get(json_doc_root(doc), "pools");

    JSON_EACH(row, wishes->templates ? wishes->templates : templates)
    {
        if (add_gift(w, row, "template", "sandboxtemplates", e) < 0)
            return -1;
    }
    JSON_EACH(row, wishes->pools ? wishes->pools : pools)
    {
        if (add_gift(w, row, "pool", "sandboxwarmpools", e) < 0)
            return -1;
    }
    /* What these took the place of. */
    JSON_EACH(row, wishes->templates ? templates : NULL)
    (void)add_gift(w, row, "template", NULL, e);
    JSON_EACH(row, wishes->pools ? pools : NULL)
    (void)add_gift(w, row, "pool", NULL, e);
    return 0;
}

/* ---- giving ---- */

static void finish(struct welcome *w)
{
    w->done(w->ctx, w->has_failed ? &w->e : NULL);
    for (size_t i = 0; i < w->count; i++) {
        free(w->gifts[i].key);
        free(w->gifts[i].text);
    }
    free(w->gifts);
    object_unref(w->record);
    free(w);
}

static bool is_given(const struct object *record, const struct gift *g)
{
    return record && json_get(object_at(record, "data"), g->key);
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
    JSON_MEMBERS(key, value, w->record ? object_at(w->record, "data") : NULL)
    {
        json_out_key_span(&out, json_str(key)), json_out_value(&out, value);
    }
    for (size_t i = 0; i < w->count; i++) {
        if (is_given(w->record, &w->gifts[i]))
            continue;
        json_out_key(&out, w->gifts[i].key);
        json_out_cstr(&out, w->gifts[i].plural ? "given" : "left out");
    }
    json_out_object_end(&out);
    json_out_object_end(&out);
    if (json_out_end(&out, &e) < 0) {
        w->has_failed = true;
        w->e = e;
        finish(w);
        return;
    }
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
    w->record = answer->object ? object_ref(answer->object) : NULL;
    w->waiting = 1; /* this one, until all are begun */
    for (size_t i = 0; i < w->count; i++) {
        const struct gift *g = &w->gifts[i];

        if (!g->plural || is_given(w->record, g))
            continue;
        w->waiting++;
        given_create(w->client, &(struct given){ EXTENSIONS_GROUP, g->plural, "default", g->text },
                     on_given, w);
    }
    on_given(w, &(struct kube_answer){ 0 });
}

static void refuse(void *ctx)
{
    finish(ctx);
}

struct welcome *welcome_start(struct kube_client *client, const struct welcome_wishes *wishes,
                              void (*done)(void *ctx, const struct err *e), void *ctx)
{
    struct welcome *w = NEW(struct welcome);

    w->client = client;
    w->done = done;
    w->ctx = ctx;
    if (add_gifts(w, wishes, &w->e) < 0) {
        w->has_failed = true;
        ev_post(kube_client_loop(client), &w->task, refuse, w);
        return w;
    }
    (void)kube_call_start(client,
                          &(struct kube_request){ .verb = KUBE_GET,
                                                  .kind = kind_find("", NULL, "configmaps"),
                                                  .namespace = UP_NAMESPACE,
                                                  .name = RECORD_NAME },
                          on_record, w);
    return w;
}
