/* measure: what the bench's small programs share: a clock, an exit with a reason, and percentiles. */
#ifndef SILICA_BENCH_MEASURE_H
#define SILICA_BENCH_MEASURE_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Ends the program with what failed and errno's text; 0 from a call is for the caller to pass. */
static inline void must(int is_fine, const char *what)
{
    if (is_fine)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(1);
}

static inline int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts n values in place; the percentile calls want them sorted. */
static inline void sort_values(int64_t *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
}

static inline double percentile_us(const int64_t *sorted, size_t n, double share)
{
    size_t i = (size_t)(share * (double)n);

    return n ? (double)sorted[i < n ? i : n - 1] / 1000.0 : 0;
}

static inline long number(const char *text, const char *what)
{
    char *end = NULL;
    double value = strtod(text, &end);

    must(end != text && *end == '\0' && value >= 0 && value < 1e12, what);
    return (long)value;
}

#endif
