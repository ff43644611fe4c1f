#include "controller/shared.h"

#include "base/metric.h"
#include "controller/diet.h"
#include "controller/fields.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/members.h"
#include "controller/step.h"
#include "ev/loop.h"
#include "kube/queue.h"

static const struct informer_index pod_indexes[] = {
    [PODS_BY_TRACKING] = { informer_keys_label, LABEL_TRACKING, false },
};
static const struct informer_index sandbox_indexes[] = {
    [SANDBOXES_BY_POOL] = { informer_keys_label, LABEL_POOL, false },
    [SANDBOXES_BY_STATE] = { members_keys, NULL, false },
};
static const struct informer_index pool_indexes[] = {
    [POOLS_BY_TEMPLATE] = { informer_keys_path, "spec.sandboxTemplateRef.name", false },
};
static const struct informer_index claim_indexes[] = {
    [CLAIMS_BY_POOL] = { informer_keys_path, "spec.warmPoolRef.name", false },
};

static struct informer_spec spec_of(enum shared_kind kind)
{
    const struct known_kinds *k = known_kinds();

    switch (kind) {
    case SHARED_SANDBOXES:
        return (struct informer_spec){ .kind = k->sandbox,
                                       .indexes = sandbox_indexes,
                                       .index_count = LEN(sandbox_indexes) };
    case SHARED_PODS:
        return (struct informer_spec){ .kind = k->pod,
                                       .indexes = pod_indexes,
                                       .index_count = LEN(pod_indexes) };
    case SHARED_SERVICES:
        return (struct informer_spec){ .kind = k->service };
    case SHARED_VOLUMES:
        return (struct informer_spec){ .kind = k->volume_claim };
    case SHARED_TEMPLATES:
        return (struct informer_spec){ .kind = k->template };
    case SHARED_POOLS:
        return (struct informer_spec){ .kind = k->pool,
                                       .indexes = pool_indexes,
                                       .index_count = LEN(pool_indexes) };
    case SHARED_CLAIMS:
        return (struct informer_spec){ .kind = k->claim,
                                       .indexes = claim_indexes,
                                       .index_count = LEN(claim_indexes) };
    case SHARED_POLICIES:
        return (struct informer_spec){ .kind = k->policy };
    case SHARED_COUNT:
        break;
    }
    abort(); /* our bug */
}

static informer_trim_fn trim_of(enum shared_kind kind)
{
    if (kind == SHARED_PODS)
        return diet_pod;
    return kind == SHARED_CLAIMS || kind == SHARED_SANDBOXES ? fields_trim : informer_trim_managed;
}

static void on_synced(void *ctx)
{
    struct shared *s = ctx;

    if (--s->waiting == 0)
        s->synced(s->ctx);
}

int shared_open(struct shared *s, struct kube_client *client,
                const struct controller_config *config, void (*synced)(void *ctx), void *ctx,
                struct err *e)
{
    static const struct informer_listener listener = { .on_synced = on_synced };
    size_t n = config->has_extensions ? SHARED_COUNT : SHARED_CORE_COUNT;

    *s = (struct shared){
        .client = client, .is_remote = config->is_remote, .waiting = n, .synced = synced, .ctx = ctx
    };
    bucket_init(&s->complaints, COMPLAINTS_A_MINUTE / 60.0, COMPLAINTS_A_MINUTE,
                ev_now_ms(kube_client_loop(client)));
    for (size_t i = 0; i < n; i++) {
        struct informer_spec spec = spec_of((enum shared_kind)i);

        if (config->is_cache_selected && (i == SHARED_PODS || i == SHARED_SERVICES))
            spec.labels = LABEL_TRACKING;
        if (config->is_remote)
            spec.trim = trim_of((enum shared_kind)i);
        if (informer_new(client, &spec, &s->of[i], e) < 0) {
            shared_close(s);
            return -1;
        }
        informer_listen(s->of[i], &listener, s);
    }
    for (size_t i = 0; i < n; i++)
        informer_start(s->of[i]);
    return 0;
}

void shared_close(struct shared *s)
{
    EACH(inf, s->of) {
        if (*inf)
            informer_close(take_ptr(inf));
    }
}

bool shared_is_busy(const struct shared *s)
{
    return s->urgent && queue_pressing(s->urgent) > 0;
}

bool shared_holds(const struct shared *s)
{
    return s->is_remote && shared_is_busy(s) && queue_pressing_ms(s->urgent) < HOLD_MAX_MS;
}

void shared_learn(struct shared *s, struct object *o, const struct queue *writer)
{
    uint64_t version = object_version(o);

    if (writer) {
        s->echoes[version % SHARED_ECHOES].version = version;
        s->echoes[version % SHARED_ECHOES].writer = writer;
    }
    for (size_t i = 0; i < SHARED_COUNT; i++)
        if (s->of[i] && spec_of((enum shared_kind)i).kind == object_kind(o))
            informer_learn(s->of[i], o);
}

bool shared_is_echo(const struct shared *s, const struct object *o, const struct queue *writer)
{
    uint64_t version = object_version(o);

    return version && s->echoes[version % SHARED_ECHOES].version == version &&
           s->echoes[version % SHARED_ECHOES].writer == writer;
}

const char *shared_kind_name(enum shared_kind kind)
{
    return spec_of(kind).kind->name;
}

int shared_metrics_write(const struct shared *s, struct buf *out, struct err *e)
{
    static const char failing[] = "silica_informer_failing",
                      failures[] = "silica_informer_failures_total";
    uint64_t n;

    if (metric_head(out, failing, "gauge", "Whether the copy of a kind cannot be kept up.", e) < 0)
        return -1;
    for (int pass = 0; pass < 2; pass++) {
        if (pass && metric_head(out, failures, "counter", "Lists and watches refused.", e) < 0)
            return -1;
        for (size_t i = 0; i < SHARED_COUNT && s->of[i]; i++) {
            bool is_failing = informer_is_failing(s->of[i], &n);
            OWN(buf_done) struct buf labels = BUF_INIT(128);

            if (metric_label(&labels, "kind", shared_kind_name((enum shared_kind)i), e) < 0 ||
                metric_u64(out, pass ? failures : failing, buf_cstr(&labels), pass ? n : is_failing,
                           e) < 0)
                return -1;
        }
    }
    return 0;
}
