#include "kube/queue.h"

#include <stdio.h>
#include <string.h>

/* One family, of all queues: a family's samples stand together. */
struct family {
    const char *name, *type, *help;
    int (*write)(struct buf *out, const char *name, const char *labels,
                 const struct queue_stats *stats, struct err *e);
};

static int write_depth(struct buf *out, const char *name, const char *labels,
                       const struct queue_stats *stats, struct err *e)
{
    return metric_u64(out, name, labels, stats->depth, e);
}

static int write_adds(struct buf *out, const char *name, const char *labels,
                      const struct queue_stats *stats, struct err *e)
{
    return metric_u64(out, name, labels, stats->adds, e);
}

static int write_retries(struct buf *out, const char *name, const char *labels,
                         const struct queue_stats *stats, struct err *e)
{
    return metric_u64(out, name, labels, stats->retries, e);
}

static int write_waited(struct buf *out, const char *name, const char *labels,
                        const struct queue_stats *stats, struct err *e)
{
    return metric_histogram(out, name, labels, stats->bounds, stats->waited, e);
}

static int write_worked(struct buf *out, const char *name, const char *labels,
                        const struct queue_stats *stats, struct err *e)
{
    return metric_histogram(out, name, labels, stats->bounds, stats->worked, e);
}

static int write_unfinished(struct buf *out, const char *name, const char *labels,
                            const struct queue_stats *stats, struct err *e)
{
    return metric_double(out, name, labels, (double)stats->unfinished_us / 1e6, e);
}

static int write_longest(struct buf *out, const char *name, const char *labels,
                         const struct queue_stats *stats, struct err *e)
{
    return metric_double(out, name, labels, (double)stats->longest_us / 1e6, e);
}

static int write_result(struct buf *out, const char *name, const char *labels, const char *result,
                        uint64_t n, struct err *e)
{
    char all[256];

    (void)snprintf(all, sizeof all, "%s,result=\"%s\"", labels, result);
    return metric_u64(out, name, all, n, e);
}

static int write_passes(struct buf *out, const char *name, const char *labels,
                        const struct queue_stats *stats, struct err *e)
{
    return write_result(out, name, labels, "success", stats->done, e) < 0 ||
                   write_result(out, name, labels, "requeue_after", stats->done_after, e) < 0 ||
                   write_result(out, name, labels, "error", stats->retries, e) < 0
               ? -1
               : 0;
}

static int write_passed(struct buf *out, const char *name, const char *labels,
                        const struct queue_stats *stats, struct err *e)
{
    return metric_histogram(out, name, labels, stats->pass_bounds, stats->passed, e);
}

static int write_working(struct buf *out, const char *name, const char *labels,
                         const struct queue_stats *stats, struct err *e)
{
    return metric_u64(out, name, labels, stats->working, e);
}

static int write_workers(struct buf *out, const char *name, const char *labels,
                         const struct queue_stats *stats, struct err *e)
{
    return metric_u64(out, name, labels, stats->workers, e);
}

static const struct family families[] = {
    { "workqueue_depth", "gauge", "Keys that wait in a work queue.", write_depth },
    { "workqueue_adds_total", "counter", "Keys added to a work queue.", write_adds },
    { "workqueue_retries_total", "counter", "Keys that failed and come again.", write_retries },
    { "workqueue_queue_duration_seconds", "histogram", "How long keys waited.", write_waited },
    { "workqueue_work_duration_seconds", "histogram", "How long keys were worked on.",
      write_worked },
    { "workqueue_unfinished_work_seconds", "gauge",
      "How long the keys that are worked on now have been so, in all.", write_unfinished },
    { "workqueue_longest_running_processor_seconds", "gauge",
      "How long the longest of them has been worked on.", write_longest },
    { "controller_runtime_reconcile_total", "counter", "Passes, by how they ended.", write_passes },
    { "controller_runtime_reconcile_errors_total", "counter", "Passes that failed.",
      write_retries },
    { "controller_runtime_reconcile_time_seconds", "histogram", "How long passes took.",
      write_passed },
    { "controller_runtime_active_workers", "gauge", "Passes under way.", write_working },
    { "controller_runtime_max_concurrent_reconciles", "gauge", "Passes that may be.",
      write_workers },
};

static bool is_of_workqueue(const struct family *f)
{
    return strncmp(f->name, "workqueue_", strlen("workqueue_")) == 0;
}

static int write_family(const struct family *f, struct queue *const *queues, size_t n,
                        struct buf *out, struct err *e)
{
    if (metric_head(out, f->name, f->type, f->help, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        OWN(buf_done) struct buf labels = BUF_INIT(256);
        struct queue_stats stats;

        queue_stats(queues[i], &stats);
        if (metric_label(&labels, "controller", stats.name, e) < 0 ||
            (is_of_workqueue(f) && metric_label(&labels, "name", stats.name, e) < 0) ||
            f->write(out, f->name, buf_cstr(&labels), &stats, e) < 0)
            return -1;
    }
    return 0;
}

int queue_metrics_write(struct queue *const *queues, size_t n, struct buf *out, struct err *e)
{
    EACH(f, families) {
        if (write_family(f, queues, n, out, e) < 0)
            return -1;
    }
    return 0;
}
