#include "cli/controller_debug.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/controller_options.h"
#include "controller/controller.h"
#include "controller/profile.h"
#include "controller/sampler.h"
#include "ev/timer.h"
#include "http/serve.h"
#include "kube/queue.h"

#include <malloc.h>
#include <stdio.h>

#define SECONDS_DEFAULT 30
#define SECONDS_MAX     300
#define TEXT_MAX_BYTES  (1u << 20)
#define ROWS_MAX        64
#define NAME_MAX_BYTES  96
#define TOP_ROWS        40
#define PREFIX          "/debug/pprof"

struct controller_debug {
    struct ev_loop *loop;
    bool has_all;            /* --enable-pprof-debug */
    struct http_exchange *x; /* who waits for a profile of time, or NULL */
    bool is_text;
    enum sampler_clock clock;
    int64_t from_ns;
    uint64_t began_us;
    struct ev_timer timer;
};

struct controller_debug *controller_debug_new(struct ev_loop *loop,
                                              const struct controller_options *o)
{
    struct controller_debug *d;

    if (!o->is_pprof && !o->is_pprof_debug)
        return NULL;
    d = NEW(struct controller_debug);
    d->loop = loop;
    d->has_all = o->is_pprof_debug;
    return d;
}

/* ---- answers ---- */

static void answer_text(struct http_exchange *x, int status, struct span text)
{
    http_answer(x, status, "text/plain; charset=utf-8", text);
}

static void answer_profile(struct http_exchange *x, struct profile *p)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * PROFILE_MAX_BYTES);
    struct err e;

    if (profile_write(p, &out, &e) < 0)
        answer_text(x, 500, span_cstr(e.msg));
    else
        http_answer(x, 200, "application/octet-stream", buf_span(&out));
    profile_free(p);
}

static bool wants_text(struct http_exchange *x)
{
    uint64_t level;

    return str_u64(http_query_get(x, "debug"), 9, &level) && level > 0;
}

/* ---- time ---- */

/* A caller's address is that behind its call, which may be the next function's already. */
static uintptr_t place(const struct sampler_stack *s, uint32_t i)
{
    return s->addresses[i] - (i ? 1 : 0);
}

static void add_stacks(struct profile *p, const struct samples *all, const struct symbols *names)
{
    for (size_t i = 0; i < SAMPLER_STACKS; i++) {
        const struct sampler_stack *s = &all->stacks[i];
        struct profile_frame frames[SAMPLER_DEPTH];

        for (uint32_t j = 0; j < s->depth; j++)
            frames[j] = (struct profile_frame){ place(s, j), symbols_name(names, place(s, j)) };
        if (s->count)
            profile_add(p, frames, s->depth, s->count,
                        (int64_t)s->count * (1000000000 / SAMPLER_HZ));
    }
}

static int more_first(const void *a, const void *b)
{
    uint32_t x = ((const struct sampler_stack *)a)->count,
             y = ((const struct sampler_stack *)b)->count;

    return x > y ? -1 : x < y;
}

/* The commonest stacks; sorts them. */
static void write_stacks(struct samples *all, const struct symbols *names, struct buf *out)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SAMPLER_STACKS; i++)
        sum += all->stacks[i].count;
    qsort(all->stacks, SAMPLER_STACKS, sizeof *all->stacks, more_first);
    buf_addf_capped(out, "samples: %llu of %d a second, lost: %llu\n", (unsigned long long)sum,
                    SAMPLER_HZ, (unsigned long long)all->lost);
    for (size_t i = 0; i < TOP_ROWS && all->stacks[i].count; i++) {
        buf_addf_capped(out, "\n%u @\n", all->stacks[i].count);
        for (uint32_t j = 0; j < all->stacks[i].depth; j++) {
            const char *name = symbols_name(names, place(&all->stacks[i], j));

            buf_addf_capped(out, "#\t0x%llx\t%s\n", (unsigned long long)place(&all->stacks[i], j),
                            name ? name : "?");
        }
    }
}

static void on_time(void *ctx)
{
    static const struct profile_kind kinds[] = {
        { "samples", "count", "cpu", "nanoseconds", 1000000000 / SAMPLER_HZ },
        { "samples", "count", "time", "nanoseconds", 1000000000 / SAMPLER_HZ },
    };
    struct controller_debug *d = ctx;
    struct http_exchange *x = take_ptr(&d->x);
    struct symbols_mapping mapping = symbols_mapping();
    struct symbols *names = symbols_open();
    struct samples all;

    sampler_stop(&all);
    if (d->is_text) {
        OWN(buf_done) struct buf text = BUF_INIT(TEXT_MAX_BYTES);

        write_stacks(&all, names, &text);
        answer_text(x, 200, buf_span(&text));
    } else {
        struct profile *p = profile_new(&kinds[d->clock]);

        profile_times(p, d->from_ns, (int64_t)(time_mono_us() - d->began_us) * 1000);
        profile_map(p, &mapping, symbols_count(names) > 0);
        add_stacks(p, &all, names);
        answer_profile(x, p);
    }
    free(all.stacks);
    symbols_close(names);
}

static void on_gone(void *ctx)
{
    struct controller_debug *d = ctx;
    struct samples all;

    d->x = NULL;
    ev_timer_stop(d->loop, &d->timer);
    sampler_stop(&all);
    free(all.stacks);
}

static void take_time(struct controller_debug *d, struct http_exchange *x, enum sampler_clock clock)
{
    uint64_t seconds = SECONDS_DEFAULT;
    struct span asked = http_query_get(x, "seconds");
    struct timespec now;
    struct err e;

    if (asked.p && (!str_u64(asked, SECONDS_MAX, &seconds) || !seconds)) {
        answer_text(x, 400, SPAN("seconds: a number from 1 to 300\n"));
        return;
    }
    if (sampler_start(clock, &e) < 0) {
        answer_text(x, 500, span_cstr(e.msg));
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    d->x = x;
    d->clock = clock;
    d->is_text = wants_text(x);
    d->from_ns = now.tv_sec * 1000000000ll + now.tv_nsec;
    d->began_us = time_mono_us();
    http_on_gone(x, on_gone, d);
    http_eof_is_gone(x); /* nobody else may take one while it runs */
    ev_timer_start(d->loop, &d->timer, seconds * 1000, on_time, d);
}

/* ---- what there is ---- */

struct row {
    char name[NAME_MAX_BYTES];
    int64_t count, bytes;
};

static size_t add_row(struct row *rows, size_t n, const char *room, const char *name,
                      uint64_t count, uint64_t bytes)
{
    if (n == ROWS_MAX)
        return n;
    (void)snprintf(rows[n].name, sizeof rows[n].name, "%s/%s", room, name);
    rows[n].count = (int64_t)count;
    rows[n].bytes = (int64_t)bytes;
    return n + 1;
}

/* Memory by room: the copies of each kind, the rest that is in use, and what the allocator keeps. */
static size_t memory_rows(struct controller *c, struct row *rows)
{
    struct mallinfo2 all = mallinfo2();
    size_t n = 0, objects, bytes, copies = 0, used = all.uordblks + all.hblkhd;
    const char *kind;

    for (size_t i = 0; c && controller_memory(c, i, &kind, &objects, &bytes); i++) {
        n = add_row(rows, n, "copies", kind, objects, bytes);
        copies += bytes;
    }
    n = add_row(rows, n, "process", "everything else", 1, used > copies ? used - copies : 0);
    return add_row(rows, n, "allocator", "free", all.ordblks, all.fordblks);
}

/* What waits, what is under way and what is due later, by queue. */
static size_t work_rows(struct controller *c, struct row *rows)
{
    struct queue *q;
    size_t n = 0;

    for (size_t i = 0; c && (q = controller_queue(c, i)); i++) {
        struct queue_stats s;
        char room[NAME_MAX_BYTES / 2];

        queue_stats(q, &s);
        (void)snprintf(room, sizeof room, "queue/%s", s.name);
        n = add_row(rows, n, room, "waiting", s.depth, 0);
        n = add_row(rows, n, room, "working", s.working, s.unfinished_us * 1000);
        n = add_row(rows, n, room, "later", s.later, 0);
    }
    return n;
}

static void answer_rows(struct http_exchange *x, const struct profile_kind *kind,
                        const struct row *rows, size_t n)
{
    OWN(buf_done) struct buf text = BUF_INIT(TEXT_MAX_BYTES);
    struct profile *p;

    if (wants_text(x)) {
        buf_addf_capped(&text, "%16s %16s\n", kind->first, kind->second);
        for (size_t i = 0; i < n; i++)
            buf_addf_capped(&text, "%16lld %16lld %s\n", (long long)rows[i].count,
                            (long long)rows[i].bytes, rows[i].name);
        answer_text(x, 200, buf_span(&text));
        return;
    }
    p = profile_new(kind);
    for (size_t i = 0; i < n; i++)
        if (rows[i].count || rows[i].bytes)
            profile_add(p, &(struct profile_frame){ .name = rows[i].name }, 1, rows[i].count,
                        rows[i].bytes);
    answer_profile(x, p);
}

/* ---- paths ---- */

static void answer_index(struct http_exchange *x)
{
    answer_text(x, 200,
                SPAN("/debug/pprof/profile?seconds=30\twhere processor time goes\n"
                     "/debug/fgprof?seconds=30\twhere time goes, waiting too\n"
                     "/debug/pprof/heap\tmemory by room; allocs: the same\n"
                     "/debug/pprof/goroutine\twhat waits and what is under way\n"
                     "/debug/pprof/block, mutex\tempty: one thread, no locks to wait for\n"
                     "/debug/pprof/cmdline, symbol\n"
                     "\nprofiles for `go tool pprof`; ?debug=1: text\n"));
}

static void answer_symbol(struct http_exchange *x)
{
    struct symbols *names = symbols_open();
    OWN(buf_done) struct buf text = BUF_INIT(64);

    buf_addf_capped(&text, "num_symbols: %zu\n", symbols_count(names));
    answer_text(x, 200, buf_span(&text));
    symbols_close(names);
}

static void answer_cmdline(struct http_exchange *x)
{
    OWN(buf_done) struct buf text = BUF_INIT(TEXT_MAX_BYTES);
    struct err e;

    if (fd_read_file("/proc/self/cmdline", &text, &e) < 0)
        answer_text(x, 500, span_cstr(e.msg));
    else
        answer_text(x, 200, buf_span(&text));
}

static bool answer_all(struct controller *c, struct http_exchange *x, struct span name)
{
    static const struct profile_kind memory = { "inuse_objects", "count", "inuse_space", "bytes",
                                                0 },
                                     work = { "keys", "count", "time", "nanoseconds", 0 },
                                     waits = { "contentions", "count", "delay", "nanoseconds", 0 };
    struct row rows[ROWS_MAX];

    if (span_is(name, "/") || span_is(name, ""))
        answer_index(x);
    else if (span_is(name, "/heap") || span_is(name, "/allocs"))
        answer_rows(x, &memory, rows, memory_rows(c, rows));
    else if (span_is(name, "/goroutine"))
        answer_rows(x, &work, rows, work_rows(c, rows));
    else if (span_is(name, "/block") || span_is(name, "/mutex"))
        answer_rows(x, &waits, rows, 0);
    else if (span_is(name, "/cmdline"))
        answer_cmdline(x);
    else if (span_is(name, "/symbol"))
        answer_symbol(x);
    else if (span_is(name, "/trace"))
        answer_text(x, 501, SPAN("there are no traces of a scheduler; see profile and fgprof\n"));
    else
        return false;
    return true;
}

bool controller_debug_answer(struct controller_debug *d, struct controller *controller,
                             struct http_exchange *x)
{
    struct span path = http_path(x);

    if (!d)
        return false;
    if (span_is(path, PREFIX "/profile")) {
        take_time(d, x, SAMPLER_CPU);
        return true;
    }
    if (d->has_all && span_is(path, "/debug/fgprof")) {
        take_time(d, x, SAMPLER_WALL);
        return true;
    }
    return d->has_all && span_starts(path, PREFIX) &&
           answer_all(controller, x, span_skip(path, strlen(PREFIX)));
}
