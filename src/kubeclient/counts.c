#include "kubeclient/counts.h"

#include <stdio.h>
#include <string.h>

static const char *const methods[COUNTS_METHODS] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

static const struct metric_bound bound_rows[] = {
    { 0.005, "0.005" }, { 0.025, "0.025" }, { 0.1, "0.1" }, { 0.25, "0.25" },
    { 0.5, "0.5" },     { 1, "1" },         { 2, "2" },     { 4, "4" },
    { 8, "8" },         { 15, "15" },       { 30, "30" },   { 60, "60" },
};
static const struct metric_bounds bounds = { bound_rows, LEN(bound_rows) };

/* COUNTS_METHODS: none of ours. */
static size_t number_of(const char *method)
{
    size_t i = 0;

    while (i < COUNTS_METHODS && strcmp(methods[i], method) != 0)
        i++;
    return i;
}

/* method: a constant of the table. */
static void add_row(struct counts *c, const char *method, int code, uint64_t n)
{
    size_t i = 0;

    while (i < c->n && (c->rows[i].method != method || c->rows[i].code != code))
        i++;
    if (i == COUNTS_ROWS_MAX) {
        c->others += n;
        return;
    }
    if (i == c->n) {
        c->rows[i].method = method;
        c->rows[i].code = code;
        c->rows[i].n = 0;
        __atomic_store_n(&c->n, i + 1, __ATOMIC_RELEASE); /* the row is whole */
    }
    c->rows[i].n += n;
}

void counts_add(struct counts *c, const char *method, int code, double seconds)
{
    size_t number = number_of(method);

    if (number == COUNTS_METHODS) {
        c->others++;
        return;
    }
    metric_observe(&c->took[number], &bounds, seconds);
    add_row(c, methods[number], code, 1);
}

void counts_sum(struct counts *c, const struct counts *more)
{
    size_t n = __atomic_load_n(&more->n, __ATOMIC_ACQUIRE);

    for (size_t i = 0; i < n; i++)
        add_row(c, more->rows[i].method, more->rows[i].code, more->rows[i].n);
    c->others += more->others;
    for (size_t i = 0; i < COUNTS_METHODS; i++)
        metric_histogram_add(&c->took[i], &more->took[i]);
}

static int write_requests(const struct counts *c, struct buf *out, struct err *e)
{
    char labels[96];

    if (metric_head(out, "rest_client_requests_total", "counter",
                    "Requests to the API server, by method and code.", e) < 0)
        return -1;
    for (size_t i = 0; i < c->n; i++) {
        if (c->rows[i].code)
            (void)snprintf(labels, sizeof labels, "code=\"%d\",method=\"%s\"", c->rows[i].code,
                           c->rows[i].method);
        else
            (void)snprintf(labels, sizeof labels, "code=\"<error>\",method=\"%s\"",
                           c->rows[i].method);
        if (metric_u64(out, "rest_client_requests_total", labels, c->rows[i].n, e) < 0)
            return -1;
    }
    if (c->others == 0)
        return 0;
    return metric_u64(out, "rest_client_requests_total", "code=\"other\",method=\"other\"",
                      c->others, e);
}

int counts_write(const struct counts *c, struct buf *out, struct err *e)
{
    char labels[32];

    if (write_requests(c, out, e) < 0 ||
        metric_head(out, "rest_client_request_duration_seconds", "histogram",
                    "How long requests to the API server took, watches left out.", e) < 0)
        return -1;
    for (size_t i = 0; i < COUNTS_METHODS; i++) {
        (void)snprintf(labels, sizeof labels, "verb=\"%s\"", methods[i]);
        if (c->took[i].n && metric_histogram(out, "rest_client_request_duration_seconds", labels,
                                             &bounds, &c->took[i], e) < 0)
            return -1;
    }
    return 0;
}
