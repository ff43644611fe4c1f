#include "controller/telling.h"

#include "controller/limits.h"

void telling_see(struct telling *t, const struct telling_view *v, bool differs, uint64_t now_ms)
{
    if (!t->moved_ms || t->active != v->active || t->ready != v->ready)
        t->moved_ms = now_ms;
    t->active = v->active;
    t->ready = v->ready;
    if (!differs)
        t->differs_ms = 0;
    else if (!t->differs_ms)
        t->differs_ms = now_ms;
}

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

static bool is_near(const struct telling_view *v)
{
    size_t most = v->wish / POOL_NEAR_PART;

    return distance(v->active, v->told_active) <= most && distance(v->ready, v->told_ready) <= most;
}

uint64_t telling_wait_ms(const struct telling *t, const struct telling_view *v, uint64_t now_ms)
{
    bool is_even = v->is_wish_new || (v->active == v->wish && v->ready == v->active);
    uint64_t due_ms = t->told_ms ? t->told_ms + POOL_STATUS_MS : 0;

    if (!is_even && is_near(v))
        due_ms = MAX(due_ms, MIN(t->moved_ms + POOL_UNEVEN_MS, t->differs_ms + POOL_MOVING_MS));
    else if (!is_even)
        due_ms = MAX(due_ms, t->differs_ms + POOL_UNEVEN_MS);
    return due_ms > now_ms ? due_ms - now_ms : 0;
}

void telling_done(struct telling *t, uint64_t now_ms)
{
    t->told_ms = now_ms;
    t->differs_ms = 0;
}
