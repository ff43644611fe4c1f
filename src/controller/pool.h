/* pool: what a SandboxWarmPool needs: members to make, to take over, to throw away, and what it says of itself.
 *
 *     the pool, its template, the sandboxes that carry its label -> a plan
 *
 * Owns:     a plan owns its list of steps; bodies live in the edit. Does no I/O; the clocks are the caller's.
 * Rule:     never more sandboxes than wished for: those that are on their way out count until they are gone.
 * Used by:  the reconciler of pools (pools.c).
 */
#ifndef SILICA_CONTROLLER_POOL_H
#define SILICA_CONTROLLER_POOL_H

#include "controller/expect.h"
#include "controller/members.h"
#include "controller/step.h"

#include <time.h>

struct pool_config {
    size_t max_batch;    /* creations and deletions in one pass */
    uint64_t grace_ms;   /* for a member to become ready */
    uint64_t recheck_ms; /* of members that cannot be scheduled */
    bool is_bounded;     /* there is room for so many more Pods, in all: */
    size_t room;
    bool is_evictable; /* Pods of members may be evicted, unless the template says otherwise */
};

/* The Pod of a member, for those that do not become ready. */
typedef const struct object *(*pool_pod_fn)(void *ctx, const struct object *member);

struct pool_view {
    const struct object *pool;
    const struct object *template; /* NULL: there is none */
    struct object *const *members; /* the sandboxes with its label, whoever owns them */
    size_t member_count;
    const struct expect *expect;
    uint64_t now_ms;     /* of the expectations' clock */
    struct timespec now; /* of the objects' */
    pool_pod_fn pod_of;
    void *ctx;
};

struct pool_plan {
    struct step *steps; /* patches of members, then deletions, in this order */
    size_t count, cap;
    size_t active, ready;   /* members that count; of these */
    size_t creates;         /* members to be made */
    bool is_held;           /* creations or deletions wait for what was asked for before */
    size_t stuck;           /* members that cannot be scheduled */
    bool is_crowded;        /* members are missing, and there is no room for their Pods */
    uint64_t look_again_ms; /* 0: nothing changes by itself */
    struct json_node *status;
};

void pool_decide(const struct pool_view *v, const struct pool_config *config, struct json_edit *ed,
                 struct pool_plan *ret);
/* The same of a pool whose members need no look at each: none is odd or beyond its time, there are not too many, and nothing
 * that they are made from has changed. v->members is not looked at. */
void pool_decide_counts(const struct pool_view *v, const struct member_counts *counts,
                        const struct pool_config *config, struct json_edit *ed,
                        struct pool_plan *ret);
void pool_plan_done(struct pool_plan *plan);

/* "<pool>-x7k2f": as the API server would make it, so that the member's first annotation can say the name of its Pod. */
#define POOL_NAME_BYTES 64
void pool_member_name(const struct object *pool, char name[POOL_NAME_BYTES]);
/* One member more. */
struct step pool_member(const struct object *pool, const struct object *template, const char *name,
                        const struct pool_config *config, struct json_edit *ed);
/* The write of the status; STEP_NONE when it says nothing new. */
struct step pool_status_step(const struct object *pool, struct json_node *status,
                             struct json_edit *ed);
/* updateStrategy is Recreate. */
bool pool_recreates(const struct object *pool);
/* spec.replicas, 1 when it is not said. */
size_t pool_wish(const struct object *pool);

#endif
