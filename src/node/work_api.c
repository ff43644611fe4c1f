/* What a look at a Pod says to the API server: whose the Pod is, how it stands, that it is gone. */
#include "node/pass.h"

#include "node/address_demand.h"
#include "node/disk_watch.h"
#include "node/event.h"
#include "node/limits.h"
#include "node/pod_status.h"
#include "node/ports.h"
#include "node/volumes.h"
#include "node/volumes_in_use.h"

#include "base/log.h"
#include "kube/binding.h"

/* ---- the end of a look ---- */

static void pass_free(void *obj)
{
    free(obj);
}

void pass_finish(struct pass *p, uint64_t wait_ms)
{
    struct queue_item *item = p->item;

    if (p->record && life_is_still(&p->record->life)) {
        disk_watch_drop(p->record);
        volumes_in_use_release(p->record);
    }
    ev_free_later(p->node->loop, p, pass_free);
    if (wait_ms == UINT64_MAX)
        queue_done(item);
    else
        queue_done_after(item, MAX(wait_ms, (uint64_t)1));
}

void pass_fail(struct pass *p, const char *what, const char *why)
{
    struct queue_item *item = p->item;

    log_warn("pod.retry", KV("namespace", queue_item_namespace(item)),
             KV("pod", queue_item_name(item)), KV("what", what), KV("err", why));
    ev_free_later(p->node->loop, p, pass_free);
    queue_retry(item);
}

void pass_tell(struct pass *p, size_t at, bool is_warning, const char *reason, const char *message)
{
    struct record *r = p->record;
    bool is_part = at != SIZE_MAX;

    if (!r->pod)
        return;
    node_event(p->node->events,
               &(struct event_spec){ .about = r->pod,
                                     .node = p->node->name,
                                     .container = is_part ? r->parts[at].name : NULL,
                                     .is_init = is_part && r->life.v[at].is_init,
                                     .is_warning = is_warning,
                                     .reason = reason,
                                     .message = message });
}

/* The server said no. True: the look is over. */
static bool is_refused(struct pass *p, const char *what, const struct kube_answer *answer)
{
    const struct status *st = answer->refusal;

    if (!st)
        return false;
    if (st->code == 404 || st->code == 409) { /* it changed meanwhile: that is told */
        log_debug("pod.changed", KV("what", what), KV("code", st->code));
        pass_finish(p, st->code == 409 ? 50 : UINT64_MAX);
        return true;
    }
    pass_fail(p, what, st->code ? buf_cstr(&st->message) : "no answer came");
    return true;
}

/* ---- whose it is ---- */

static void on_bound(void *ctx, const struct kube_answer *answer)
{
    struct pass *p = ctx;
    const char *space = queue_item_namespace(p->item), *name = queue_item_name(p->item);
    struct object *pod = informer_get(p->node->pods, space, name);
    char text[800];

    if (is_refused(p, "bind", answer))
        return;
    (void)snprintf(text, sizeof text, "Successfully assigned %s/%s to %s", space, name,
                   p->node->name);
    if (pod)
        node_event(p->node->events, &(struct event_spec){ .about = pod,
                                                          .node = p->node->name,
                                                          .reason = "Scheduled",
                                                          .message = text });
    pass_finish(p, UINT64_MAX); /* the Pod comes again, with its node */
}

void pass_bind(struct pass *p, const struct object *pod)
{
    binding_start(p->node->client, pod, p->node->name, on_bound, p);
}

static void on_status(void *ctx, const struct kube_answer *answer)
{
    struct pass *p = ctx;

    if (is_refused(p, "status", answer))
        return;
    if (answer->object) {
        informer_learn(p->node->pods, answer->object);
        address_demand_see(p->record, answer->object);
    }
    pass_finish(p, p->wait_ms);
}

static const char *image_id(void *ctx, const char *name)
{
    struct node *n = ctx;
    const struct image *image;
    const char *reason;
    struct err e;

    return images_find(n->images, name, NULL, &image, &reason, &e) == 0 ? image->id : "";
}

/* What the status lacks, as a patch that only this very Pod takes. False: nothing. */
static bool make_patch(struct pass *p, struct buf *body, struct err *e)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct record *r = p->record;
    struct json_node *root = json_edit_object(ed), *status, *meta;

    status = pod_status_patch(&(struct pod_status_spec){ .pod = r->pod,
                                                         .life = &r->life,
                                                         .ip = r->ip,
                                                         .host_ip = NODE_HOST_IP,
                                                         .ports_reason = ports_reason(r),
                                                         .message = r->fail_message,
                                                         .image_id = image_id,
                                                         .ctx = p->node,
                                                         .now = (time_t)(node_wall_ms() / 1000) },
                              ed);
    if (!status)
        return false;
    meta = json_node_set(root, "metadata", json_edit_object(ed));
    json_node_set(meta, "uid", json_edit_cstr(ed, r->uid));
    json_node_set(root, "status", status);
    if (json_node_write(root, body, e) == 0)
        return true;
    log_error("pod.status", KV("namespace", r->namespace), KV("pod", r->name), KV("err", e));
    return false;
}

void pass_write_status(struct pass *p, uint64_t wait_ms)
{
    OWN(buf_done) struct buf body = BUF_INIT(NODE_STATUS_MAX_BYTES);
    struct record *r = p->record;
    struct err e;

    ports_sync(r);
    p->wait_ms = MIN(wait_ms, ports_wait_ms(r));
    if (!r->pod || !make_patch(p, &body, &e)) {
        address_demand_see(r, r->pod);
        pass_finish(p, p->wait_ms);
        return;
    }
    log_info("pod.status", KV("namespace", r->namespace), KV("pod", r->name),
             KV("phase", life_phase(&r->life)));
    (void)kube_call_start(p->node->client,
                          &(struct kube_request){ .verb = KUBE_PATCH,
                                                  .kind = object_kind(r->pod),
                                                  .namespace = r->namespace,
                                                  .name = r->name,
                                                  .sub = "status",
                                                  .patch = KUBE_PATCH_MERGE,
                                                  .body = buf_span(&body) },
                          on_status, p);
}

static void on_deleted(void *ctx, const struct kube_answer *answer)
{
    struct pass *p = ctx;

    if (!answer->refusal || answer->refusal->code == 404 || answer->refusal->code == 409) {
        log_info("pod.gone", KV("namespace", p->record->namespace), KV("pod", p->record->name));
        record_free(take_ptr(&p->record));
        pass_finish(p, UINT64_MAX);
        return;
    }
    (void)is_refused(p, "delete", answer);
}

static void run_clear(void *ctx, struct engine *en, const struct err *e)
{
    struct pass *p = ctx;

    (void)e;
    p->rc = volumes_remove(p->node->dir_fd, p->record->uid, en, &p->e);
}

static void cleared(void *ctx)
{
    struct pass *p = ctx;

    if (p->rc < 0) {
        pass_fail(p, "volumes", p->e.msg);
        return;
    }
    p->record->has_no_volumes = true;
    pass_leave(p);
}

void pass_leave(struct pass *p)
{
    static const int64_t now = 0;
    struct record *r = p->record;
    int64_t grace = -1;

    if (!r->has_no_volumes) {
        crew_submit(p->node->crew, &p->job, run_clear, cleared, p);
        return;
    }
    if (r->pod)
        (void)json_i64(object_at(r->pod, "metadata.deletionGracePeriodSeconds"), &grace);
    if (!r->pod) {
        /* One of the same name may have come meanwhile. */
        bool is_followed = informer_get(p->node->pods, r->namespace, r->name) != NULL;

        record_free(take_ptr(&p->record));
        pass_finish(p, is_followed ? 0 : UINT64_MAX);
        return;
    }
    if (grace == 0 && object_finalizer_count(r->pod)) {
        pass_write_status(p, UINT64_MAX); /* it stays for others, and says what became of it */
        return;
    }
    (void)kube_call_start(p->node->client,
                          &(struct kube_request){ .verb = KUBE_DELETE,
                                                  .kind = object_kind(r->pod),
                                                  .namespace = r->namespace,
                                                  .name = r->name,
                                                  .uid = r->uid,
                                                  .grace_s = &now },
                          on_deleted, p);
}
