#include "up/warm.h"

#include "kube/informer.h"
#include "up/names.h"

struct warm {
    struct informer *pools;
    warm_fn fn;
    void *ctx;
};

/* 0: it is not. */
static int64_t warm_sandboxes(const struct object *pool)
{
    int64_t wanted = 1, ready = 0;

    (void)json_i64(object_at(pool, "spec.replicas"), &wanted);
    (void)json_i64(object_at(pool, "status.readyReplicas"), &ready);
    return wanted > 0 && ready >= wanted ? ready : 0;
}

static void on_add(void *ctx, struct object *pool, bool is_initial)
{
    struct warm *w = ctx;
    int64_t ready = warm_sandboxes(pool);

    (void)is_initial;
    if (ready)
        w->fn(w->ctx, pool, ready);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    if (!warm_sandboxes(old))
        on_add(ctx, now, false);
}

int warm_open(struct kube_client *client, warm_fn fn, void *ctx, struct warm **ret, struct err *e)
{
    static const struct informer_listener listener = { .on_add = on_add, .on_update = on_update };
    struct warm *w = NEW(struct warm);

    w->fn = fn;
    w->ctx = ctx;
    if (informer_new(client,
                     &(struct informer_spec){
                         .kind = kind_find(EXTENSIONS_GROUP, NULL, "sandboxwarmpools") },
                     &w->pools, e) < 0) {
        free(w);
        return -1;
    }
    informer_listen(w->pools, &listener, w);
    informer_start(w->pools);
    *ret = w;
    return 0;
}

void warm_close(struct warm *w)
{
    if (!w)
        return;
    informer_close(w->pools);
    free(w);
}
