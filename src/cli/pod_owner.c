#include "cli/pod_owner.h"

#include "cli/api.h"
#include "node/run.h"
#include "up/place.h"

#include <string.h>

/* ---- what the API server has ---- */

static void on_list(void *ctx, const struct kube_answer *answer)
{
    struct pod_owner_list *list = ctx;

    list->v = own_resize(NULL, answer->item_count, sizeof *list->v);
    for (size_t i = 0; i < answer->item_count; i++)
        list->v[list->n++] = object_ref(answer->items[i]);
}

static int list_all(struct api *api, const char *group, const char *plural,
                    struct pod_owner_list *ret, struct err *e)
{
    const struct kube_request rq = { .verb = KUBE_LIST, .kind = kind_find(group, NULL, plural) };

    return api_call(api, &rq, on_list, ret, e);
}

/* What cannot be asked is not up: the refusal holds all the same, and names what works without an API server. */
static void ask(struct pod_owners *o, const char *dir)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    OWN(api_done) struct api api = API_INIT;
    struct err ignored;

    if (o->is_asked)
        return;
    o->is_asked = true;
    o->is_up = place_open(&place, dir, false, &ignored) == 0 &&
               place_read(&place, &info, &ignored) == 0 &&
               api_open(&api, info.kubeconfig, &ignored) == 0 &&
               list_all(&api, "", "pods", &o->pods, &ignored) == 0 &&
               list_all(&api, "agents.x-k8s.io", "sandboxes", &o->sandboxes, &ignored) == 0;
}

static void free_list(struct pod_owner_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        object_unref(list->v[i]);
    free(list->v);
    *list = (struct pod_owner_list){ NULL, 0 };
}

void pod_owners_done(struct pod_owners *o)
{
    free_list(&o->pods);
    free_list(&o->sandboxes);
}

static const struct object *find(const struct pod_owner_list *list, const char *uid)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(object_uid(list->v[i]), uid) == 0)
            return list->v[i];
    return NULL;
}

/* ---- the refusal ---- */

static int refuse_as(const char *box, const char *kind, const char *name, const char *namespace,
                     const char *resource, struct err *e)
{
    (void)err_set(e, ERR_CONFLICT, "sandbox '%s' belongs to %s '%s' in namespace '%s'", box, kind,
                  name, namespace);
    err_hint(e, "kubectl delete %s %s -n %s", resource, name, namespace);
    return -1;
}

static int refuse_pod(const struct pod_owners *o, const char *box, const struct object *pod,
                      struct err *e)
{
    const char *namespace = object_namespace(pod);
    struct object_owner owner;
    const struct object *sandbox = NULL;

    if (object_owner_controller(pod, &owner) && strcmp(owner.kind, "Sandbox") == 0)
        sandbox = find(&o->sandboxes, owner.uid);
    if (!sandbox)
        return refuse_as(box, "Pod", object_name(pod), namespace, "pod", e);
    if (!object_owner_controller(sandbox, &owner))
        return refuse_as(box, "Sandbox", object_name(sandbox), namespace, "sandbox", e);
    if (strcmp(owner.kind, "SandboxClaim") == 0)
        return refuse_as(box, "SandboxClaim", owner.name, namespace, "sandboxclaim", e);
    (void)err_set(e, ERR_CONFLICT, "sandbox '%s' belongs to %s '%s' in namespace '%s'", box,
                  owner.kind, owner.name, namespace);
    err_hint(e, "kubectl delete sandbox %s -n %s; a pool then makes another one",
             object_name(sandbox), namespace);
    return -1;
}

int pod_owners_refuse(struct pod_owners *o, const char *dir, const char *box, struct err *e)
{
    const struct object *pod;
    struct run_id id;

    (void)run_read(box, &id);
    ask(o, dir);
    pod = o->is_up ? find(&o->pods, id.uid) : NULL;
    if (pod)
        return refuse_pod(o, box, pod, e);
    (void)err_set(e, ERR_CONFLICT, "sandbox '%s' belongs to the Pod with uid %s, which a node runs",
                  box, id.uid);
    err_hint(
        e, o->is_up
               ? "the Pod is gone, and its node removes the sandbox"
               : "silica down --sandboxes ends all sandboxes of Pods; `silica up` takes them over");
    return -1;
}
