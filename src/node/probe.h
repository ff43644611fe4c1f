/* probe: when a container is asked whether it is well, and what follows from the answers: the kubelet's rules, as data.
 *
 *     probes_init(container, started) -> probes_due -> (prober.h asks) -> probe_end -> is_started, is_ready, must_restart
 *
 * Before its first success a probe is tried again after 1 ms, then 2, 4 and so on up to its period, so that being ready costs
 * no second of waiting. These tries only ever count as successes: a failure counts once for each period, as in Kubernetes,
 * so thresholds mean the same time.
 *
 * Owns:     nothing. Reads no clock and does no I/O: times in milliseconds of any one clock come in.
 * Used by:  the lifecycle: one struct probes for each running container.
 */
#ifndef SILICA_NODE_PROBE_H
#define SILICA_NODE_PROBE_H

#include "base/json.h"

#define PROBE_FIRST_RETRY_MS 1
#define PROBE_NEVER          UINT64_MAX

enum probe_role { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS };
#define PROBE_ROLES 3

enum probe_verdict { PROBE_UNKNOWN, PROBE_SUCCESS, PROBE_FAILURE };

/* What the Pod says; zeroes and absences as the API defaults them. */
struct probe_rules {
    uint64_t initial_delay_ms, period_ms, timeout_ms;
    unsigned success_threshold, failure_threshold;
};

struct probe {
    const struct json *spec; /* the Pod's memory; NULL: there is no such probe */
    enum probe_role role;
    struct probe_rules rules;
    enum probe_verdict verdict;
    bool is_busy;        /* a try is under way */
    bool has_succeeded;  /* once, ever */
    bool is_over;        /* no further try: startup succeeded, or the container is to be killed */
    bool last;           /* result of the last one that counted */
    unsigned run;        /* how often in a row */
    uint64_t due_ms;     /* the next try */
    uint64_t counted_ms; /* failures before this do not count */
    uint64_t retry_ms;   /* the next pause before the first success */
};

struct probes {
    struct probe v[PROBE_ROLES]; /* by role */
};

/* What came of a try. */
struct probe_news {
    bool is_counted; /* it is one that Kubernetes would have made: a failure is told by an Event */
    bool is_changed; /* what probes_is_* say may have changed */
};

void probe_rules_read(const struct json *spec, struct probe_rules *ret);

/* The container runs since started_ms. */
void probes_init(struct probes *ps, const struct json *container, uint64_t started_ms);
/* The probe that is due next, and when; NULL: none. The caller tries it at *ret_ms: probe_begin, then probe_end. */
struct probe *probes_due(struct probes *ps, uint64_t *ret_ms);
void probe_begin(struct probe *p);
struct probe_news probe_end(struct probes *ps, struct probe *p, bool is_success, uint64_t now_ms);

bool probes_is_started(const struct probes *ps);
bool probes_is_ready(const struct probes *ps);
/* The probe because of which the container is to be killed; NULL: none. */
const struct probe *probes_killer(const struct probes *ps);
/* After a restart of ours: the container was ready when it was last seen; being asked again does not take that back before
 * the thresholds say so. */
void probes_adopt(struct probes *ps, bool is_started, bool is_ready);
/* "Readiness", as Events have it; "readiness" with is_lower. */
const char *probe_role_name(enum probe_role role, bool is_lower);

#endif
