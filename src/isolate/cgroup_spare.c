#include "isolate/cgroup_spare.h"

#include "isolate/limits.h"

/* A kind that v1 does not have is no part of it either way. */
static bool has_same_kinds(const struct box_limits *a, const struct box_limits *b)
{
    return !a->memory_bytes == !b->memory_bytes && !a->pids == !b->pids &&
           !a->cpu_milli == !b->cpu_milli && !a->cpu_shares == !b->cpu_shares;
}

static bool has_v1(void)
{
    const struct cgroup_host *h = cgroup_host();

    return *h->dirs[CGROUP_MEMORY] || *h->dirs[CGROUP_PIDS] || *h->dirs[CGROUP_CPU];
}

/* The numbers may be others. False: they cannot be written. */
static bool fit(const struct cgroup_spare *s, const struct box_limits *limits)
{
    OWN(buf_done) struct buf missing = BUF_INIT(BOX_UNENFORCED_MAX_BYTES);
    struct err ignored;

    if (memcmp(&s->limits, limits, sizeof *limits) != 0)
        cgroup_limit(&s->groups, limits, &missing, &ignored);
    return missing.n == 0;
}

bool cgroup_spare_take(struct cgroup_spare *s, const struct box_limits *limits, struct cgroup *ret)
{
    bool is_taken = s->is_ready && has_same_kinds(&s->limits, limits) && fit(s, limits);

    if (is_taken)
        *ret = s->groups;
    else
        cgroup_spare_done(s);
    s->is_ready = false;
    s->is_wanted = has_v1();
    s->limits = *limits;
    return is_taken;
}

bool cgroup_spare_is_wanted(const struct cgroup_spare *s)
{
    return s->is_wanted && !s->is_ready;
}

void cgroup_spare_make(struct cgroup_spare *s, const struct cgroup *parent)
{
    s->is_wanted = false; /* what fails is not tried again before the next sandbox */
    cgroup_make_ahead(&s->groups, parent, &s->limits);
    s->is_ready = true;
    if (!cgroup_enter(&s->groups, parent))
        cgroup_spare_done(s);
}

void cgroup_spare_done(struct cgroup_spare *s)
{
    cgroup_leave();
    if (s->is_ready)
        cgroup_done(&s->groups);
    s->is_ready = false;
}
