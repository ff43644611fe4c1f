#include "node/probe.h"

#define PERIOD_DEFAULT_S  10
#define TIMEOUT_DEFAULT_S 1
#define FAILURES_DEFAULT  3
#define SECONDS_MAX       (100ull * 365 * 24 * 3600)
#define COUNT_MAX         INT32_MAX

const char *probe_role_name(enum probe_role role, bool is_lower)
{
    static const char *const names[PROBE_ROLES][2] = {
        [PROBE_STARTUP] = { "Startup", "startup" },
        [PROBE_LIVENESS] = { "Liveness", "liveness" },
        [PROBE_READINESS] = { "Readiness", "readiness" },
    };

    return names[role][is_lower];
}

/* A number that is 0 or absent is the default. */
static uint64_t number(const struct json *spec, const char *key, uint64_t fallback, uint64_t most)
{
    uint64_t v;

    return json_u64(json_get(spec, key), &v) && v ? MIN(v, most) : fallback;
}

void probe_rules_read(const struct json *spec, struct probe_rules *ret)
{
    *ret = (struct probe_rules){
        .initial_delay_ms = 1000 * number(spec, "initialDelaySeconds", 0, SECONDS_MAX),
        .period_ms = 1000 * number(spec, "periodSeconds", PERIOD_DEFAULT_S, SECONDS_MAX),
        .timeout_ms = 1000 * number(spec, "timeoutSeconds", TIMEOUT_DEFAULT_S, SECONDS_MAX),
        .success_threshold = (unsigned)number(spec, "successThreshold", 1, COUNT_MAX),
        .failure_threshold =
            (unsigned)number(spec, "failureThreshold", FAILURES_DEFAULT, COUNT_MAX),
    };
}

static void init(struct probe *p, enum probe_role role, const struct json *spec, uint64_t start_ms)
{
    static const enum probe_verdict first[PROBE_ROLES] = {
        [PROBE_STARTUP] = PROBE_UNKNOWN,
        [PROBE_LIVENESS] = PROBE_SUCCESS, /* until it is shown not to be */
        [PROBE_READINESS] = PROBE_FAILURE,
    };

    *p = (struct probe){ .role = role, .verdict = PROBE_SUCCESS, .is_over = true };
    if (json_type(spec) != JSON_OBJECT)
        return;
    p->spec = spec;
    p->is_over = false;
    p->verdict = first[role];
    p->retry_ms = PROBE_FIRST_RETRY_MS;
    probe_rules_read(spec, &p->rules);
    p->due_ms = start_ms + p->rules.initial_delay_ms;
    /* The kubelet's first try comes within its first period; what fails before was not ready to be asked. */
    p->counted_ms = p->due_ms + p->rules.period_ms;
}

void probes_init(struct probes *ps, const struct json *container, uint64_t started_ms)
{
    init(&ps->v[PROBE_STARTUP], PROBE_STARTUP, json_get(container, "startupProbe"), started_ms);
    init(&ps->v[PROBE_LIVENESS], PROBE_LIVENESS, json_get(container, "livenessProbe"), started_ms);
    init(&ps->v[PROBE_READINESS], PROBE_READINESS, json_get(container, "readinessProbe"),
         started_ms);
}

bool probes_is_started(const struct probes *ps)
{
    return ps->v[PROBE_STARTUP].verdict == PROBE_SUCCESS;
}

bool probes_is_ready(const struct probes *ps)
{
    return probes_is_started(ps) && ps->v[PROBE_READINESS].verdict == PROBE_SUCCESS;
}

const struct probe *probes_killer(const struct probes *ps)
{
    for (enum probe_role role = PROBE_STARTUP; role <= PROBE_LIVENESS; role++)
        if (ps->v[role].verdict == PROBE_FAILURE)
            return &ps->v[role];
    return NULL;
}

/* The others wait for the startup probe, and nobody asks who is to be killed. */
static bool is_asked(const struct probes *ps, const struct probe *p)
{
    if (p->is_over || p->is_busy || probes_killer(ps))
        return false;
    return p->role == PROBE_STARTUP || probes_is_started(ps);
}

struct probe *probes_due(struct probes *ps, uint64_t *ret_ms)
{
    struct probe *next = NULL;

    for (size_t i = 0; i < PROBE_ROLES; i++)
        if (is_asked(ps, &ps->v[i]) && (!next || ps->v[i].due_ms < next->due_ms))
            next = &ps->v[i];
    if (next)
        *ret_ms = next->due_ms;
    return next;
}

void probe_begin(struct probe *p)
{
    p->is_busy = true;
}

/* The startup probe is through: the others begin now, or when their own delays are over. */
static void begin_others(struct probes *ps, uint64_t now_ms)
{
    for (size_t i = 0; i < PROBE_ROLES; i++) {
        struct probe *p = &ps->v[i];

        if (p->role == PROBE_STARTUP || p->is_over)
            continue;
        p->due_ms = MAX(p->due_ms, now_ms);
        p->counted_ms = MAX(p->counted_ms, now_ms + p->rules.period_ms);
    }
}

static void plan_next(struct probe *p, uint64_t now_ms)
{
    if (p->has_succeeded) {
        p->due_ms = now_ms + p->rules.period_ms;
        return;
    }
    p->due_ms = now_ms + p->retry_ms;
    if (p->counted_ms > now_ms) /* there is a try at each time that counts */
        p->due_ms = MIN(p->due_ms, p->counted_ms);
    p->retry_ms = MIN(p->retry_ms * 2, p->rules.period_ms);
}

/* Takes a result that counts; whether the verdict changed. */
static bool count(struct probe *p, bool is_success)
{
    enum probe_verdict verdict = is_success ? PROBE_SUCCESS : PROBE_FAILURE;
    bool is_changed;

    p->run = p->run && p->last == is_success ? p->run + 1 : 1;
    p->last = is_success;
    if (p->run < (is_success ? p->rules.success_threshold : p->rules.failure_threshold))
        return false;
    is_changed = p->verdict != verdict;
    p->verdict = verdict;
    return is_changed;
}

struct probe_news probe_end(struct probes *ps, struct probe *p, bool is_success, uint64_t now_ms)
{
    struct probe_news news = { .is_counted = true };

    p->is_busy = false;
    if (p->is_over)
        return (struct probe_news){ 0 };
    /* Tries that are nearer to each other than a period: the first of them stands for the others. */
    if (!is_success && !p->has_succeeded && now_ms < p->counted_ms)
        news.is_counted = false;
    p->has_succeeded |= is_success;
    if (news.is_counted) {
        p->counted_ms = now_ms + p->rules.period_ms;
        news.is_changed = count(p, is_success);
    }
    plan_next(p, now_ms);
    if (p->role == PROBE_STARTUP && p->verdict == PROBE_SUCCESS) {
        p->is_over = true;
        begin_others(ps, now_ms);
    }
    if (p->role != PROBE_READINESS && p->verdict == PROBE_FAILURE)
        p->is_over = true;
    return news;
}

void probes_adopt(struct probes *ps, bool is_started, bool is_ready)
{
    struct probe *startup = &ps->v[PROBE_STARTUP], *ready = &ps->v[PROBE_READINESS];

    if (is_started && startup->spec) {
        startup->verdict = PROBE_SUCCESS;
        startup->is_over = true;
    }
    if (is_ready && ready->spec) {
        ready->verdict = PROBE_SUCCESS;
        ready->has_succeeded = true;
    }
}
