#include "node/life.h"

#include "base/buf.h"

#include "kube/backoff.h"
#include "node/limits.h"

const char *const life_reasons[2] = { LIFE_REASON_START, LIFE_REASON_OOM };

static struct life_step rest(uint64_t wait_ms)
{
    return (struct life_step){ .what = LIFE_REST, .wait_ms = wait_ms };
}

static struct life_step do_to(enum life_what what, size_t at)
{
    return (struct life_step){ .what = what, .at = at };
}

static uint64_t until(uint64_t at_ms, uint64_t now_ms)
{
    return at_ms > now_ms ? at_ms - now_ms : 0;
}

/* ---- how things stand ---- */

static bool has_begun(const struct life_container *c)
{
    return c->now.state != RUN_NONE || c->now.attempt > 0;
}

bool life_comes_back(const struct life_pod *p, const struct life_container *c)
{
    if (c->now.state != RUN_OVER || p->is_ending || p->failed)
        return false;
    if (c->is_sidecar)
        return true;
    if (c->is_init)
        return c->now.exit_code != 0 && p->policy != LIFE_NEVER;
    return p->policy == LIFE_ALWAYS || (p->policy == LIFE_ON_FAILURE && c->now.exit_code != 0);
}

uint64_t life_pause_ms(const struct life_container *c)
{
    return c->crashes <= 1 ? 0
                           : backoff_ms(LIFE_PAUSE_FIRST_MS, LIFE_PAUSE_MOST_MS, c->crashes - 1);
}

/* When the last of its containers was lost, if all of them are down and one comes back: with them went the namespaces that
 * they shared and the volumes in memory, so the Pod begins anew. 0: it does not. */
static uint64_t lost_ms(const struct life_pod *p)
{
    uint64_t at_ms = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct life_container *c = &p->v[i];

        if (c->is_init)
            continue;
        if (c->now.state == RUN_UP)
            return 0;
        if (c->now.is_lost && life_comes_back(p, c))
            at_ms = MAX(at_ms, c->now.ended_ms);
    }
    return at_ms;
}

/* An init container that did its work for what was lost since. */
static bool begins_anew(const struct life_pod *p, const struct life_container *c)
{
    return c->is_init && !c->is_sidecar && c->now.state == RUN_OVER && c->now.exit_code == 0 &&
           c->now.ended_ms <= lost_ms(p);
}

/* The next container may begin. */
static bool is_passed(const struct life_pod *p, const struct life_container *c)
{
    if (c->is_sidecar)
        return c->now.state == RUN_UP && c->is_started;
    return c->now.state == RUN_OVER && c->now.exit_code == 0 && !begins_anew(p, c);
}

bool life_is_initialized(const struct life_pod *p)
{
    bool is_passed_all = true, is_anew = lost_ms(p) != 0;

    for (size_t i = 0; i < p->n; i++) {
        /* A container that ran says that those before it have done theirs, whatever became of their traces. */
        if (!is_anew && !p->v[i].is_init && has_begun(&p->v[i]))
            return true;
        if (p->v[i].is_init && !is_passed(p, &p->v[i]))
            is_passed_all = false;
    }
    return is_passed_all;
}

bool life_is_still(const struct life_pod *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].now.state == RUN_UP)
            return false;
    return true;
}

/* An init container failed for good. */
static bool is_stuck(const struct life_pod *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct life_container *c = &p->v[i];

        if (c->is_init && !c->is_sidecar && c->now.state == RUN_OVER && c->now.exit_code != 0 &&
            p->policy == LIFE_NEVER)
            return true;
    }
    return false;
}

/* What the containers add up to; those of the beginning are counted out. */
static const char *phase_of_containers(const struct life_pod *p)
{
    bool is_waiting = false, has_failed = false, is_running = false, comes_back = false;

    for (size_t i = 0; i < p->n; i++) {
        const struct life_container *c = &p->v[i];

        if (c->is_init)
            continue;
        is_waiting |= !has_begun(c) || (c->now.is_starting && c->now.attempt == 0);
        is_running |= c->now.state == RUN_UP || (c->now.state == RUN_NONE && c->now.attempt > 0);
        comes_back |= life_comes_back(p, c);
        has_failed |= c->now.state == RUN_OVER && c->now.exit_code != 0;
    }
    if (is_waiting)
        return "Pending";
    if (is_running || comes_back)
        return "Running";
    return has_failed ? "Failed" : "Succeeded";
}

const char *life_phase(const struct life_pod *p)
{
    if (p->failed)
        return life_is_still(p) ? "Failed" : "Running";
    if (is_stuck(p))
        return "Failed";
    return life_is_initialized(p) ? phase_of_containers(p) : "Pending";
}

bool life_is_late(const struct life_pod *p, uint64_t now_ms)
{
    return p->deadline_ms && now_ms >= p->deadline_ms && !p->is_ending && !p->failed &&
           !life_is_over(p);
}

bool life_is_over(const struct life_pod *p)
{
    const char *phase = life_phase(p);

    return phase[0] == 'S' || phase[0] == 'F';
}

/* ---- what to do ---- */

/* Those that run are told, then waited for, then killed. `after`: those before it are left alone. */
static struct life_step end_one(const struct life_container *c, size_t at, uint64_t end_by_ms,
                                uint64_t now_ms)
{
    uint64_t kill_ms = end_by_ms + (c->has_stop_hook ? LIFE_AFTER_HOOK_MS : 0);

    if (!c->now.was_told && c->has_stop_hook && !c->now.was_hooked && now_ms < end_by_ms)
        return c->now.is_hooking ? rest(until(end_by_ms, now_ms)) : do_to(LIFE_HOOK, at);
    if (!c->now.was_told)
        return do_to(LIFE_TELL, at);
    /* What a hook took of the time is gone; what is told after it has a moment all the same. */
    return now_ms >= kill_ms ? do_to(LIFE_KILL, at) : rest(until(kill_ms, now_ms));
}

static struct life_step end_all(const struct life_pod *p, uint64_t now_ms)
{
    struct life_step wait = rest(UINT64_MAX), step;

    for (size_t i = 0; i < p->n; i++) {
        if (p->v[i].now.state != RUN_UP)
            continue;
        step = end_one(&p->v[i], i, p->end_by_ms, now_ms);
        if (step.what != LIFE_REST)
            return step;
        wait.wait_ms = MIN(wait.wait_ms, step.wait_ms);
    }
    if (!life_is_still(p) || !p->is_leaving)
        return wait;
    for (size_t i = 0; i < p->n; i++) {
        if (p->v[i].before.has_box)
            return (struct life_step){ .what = LIFE_REMOVE, .at = i, .is_before = true };
        if (p->v[i].now.has_box)
            return do_to(LIFE_REMOVE, i);
    }
    return do_to(LIFE_GONE, 0);
}

static struct life_step start_one(const struct life_pod *p, size_t at, uint64_t now_ms)
{
    const struct life_container *c = &p->v[at];
    uint64_t from_ms = c->wait_reason ? c->retry_ms : 0;

    if (c->now.state == RUN_OVER)
        from_ms = MAX(from_ms, c->now.ended_ms + life_pause_ms(c));
    if (now_ms < from_ms)
        return rest(until(from_ms, now_ms));
    if (c->now.state == RUN_OVER && c->before.has_box) /* one attempt before is remembered */
        return (struct life_step){ .what = LIFE_REMOVE, .at = at, .is_before = true };
    return do_to(LIFE_START, at);
}

/* One container as it should be; LIFE_REST: it is, or has to wait. */
static struct life_step keep_one(const struct life_pod *p, size_t at, uint64_t now_ms)
{
    const struct life_container *c = &p->v[at];

    if (c->now.state == RUN_UP)
        return c->must_end ? end_one(c, at, c->end_by_ms, now_ms) : rest(UINT64_MAX);
    if (c->now.state == RUN_NONE || life_comes_back(p, c) || begins_anew(p, c))
        return start_one(p, at, now_ms);
    return rest(UINT64_MAX);
}

struct life_step life_next(const struct life_pod *p, uint64_t now_ms)
{
    struct life_step wait = rest(UINT64_MAX), step;
    bool is_initialized = life_is_initialized(p);

    if (p->is_ending || p->failed)
        return end_all(p, now_ms);
    if (is_stuck(p))
        return wait;
    if (p->deadline_ms && !life_is_over(p))
        wait.wait_ms = until(p->deadline_ms, now_ms);
    for (size_t i = 0; i < p->n; i++) {
        const struct life_container *c = &p->v[i];

        if (c->is_init && is_initialized && !c->is_sidecar)
            continue;
        step = keep_one(p, i, now_ms);
        if (step.what != LIFE_REST)
            return step;
        wait.wait_ms = MIN(wait.wait_ms, step.wait_ms);
        if ((c->is_init && !is_initialized && !is_passed(p, c)) || c->now.is_starting)
            return wait; /* the next one waits for it */
    }
    return wait;
}

void life_say(struct life_run *r, const char *message)
{
    free(r->message);
    r->message =
        *message ? span_dup(span_of(message, strnlen(message, LIFE_MESSAGE_BYTES - 1))) : NULL;
}

void life_run_done(struct life_run *r)
{
    free(r->message);
    *r = (struct life_run){ 0 };
}

void life_begin(struct life_container *c)
{
    if (c->now.state == RUN_OVER) {
        uint32_t attempt = c->now.attempt + 1;

        life_run_done(&c->before);
        c->before = c->now;
        c->now = (struct life_run){ .attempt = attempt };
    }
    c->is_started = c->is_ready = c->must_end = false;
}

bool life_was_steady(const struct life_run *r)
{
    return r->state == RUN_OVER && until(r->ended_ms, r->began_ms) >= LIFE_STEADY_MS;
}

void life_end(struct life_container *c, int exit_code, uint64_t ended_ms)
{
    struct life_run *r = &c->now;

    r->state = RUN_OVER;
    r->exit_code = exit_code;
    r->ended_ms = ended_ms;
    c->crashes = life_was_steady(r) ? 1 : c->crashes + 1;
    r->is_starting = r->is_hooking = false;
    c->is_started = c->is_ready = c->must_end = false;
}
