#include "kube/queue.h"

#include "base/time.h"
#include "ev/timer.h"
#include "kube/backoff.h"
#include "kube/keymap.h"

#include <string.h>

#define PASSED_OVER_MAX 16 /* then a key of a lower priority has its turn */

struct queue_item {
    struct keymap_node node;
    struct queue *queue;
    struct queue_item *next, *prev; /* in the list it waits in, or in that of what is worked on */
    struct ev_timer later;
    uint64_t since_us; /* when it began to wait, or to be worked on */
    unsigned failures;
    uint64_t retry_due_ms; /* by the loop's clock: when the last failure is to be made good */
    enum queue_priority priority;
    bool is_waiting, is_working;
    bool is_low;    /* as it was begun */
    bool is_wanted; /* added while it was worked on */
    char texts[];   /* namespace, name */
};

struct list {
    struct queue_item *first, *last;
};

struct queue {
    struct ev_loop *loop;
    struct queue_spec spec;
    struct keymap items;
    struct list waiting[QUEUE_PRIORITIES], working;
    size_t waiting_count, working_count, later_count;
    size_t low_waiting, low_working; /* of them, those whose priority is LOW */
    unsigned passed_over;            /* taken in a row while lower ones waited */
    struct bucket retries;
    uint64_t pressing_since_ms; /* by the loop's clock; 0: nobody waits for any */
    struct ev_task pump;
    struct ev_timer hold;
    uint64_t adds, retry_count, done_count, done_after_count;
    struct metric_histogram waited, worked, passed; /* passed: as worked, with other bounds */
    bool is_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* 10 ns times powers of ten, spelled as the public library computes them. */
static const struct metric_bound bound_rows[] = {
    { 1e-8, "1e-08" },
    { 1e-7, "1e-07" },
    { 1e-6, "1e-06" },
    { 1e-5, "9.999999999999999e-06" },
    { 1e-4, "9.999999999999999e-05" },
    { 1e-3, "0.001" },
    { 1e-2, "0.01" },
    { 0.1, "0.1" },
    { 1, "1" },
    { 10, "10" },
    { 100, "100" },
    { 1000, "1000" },
};
static const struct metric_bounds bounds = { bound_rows, LEN(bound_rows) };

/* Those of the public library's times of passes, every second one between half a second and a minute left out. */
static const struct metric_bound pass_rows[] = {
    { 0.005, "0.005" }, { 0.01, "0.01" }, { 0.025, "0.025" }, { 0.05, "0.05" }, { 0.1, "0.1" },
    { 0.15, "0.15" },   { 0.2, "0.2" },   { 0.25, "0.25" },   { 0.3, "0.3" },   { 0.35, "0.35" },
    { 0.4, "0.4" },     { 0.45, "0.45" }, { 0.5, "0.5" },     { 0.6, "0.6" },   { 0.8, "0.8" },
    { 1, "1" },         { 1.5, "1.5" },   { 2, "2" },         { 3, "3" },       { 5, "5" },
    { 10, "10" },       { 30, "30" },     { 60, "60" },
};
static const struct metric_bounds pass_bounds = { pass_rows, LEN(pass_rows) };

/* ---- lists ---- */

static void append(struct list *l, struct queue_item *it)
{
    it->next = NULL;
    it->prev = l->last;
    if (l->last)
        l->last->next = it;
    else
        l->first = it;
    l->last = it;
}

static void take_out(struct list *l, struct queue_item *it)
{
    if (it->prev)
        it->prev->next = it->next;
    else
        l->first = it->next;
    if (it->next)
        it->next->prev = it->prev;
    else
        l->last = it->prev;
}

/* ---- items ---- */

static struct queue_item *item_of(struct queue *q, const char *namespace, const char *name)
{
    struct keymap_node *found = keymap_get(&q->items, namespace, name);
    size_t ns_bytes = strlen(namespace) + 1, name_bytes = strlen(name) + 1;
    struct queue_item *it;

    if (found)
        return CONTAINER(found, struct queue_item, node);
    it = own_new(sizeof *it + ns_bytes + name_bytes);
    it->queue = q;
    memcpy(it->texts, namespace, ns_bytes);
    memcpy(it->texts + ns_bytes, name, name_bytes);
    keymap_add(&q->items, &it->node, it->texts, it->texts + ns_bytes);
    return it;
}

/* Frees it when there is nothing left to remember. */
static void settle(struct queue_item *it)
{
    if (it->is_waiting || it->is_working || it->failures || ev_timer_is_running(&it->later))
        return;
    keymap_remove(&it->queue->items, &it->node);
    free(it);
}

static void pump(void *ctx);

static void wake(struct queue *q)
{
    if (ev_timer_is_running(&q->hold))
        return;
    if (q->waiting_count && q->working_count < q->spec.workers && !q->is_closed &&
        !q->pump.is_queued)
        ev_post(q->loop, &q->pump, pump, q);
}

/* After each change of what waits or is worked on. */
static void note_pressing(struct queue *q)
{
    if (!queue_pressing(q))
        q->pressing_since_ms = 0;
    else if (!q->pressing_since_ms)
        q->pressing_since_ms = MAX(ev_now_ms(q->loop), (uint64_t)1);
}

static void push(struct queue_item *it, enum queue_priority priority)
{
    struct queue *q = it->queue;

    it->is_waiting = true;
    it->priority = priority;
    it->since_us = time_mono_us();
    append(&q->waiting[priority], it);
    q->waiting_count++;
    q->low_waiting += priority == QUEUE_LOW;
    note_pressing(q);
    wake(q);
}

static void enqueue(struct queue_item *it, enum queue_priority priority)
{
    struct queue *q = it->queue;

    q->adds += !it->is_waiting && !it->is_wanted;
    if (it->is_working) {
        it->priority = it->is_wanted ? MAX(it->priority, priority) : priority;
        it->is_wanted = true;
    } else if (!it->is_waiting) {
        push(it, priority);
    } else if (priority > it->priority) {
        take_out(&q->waiting[it->priority], it);
        q->low_waiting -= it->priority == QUEUE_LOW;
        it->priority = priority;
        append(&q->waiting[priority], it);
        note_pressing(q);
        wake(q);
    }
}

static void on_due(void *ctx)
{
    struct queue_item *it = ctx;

    it->queue->later_count--;
    enqueue(it, QUEUE_NORMAL);
}

static void enqueue_after(struct queue_item *it, uint64_t ms)
{
    struct queue *q = it->queue;

    if (ev_timer_is_running(&it->later)) {
        if (it->later.due_ms <= ev_now_ms(q->loop) + ms)
            return;
    } else {
        q->later_count++;
    }
    ev_timer_start(q->loop, &it->later, ms, on_due, it);
}

/* ---- work ---- */

static struct queue_item *take(struct queue *q)
{
    int from = -1, below = -1;
    struct queue_item *it;

    for (int p = QUEUE_PRIORITIES - 1; p >= 0; p--) {
        if (!q->waiting[p].first)
            continue;
        if (from < 0)
            from = p;
        else if (below < 0)
            below = p;
    }
    if (from < 0)
        return NULL;
    if (from == QUEUE_LOW && q->low_working >= QUEUE_LOW_MOST)
        return NULL; /* asked again when one of them ends */
    if (from == QUEUE_LOW && q->working_count - q->low_working >= QUEUE_LOW_BESIDE) {
        if (q->passed_over++ < PASSED_OVER_MAX)
            return NULL; /* asked again when one of the others ends */
        q->passed_over = 0;
    } else if (below < 0) {
        q->passed_over = 0;
    } else if (q->passed_over++ == PASSED_OVER_MAX) {
        q->passed_over = 0;
        from = below;
    }
    it = q->waiting[from].first;
    take_out(&q->waiting[from], it);
    q->waiting_count--;
    it->is_waiting = false;
    it->is_low = from == QUEUE_LOW;
    q->low_waiting -= it->is_low;
    return it;
}

static void start(struct queue *q, struct queue_item *it)
{
    uint64_t now_us = time_mono_us();

    metric_observe(&q->waited, &bounds, (double)(now_us - it->since_us) / 1e6);
    it->since_us = now_us;
    it->is_working = true;
    append(&q->working, it);
    q->working_count++;
    q->low_working += it->is_low;
    q->spec.work(q->spec.ctx, it); /* may end it at once */
}

static void on_hold_over(void *ctx)
{
    wake(ctx);
}

static void pump(void *ctx)
{
    struct queue *q = ctx;
    size_t most = q->spec.per_turn, workers = q->spec.workers;

    if (q->spec.holds && q->spec.holds(q->spec.ctx)) {
        ev_timer_start(q->loop, &q->hold, QUEUE_HOLD_MS, on_hold_over, q);
        return;
    }
    if (q->spec.yields && q->spec.yields(q->spec.ctx)) {
        most = MAX(q->waiting_count / QUEUE_PART_YIELDING, (size_t)QUEUE_PER_TURN_YIELDING);
        workers = q->spec.workers_yielding;
    }
    for (size_t i = 0; i < most && q->working_count < workers; i++) {
        struct queue_item *it = q->is_closed ? NULL : take(q); /* the work may close the queue */

        if (!it)
            return;
        start(q, it);
    }
    if (q->working_count < workers) /* else the next one that ends wakes it */
        wake(q);
}

static void free_item(struct keymap_node *node, void *ctx)
{
    struct queue_item *it = CONTAINER(node, struct queue_item, node);

    (void)ctx;
    ev_timer_stop(it->queue->loop, &it->later);
    free(it);
}

static void free_queue(void *ctx)
{
    struct queue *q = ctx;

    keymap_done(&q->items);
    free(q);
}

/* The last worker is gone. In a turn of its own: a callback never runs inside the call that asked for it. */
static void end(void *ctx)
{
    struct queue *q = ctx;

    keymap_each(&q->items, free_item, NULL);
    if (q->closed)
        q->closed(q->closed_ctx);
    ev_free_later(q->loop, q, free_queue);
}

static void end_if_idle(struct queue *q)
{
    if (q->is_closed && q->working_count == 0) {
        ev_post_cancel(&q->pump);
        ev_post(q->loop, &q->pump, end, q);
    }
}

/* The only way out of the work on an item. after_ms UINT64_MAX: nobody wants it again. */
static void finish(struct queue_item *it, uint64_t after_ms)
{
    struct queue *q = it->queue;
    double seconds = (double)(time_mono_us() - it->since_us) / 1e6;

    assert(it->is_working);
    metric_observe(&q->worked, &bounds, seconds);
    metric_observe(&q->passed, &pass_bounds, seconds);
    it->is_working = false;
    take_out(&q->working, it);
    q->working_count--;
    q->low_working -= it->is_low;
    if (q->is_closed) {
        end_if_idle(q);
        return;
    }
    if (after_ms != UINT64_MAX)
        enqueue_after(it, after_ms);
    if (it->is_wanted) {
        it->is_wanted = false;
        push(it, it->priority);
    }
    settle(it);
    note_pressing(q);
    wake(q);
}

void queue_done(struct queue_item *item)
{
    item->failures = 0;
    item->queue->done_count++;
    finish(item, UINT64_MAX);
}

void queue_done_after(struct queue_item *item, uint64_t ms)
{
    item->failures = 0;
    item->queue->done_after_count++;
    finish(item, MIN(ms, UINT64_MAX - 1));
}

void queue_retry(struct queue_item *item)
{
    struct queue *q = item->queue;
    uint64_t ms, rate_ms, now_ms = ev_now_ms(q->loop);

    q->retry_count++;
    /* Somebody added it before its time, and it failed again: that says nothing new about how long to wait. Otherwise a key about
     * which much happens while it cannot succeed would be put off for a quarter of an hour within a second. */
    if (item->failures && now_ms < item->retry_due_ms) {
        finish(item, item->retry_due_ms - now_ms);
        return;
    }
    if (item->failures < UINT32_MAX)
        item->failures++;
    ms = backoff_ms(q->spec.first_ms, q->spec.most_ms, item->failures);
    rate_ms = bucket_reserve_ms(&q->retries, now_ms);
    item->retry_due_ms = now_ms + MAX(ms, rate_ms);
    finish(item, MAX(ms, rate_ms));
}

/* ---- life ---- */

struct queue *queue_new(struct ev_loop *loop, const struct queue_spec *spec)
{
    struct queue *q = NEW(struct queue);

    q->loop = loop;
    q->spec = *spec;
    q->spec.workers = MAX(spec->workers, 1u);
    if (!spec->workers_yielding || spec->workers_yielding > q->spec.workers)
        q->spec.workers_yielding = q->spec.workers;
    q->spec.per_turn = spec->per_turn ? spec->per_turn : QUEUE_PER_TURN;
    q->spec.first_ms = spec->first_ms ? spec->first_ms : QUEUE_RETRY_FIRST_MS;
    q->spec.most_ms = spec->most_ms ? spec->most_ms : QUEUE_RETRY_MOST_MS;
    bucket_init(&q->retries, spec->retry_rate, spec->retry_burst, ev_now_ms(loop));
    return q;
}

void queue_add(struct queue *q, const char *namespace, const char *name,
               enum queue_priority priority)
{
    if (!q->is_closed)
        enqueue(item_of(q, namespace, name), priority);
}

void queue_add_after(struct queue *q, const char *namespace, const char *name, uint64_t ms)
{
    if (!q->is_closed)
        enqueue_after(item_of(q, namespace, name), ms);
}

struct queue *queue_of(const struct queue_item *item)
{
    return item->queue;
}

const char *queue_item_namespace(const struct queue_item *item)
{
    return item->node.namespace;
}

const char *queue_item_name(const struct queue_item *item)
{
    return item->node.name;
}

unsigned queue_item_failures(const struct queue_item *item)
{
    return item->failures;
}

void queue_close(struct queue *q, void (*closed)(void *ctx), void *ctx)
{
    if (!q || q->is_closed)
        return;
    q->is_closed = true;
    ev_timer_stop(q->loop, &q->hold);
    q->closed = closed;
    q->closed_ctx = ctx;
    end_if_idle(q);
}

size_t queue_load(const struct queue *q)
{
    return q->waiting_count + q->working_count;
}

size_t queue_pressing(const struct queue *q)
{
    return queue_load(q) - q->low_waiting - q->low_working;
}

uint64_t queue_pressing_ms(const struct queue *q)
{
    return q->pressing_since_ms ? ev_now_ms(q->loop) - q->pressing_since_ms : 0;
}

void queue_stats(const struct queue *q, struct queue_stats *ret)
{
    uint64_t now_us = time_mono_us();

    *ret = (struct queue_stats){ .name = q->spec.name,
                                 .depth = q->waiting_count,
                                 .working = q->working_count,
                                 .later = q->later_count,
                                 .adds = q->adds,
                                 .retries = q->retry_count,
                                 .done = q->done_count,
                                 .done_after = q->done_after_count,
                                 .workers = q->spec.workers,
                                 .passed = &q->passed,
                                 .bounds = &bounds,
                                 .pass_bounds = &pass_bounds,
                                 .waited = &q->waited,
                                 .worked = &q->worked };
    for (const struct queue_item *it = q->working.first; it; it = it->next) {
        ret->unfinished_us += now_us - it->since_us;
        ret->longest_us = MAX(ret->longest_us, now_us - it->since_us);
    }
}
