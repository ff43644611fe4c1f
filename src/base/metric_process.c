#include "base/metric.h"

#include "base/fd.h"
#include "base/str.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A field of a line of numbers with blanks between; the first is 0. */
static bool field(struct span line, size_t n, uint64_t *ret)
{
    struct span piece = SPAN_NONE;

    for (size_t i = 0; i <= n; i++)
        if (!span_cut(&line, ' ', &piece))
            return false;
    return str_u64(piece, UINT64_MAX, ret);
}

/* The second number of statm is what is in memory, in pages. */
static uint64_t resident_bytes(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(256);
    uint64_t pages;
    struct err e;

    if (fd_read_file("/proc/self/statm", &text, &e) < 0 || !field(buf_span(&text), 1, &pages))
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* When it began, in seconds since 1970: the 20th field behind the name, in ticks since the machine did. */
static double start_seconds(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(4096);
    struct timespec now, up;
    struct span rest;
    uint64_t ticks;
    size_t end;
    struct err e;

    if (fd_read_file("/proc/self/stat", &text, &e) < 0)
        return 0;
    rest = buf_span(&text);
    for (end = rest.n; end && rest.p[end - 1] != ')'; end--) /* the name may hold anything */
        ;
    if (!field(span_skip(rest, end + 1), 19, &ticks) || clock_gettime(CLOCK_BOOTTIME, &up) < 0 ||
        clock_gettime(CLOCK_REALTIME, &now) < 0)
        return 0;
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9 +
           (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

int metric_process(struct buf *out, struct err *e)
{
    struct rusage used = { 0 };
    double cpu;

    (void)getrusage(RUSAGE_SELF, &used);
    cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
          (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    return metric_head(out, "process_resident_memory_bytes", "gauge", "Memory of this process.",
                       e) < 0 ||
                   metric_u64(out, "process_resident_memory_bytes", "", resident_bytes(), e) < 0 ||
                   metric_head(out, "process_cpu_seconds_total", "counter",
                               "Processor time of this process.", e) < 0 ||
                   metric_double(out, "process_cpu_seconds_total", "", cpu, e) < 0 ||
                   metric_head(out, "process_start_time_seconds", "gauge",
                               "When this process began, since 1970.", e) < 0 ||
                   metric_double(out, "process_start_time_seconds", "", start_seconds(), e) < 0
               ? -1
               : 0;
}
