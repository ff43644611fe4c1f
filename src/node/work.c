/* One look at one Pod: what its life wants next is done, one step at a time, until there is nothing to do now; then its
 * status is written, if it is not so already. Nothing is remembered between two looks that a third could not find out. */
#include "node/event.h"
#include "node/fetch.h"
#include "node/limits.h"
#include "node/make.h"
#include "node/node_impl.h"
#include "node/pod_status.h"
#include "node/ports.h"
#include "node/security.h"
#include "node/tend.h"
#include "node/volumes.h"

#include "base/log.h"
#include "kube/backoff.h"

#include <signal.h>
#include <string.h>

struct pass {
    struct node *node;
    struct queue_item *item;
    struct record *record;
    struct crew_job job;
    enum life_what what; /* that is under way */
    size_t at;
    bool is_before;
    char box[RUN_NAME_BYTES];
    int rc;
    struct err e;
    struct engine_info info;
    uint64_t wait_ms;
};

static void advance(struct pass *p);

/* ---- the end of a look ---- */

static void pass_free(void *obj)
{
    free(obj);
}

static void finish(struct pass *p, uint64_t wait_ms)
{
    struct queue_item *item = p->item;

    ev_free_later(p->node->loop, p, pass_free);
    if (wait_ms == UINT64_MAX)
        queue_done(item);
    else
        queue_done_after(item, MAX(wait_ms, (uint64_t)1));
}

static void fail(struct pass *p, const char *what, const char *why)
{
    struct queue_item *item = p->item;

    log_warn("pod.retry", KV("namespace", queue_item_namespace(item)),
             KV("pod", queue_item_name(item)), KV("what", what), KV("err", why));
    ev_free_later(p->node->loop, p, pass_free);
    queue_retry(item);
}

/* The server said no. True: the look is over. */
static bool is_refused(struct pass *p, const char *what, const struct kube_answer *answer)
{
    const struct status *st = answer->refusal;

    if (!st)
        return false;
    if (st->code == 404 || st->code == 409) { /* it changed meanwhile: that is told */
        log_debug("pod.changed", KV("what", what), KV("code", st->code));
        finish(p, st->code == 409 ? 50 : UINT64_MAX);
        return true;
    }
    fail(p, what, st->code ? buf_cstr(&st->message) : "no answer came");
    return true;
}

static void tell(struct pass *p, size_t at, bool is_warning, const char *reason,
                 const char *message)
{
    struct record *r = p->record;
    bool is_part = at != SIZE_MAX;

    if (!r->pod)
        return;
    node_event(p->node->client,
               &(struct event_spec){ .about = r->pod,
                                     .node = p->node->name,
                                     .container = is_part ? r->parts[at].name : NULL,
                                     .is_init = is_part && r->life.v[at].is_init,
                                     .is_warning = is_warning,
                                     .reason = reason,
                                     .message = message });
}

/* Of the container that the pass is at; fmt takes its name. */
static void tell_of(struct pass *p, bool is_warning, const char *reason, const char *fmt)
{
    char text[128];

    (void)snprintf(text, sizeof text, fmt, p->record->parts[p->at].name);
    tell(p, p->at, is_warning, reason, text);
}

/* ---- the API ---- */

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
        node_event(p->node->client, &(struct event_spec){ .about = pod,
                                                          .node = p->node->name,
                                                          .reason = "Scheduled",
                                                          .message = text });
    finish(p, UINT64_MAX); /* the Pod comes again, with its node */
}

static void bind(struct pass *p, const struct object *pod)
{
    OWN(buf_done) struct buf body = BUF_INIT(4096);
    struct err e;

    (void)buf_addf(&body, &e,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
                   "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\"}}",
                   object_name(pod), p->node->name);
    (void)kube_call_start(p->node->client,
                          &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .kind = object_kind(pod),
                                                  .namespace = object_namespace(pod),
                                                  .name = object_name(pod),
                                                  .sub = "binding",
                                                  .body = buf_span(&body) },
                          on_bound, p);
}

static void on_status(void *ctx, const struct kube_answer *answer)
{
    struct pass *p = ctx;

    if (is_refused(p, "status", answer))
        return;
    if (answer->object)
        informer_learn(p->node->pods, answer->object);
    finish(p, p->wait_ms);
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

/* The last of a look. */
static void write_status(struct pass *p, uint64_t wait_ms)
{
    OWN(buf_done) struct buf body = BUF_INIT(NODE_STATUS_MAX_BYTES);
    struct record *r = p->record;
    struct err e;

    p->wait_ms = wait_ms;
    if (ports_sync(r, &e) < 0)
        tell(p, SIZE_MAX, true, "PortTaken", e.msg);
    if (!r->pod || !make_patch(p, &body, &e)) {
        finish(p, wait_ms);
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
        record_free(p->record);
        finish(p, UINT64_MAX);
        return;
    }
    (void)is_refused(p, "delete", answer);
}

static void leave(struct pass *p);

static void run_clear(void *ctx, struct engine *en, const struct err *e)
{
    struct pass *p = ctx;

    (void)en;
    (void)e;
    p->rc = volumes_remove(p->node->dir_fd, p->record->uid, &p->e);
}

static void cleared(void *ctx)
{
    struct pass *p = ctx;

    if (p->rc < 0) {
        fail(p, "volumes", p->e.msg);
        return;
    }
    p->record->has_no_volumes = true;
    leave(p);
}

/* No sandbox of it is left here; then its volumes go, and then the Pod. */
static void leave(struct pass *p)
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

        record_free(r);
        finish(p, is_followed ? 0 : UINT64_MAX);
        return;
    }
    if (grace == 0 && object_finalizer_count(r->pod)) {
        write_status(p, UINT64_MAX); /* it stays for others, and says what became of it */
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

/* ---- the engine ---- */

static void run_step(void *ctx, struct engine *en, const struct err *e)
{
    struct pass *p = ctx;

    p->rc = -1;
    if (!en)
        p->e = *e;
    else if (p->what == LIFE_TELL)
        p->rc = engine_signal(en, p->box, SIGTERM, &p->e);
    else if (p->what == LIFE_KILL)
        p->rc = engine_stop(en, p->box, 0, &p->e);
    else if (p->what == LIFE_REMOVE)
        p->rc = engine_destroy(en, p->box, &p->e);
    else
        p->rc = engine_get(en, p->box, &p->info, &p->e);
}

static void step_done(void *ctx)
{
    struct pass *p = ctx;
    struct life_container *c = &p->record->life.v[p->at];
    struct record_part *part = &p->record->parts[p->at];
    bool is_gone = p->rc < 0 && p->e.code == ERR_NOT_FOUND;

    if (p->rc < 0 && !is_gone && p->e.code != ERR_CLOSED) {
        fail(p, p->what == LIFE_REMOVE ? "remove" : "reach", p->e.msg);
        return;
    }
    if (p->what == LIFE_TELL) {
        tell_of(p, false, "Killing", "Stopping container %s");
        c->now.was_told = true;
        part->has_news |= p->rc < 0;
    } else if (p->what == LIFE_KILL) {
        part->has_news = true;
    } else if (p->what == LIFE_REMOVE) {
        *(p->is_before ? &c->before.has_box : &c->now.has_box) = false;
    } else {
        part->has_news = false;
        record_take_info(p->record, p->at, is_gone ? NULL : &p->info);
        if (c->now.state == RUN_OVER)
            log_info("container.end", KV("box", (const char *)p->box), KV("code", c->now.exit_code),
                     KV("lost", c->now.is_lost));
        if (life_comes_back(&p->record->life, c) && life_pause_ms(c))
            tell_of(p, true, "BackOff", "Back-off restarting failed container %s");
    }
    advance(p);
}

/* what: LIFE_REST is a look at how it stands. */
static void do_step(struct pass *p, enum life_what what, size_t at, bool is_before)
{
    struct life_container *c = &p->record->life.v[at];

    p->what = what;
    p->at = at;
    p->is_before = is_before;
    record_box(p->record, at, is_before ? c->before.attempt : c->now.attempt, p->box);
    crew_submit(p->node->crew, &p->job, run_step, step_done, p);
}

/* ---- a container begins ---- */

void work_watch(struct record *r, size_t at)
{
    char box[RUN_NAME_BYTES];
    struct err e;

    record_box(r, at, r->life.v[at].now.attempt, box);
    r->parts[at].has_news = true; /* it may have ended before anybody watched */
    r->parts[at].is_unwatched = exits_watch(r->node->exits, box, &e) < 0;
    if (r->parts[at].is_unwatched)
        log_warn("container.unwatched", KV("box", (const char *)box), KV("err", &e));
}

/* event: the reason of the Event that tells it. */
static void cannot_start(struct pass *p, const char *reason, const char *event, const char *message)
{
    struct life_container *c = &p->record->life.v[p->at];
    bool is_new = !c->wait_reason || strcmp(c->wait_reason, reason) != 0 ||
                  strcmp(c->wait_message, message) != 0;

    c->wait_reason = reason;
    (void)snprintf(c->wait_message, sizeof c->wait_message, "%s", message);
    c->tries++;
    c->retry_ms = node_wall_ms() + backoff_ms(LIFE_TRY_FIRST_MS, LIFE_TRY_MOST_MS, c->tries);
    log_warn("container.wait", KV("pod", p->record->name), KV("container", c->name),
             KV("reason", reason), KV("err", message));
    if (is_new)
        tell(p, p->at, true, event, message);
    advance(p);
}

static void has_started(struct pass *p, const struct make_result *result)
{
    struct record *r = p->record;
    struct life_container *c = &r->life.v[p->at];
    char text[128];

    c->wait_reason = NULL;
    c->tries = 0;
    c->now.state = RUN_UP;
    c->now.has_box = true;
    c->now.began_ms = result->info.created_ms ? result->info.created_ms : node_wall_ms();
    work_watch(r, p->at);
    ready_begin(r, p->at);
    tell_of(p, false, "Started", "Started container %s");
    if (*result->made.unenforced) {
        (void)snprintf(text, sizeof text, "limits that this host cannot enforce: %s",
                       result->made.unenforced);
        tell(p, p->at, true, "LimitsNotEnforced", text);
    }
    for (size_t i = 0; i < result->notes->n; i++)
        tell(p, p->at, true, result->notes->v[i].reason, result->notes->v[i].message);
}

static void on_made(void *ctx, const struct make_result *result)
{
    struct pass *p = ctx;
    struct life_container *c = &p->record->life.v[p->at];

    if (result->rc == 0) {
        has_started(p, result);
    } else if (result->is_command) {
        c->wait_reason = NULL;
        c->now.reason = "StartError";
        c->now.began_ms = node_wall_ms();
        (void)snprintf(c->now.message, sizeof c->now.message, "%s", result->e.msg);
        life_end(c, 128, node_wall_ms());
        tell(p, p->at, true, "Failed", result->e.msg);
    } else {
        cannot_start(p, result->wait_reason, result->event, result->e.msg);
        return;
    }
    advance(p);
}

static void make_container(struct pass *p)
{
    const char *reason;
    struct err e;

    if (make_start(p->record, p->at, on_made, p, &reason, &e) < 0)
        cannot_start(p, reason, "Failed", e.msg);
}

static void on_fetched(void *ctx, const struct err *e)
{
    struct pass *p = ctx;

    if (e)
        cannot_start(p, "CreateContainerConfigError", "Failed", e->msg);
    else
        make_container(p);
}

/* What of the Pod as a whole is not served. */
static void note_pod(struct pass *p)
{
    OWN(notes_done) struct notes notes = { 0 };

    if (p->record->is_pod_noted || !p->record->pod)
        return;
    p->record->is_pod_noted = true;
    security_note_pod(p->record->pod, &notes);
    for (size_t i = 0; i < notes.n; i++)
        tell(p, SIZE_MAX, true, notes.v[i].reason, notes.v[i].message);
}

static void start_container(struct pass *p, size_t at)
{
    struct record *r = p->record;
    struct life_container *c = &r->life.v[at];

    p->at = at;
    life_begin(c);
    if (!*r->ip)
        addresses_take(&p->node->addresses, r->namespace, r->name, r->ip);
    note_pod(p);
    fetch_start(r, on_fetched, p);
}

/* ---- one step ---- */

/* A sandbox of which something was heard, or of which nothing will be. */
static size_t find_news(const struct record *r)
{
    for (size_t i = 0; i < r->life.n; i++)
        if (r->parts[i].has_news && r->life.v[i].now.state == RUN_UP)
            return i;
    return SIZE_MAX;
}

static uint64_t cap_wait(const struct record *r, uint64_t wait_ms)
{
    for (size_t i = 0; i < r->life.n; i++)
        if (r->parts[i].is_unwatched && r->life.v[i].now.state == RUN_UP)
            return MIN(wait_ms, (uint64_t)NODE_EXIT_LOOK_MS);
    return wait_ms;
}

/* Its phase says that all is over, and so it stays. */
static bool is_over(const struct record *r)
{
    const char *phase = r->pod ? object_text(r->pod, "status.phase") : NULL;

    return phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0) &&
           !r->life.is_leaving && life_is_still(&r->life);
}

static void tell_failure(struct pass *p)
{
    struct record *r = p->record;
    const char *phase = r->pod ? object_text(r->pod, "status.phase") : NULL;

    if (!r->life.failed || r->is_failure_told)
        return;
    r->is_failure_told = true;
    if (phase && strcmp(phase, "Failed") != 0)
        tell(p, SIZE_MAX, true, r->life.failed, r->fail_message);
}

static void on_tended(void *ctx, const char *evicted)
{
    struct pass *p = ctx;
    struct record *r = p->record;

    if (evicted && !r->life.failed) {
        r->life.failed = NODE_FAILED_EVICTED;
        free(r->fail_message);
        r->fail_message = own_strdup(evicted);
    }
    advance(p);
}

static void advance(struct pass *p)
{
    struct record *r = p->record;
    struct life_step step;
    size_t news;

    if (p->node->is_closing) {
        finish(p, UINT64_MAX);
        return;
    }
    record_update(r, informer_get(p->node->pods, r->namespace, r->name));
    tell_failure(p);
    news = find_news(r);
    if (news != SIZE_MAX) {
        do_step(p, LIFE_REST, news, false);
        return;
    }
    if (is_over(r)) {
        finish(p, UINT64_MAX);
        return;
    }
    step = life_next(&r->life, node_wall_ms());
    switch (step.what) {
    case LIFE_REST:
        if (tend_wait_ms(r) == 0)
            tend_start(r, on_tended, p);
        else
            write_status(p, MIN(cap_wait(r, step.wait_ms), tend_wait_ms(r)));
        return;
    case LIFE_START:
        start_container(p, step.at);
        return;
    case LIFE_TELL:
    case LIFE_KILL:
    case LIFE_REMOVE:
        do_step(p, step.what, step.at, step.is_before);
        return;
    case LIFE_GONE:
        leave(p);
        return;
    }
}

/* ---- whose it is ---- */

/* Nobody has it, and nothing speaks against us. */
static bool may_bind(const struct node *n, const struct object *pod)
{
    const char *scheduler = object_text(pod, "spec.schedulerName");

    return n->is_scheduler && !object_is_deleting(pod) &&
           json_count(object_at(pod, "spec.schedulingGates")) == 0 &&
           (!scheduler || strcmp(scheduler, "default-scheduler") == 0);
}

void work_start(void *ctx, struct queue_item *item)
{
    const char *space = queue_item_namespace(item), *name = queue_item_name(item);
    struct node *n = ctx;
    struct object *pod = *space ? informer_get(n->pods, space, name) : NULL;
    const char *host = pod ? object_text(pod, "spec.nodeName") : NULL;
    struct pass *p = NEW(struct pass);
    struct err e;

    p->node = n;
    p->item = item;
    p->record = record_find(n, space, name);
    if (p->record) {
        advance(p);
    } else if (!pod || (host && *host && strcmp(host, n->name) != 0)) {
        finish(p, UINT64_MAX); /* another node's, or gone before we had seen it */
    } else if (!host || !*host) {
        if (may_bind(n, pod))
            bind(p, pod);
        else
            finish(p, UINT64_MAX);
    } else if (record_of_pod(n, pod, &p->record, &e) < 0) {
        p->record->life.failed = NODE_FAILED_REFUSED;
        p->record->fail_message = own_strdup(e.msg);
        advance(p);
    } else {
        advance(p);
    }
}
