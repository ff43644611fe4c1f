#include "isolate/keeper_impl.h"

#include "base/fd.h"
#include "base/log.h"
#include "isolate/default_limits.h"
#include "isolate/limits.h"
#include "isolate/memory_watch.h"

#define MEMINFO_MAX_BYTES (64 * 1024)

static bool runs(const struct kept *b)
{
    return b->state == KEPT_STARTED || b->state == KEPT_UP;
}

static bool is_dying(const struct keeper *k)
{
    for (size_t i = 0; i < LEN(k->buckets); i++)
        for (const struct kept *b = k->buckets[i]; b; b = b->next)
            if (b->is_over_memory && b->state != KEPT_ENDED)
                return true;
    return false;
}

/* Each one's memory is asked for now alone: it costs a look at all of its processes. */
static struct kept *choose(struct keeper *k, uint64_t available, struct memory_use *ret)
{
    struct memory_use *use = own_array(k->box_count, sizeof *use);
    struct kept **boxes = own_array(k->box_count, sizeof(struct kept *)), *found = NULL;
    size_t n = 0, at;

    for (size_t i = 0; i < LEN(k->buckets); i++)
        for (struct kept *b = k->buckets[i]; b; b = b->next)
            if (runs(b)) {
                use[n] = (struct memory_use){ memory_watch_measure(b->run.box.pid), b->share };
                boxes[n++] = b;
            }
    at = memory_watch_choose(use, n, available, k->memory_floor);
    if (at != SIZE_MAX) {
        found = boxes[at];
        *ret = use[at];
    }
    free(use);
    free(boxes);
    return found;
}

/* A node that was started with other limits has changed them in the file. */
static void take_limits(struct keeper *k)
{
    const struct machine *m = default_limits_machine();
    struct cgroup_parent now;
    struct err e;

    if (cgroup_parent_read(k->dir.fd, &now, &e) == 0)
        k->parent.limits = now.limits;
    k->memory_floor = m->memory_bytes - MIN(k->parent.limits.memory_bytes, m->memory_bytes);
}

/* Until the next look. */
static uint64_t look(struct keeper *k)
{
    OWN(buf_done) struct buf text = BUF_INIT(MEMINFO_MAX_BYTES);
    struct memory_use use;
    uint64_t available;
    struct kept *b;
    struct err e;

    take_limits(k);
    if (fd_read_file("/proc/meminfo", &text, &e) < 0 ||
        !memory_watch_parse(buf_span(&text), &available))
        return WATCH_REST_MS;
    if (available >= k->memory_floor || is_dying(k))
        return memory_watch_wait_ms(available, k->memory_floor);
    b = choose(k, available, &use);
    if (!b)
        return WATCH_REST_MS; /* others took it, and looking is dear */
    log_warn("box.memory", KV("sandbox", (const char *)b->run.box.name), KV("bytes", use.bytes),
             KV("share", use.share), KV("available", available), KV("floor", k->memory_floor));
    b->is_over_memory = true;
    kept_kill(b);
    return WATCH_STEP_MS;
}

static void on_due(void *ctx)
{
    struct keeper *k = ctx;

    ev_timer_start(k->loop, &k->watching, look(k), on_due, k);
}

void memory_watch_begin(struct keeper *k)
{
    const struct cgroup *cg = &k->parent.groups;

    if (*cg->dirs[CGROUP_MEMORY] || cg->is_v2[CGROUP_MEMORY])
        return; /* the kernel holds them to it */
    on_due(k);
}

uint64_t memory_share(const struct box_spec *spec)
{
    const struct box_limits usual = default_limits_one(default_limits_machine());
    const struct box_limits l = default_limits_fill(&spec->limits, &spec->defaults);

    return default_limits_fill(&l, &usual).memory_bytes;
}
