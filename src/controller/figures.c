#include "controller/figures.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "kube/keymap.h"
#include "kube/time.h"

#include <string.h>

enum family {
    CLAIM_STARTUP,
    CLAIM_CONTROLLER_STARTUP,
    CLAIM_CLIENT_STARTUP,
    SANDBOX_CREATION,
    CLAIM_CREATION,
    SANDBOXES,
    FAMILY_COUNT,
};

/* clang-format off */
static const struct metric_bound claim_rows[] = {
    { 100, "100" }, { 250, "250" }, { 500, "500" }, { 750, "750" }, { 1000, "1000" }, { 1250, "1250" }, { 1500, "1500" },
    { 2000, "2000" }, { 2500, "2500" }, { 5000, "5000" }, { 10000, "10000" }, { 30000, "30000" }, { 60000, "60000" },
    { 120000, "120000" }, { 240000, "240000" },
};
static const struct metric_bound creation_rows[] = {
    { 50, "50" }, { 100, "100" }, { 250, "250" }, { 500, "500" }, { 1000, "1000" }, { 2500, "2500" }, { 5000, "5000" },
    { 10000, "10000" }, { 30000, "30000" }, { 60000, "60000" }, { 120000, "120000" }, { 240000, "240000" },
    { 300000, "300000" }, { 600000, "600000" },
};
static const struct metric_bounds claim_bounds = { claim_rows, LEN(claim_rows) };
static const struct metric_bounds creation_bounds = { creation_rows, LEN(creation_rows) };

static const struct {
    const char *name, *type, *help;
    const struct metric_bounds *bounds; /* of a histogram */
} families[] = {
    [CLAIM_STARTUP] = { "agent_sandbox_claim_startup_latency_ms", "histogram", "From the webhook's first look at a claim to Ready.", &claim_bounds },
    [CLAIM_CONTROLLER_STARTUP] = { "agent_sandbox_claim_controller_startup_latency_ms", "histogram", "From the controller's first look at a claim to Ready.", &claim_bounds },
    [CLAIM_CLIENT_STARTUP] = { "agent_sandbox_client_claim_startup_latency_ms", "histogram", "From the client's request to Ready, by the client's clock.", &claim_bounds },
    [SANDBOX_CREATION] = { "agent_sandbox_creation_latency_ms", "histogram", "From a sandbox's creation to Ready.", &creation_bounds },
    [CLAIM_CREATION] = { "agent_sandbox_claim_creation_total", "counter", "Claims that got a sandbox.", NULL },
    [SANDBOXES] = { "agent_sandboxes", "gauge", "Sandboxes there are.", NULL },
};
/* clang-format on */

/* Numbers of one set of labels. */
struct series {
    struct keymap_node node; /* "", labels */
    struct metric_histogram times;
    uint64_t n;
    char labels[];
};

struct figures {
    struct keymap of[FAMILY_COUNT];
    size_t series;
    uint64_t dropped;
};

struct figures *figures_new(void)
{
    return NEW(struct figures);
}

static void free_series(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    free(CONTAINER(node, struct series, node));
}

static void clear(struct keymap *map)
{
    keymap_each(map, free_series, NULL);
    keymap_done(map);
}

void figures_free(struct figures *m)
{
    for (size_t i = 0; m && i < FAMILY_COUNT; i++)
        clear(&m->of[i]);
    free(m);
}

/* NULL: no room, or labels that are too long. */
static struct series *series_of(struct keymap *map, const struct buf *labels, size_t *count)
{
    struct keymap_node *found = keymap_get(map, "", buf_cstr(labels));
    struct series *s;

    if (found)
        return CONTAINER(found, struct series, node);
    if (*count == FIGURES_SERIES_MAX)
        return NULL;
    ++*count;
    s = own_new(sizeof *s + labels->n + 1);
    memcpy(s->labels, buf_cstr(labels), labels->n + 1);
    keymap_add(map, &s->node, "", s->labels);
    return s;
}

/* Pairs of key and value, ended by NULL; false when they do not fit. */
static bool say_labels(struct buf *out, const char *const *pairs)
{
    struct err e;

    for (; *pairs; pairs += 2)
        if (metric_label(out, pairs[0], pairs[1], &e) < 0)
            return false;
    return true;
}

static void count(struct figures *m, enum family family, const char *const *pairs, double value)
{
    OWN(buf_done) struct buf labels = BUF_INIT(FIGURES_LABELS_MAX_BYTES);
    struct series *s =
        say_labels(&labels, pairs) ? series_of(&m->of[family], &labels, &m->series) : NULL;

    if (!s)
        m->dropped++;
    else if (families[family].bounds)
        metric_observe(&s->times, families[family].bounds, value);
    else
        s->n++;
}

/* ---- what is counted ---- */

static const char *or_else(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static const char *launch_of(const struct object *sandbox)
{
    const char *said = object_label(sandbox, LABEL_LAUNCH);

    return said && strcmp(said, LAUNCH_WARM) == 0 ? LAUNCH_WARM : LAUNCH_COLD;
}

static const char *template_of(const struct object *sandbox)
{
    return or_else(object_annotation(sandbox, NOTE_TEMPLATE_REF), "__unknown__");
}

static bool is_ready(const struct object *o)
{
    return condition_is(object_at(o, "status.conditions"), COND_READY, "True");
}

void figures_claim_bound(struct figures *m, const struct object *claim,
                         const struct object *sandbox)
{
    const char *launch = launch_of(sandbox);
    bool is_warm = strcmp(launch, LAUNCH_WARM) == 0;
    const char *const pairs[] = {
        "namespace",
        object_namespace(claim),
        "sandbox_template",
        template_of(sandbox),
        "launch_type",
        launch,
        "warmpool_name",
        is_warm ? or_else(object_text(claim, "spec.warmPoolRef.name"), "none") : "none",
        "pod_condition",
        is_ready(sandbox) ? "ready" : "not_ready",
        "created_by",
        created_by_known(object_label(claim, LABEL_CREATED_BY)),
        NULL,
    };

    count(m, CLAIM_CREATION, pairs, 0);
}

/* Milliseconds from the time that a text says; false: it says none, or one that is yet to come. */
static bool since(const char *text, struct timespec now, double *ret_ms)
{
    struct timespec then;

    if (!text || !kube_time_parse(span_cstr(text), &then))
        return false;
    *ret_ms = (double)(now.tv_sec - then.tv_sec) * 1e3 + (double)(now.tv_nsec - then.tv_nsec) / 1e6;
    return *ret_ms >= 0;
}

void figures_claim_ready(struct figures *m, const struct object *claim,
                         const struct object *sandbox, struct timespec now)
{
    static const struct {
        enum family family;
        const char *note;
    } clocks[] = {
        { CLAIM_STARTUP, NOTE_WEBHOOK_SEEN },
        { CLAIM_CONTROLLER_STARTUP, NOTE_FIRST_SEEN },
        { CLAIM_CLIENT_STARTUP, NOTE_CLIENT_ASKED },
    };
    const char *const pairs[] = { "launch_type", launch_of(sandbox), "sandbox_template",
                                  template_of(sandbox), NULL };
    const char *const all[] = {
        "namespace", object_namespace(sandbox), pairs[0], pairs[1], pairs[2], pairs[3], NULL
    };
    const struct json *ready = condition_find(object_at(sandbox, "status.conditions"), COND_READY);
    struct timespec then;
    double ms;

    EACH(clock, clocks) {
        if (since(object_annotation(claim, clock->note), now, &ms))
            count(m, clock->family, pairs, ms);
    }
    if (kube_time_parse(json_str(json_get(ready, "lastTransitionTime")), &then) &&
        since(object_text(sandbox, "metadata.creationTimestamp"), then, &ms))
        count(m, SANDBOX_CREATION, all, ms);
}

/* ---- what there is ---- */

static const char *owner_of(const struct object *sandbox)
{
    static const char *const kinds[] = { "SandboxClaim", "SandboxWarmPool" };

    EACH(kind, kinds) {
        if (owner_is(sandbox, GROUP_EXTENSIONS, *kind))
            return *kind;
    }
    return "None";
}

static bool is_expired(const struct object *sandbox)
{
    return strcmp(condition_reason(object_at(sandbox, "status.conditions"), COND_READY),
                  REASON_EXPIRED) == 0;
}

static void take_stock(struct informer *sandboxes, struct keymap *into)
{
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    size_t rows = 0;
    struct object *s;

    informer_walk_all(&w, sandboxes);
    while ((s = informer_walk_next(&w))) {
        OWN(buf_done) struct buf labels = BUF_INIT(FIGURES_LABELS_MAX_BYTES);
        const char *const pairs[] = {
            "namespace",
            object_namespace(s),
            "ready_condition",
            is_ready(s) ? "true" : "false",
            "expired",
            is_expired(s) ? "true" : "false",
            "launch_type",
            launch_of(s),
            "sandbox_template",
            or_else(object_annotation(s, NOTE_TEMPLATE_REF), "unknown"),
            "owned_by",
            owner_of(s),
            "created_by",
            created_by_known(object_label(s, LABEL_CREATED_BY)),
            NULL,
        };
        struct series *row = say_labels(&labels, pairs) ? series_of(into, &labels, &rows) : NULL;

        if (row)
            row->n++;
    }
}

/* ---- text ---- */

struct writing {
    enum family family;
    struct buf *out;
    struct err *e;
    int rc;
};

static void write_series(struct keymap_node *node, void *ctx)
{
    const struct series *s = CONTAINER(node, struct series, node);
    const struct metric_bounds *bounds;
    struct writing *w = ctx;
    const char *name = families[w->family].name;

    bounds = families[w->family].bounds;
    if (w->rc == 0)
        w->rc = bounds ? metric_histogram(w->out, name, s->labels, bounds, &s->times, w->e)
                       : metric_u64(w->out, name, s->labels, s->n, w->e);
}

static int write_family(enum family family, const struct keymap *map, struct buf *out,
                        struct err *e)
{
    struct writing w = { family, out, e, 0 };

    if (metric_head(out, families[family].name, families[family].type, families[family].help, e) <
        0)
        return -1;
    keymap_each(map, write_series, &w);
    return w.rc;
}

int figures_write(const struct figures *m, struct informer *sandboxes, struct buf *out,
                  struct err *e)
{
    struct keymap stock = KEYMAP_INIT;
    int rc = 0;

    for (size_t i = 0; i < SANDBOXES && rc == 0; i++)
        rc = write_family((enum family)i, &m->of[i], out, e);
    if (rc == 0 && sandboxes) {
        take_stock(sandboxes, &stock);
        rc = write_family(SANDBOXES, &stock, out, e);
        clear(&stock);
    }
    if (rc < 0 || metric_head(out, "silica_metrics_dropped_total", "counter",
                              "What the rows above have no room for.", e) < 0)
        return -1;
    return metric_u64(out, "silica_metrics_dropped_total", "", m->dropped, e);
}
