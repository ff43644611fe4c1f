#include "node/record.h"

#include "isolate/dir.h"
#include "node/disk_watch.h"
#include "kube/time.h"
#include "node/address_demand.h"
#include "node/hook.h"
#include "node/limits.h"
#include "node/node_impl.h"

#include "node/event.h"
#include "node/ports.h"
#include "node/volumes_in_use.h"
#include "node/words.h"

#include <string.h>

struct record *record_find(struct node *n, const char *namespace, const char *name)
{
    struct keymap_node *found = keymap_get(&n->by_name, namespace, name);

    return found ? CONTAINER(found, struct record, by_name) : NULL;
}

struct record *record_find_uid(struct node *n, const char *uid)
{
    struct keymap_node *found = keymap_get(&n->by_uid, "", uid);

    return found ? CONTAINER(found, struct record, by_uid) : NULL;
}

size_t record_container(const struct record *r, const char *name)
{
    for (size_t i = 0; i < r->life.n; i++)
        if (strcmp(r->parts[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

static size_t add_container(struct record *r, const char *name, bool is_init, bool is_sidecar)
{
    size_t at = r->life.n++;

    r->life.v = own_resize(r->life.v, r->life.n, sizeof *r->life.v);
    r->parts = own_resize(r->parts, r->life.n, sizeof *r->parts);
    r->parts[at] = (struct record_part){ .has_news = false };
    (void)snprintf(r->parts[at].name, sizeof r->parts[at].name, "%s", name);
    r->life.v[at] = (struct life_container){ .is_init = is_init, .is_sidecar = is_sidecar };
    for (size_t i = 0; i < r->life.n; i++)
        r->life.v[i].name = r->parts[i].name; /* they may have moved */
    return at;
}

static struct record *new_record(struct node *n, const char *namespace, const char *name,
                                 const char *uid)
{
    struct record *r = NEW(struct record);

    r->node = n;
    r->namespace = own_strdup(namespace);
    r->name = own_strdup(name);
    r->uid = own_strdup(uid);
    keymap_add(&n->by_name, &r->by_name, r->namespace, r->name);
    keymap_add(&n->by_uid, &r->by_uid, "", r->uid);
    return r;
}

static int add_containers(struct record *r, const char *path, bool is_init, struct err *e)
{
    const struct json *list = object_at(r->pod, path);
    char box[RUN_NAME_BYTES];
    size_t at;

    JSON_EACH(item, list)
    {
        const char *name = json_cstr(json_get(item, "name"));
        bool is_sidecar = is_init && span_is(json_str(json_get(item, "restartPolicy")), "Always");

        if (r->life.n == NODE_CONTAINERS_MAX)
            return err_set(e, ERR_LIMIT, "more than %d containers", NODE_CONTAINERS_MAX);
        if (run_name(box, r->uid, name ? name : "", 0, e) < 0)
            return -1;
        at = add_container(r, name, is_init, is_sidecar);
        r->life.v[at].has_stop_hook = hook_has(item, HOOK_STOP);
    }
    return 0;
}

int record_of_pod(struct node *n, struct object *pod, struct record **ret, struct err *e)
{
    struct record *r = new_record(n, object_namespace(pod), object_name(pod), object_uid(pod));
    const char *policy = object_text(pod, "spec.restartPolicy"),
               *ip = object_text(pod, "status.podIP");

    r->pod = object_ref(pod);
    r->life.policy = !policy                            ? LIFE_ALWAYS
                     : strcmp(policy, "Never") == 0     ? LIFE_NEVER
                     : strcmp(policy, "OnFailure") == 0 ? LIFE_ON_FAILURE
                                                        : LIFE_ALWAYS;
    if (ip && addresses_claim(&n->addresses, ip))
        (void)snprintf(r->ip, sizeof r->ip, "%s", ip);
    *ret = r;
    return add_containers(r, "spec.initContainers", true, e) < 0
               ? -1
               : add_containers(r, "spec.containers", false, e);
}

struct record *record_of_orphan(struct node *n, const char *uid)
{
    struct record *r = new_record(n, "", uid, uid);

    record_update(r, NULL);
    return r;
}

void record_free(struct record *r)
{
    struct node *n = r->node;

    ports_close(r);
    disk_watch_drop(r);
    volumes_in_use_release(r);
    address_demand_forget(r);
    keymap_remove(&n->by_name, &r->by_name);
    keymap_remove(&n->by_uid, &r->by_uid);
    addresses_give(&n->addresses, r->ip);
    needs_done(&r->needs);
    object_unref(r->pod);
    for (size_t i = 0; i < r->life.n; i++) {
        life_run_done(&r->life.v[i].now);
        life_run_done(&r->life.v[i].before);
    }
    free(r->life.v);
    free(r->parts);
    free(r->fail_message);
    free(r->evict_message);
    free(r->namespace);
    free(r->name);
    free(r->uid);
    free(r);
}

/* ---- what stands in the engine's directory ---- */

/* No code of the container's: it ends as one that was killed, and is started again by its policy, as after a reboot. */
static void note_lost(struct life_run *run)
{
    run->is_lost = true;
    life_say(
        run,
        "The sandbox ended with the process that kept it, which was killed, or with the machine.");
}

static struct life_run run_of(const struct engine_info *info, uint32_t attempt)
{
    struct life_run run = {
        .state = RUN_UP, .attempt = attempt, .has_box = true, .began_ms = info->created_ms
    };

    if (info->has_exit) {
        run.state = RUN_OVER;
        run.exit_code = info->exit_code;
        run.ended_ms = info->ended_ms ? info->ended_ms : info->created_ms;
        if (info->status == ENGINE_LOST)
            note_lost(&run);
        run.reason = info->is_oom ? LIFE_REASON_OOM : NULL;
    }
    return run;
}

/* Its status may not have them yet, and is written anew: nobody was there to hear of its end. */
static void add_words(struct record *r, size_t at, struct life_run *run,
                      const struct engine_info *info)
{
    OWN(dir_done) struct dir dir = DIR_INIT;
    char words[WORDS_LAST_BYTES + 1];
    OWN_FD int fd = -1;
    struct err ignored;

    if (!info->has_exit || dir_open(&dir, r->node->dir, false, &ignored) < 0 ||
        dir_open_box(&dir, info->name, &fd, &ignored) < 0)
        return;
    words_of_box(fd, info->exit_code && words_are_wanted(record_spec(r, at)), words);
    if (*words || !run->is_lost)
        life_say(run, words);
}

bool record_add_box(struct record *r, const struct run_id *id, const struct engine_info *info)
{
    size_t at = record_container(r, id->container);
    struct life_container *c;

    if (at == SIZE_MAX)
        at = add_container(r, id->container, false, false);
    c = &r->life.v[at];
    if (c->now.has_box && c->before.has_box)
        return false;
    if (c->now.has_box) {
        c->before = run_of(info, id->attempt);
        add_words(r, at, &c->before, info);
        return true;
    }
    c->now = run_of(info, id->attempt);
    add_words(r, at, &c->now, info);
    c->crashes =
        life_was_steady(&c->now) || c->now.is_lost
            ? 1 /* lost before we came: after a reboot nothing waits, as under a new kubelet */
            : c->now.attempt + (c->now.state == RUN_OVER);
    r->parts[at].was_frozen = info->status == ENGINE_PAUSED;
    r->parts[at].has_news = c->now.state == RUN_UP; /* it is watched from then on */
    return true;
}

static uint64_t time_of(const struct json *v)
{
    struct timespec t;

    return kube_time_parse(json_str(v), &t) ? (uint64_t)t.tv_sec * 1000 : 0;
}

/* An attempt that is over, as a status tells it. */
static bool read_terminated(const struct json *state, struct life_run *run)
{
    const struct json *t = json_get(state, "terminated");
    int64_t code = 0;

    if (!t)
        return false;
    (void)json_i64(json_get(t, "exitCode"), &code);
    run->state = RUN_OVER;
    run->exit_code = (int)code;
    run->began_ms = time_of(json_get(t, "startedAt"));
    run->ended_ms = time_of(json_get(t, "finishedAt"));
    EACH(known, life_reasons) {
        if (span_is(json_str(json_get(t, "reason")), *known))
            run->reason = *known;
    }
    life_say(run, json_cstr(json_get(t, "message")) ? json_cstr(json_get(t, "message")) : "");
    return true;
}

static void add_status(struct record *r, const struct json *status)
{
    const char *name = json_cstr(json_get(status, "name"));
    size_t at = name ? record_container(r, name) : SIZE_MAX;
    const struct json *state = json_get(status, "state");
    struct life_container *c;
    int64_t count = 0;

    if (at == SIZE_MAX || !json_get(status, "containerID"))
        return; /* it was never started */
    c = &r->life.v[at];
    (void)json_i64(json_get(status, "restartCount"), &count);
    if (c->now.has_box && c->now.attempt >= (uint64_t)count) {
        /* What was said of it holds until its probes say otherwise. */
        if (c->now.state == RUN_UP && c->now.attempt == (uint64_t)count) {
            (void)json_bool(json_get(status, "ready"), &c->is_ready);
            (void)json_bool(json_get(status, "started"), &c->is_started);
        }
        return;
    }
    life_run_done(&c->before);
    c->before = c->now;
    c->now = (struct life_run){ .attempt = (uint32_t)count };
    c->crashes = c->now.attempt + 1;
    if (read_terminated(state, &c->now) || read_terminated(json_get(status, "lastState"), &c->now))
        return;
    /* It ran when it was last heard of, and left no trace. */
    c->now.state = RUN_OVER;
    note_lost(&c->now);
    c->crashes = 1;
    c->now.exit_code = 137;
    c->now.began_ms = time_of(json_get(json_get(state, "running"), "startedAt"));
    c->now.ended_ms = node_wall_ms();
}

void record_add_status(struct record *r)
{
    static const char *const lists[] = { "status.initContainerStatuses",
                                         "status.containerStatuses" };

    EACH(list, lists) {
        JSON_EACH(status, object_at(r->pod, *list))
        add_status(r, status);
    }
}

static void tell_oom(struct record *r, size_t at, const struct engine_info *info)
{
    char text[160];

    (void)snprintf(text, sizeof text, "Container %s ended with %d: it ran out of memory",
                   r->parts[at].name, info->exit_code);
    if (r->pod)
        node_event(r->node->events, &(struct event_spec){ .about = r->pod,
                                                          .node = r->node->name,
                                                          .container = r->parts[at].name,
                                                          .is_init = r->life.v[at].is_init,
                                                          .is_warning = true,
                                                          .reason = LIFE_REASON_OOM,
                                                          .message = text });
}

void record_take_info(struct record *r, size_t at, const struct engine_info *info)
{
    struct life_container *c = &r->life.v[at];

    if (c->now.state != RUN_UP)
        return;
    if (!info) {
        c->now.has_box = false;
        note_lost(&c->now);
        life_end(c, 137, node_wall_ms());
        return;
    }
    if (info->created_ms)
        c->now.began_ms = info->created_ms;
    if (!info->has_exit)
        return;
    if (info->status == ENGINE_LOST)
        note_lost(&c->now);
    c->now.reason = info->is_oom ? LIFE_REASON_OOM : NULL;
    if (info->is_oom)
        tell_oom(r, at, info);
    life_end(c, info->exit_code, info->ended_ms ? info->ended_ms : node_wall_ms());
}

/* ---- what the API says ---- */

static void fail(struct record *r, const char *reason, const char *message)
{
    if (r->life.failed)
        return;
    r->life.failed = reason;
    r->fail_message = own_strdup(message);
}

/* activeDeadlineSeconds, from the time the status tells; then it has its grace. */
static void check_deadline(struct record *r)
{
    uint64_t began_ms = time_of(object_at(r->pod, "status.startTime")), now_ms = node_wall_ms();
    int64_t seconds = 0, grace = 30;

    if (!began_ms || !json_i64(object_at(r->pod, "spec.activeDeadlineSeconds"), &seconds) ||
        seconds <= 0)
        return;
    r->life.deadline_ms = began_ms + (uint64_t)seconds * 1000;
    if (!life_is_late(&r->life, now_ms))
        return;
    (void)json_i64(object_at(r->pod, "spec.terminationGracePeriodSeconds"), &grace);
    r->life.end_by_ms = now_ms + (uint64_t)MAX(grace, (int64_t)0) * 1000;
    fail(r, NODE_FAILED_DEADLINE, "Pod was active on the node longer than the specified deadline");
}

/* Whatever was decided of it as a whole before. */
static void read_failed(struct record *r)
{
    const char *phase = object_text(r->pod, "status.phase");
    const char *reason = object_text(r->pod, "status.reason");
    const char *message = object_text(r->pod, "status.message");

    if (!phase || strcmp(phase, "Failed") != 0 || !reason)
        return;
    EACH(known, node_fail_reasons) {
        if (strcmp(*known, reason) == 0)
            fail(r, *known, message ? message : "");
    }
}

void record_update(struct record *r, struct object *pod)
{
    bool is_same = pod && strcmp(object_uid(pod), r->uid) == 0;
    struct object *old = r->pod;
    struct timespec t;

    r->pod = is_same ? object_ref(pod) : NULL;
    object_unref(old);
    if (!is_same) {
        r->life.is_ending = r->life.is_leaving = true;
        r->life.end_by_ms = 0;
        return;
    }
    read_failed(r);
    check_deadline(r);
    if (object_is_deleting(pod)) {
        r->life.is_ending = r->life.is_leaving = true;
        /* Whole seconds: to the end of the last one. */
        r->life.end_by_ms =
            kube_time_parse(json_str(object_at(pod, "metadata.deletionTimestamp")), &t)
                ? (uint64_t)t.tv_sec * 1000 + 999
                : 0;
    }
}

size_t record_running(const struct record *r)
{
    for (size_t i = 0; i < r->life.n; i++)
        if (r->life.v[i].now.state == RUN_UP)
            return i;
    return SIZE_MAX;
}

void record_box(const struct record *r, size_t at, uint32_t attempt, char name[RUN_NAME_BYTES])
{
    struct err e;

    if (run_name(name, r->uid, r->parts[at].name, attempt, &e) < 0)
        *name = '\0'; /* checked when the record was made */
}

const struct json *record_spec(const struct record *r, size_t at)
{
    const struct json *list =
        r->pod
            ? object_at(r->pod, r->life.v[at].is_init ? "spec.initContainers" : "spec.containers")
            : NULL;

    JSON_EACH(item, list)
    {
        if (span_is(json_str(json_get(item, "name")), r->parts[at].name))
            return item;
    }
    return NULL;
}
