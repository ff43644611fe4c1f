#include "router/tally.h"

#include "kube/keymap.h"
#include "router/limits.h"

#include <stdio.h>
#include <string.h>

#define UNKNOWN "-" /* the namespace of requests that have none */

static const struct metric_bound bound_rows[] = {
    { 0.005, "0.005" }, { 0.01, "0.01" }, { 0.025, "0.025" }, { 0.05, "0.05" }, { 0.1, "0.1" },
    { 0.25, "0.25" },   { 0.5, "0.5" },   { 1, "1" },         { 2.5, "2.5" },   { 5, "5" },
    { 10, "10" },       { 30, "30" },     { 60, "60" },       { 180, "180" },
};
static const struct metric_bounds bounds = { bound_rows, LEN(bound_rows) };

/* The counters beside those of requests. */
static const struct family {
    const char *name, *help;
    const char *label; /* beside the namespace; or NULL */
    bool has_namespace;
} families[TALLY_COUNT] = {
    [TALLY_UPSTREAM_ERRORS] = { "sandbox_router_upstream_errors_total",
                                "Requests that no sandbox answered.", "reason", true },
    [TALLY_RETRIES] = { "sandbox_router_upstream_retries_total",
                        "Connections that were tried again.", NULL, true },
    [TALLY_INVALIDATIONS] = { "sandbox_router_cache_invalidations_total",
                              "Sandboxes that were known and could not be reached.", NULL, true },
    [TALLY_DECISIONS] = { "sandbox_router_authz_decisions_total",
                          "Requests by whether they were let in.", "decision", true },
    [TALLY_CERT_RELOADS] = { "sandbox_router_cert_reloads_total",
                             "Times that the certificate was read.", "outcome", false },
};

/* One set of labels. `key` is the second half of its name in the map. */
struct row {
    struct keymap_node node;
    char namespace[TARGET_NAME_BYTES], key[32];
    uint64_t count;
    struct metric_histogram *took; /* of requests */
};

struct tally {
    uint64_t in_flight;
    struct keymap requests, counts[TALLY_COUNT];
};

struct tally *tally_new(void)
{
    return NEW(struct tally);
}

static void free_row(struct keymap_node *node, void *ctx)
{
    struct row *r = CONTAINER(node, struct row, node);

    (void)ctx;
    free(r->took);
    free(r);
}

void tally_free(struct tally *f)
{
    if (!f)
        return;
    keymap_each(&f->requests, free_row, NULL);
    keymap_done(&f->requests);
    EACH(m, f->counts) {
        keymap_each(m, free_row, NULL);
        keymap_done(m);
    }
    free(f);
}

static struct row *row_of(struct keymap *m, const char *namespace, const char *key)
{
    struct keymap_node *n = keymap_get(m, namespace, key);
    struct row *r;

    if (!n && m->count >= TALLY_ROWS_MAX && strcmp(namespace, UNKNOWN) != 0)
        return row_of(m, UNKNOWN, key); /* few: keys are ours */
    if (n)
        return CONTAINER(n, struct row, node);
    r = NEW(struct row);
    (void)snprintf(r->namespace, sizeof r->namespace, "%s", namespace);
    (void)snprintf(r->key, sizeof r->key, "%s", key);
    keymap_add(m, &r->node, r->namespace, r->key);
    return r;
}

void tally_begin(struct tally *f)
{
    f->in_flight++;
}

static const char *method_of(struct span method)
{
    static const char *const known[] = { "GET",     "HEAD",  "POST",    "PUT",  "DELETE",
                                         "CONNECT", "TRACE", "OPTIONS", "PATCH" };

    EACH(m, known) {
        if (span_is(method, *m))
            return *m;
    }
    return "other";
}

void tally_end(struct tally *f, struct span method, int code, const char *namespace, double seconds)
{
    char key[32];
    struct row *r;

    f->in_flight--;
    (void)snprintf(key, sizeof key, "%s %d", method_of(method), code);
    r = row_of(&f->requests, *namespace ? namespace : UNKNOWN, key);
    if (!r->took)
        r->took = NEW(struct metric_histogram);
    metric_observe(r->took, &bounds, seconds);
}

void tally_add(struct tally *f, enum tally_which which, const char *namespace, const char *label)
{
    row_of(&f->counts[which], namespace && *namespace ? namespace : UNKNOWN, label ? label : "")
        ->count++;
}

/* ---- showing ---- */

struct writing {
    struct buf *out;
    struct err *e;
    const struct family *family; /* NULL: requests */
    bool is_histogram, has_failed;
};

static int labels_of(const struct writing *w, const struct row *r, struct buf *labels)
{
    struct span rest = span_cstr(r->key), method;

    if (w->family) {
        if (w->family->has_namespace &&
            metric_label(labels, "sandbox_namespace", r->namespace, w->e) < 0)
            return -1;
        return w->family->label ? metric_label(labels, w->family->label, r->key, w->e) : 0;
    }
    (void)span_cut(&rest, ' ', &method);
    return buf_addf(labels, w->e, "method=\"%.*s\",code=\"%.*s\"", SPAN_ARG(method),
                    SPAN_ARG(rest)) < 0
               ? -1
               : metric_label(labels, "sandbox_namespace", r->namespace, w->e);
}

static void write_row(struct keymap_node *node, void *ctx)
{
    static const char took[] = "sandbox_router_request_duration_seconds";
    const struct row *r = CONTAINER(node, struct row, node);
    OWN(buf_done) struct buf labels = BUF_INIT(1024);
    struct writing *w = ctx;

    if (w->has_failed)
        return;
    if (labels_of(w, r, &labels) < 0)
        w->has_failed = true;
    else if (w->is_histogram)
        w->has_failed =
            metric_histogram(w->out, took, buf_cstr(&labels), &bounds, r->took, w->e) < 0;
    else
        w->has_failed =
            metric_u64(w->out, w->family ? w->family->name : "sandbox_router_requests_total",
                       buf_cstr(&labels), w->family ? r->count : r->took->n, w->e) < 0;
}

static int write_map(const struct keymap *m, const char *name, const char *type, const char *help,
                     struct writing w)
{
    if (m->count == 0) /* as the public one: no family before its first sample */
        return 0;
    if (metric_head(w.out, name, type, help, w.e) < 0)
        return -1;
    keymap_each(m, write_row, &w);
    return w.has_failed ? -1 : 0;
}

int tally_write(const struct tally *f, struct buf *out, struct err *e)
{
    struct writing w = { .out = out, .e = e };

    if (write_map(&f->requests, "sandbox_router_requests_total", "counter",
                  "Requests by method, status and namespace.", w) < 0)
        return -1;
    w.is_histogram = true;
    if (write_map(&f->requests, "sandbox_router_request_duration_seconds", "histogram",
                  "How long requests took.", w) < 0 ||
        metric_head(out, "sandbox_router_inflight_requests", "gauge", "Requests under way.", e) <
            0 ||
        metric_u64(out, "sandbox_router_inflight_requests", "", f->in_flight, e) < 0)
        return -1;
    w.is_histogram = false;
    for (size_t i = 0; i < TALLY_COUNT; i++) {
        w.family = &families[i];
        if (write_map(&f->counts[i], w.family->name, "counter", w.family->help, w) < 0)
            return -1;
    }
    return 0;
}
