#include "controller/step.h"

#include "base/log.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"

#include <inttypes.h>
#include <stdio.h>

const struct known_kinds *known_kinds(void)
{
    static struct known_kinds known;

    if (known.pod)
        return &known;
    known = (struct known_kinds){
        .sandbox = kind_find(GROUP_SANDBOX, "v1beta1", "sandboxes"),
        .template = kind_find(GROUP_EXTENSIONS, "v1beta1", "sandboxtemplates"),
        .claim = kind_find(GROUP_EXTENSIONS, "v1beta1", "sandboxclaims"),
        .pool = kind_find(GROUP_EXTENSIONS, "v1beta1", "sandboxwarmpools"),
        .pod = kind_find("", "v1", "pods"),
        .service = kind_find("", "v1", "services"),
        .volume_claim = kind_find("", "v1", "persistentvolumeclaims"),
        .policy = kind_find("networking.k8s.io", "v1", "networkpolicies"),
        .event = kind_find("events.k8s.io", "v1", "events"),
    };
    return &known;
}

static struct step step_of(enum step_verb verb, const struct object *o)
{
    return (struct step){ .verb = verb,
                          .kind = object_kind(o),
                          .namespace = object_namespace(o),
                          .name = object_name(o) };
}

struct step step_patch(struct json_edit *ed, const struct object *o)
{
    struct step step = step_of(STEP_PATCH, o);

    step.body = json_edit_object(ed);
    return step;
}

struct step step_patch_locked(struct json_edit *ed, const struct object *o)
{
    struct step step = step_patch(ed, o);
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, object_version(o));
    tree_text(tree_object(step.body, "metadata"), "resourceVersion", text);
    return step;
}

struct step step_update(struct json_edit *ed, const struct object *o)
{
    struct step step = step_of(STEP_UPDATE, o);

    step.body = object_thaw(o, NULL, ed);
    return step;
}

struct step step_delete(const struct object *o)
{
    struct step step = step_of(STEP_DELETE, o);

    step.uid = object_uid(o);
    return step;
}

struct step step_create(struct json_edit *ed, const struct kind *kind, const char *namespace,
                        const char *name)
{
    struct step step = { .verb = STEP_CREATE, .kind = kind, .namespace = namespace, .name = name };
    struct json_node *meta;

    step.body = json_edit_object(ed);
    meta = tree_object(step.body, "metadata");
    if (name)
        tree_text(meta, "name", name);
    tree_text(meta, "namespace", namespace);
    return step;
}

static int start_object(struct kube_client *client, const struct step *step,
                        struct kube_request *rq, kube_done_fn done, void *ctx,
                        struct kube_call **ret, struct err *e)
{
    OWN(object_done) struct object *o = NULL;

    if (object_freeze(step->kind, NULL, step->body, &o, e) < 0)
        return -1;
    rq->verb = step->verb == STEP_CREATE ? KUBE_CREATE : KUBE_UPDATE;
    if (step->verb == STEP_CREATE)
        rq->name = NULL;
    rq->object = o;
    *ret = kube_call_start(client, rq, done, ctx);
    return 0;
}

static int start_patch(struct kube_client *client, const struct step *step, struct kube_request *rq,
                       kube_done_fn done, void *ctx, struct kube_call **ret, struct err *e)
{
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);

    if (json_node_write(step->body, &body, e) < 0)
        return -1;
    rq->verb = KUBE_PATCH;
    rq->patch = KUBE_PATCH_MERGE;
    rq->body = buf_span(&body);
    *ret = kube_call_start(client, rq, done, ctx);
    return 0;
}

int step_start(struct kube_client *client, const struct step *step, const char *manager,
               kube_done_fn done, void *ctx, struct kube_call **ret, struct err *e)
{
    struct kube_request rq = { .kind = step->kind,
                               .namespace = step->namespace,
                               .name = step->name,
                               .sub = step->sub,
                               .manager = manager,
                               .is_lax = true }; /* our own, or copied from what was checked */
    char text[512];

    log_debug("controller.write", KV("what", step_text(step, text, sizeof text)),
              KV("sub", step->sub ? step->sub : ""));
    switch (step->verb) {
    case STEP_CREATE:
    case STEP_UPDATE:
        return start_object(client, step, &rq, done, ctx, ret, e);
    case STEP_PATCH:
        return start_patch(client, step, &rq, done, ctx, ret, e);
    case STEP_DELETE:
        rq.verb = KUBE_DELETE;
        rq.uid = step->uid;
        rq.only_version = step->version;
        rq.propagation = step->propagation;
        *ret = kube_call_start(client, &rq, done, ctx);
        return 0;
    case STEP_NONE:
        break;
    }
    return err_set(e, ERR_INTERNAL, "a step that does nothing was started");
}

const char *step_text(const struct step *step, char *text, size_t size)
{
    static const char *const verbs[] = { "leave", "create", "patch", "update", "delete" };

    (void)snprintf(text, size, "%s %s %s/%s", verbs[step->verb], step->kind ? step->kind->name : "",
                   step->namespace ? step->namespace : "", step->name ? step->name : "");
    return text;
}
