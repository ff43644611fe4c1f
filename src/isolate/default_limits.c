#include "isolate/default_limits.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/limits.h"

#define FILE_MAX_BYTES (64 * 1024)

void default_limits_parse(struct span meminfo, struct span pid_max, struct machine *ret)
{
    struct machine m = { 0 };
    struct span line;
    uint64_t kib;

    while (span_cut(&meminfo, '\n', &line)) {
        if (!span_starts(line, "MemTotal:"))
            continue;
        line = span_trim(span_skip(line, sizeof "MemTotal:" - 1));
        if (str_u64(span_slice(line, 0, span_find(line, ' ')), UINT64_MAX >> 10, &kib))
            m.memory_bytes = kib << 10;
    }
    if (!span_cut(&pid_max, '\n', &line) || !str_u64(line, UINT32_MAX, &m.pid_max))
        m.pid_max = 0;
    *ret = m;
}

const struct machine *default_limits_machine(void)
{
    static struct machine known;
    static bool is_known;
    OWN(buf_done) struct buf memory = BUF_INIT(FILE_MAX_BYTES);
    OWN(buf_done) struct buf pids = BUF_INIT(FILE_MAX_BYTES);
    struct err e;

    if (is_known)
        return &known;
    is_known = true;
    if (fd_read_file("/proc/meminfo", &memory, &e) < 0)
        buf_clear(&memory);
    if (fd_read_file("/proc/sys/kernel/pid_max", &pids, &e) < 0)
        buf_clear(&pids);
    default_limits_parse(buf_span(&memory), buf_span(&pids), &known);
    return &known;
}

uint64_t default_limits_reserve(const struct machine *m)
{
    uint64_t part = m->memory_bytes / DEFAULT_RESERVE_PART;

    /* On a machine so small that the least is most of it, half. */
    return MIN(MAX(part, (uint64_t)DEFAULT_RESERVE_BYTES), m->memory_bytes / 2);
}

struct box_limits default_limits_all(const struct machine *m)
{
    return (struct box_limits){ .memory_bytes = m->memory_bytes - default_limits_reserve(m),
                                .pids = m->pid_max / 4 * 3,
                                .cpu_shares = DEFAULT_CPU_SHARES };
}

struct box_limits default_limits_one(const struct machine *m)
{
    struct box_limits all = default_limits_all(m);

    return (struct box_limits){ .memory_bytes = MIN(m->memory_bytes / 4, all.memory_bytes),
                                .pids = m->pid_max ? MIN((uint64_t)DEFAULT_PIDS, all.pids) : 0,
                                .cpu_shares = DEFAULT_CPU_SHARES };
}

struct box_limits default_limits_fill(const struct box_limits *asked,
                                      const struct box_limits *defaults)
{
    struct box_limits l = *asked;

    l.memory_bytes = l.memory_bytes ? l.memory_bytes : defaults->memory_bytes;
    l.pids = l.pids ? l.pids : defaults->pids;
    l.cpu_shares = l.cpu_shares ? l.cpu_shares : defaults->cpu_shares;
    l.cpu_milli = l.cpu_milli ? l.cpu_milli : defaults->cpu_milli;
    return l;
}
