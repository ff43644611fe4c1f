/* One look at one Pod: what its life wants next is done, one step at a time, until there is nothing to do now; then its
 * status is written, if it is not so already. Nothing is remembered between two looks that a third could not find out. */
#include "node/pass.h"

#include "node/address_demand.h"
#include "node/disk_watch.h"
#include "node/fetch.h"
#include "node/hook.h"
#include "node/limits.h"
#include "node/make.h"
#include "node/served.h"
#include "node/tend.h"

#include "base/log.h"
#include "kube/backoff.h"
#include "kube/binding.h"

#include <signal.h>
#include <string.h>

static void advance(struct pass *p);

/* Of the container that the pass is at; fmt takes its name. */
static void tell_of(struct pass *p, bool is_warning, const char *reason, const char *fmt)
{
    char text[128];

    (void)snprintf(text, sizeof text, fmt, p->record->parts[p->at].name);
    pass_tell(p, p->at, is_warning, reason, text);
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
    if (p->what == LIFE_REST && p->rc == 0 && p->info.has_exit)
        words_read(en, p->box, p->wants_words && p->info.exit_code, p->words);
}

static void step_done(void *ctx)
{
    struct pass *p = ctx;
    struct life_container *c = &p->record->life.v[p->at];
    struct record_part *part = &p->record->parts[p->at];
    bool is_gone = p->rc < 0 && p->e.code == ERR_NOT_FOUND;

    if (p->rc < 0 && !is_gone && p->e.code != ERR_CLOSED) {
        pass_fail(p, p->what == LIFE_REMOVE ? "remove" : "reach", p->e.msg);
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
        if (c->now.state == RUN_OVER && *p->words)
            life_say(&c->now, p->words);
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
    p->wants_words = words_are_wanted(record_spec(p->record, at));
    p->words[0] = '\0';
    record_box(p->record, at, is_before ? c->before.attempt : c->now.attempt, p->box);
    crew_submit(p->node->crew, &p->job, run_step, step_done, p);
}

/* ---- a container begins ---- */

void work_watch(struct record *r, size_t at)
{
    struct record_part *part = &r->parts[at];
    char box[RUN_NAME_BYTES];
    bool is_over = true;
    struct err e;

    record_box(r, at, r->life.v[at].now.attempt, box);
    part->is_unwatched = exits_watch(r->node->exits, box, &is_over, &e) < 0;
    part->has_news = is_over; /* it may have ended before anybody watched, or nobody does */
    if (part->is_unwatched)
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
        pass_tell(p, p->at, true, event, message);
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
    disk_watch_add(r, &result->held);
    c->now.is_starting = hook_has(record_spec(r, p->at), HOOK_START);
    if (c->now.is_starting)
        hook_start(r, p->at, HOOK_START, HOOK_MOST_MS);
    else
        ready_begin(r, p->at);
    tell_of(p, false, "Started", "Started container %s");
    if (*result->made.unenforced) {
        (void)snprintf(text, sizeof text, "limits that this host cannot enforce: %s",
                       result->made.unenforced);
        pass_tell(p, p->at, true, "LimitsNotEnforced", text);
    }
    for (size_t i = 0; i < result->notes->n; i++)
        pass_tell(p, p->at, true, result->notes->v[i].reason, result->notes->v[i].message);
}

static void on_made(void *ctx, const struct make_result *result)
{
    struct pass *p = ctx;
    struct life_container *c = &p->record->life.v[p->at];

    if (result->rc == 0) {
        has_started(p, result);
    } else if (result->is_command) {
        c->wait_reason = NULL;
        c->now.reason = LIFE_REASON_START;
        c->now.began_ms = node_wall_ms();
        life_say(&c->now, result->e.msg);
        life_end(c, 128, node_wall_ms());
        pass_tell(p, p->at, true, "Failed", result->e.msg);
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
    served_note(p->record->pod, &notes);
    for (size_t i = 0; i < notes.n; i++)
        pass_tell(p, SIZE_MAX, true, notes.v[i].reason, notes.v[i].message);
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

/* A container that has just begun is mostly ready within milliseconds: then one write says both. */
static bool is_settling(const struct record *r, uint64_t now_ms)
{
    const char *phase = r->pod ? object_text(r->pod, "status.phase") : NULL;

    if (!phase || strcmp(phase, "Pending") != 0 || r->life.is_ending)
        return false;
    for (size_t i = 0; i < r->life.n; i++) {
        const struct life_container *c = &r->life.v[i];

        if (!c->is_init && c->now.state == RUN_UP && !c->is_ready && now_ms >= c->now.began_ms &&
            now_ms - c->now.began_ms < NODE_SETTLE_MS)
            return true;
    }
    return false;
}

static void tell_failure(struct pass *p)
{
    struct record *r = p->record;
    const char *phase = r->pod ? object_text(r->pod, "status.phase") : NULL;

    if (!r->life.failed || r->is_failure_told)
        return;
    r->is_failure_told = true;
    if (phase && strcmp(phase, "Failed") != 0)
        pass_tell(p, SIZE_MAX, true, r->life.failed, r->fail_message);
}

static void fail_evicted(struct record *r, const char *message)
{
    if (!message || r->life.failed)
        return;
    r->life.failed = NODE_FAILED_EVICTED;
    free(r->fail_message);
    r->fail_message = own_strdup(message);
}

static void on_tended(void *ctx, const char *evicted)
{
    struct pass *p = ctx;

    fail_evicted(p->record, evicted);
    advance(p);
}

/* Its time is a part of the container's. */
static void start_hook(struct pass *p, size_t at)
{
    struct record *r = p->record;
    struct life_container *c = &r->life.v[at];
    uint64_t now_ms = node_wall_ms();
    uint64_t end_by_ms = r->life.is_ending || r->life.failed ? r->life.end_by_ms : c->end_by_ms;

    if (r->pod && record_spec(r, at)) {
        c->now.is_hooking = true;
        hook_start(r, at, HOOK_STOP, end_by_ms > now_ms ? end_by_ms - now_ms : 1);
    } else {
        c->now.was_hooked = true; /* nobody knows any more what it was */
    }
    advance(p);
}

static void advance(struct pass *p)
{
    struct record *r = p->record;
    struct life_step step;
    size_t news;

    if (p->node->is_closing) {
        pass_finish(p, UINT64_MAX);
        return;
    }
    record_update(r, informer_get(p->node->pods, r->namespace, r->name));
    fail_evicted(r, r->evict_message);
    tell_failure(p);
    news = find_news(r);
    if (news != SIZE_MAX) {
        do_step(p, LIFE_REST, news, false);
        return;
    }
    if (is_over(r)) {
        address_demand_see(r, r->pod);
        pass_finish(p, UINT64_MAX);
        return;
    }
    step = life_next(&r->life, node_wall_ms());
    switch (step.what) {
    case LIFE_REST:
        if (tend_wait_ms(r) == 0)
            tend_start(r, on_tended, p);
        else if (is_settling(r, node_wall_ms()))
            pass_finish(p, NODE_SETTLE_MS);
        else
            pass_write_status(p, MIN(cap_wait(r, step.wait_ms), tend_wait_ms(r)));
        return;
    case LIFE_START:
        start_container(p, step.at);
        return;
    case LIFE_HOOK:
        start_hook(p, step.at);
        return;
    case LIFE_TELL:
    case LIFE_KILL:
    case LIFE_REMOVE:
        do_step(p, step.what, step.at, step.is_before);
        return;
    case LIFE_GONE:
        pass_leave(p);
        return;
    }
}

/* ---- whose it is ---- */

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
        for (size_t i = 0; i < p->record->life.n; i++)
            p->record->parts[i].has_news |= p->record->parts[i].is_unwatched;
        advance(p);
    } else if (!pod || (host && *host && strcmp(host, n->name) != 0)) {
        pass_finish(p, UINT64_MAX); /* another node's, or gone before we had seen it */
    } else if (!host || !*host) {
        if (n->is_scheduler && binding_is_wanted(pod))
            pass_bind(p, pod);
        else
            pass_finish(p, UINT64_MAX);
    } else if (record_of_pod(n, pod, &p->record, &e) < 0) {
        p->record->life.failed = NODE_FAILED_REFUSED;
        p->record->fail_message = own_strdup(e.msg);
        advance(p);
    } else {
        advance(p);
    }
}
