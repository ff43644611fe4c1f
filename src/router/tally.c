#include "router/tally.h"

#include "kube/keymap.h"
#include "router/limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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

/* One set of labels. `key` is the second half of its name in a map. */
struct row {
    char namespace[TARGET_NAME_BYTES], key[32];
    uint64_t count;
    struct metric_histogram took; /* of requests */
};

/* One family. Rows are only ever added; the number says how many are whole, whenever their writer is killed. */
struct sheet {
    size_t used;
    struct row rows[TALLY_ROWS_MAX + TALLY_SPARE_ROWS + 1];
};

#define REQUESTS TALLY_COUNT /* the sheet after the counters' */
#define SHEETS   (TALLY_COUNT + 1)
#define TOO_MANY "other 0" /* the key of requests beyond all ceilings */

/* Zeroed memory is an empty one; pages that nobody wrote to cost nothing. */
struct seat {
    uint64_t in_flight;
    struct sheet sheets[SHEETS];
};

struct tally_board {
    unsigned count;
    struct seat *seats;
};

/* A row by its labels, in the memory of one process. */
struct known_row {
    struct keymap_node node;
    struct row *row;
};

struct tally {
    struct tally_board *board, *own; /* own: NULL where the board is another's */
    struct seat *seat;
    struct keymap maps[SHEETS];
    struct row *last[SHEETS]; /* the next is most often the same */
};

/* ---- the board ---- */

struct tally_board *tally_board_new(unsigned seats)
{
    struct tally_board *b = NEW(struct tally_board);

    assert(seats > 0);
    b->count = seats;
    b->seats = mmap(NULL, seats * sizeof *b->seats, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->seats == MAP_FAILED)
        abort(); /* as for all memory */
    return b;
}

void tally_board_free(struct tally_board *b)
{
    if (!b)
        return;
    (void)munmap(b->seats, b->count * sizeof *b->seats);
    free(b);
}

void tally_board_leave(struct tally_board *b, unsigned seat)
{
    assert(seat < b->count);
    b->seats[seat].in_flight = 0;
}

static size_t used_of(const struct sheet *s)
{
    return __atomic_load_n(&s->used, __ATOMIC_ACQUIRE);
}

uint64_t tally_board_requests(const struct tally_board *b, unsigned seat)
{
    const struct sheet *s;
    uint64_t n = 0;

    assert(seat < b->count);
    s = &b->seats[seat].sheets[REQUESTS];
    for (size_t i = 0; i < used_of(s); i++)
        n += s->rows[i].took.n;
    return n;
}

/* ---- counting ---- */

static void know(struct keymap *m, struct row *row)
{
    struct known_row *k = NEW(struct known_row);

    k->row = row;
    keymap_add(m, &k->node, row->namespace, row->key);
}

struct tally *tally_new(struct tally_board *board, unsigned seat)
{
    struct tally *f = NEW(struct tally);

    f->own = board ? NULL : tally_board_new(seat + 1);
    f->board = board ? board : f->own;
    assert(seat < f->board->count);
    f->seat = &f->board->seats[seat];
    f->seat->in_flight = 0;
    for (size_t i = 0; i < SHEETS; i++) /* what the one before us counted */
        for (size_t j = 0; j < f->seat->sheets[i].used; j++)
            know(&f->maps[i], &f->seat->sheets[i].rows[j]);
    return f;
}

static void free_known(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    free(CONTAINER(node, struct known_row, node));
}

void tally_free(struct tally *f)
{
    if (!f)
        return;
    EACH(m, f->maps) {
        keymap_each(m, free_known, NULL);
        keymap_done(m);
    }
    tally_board_free(f->own);
    free(f);
}

static struct row *row_of(struct tally *f, size_t which, const char *namespace, const char *key)
{
    struct sheet *s = &f->seat->sheets[which];
    struct row *r = f->last[which];
    struct keymap_node *n;

    if (r && strcmp(r->namespace, namespace) == 0 && strcmp(r->key, key) == 0)
        return r;
    n = keymap_get(&f->maps[which], namespace, key);
    if (n)
        return f->last[which] = CONTAINER(n, struct known_row, node)->row;
    if (s->used >= TALLY_ROWS_MAX && strcmp(namespace, UNKNOWN) != 0)
        return row_of(f, which, UNKNOWN, key);
    if (s->used >= TALLY_ROWS_MAX + TALLY_SPARE_ROWS && strcmp(key, TOO_MANY) != 0)
        return row_of(f, which, UNKNOWN, TOO_MANY); /* room for this one is left */
    r = &s->rows[s->used];
    (void)snprintf(r->namespace, sizeof r->namespace, "%s", namespace);
    (void)snprintf(r->key, sizeof r->key, "%s", key);
    __atomic_store_n(&s->used, s->used + 1, __ATOMIC_RELEASE);
    know(&f->maps[which], r);
    return r;
}

void tally_begin(struct tally *f)
{
    f->seat->in_flight++;
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

/* "GET 200"; by hand, as it is done for every request. */
static void write_key(char key[32], const char *method, unsigned code)
{
    char digits[10];
    size_t at = sizeof digits, n = strlen(method);

    memcpy(key, method, n);
    key[n++] = ' ';
    do
        digits[--at] = (char)('0' + code % 10);
    while (code /= 10);
    memcpy(key + n, digits + at, sizeof digits - at);
    key[n + sizeof digits - at] = '\0';
}

void tally_end(struct tally *f, struct span method, int code, const char *namespace, double seconds)
{
    char key[32];

    f->seat->in_flight--;
    write_key(key, method_of(method), (unsigned)code);
    metric_observe(&row_of(f, REQUESTS, *namespace ? namespace : UNKNOWN, key)->took, &bounds,
                   seconds);
}

void tally_add(struct tally *f, enum tally_which which, const char *namespace, const char *label)
{
    row_of(f, which, namespace && *namespace ? namespace : UNKNOWN, label ? label : "")->count++;
}

/* ---- showing ---- */

/* A row of all seats. */
struct sum {
    struct keymap_node node;
    struct row row;
};

static void free_sum(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    free(CONTAINER(node, struct sum, node));
}

static void add_row(struct keymap *sums, const struct row *r)
{
    struct keymap_node *n = keymap_get(sums, r->namespace, r->key);
    struct sum *s = n ? CONTAINER(n, struct sum, node) : NULL;

    if (!s) {
        s = NEW(struct sum);
        s->row = *r;
        keymap_add(sums, &s->node, s->row.namespace, s->row.key);
        return;
    }
    s->row.count += r->count;
    metric_histogram_add(&s->row.took, &r->took);
}

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
    const struct row *r = &CONTAINER(node, struct sum, node)->row;
    OWN(buf_done) struct buf labels = BUF_INIT(1024);
    struct writing *w = ctx;

    if (w->has_failed)
        return;
    if (labels_of(w, r, &labels) < 0)
        w->has_failed = true;
    else if (w->is_histogram)
        w->has_failed =
            metric_histogram(w->out, took, buf_cstr(&labels), &bounds, &r->took, w->e) < 0;
    else
        w->has_failed =
            metric_u64(w->out, w->family ? w->family->name : "sandbox_router_requests_total",
                       buf_cstr(&labels), w->family ? r->count : r->took.n, w->e) < 0;
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

static int write_requests(const struct tally_board *b, const struct keymap *sums, struct writing w)
{
    uint64_t in_flight = 0;

    for (unsigned i = 0; i < b->count; i++)
        in_flight += b->seats[i].in_flight;
    if (write_map(sums, "sandbox_router_requests_total", "counter",
                  "Requests by method, status and namespace.", w) < 0)
        return -1;
    w.is_histogram = true;
    return write_map(sums, "sandbox_router_request_duration_seconds", "histogram",
                     "How long requests took.", w) < 0 ||
                   metric_head(w.out, "sandbox_router_inflight_requests", "gauge",
                               "Requests under way.", w.e) < 0 ||
                   metric_u64(w.out, "sandbox_router_inflight_requests", "", in_flight, w.e) < 0
               ? -1
               : 0;
}

static int write_sheet(const struct tally_board *b, size_t which, struct writing w)
{
    struct keymap sums = KEYMAP_INIT;
    int rc;

    for (unsigned i = 0; i < b->count; i++) {
        const struct sheet *s = &b->seats[i].sheets[which];

        for (size_t j = 0, used = used_of(s); j < used; j++)
            add_row(&sums, &s->rows[j]);
    }
    if (which == REQUESTS) {
        rc = write_requests(b, &sums, w);
    } else {
        w.family = &families[which];
        rc = write_map(&sums, w.family->name, "counter", w.family->help, w);
    }
    keymap_each(&sums, free_sum, NULL);
    keymap_done(&sums);
    return rc;
}

int tally_board_write(const struct tally_board *b, struct buf *out, struct err *e)
{
    const struct writing w = { .out = out, .e = e };

    if (write_sheet(b, REQUESTS, w) < 0)
        return -1;
    for (size_t i = 0; i < TALLY_COUNT; i++)
        if (write_sheet(b, i, w) < 0)
            return -1;
    return 0;
}

int tally_write(const struct tally *f, struct buf *out, struct err *e)
{
    return tally_board_write(f->board, out, e);
}
