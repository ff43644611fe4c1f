#include "node/volume_limit.h"

#include "node/limits.h"

void volume_limit_start(struct volume_limit *v, uint64_t limit, uint64_t used)
{
    *v = (struct volume_limit){ .limit = limit, .allowed = MAX(limit, used), .used = used };
}

/* Less than this is not too much. */
static uint64_t ceiling(const struct volume_limit *v)
{
    /* Each start would let what holds too much already grow by so much: as little as blocks need. */
    uint64_t more =
        v->allowed > v->limit ? (uint64_t)VOLUME_GROWTH_BYTES : v->limit / VOLUME_LET_PASS_PART;

    return v->allowed > UINT64_MAX - more ? UINT64_MAX : v->allowed + more;
}

bool volume_limit_judge(struct volume_limit *v, uint64_t used, uint64_t now_ms)
{
    v->used = used;
    if (v->limit == VOLUME_NO_LIMIT)
        return false;
    if (used < v->allowed)
        v->allowed = MAX(v->limit, used);
    if (used <= ceiling(v)) {
        v->over_ms = 0;
        return false;
    }
    if (!v->over_ms)
        v->over_ms = now_ms;
    return v->allowed > v->limit || used / 2 >= v->limit || now_ms - v->over_ms >= VOLUME_OVER_MS;
}

uint64_t volume_limit_room(const struct volume_limit *v)
{
    uint64_t most = ceiling(v);

    return v->limit == VOLUME_NO_LIMIT ? UINT64_MAX : most > v->used ? most - v->used : 0;
}
