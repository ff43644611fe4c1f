#include "node/tend.h"

#include "base/log.h"
#include "base/time.h"
#include "node/fetch.h"
#include "node/limits.h"
#include "node/make.h"
#include "node/volumes.h"

struct tend {
    struct record *record;
    struct crew_job job;
    tend_fn done;
    void *ctx;
    struct object *pod;
    struct volumes_spec volumes;
    struct volumes_use use;
    struct notes notes; /* told when the containers were made */
    bool has_changed;
    int rc;
    struct err e;
};

/* Files that may change, or a limit that may be passed. */
static bool is_tended(const struct json *volume)
{
    return volume_content_is(volume) || json_get(json_get(volume, "emptyDir"), "sizeLimit");
}

static bool has_work(const struct record *r)
{
    if (!r->pod || record_running(r) == SIZE_MAX || r->life.is_ending || r->life.failed)
        return false;
    JSON_EACH(volume, object_at(r->pod, "spec.volumes"))
    if (is_tended(volume))
        return true;
    return false;
}

uint64_t tend_wait_ms(struct record *r)
{
    uint64_t now_ms = time_mono_ms();

    if (!has_work(r))
        return UINT64_MAX;
    if (!r->tend_ms)
        r->tend_ms = now_ms + TEND_EVERY_MS;
    return r->tend_ms > now_ms ? r->tend_ms - now_ms : 0;
}

static void finish(struct tend *t, const struct err *e)
{
    struct record *r = t->record;

    if (e)
        log_warn("pod.tend", KV("namespace", r->namespace), KV("pod", r->name), KV("err", e));
    else if (t->has_changed)
        log_info("pod.files", KV("namespace", r->namespace), KV("pod", r->name));
    r->tend_ms = time_mono_ms() + TEND_EVERY_MS;
    t->done(t->ctx, !e && t->use.is_over ? t->use.message : NULL);
    notes_done(&t->notes);
    object_unref(t->pod);
    free(t);
}

static void run(void *ctx, struct engine *en, const struct err *e)
{
    struct tend *t = ctx;

    (void)en;
    (void)e;
    t->rc = volumes_prepare(&t->volumes, &t->has_changed, &t->notes, &t->e);
    if (t->rc == 0)
        t->rc = volumes_measure(&t->volumes, &t->use, &t->e);
}

static void was_run(void *ctx)
{
    struct tend *t = ctx;

    finish(t, t->rc < 0 ? &t->e : NULL);
}

static void on_fetched(void *ctx, const struct err *e)
{
    struct tend *t = ctx;
    struct record *r = t->record;

    if (!e && !r->pod) /* it went meanwhile */
        (void)err_set(&t->e, ERR_GONE, "the Pod is gone");
    if (e || !r->pod) {
        finish(t, e ? e : &t->e);
        return;
    }
    t->pod = object_ref(r->pod);
    if (make_volumes(r, t->pod, &t->volumes, &t->e) < 0)
        finish(t, &t->e);
    else
        crew_submit(r->node->crew, &t->job, run, was_run, t);
}

void tend_start(struct record *r, tend_fn done, void *ctx)
{
    struct tend *t = NEW(struct tend);

    t->record = r;
    t->done = done;
    t->ctx = ctx;
    fetch_start(r, on_fetched, t);
}
