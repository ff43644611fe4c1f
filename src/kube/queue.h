/* queue: the keys that a reconciler has to look at, each at most once at a time.
 *
 *     static void work(void *ctx, struct queue_item *item) { ... later: queue_done(item); }
 *     struct queue *q = queue_new(loop, &(struct queue_spec){ .name = "sandbox", .workers = 100, .work = work });
 *     queue_add(q, "default", "demo", QUEUE_NORMAL);
 *
 * Rules:    a key waits once, however often it is added. Nobody works on a key twice at the same time: one that is
 *           added meanwhile comes once more afterwards. Within a priority, first come, first served; the lower ones
 *           get a turn now and then, so that none starves. What nobody waits for (LOW) takes no place beside what somebody
 *           waits for, but for such turns: on a server both would be slower.
 * Owns:     one item for each key that waits, is worked on, is due later, or failed last time. Adding a key that is
 *           there allocates nothing.
 * Life:     work() starts the work on an item, in a turn of its own; exactly one of queue_done, queue_done_after and
 *           queue_retry ends it, then or later. The item is the worker's in between.
 * Costs:    O(1) to add and take, O(log n) for what is due later.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBE_QUEUE_H
#define SILICA_KUBE_QUEUE_H

#include "base/metric.h"

struct ev_loop;
struct queue;
struct queue_item;

/* LOW is for what nobody waits for: objects that were there at the start, rounds of inspection. */
enum queue_priority { QUEUE_LOW, QUEUE_NORMAL, QUEUE_HIGH };
#define QUEUE_PRIORITIES 3
/* LOW keys are begun as long as fewer others than this are worked on; and so many of them at a time. */
#define QUEUE_LOW_BESIDE 4
#define QUEUE_LOW_MOST   16

#define QUEUE_RETRY_FIRST_MS 5         /* as the public controllers' */
#define QUEUE_RETRY_MOST_MS  (1000000) /* the same: 1000 s */
/* Then the loop goes on to other queues and to I/O. A queue whose keys matter more takes more in its turn. */
#define QUEUE_PER_TURN 64
/* The same while something more urgent is to be done: so few, or this part of what waits, so that it never falls far behind. */
#define QUEUE_PER_TURN_YIELDING 4
#define QUEUE_PART_YIELDING     32
/* One that holds is asked so often whether it still does. */
#define QUEUE_HOLD_MS 5

struct queue_spec {
    const char *name;          /* in metrics; borrowed as long as the queue lives */
    unsigned workers;          /* items worked on at once; at least one */
    unsigned workers_yielding; /* the same while something more urgent is to be done; 0: as many */
    unsigned per_turn;         /* 0: QUEUE_PER_TURN */
    uint64_t first_ms;         /* waits after failures double from here; 0: QUEUE_RETRY_FIRST_MS */
    uint64_t most_ms;          /* up to here; 0: QUEUE_RETRY_MOST_MS */
    double retry_rate;         /* retries a second, over all keys; 0: as many as there are */
    double retry_burst;        /* with retry_rate: as many may come at once */
    void (*work)(void *ctx, struct queue_item *item);
    bool (*yields)(
        void *
            ctx); /* something more urgent is to be done: few are started in this turn; NULL: never */
    bool (*holds)(
        void *
            ctx); /* the same, and it is done soon: none is started, and it is asked again; NULL: never */
    void *ctx;
};

struct queue *queue_new(struct ev_loop *loop, const struct queue_spec *spec);

/* Names are copied. One that waits already moves to the higher of both priorities. Nothing after queue_close. */
void queue_add(struct queue *q, const char *namespace, const char *name,
               enum queue_priority priority);
/* Once ms have passed, whatever happens to the key until then; of several such wishes the earliest stays. */
void queue_add_after(struct queue *q, const char *namespace, const char *name, uint64_t ms);

/* Of an item that is worked on. */
struct queue *queue_of(const struct queue_item *item);
const char *queue_item_namespace(const struct queue_item *item);
const char *queue_item_name(const struct queue_item *item);
/* In a row, before this time; those of times when it came before it was due are not among them. */
unsigned queue_item_failures(const struct queue_item *item);

/* Ends the work: it is as it should be. */
void queue_done(struct queue_item *item);
/* The same, and it is looked at again in so many ms. */
void queue_done_after(struct queue_item *item, uint64_t ms);
/* Ends the work: it failed and comes again, each time twice as long after; or when it was due anyway, if it was added before. */
void queue_retry(struct queue_item *item);

/* No item is started any more; `closed` is called once all that are worked on have ended, and the queue is gone. */
void queue_close(struct queue *q, void (*closed)(void *ctx), void *ctx);

/* Keys that wait to be taken or are worked on. */
size_t queue_load(const struct queue *q);
/* Those of them that somebody waits for: their priority is not LOW. */
size_t queue_pressing(const struct queue *q);
/* For how long there has been one of these without a pause; 0: there is none, or since now. */
uint64_t queue_pressing_ms(const struct queue *q);

struct queue_stats {
    const char *name;
    size_t depth;   /* keys that wait to be taken */
    size_t working; /* that are worked on */
    size_t later;   /* that are due later */
    uint64_t adds;  /* that did not meet the same key waiting */
    uint64_t retries;
    uint64_t done, done_after; /* how work ended otherwise */
    unsigned workers;
    uint64_t unfinished_us; /* worked so far on what is worked on now, in all */
    uint64_t longest_us;    /* the longest of them */
    /* Seconds; they live as long as the queue. passed: worked, with the bounds of passes. */
    const struct metric_histogram *waited, *worked, *passed;
    const struct metric_bounds *bounds, *pass_bounds;
};
void queue_stats(const struct queue *q, struct queue_stats *ret);
/* Appends the workqueue_* families of all these queues, and controller_runtime_* of the work on them, in Prometheus' text
 * format. */
int queue_metrics_write(struct queue *const *queues, size_t n, struct buf *out, struct err *e);

#endif
