/* life: what is to be done next for a Pod, decided from what is seen of it.
 *
 *     what is seen (life_pod) -> life_next -> one step; it is carried out, what is seen changes, and life_next is asked again
 *
 * Owns:     nothing. No I/O and no clock: `now_ms` is the caller's, wall time since 1970 as the engine writes it, so that
 *           nothing is different after a restart of the node.
 * Used by:  pods.c, which carries the steps out; pod_status.c, which says how things stand.
 * Rules:    the kubelet's: init containers one after the other, then all containers; restarts by policy, after a pause
 *           that doubles from 10 s to 5 min; a preStop hook, TERM, then KILL when the time is up.
 */
#ifndef SILICA_NODE_LIFE_H
#define SILICA_NODE_LIFE_H

#include "base/own.h"

/* Ends that need another word than Completed or Error. */
#define LIFE_REASON_START "StartError"
#define LIFE_REASON_OOM   "OOMKilled"
extern const char *const life_reasons[2];

enum life_policy { LIFE_ALWAYS, LIFE_ON_FAILURE, LIFE_NEVER };

enum life_state { RUN_NONE, RUN_UP, RUN_OVER };

#define LIFE_MESSAGE_BYTES  4097        /* the kubelet's ceiling for last words, and an end */
#define LIFE_MESSAGES_BYTES (12 * 1024) /* of all containers of a Pod, each its share */

/* One attempt of a container. */
struct life_run {
    enum life_state state;
    uint32_t attempt; /* how often it was started before */
    bool has_box;     /* a sandbox stands in the engine's directory */
    bool is_starting; /* its postStart hook is under way: until then it is not said to run */
    bool is_hooking;  /* its preStop hook is */
    bool was_hooked;  /* that is over, well or not */
    bool was_told;    /* TERM was sent */
    bool is_lost;     /* ended with its keeper, which was killed, or with the machine */
    int exit_code;
    const char *
        reason; /* of an end that needs another word than Completed or Error; a constant, or NULL */
    char *message; /* why it could not be started, or its last words; its own, NULL: none */
    uint64_t began_ms, ended_ms;
};

struct life_container {
    const char *name;
    bool is_init;
    bool has_stop_hook; /* preStop: done before it is told to end */
    bool is_sidecar;    /* an init container that stays: the next one starts when it has started */
    struct life_run now, before;
    unsigned crashes; /* how often it ended in a row, without LIFE_STEADY_MS in between */
    /* It cannot be started: why, and when that is tried again. NULL: nothing is in the way. */
    const char *wait_reason;
    char wait_message[480];
    uint64_t retry_ms;
    unsigned tries;            /* in a row that ended so */
    bool is_started, is_ready; /* as its probes say */
    bool must_end;             /* a probe failed for too long: it is ended, and started again */
    uint64_t end_by_ms;        /* of what must end: then it is killed */
};

struct life_pod {
    enum life_policy policy;
    bool is_ending;       /* it is being deleted, or may not run any more: nothing is started */
    bool is_leaving;      /* it is being deleted: nothing of it stays */
    const char *failed;   /* it has failed as a whole: the reason; NULL: it has not */
    uint64_t end_by_ms;   /* with is_ending or failed: then what still runs is killed */
    uint64_t deadline_ms; /* when it fails if it still runs; 0: never */
    struct life_container *v;
    size_t n;
};

enum life_what {
    LIFE_REST,   /* nothing, before wait_ms have passed (UINT64_MAX: before something happens) */
    LIFE_START,  /* the next attempt of a container */
    LIFE_HOOK,   /* its preStop hook */
    LIFE_TELL,   /* TERM, or what it wants instead */
    LIFE_KILL,   /* all of it */
    LIFE_REMOVE, /* the sandbox of an attempt that is over */
    LIFE_GONE,   /* is_leaving, and nothing is left */
};

struct life_step {
    enum life_what what;
    size_t at;      /* which container */
    bool is_before; /* of LIFE_REMOVE: `before`, else `now` */
    uint64_t wait_ms;
};

/* Takes a copy, of LIFE_MESSAGE_BYTES with its end at most; "" is none. */
void life_say(struct life_run *r, const char *message);
void life_run_done(struct life_run *r);

struct life_step life_next(const struct life_pod *p, uint64_t now_ms);
/* Before LIFE_START is carried out: `now` is the new attempt. */
void life_begin(struct life_container *c);
/* Its `now` has ended; counts how often. */
void life_end(struct life_container *c, int exit_code, uint64_t ended_ms);
/* It ran for so long that its end is not one of a row. */
bool life_was_steady(const struct life_run *r);
/* It ended, and will be started again. */
bool life_comes_back(const struct life_pod *p, const struct life_container *c);
/* The pause before that, from its end on. */
uint64_t life_pause_ms(const struct life_container *c);
/* All init containers have done their work. */
bool life_is_initialized(const struct life_pod *p);
/* "Pending", "Running", "Succeeded", "Failed". */
const char *life_phase(const struct life_pod *p);
/* Nothing of it runs. */
bool life_is_still(const struct life_pod *p);
/* It runs longer than it may. */
bool life_is_late(const struct life_pod *p, uint64_t now_ms);
/* Succeeded or Failed: nothing will run any more. */
bool life_is_over(const struct life_pod *p);

#endif
