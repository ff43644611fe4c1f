#include "apiserver/metrics.h"

#include "apiserver/op.h"
#include "base/metric.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS                                                                                      \
    4096 /* a power of two; labels are constants, some hundred of them are met in practice */
#define SLOTS_USED (SLOTS / 2)

/* Seconds, as the public server's histogram has them at its lower end. */
static const struct {
    uint64_t us;
    const char *text;
} bounds[] = {
    { 5000, "0.005" },  { 25000, "0.025" },  { 50000, "0.05" },  { 100000, "0.1" },
    { 200000, "0.2" },  { 400000, "0.4" },   { 600000, "0.6" },  { 800000, "0.8" },
    { 1000000, "1" },   { 1250000, "1.25" }, { 1500000, "1.5" }, { 2000000, "2" },
    { 3000000, "3" },   { 4000000, "4" },    { 5000000, "5" },   { 6000000, "6" },
    { 8000000, "8" },   { 10000000, "10" },  { 15000000, "15" }, { 20000000, "20" },
    { 30000000, "30" }, { 45000000, "45" },  { 60000000, "60" },
};

/* code 0: the row keeps times, of all codes; else only the number counts. */
struct row {
    const struct kind *kind;
    const struct kind_version *version;
    const struct kind_subresource *sub;
    enum request_verb verb;
    int code;
    uint64_t n, sum_us;
    uint64_t within[LEN(bounds)];
};

struct metrics {
    struct row *slots[SLOTS];
    size_t used;
    uint64_t others; /* answered when no slot was left */
};

struct metrics *metrics_new(void)
{
    return NEW(struct metrics);
}

void metrics_free(struct metrics *m)
{
    for (size_t i = 0; m && i < SLOTS; i++)
        free(m->slots[i]);
    free(m);
}

static bool is_same(const struct row *a, const struct row *b)
{
    return a->kind == b->kind && a->version == b->version && a->sub == b->sub &&
           a->verb == b->verb && a->code == b->code;
}

static struct row *find(struct metrics *m, const struct row *wanted)
{
    uint64_t h = ((uintptr_t)wanted->version ^ (uintptr_t)wanted->sub << 7) * 0x9e3779b97f4a7c15u;
    size_t at;

    h = (h ^ (uint64_t)wanted->verb << 32 ^ (uint64_t)wanted->code) * 0x9e3779b97f4a7c15u;
    at = (size_t)(h >> 40) & (SLOTS - 1);
    while (m->slots[at] && !is_same(m->slots[at], wanted))
        at = (at + 1) & (SLOTS - 1);
    if (m->slots[at])
        return m->slots[at];
    if (m->used == SLOTS_USED)
        return NULL;
    m->used++;
    m->slots[at] = NEW(struct row);
    *m->slots[at] = *wanted;
    return m->slots[at];
}

void metrics_count(struct metrics *m, enum request_verb verb, const struct kind *kind,
                   const struct kind_version *version, const struct kind_subresource *sub, int code,
                   uint64_t us)
{
    struct row wanted = {
        .kind = kind, .version = version, .sub = sub, .verb = verb, .code = code
    };
    struct row *r = find(m, &wanted);

    if (r)
        r->n++;
    else
        m->others++;
    if (verb == VERB_WATCH ||
        (sub && kind_sub_is_stream(sub->sub))) /* as long as its reader likes */
        return;
    wanted.code = 0;
    r = find(m, &wanted);
    if (!r)
        return;
    r->n++;
    r->sum_us += us;
    for (size_t i = 0; i < LEN(bounds); i++)
        r->within[i] += us <= bounds[i].us;
}

/* ---- the text ---- */

static int write_labels(struct buf *out, const struct row *r, struct err *e)
{
    static const char *const verbs[] = { "",    "GET",   "LIST",   "WATCH",           "POST",
                                         "PUT", "PATCH", "DELETE", "DELETECOLLECTION" };

    return buf_addf(out, e,
                    "component=\"apiserver\",group=\"%s\",resource=\"%s\",subresource=\"%s\","
                    "verb=\"%s\",version=\"%s\"",
                    r->kind ? r->kind->group : "", r->kind ? r->kind->plural : "",
                    r->sub ? r->sub->name : "", verbs[r->verb], r->version ? r->version->name : "");
}

static int write_counts(const struct metrics *m, struct buf *out, struct err *e)
{
    if (metric_head(out, "apiserver_request_total", "counter",
                    "Requests answered, by verb, resource and HTTP code.", e) < 0)
        return -1;
    for (size_t i = 0; i < SLOTS; i++) {
        const struct row *r = m->slots[i];

        if (r && r->code &&
            (buf_addf(out, e, "apiserver_request_total{code=\"%d\",", r->code) < 0 ||
             write_labels(out, r, e) < 0 ||
             buf_addf(out, e, "} %llu\n", (unsigned long long)r->n) < 0))
            return -1;
    }
    return metric_head(out, "silica_apiserver_requests_uncounted_total", "counter",
                       "Requests answered that no row above has room for.", e) < 0
               ? -1
               : buf_addf(out, e, "silica_apiserver_requests_uncounted_total %llu\n",
                          (unsigned long long)m->others);
}

static int write_histogram(const struct row *r, struct buf *out, struct err *e)
{
    static const char name[] = "apiserver_request_duration_seconds";

    for (size_t i = 0; i <= LEN(bounds); i++) {
        bool is_last = i == LEN(bounds);

        if (buf_addf(out, e, "%s_bucket{", name) < 0 || write_labels(out, r, e) < 0 ||
            buf_addf(out, e, ",le=\"%s\"} %llu\n", is_last ? "+Inf" : bounds[i].text,
                     (unsigned long long)(is_last ? r->n : r->within[i])) < 0)
            return -1;
    }
    if (buf_addf(out, e, "%s_sum{", name) < 0 || write_labels(out, r, e) < 0 ||
        buf_addf(out, e, "} %llu.%06llu\n", (unsigned long long)(r->sum_us / 1000000),
                 (unsigned long long)(r->sum_us % 1000000)) < 0)
        return -1;
    return buf_addf(out, e, "%s_count{", name) < 0 || write_labels(out, r, e) < 0 ||
                   buf_addf(out, e, "} %llu\n", (unsigned long long)r->n) < 0
               ? -1
               : 0;
}

static int write_times(const struct metrics *m, struct buf *out, struct err *e)
{
    if (metric_head(out, "apiserver_request_duration_seconds", "histogram",
                    "Time from a request to its answer, watches left out.", e) < 0)
        return -1;
    for (size_t i = 0; i < SLOTS; i++)
        if (m->slots[i] && !m->slots[i]->code && write_histogram(m->slots[i], out, e) < 0)
            return -1;
    return 0;
}

static int write_objects(struct store *store, struct buf *out, struct err *e)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);
    struct shelf *shelf = store_snapshot(store, STORE_COMMITTED, NULL);
    int rc = metric_head(out, "apiserver_storage_objects", "gauge",
                         "Objects in the store, by resource.", e);

    for (unsigned k = 0; rc == 0 && k < n; k++) {
        struct shelf_key from = { k, "", "" }, to = { k + 1, "", "" };

        if (kinds[k].traits & KIND_REVIEW || kinds[k].storage_kind)
            continue;
        rc = buf_addf(out, e, "apiserver_storage_objects{resource=\"%s%s%s\"} %zu\n",
                      kinds[k].plural, *kinds[k].group ? "." : "", kinds[k].group,
                      shelf_rank(shelf, &to) - shelf_rank(shelf, &from));
    }
    shelf_unref(shelf);
    return rc;
}

static int write_gauge(struct buf *out, const char *name, const char *help, uint64_t value,
                       struct err *e)
{
    return metric_head(out, name, "gauge", help, e) < 0 ? -1 : metric_u64(out, name, "", value, e);
}

static int write_store(struct store *store, struct buf *out, struct err *e)
{
    struct store_stats stats;

    store_stats(store, &stats);
    return write_objects(store, out, e) < 0 ||
                   write_gauge(out, "silica_store_version", "The newest resourceVersion on disk.",
                               store_version(store, STORE_COMMITTED), e) < 0 ||
                   write_gauge(out, "silica_store_watches", "Watches under way.", stats.watches,
                               e) < 0
               ? -1
               : 0;
}

int metrics_write(const struct metrics *m, struct store *store, struct buf *out, struct err *e)
{
    return write_counts(m, out, e) < 0 || write_times(m, out, e) < 0 ||
                   write_store(store, out, e) < 0 || metric_process(out, e) < 0
               ? -1
               : 0;
}
