#include "node/claims.h"

#include "base/log.h"
#include "kube/informer.h"
#include "node/crew.h"
#include "node/dirtree.h"
#include "node/volumes.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define BODY_MAX_BYTES 4096
#define PLACE_BYTES    1024

struct claims {
    struct kube_client *client;
    struct crew *crew;
    int dir_fd;
    struct informer *copy;
    size_t jobs; /* under way */
    bool is_closed;
};

/* A claim that is gone, or all of those that are. */
struct removal {
    struct claims *of;
    struct crew_job job;
    struct object *claim;
    char **kept; /* without a claim: the places that stay */
    size_t kept_count;
    size_t removed;
    int rc;
    struct err e;
};

static void let_go(struct claims *cs)
{
    if (cs->is_closed && !cs->jobs)
        free(cs);
}

/* ---- removing ---- */

static bool is_kept(const struct removal *x, const char *place)
{
    for (size_t i = 0; i < x->kept_count; i++)
        if (strcmp(x->kept[i], place) == 0)
            return true;
    return false;
}

/* Calls fn for each entry of a directory that may not be there. */
static int each_entry(int dir_fd, const char *path,
                      int (*fn)(struct removal *x, int fd, const char *path, const char *name,
                                struct err *e),
                      struct removal *x, struct err *e)
{
    const struct dirent *d;
    int fd = -1, rc = 0;
    DIR *dir;

    if (dirtree_find(dir_fd, path, &fd, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    dir = fdopendir(fd);
    if (!dir) {
        (void)err_sys(e, "cannot read '%s'", path);
        own_fd_close(&fd);
        return -1;
    }
    while (rc == 0 && (d = readdir(dir)))
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            rc = fn(x, dirfd(dir), path, d->d_name, e);
    (void)closedir(dir);
    return rc;
}

static int sweep_claim(struct removal *x, int fd, const char *path, const char *name, struct err *e)
{
    char place[PLACE_BYTES];

    (void)snprintf(place, sizeof place, "%s/%s", path, name);
    if (is_kept(x, place))
        return 0;
    x->removed++;
    return dirtree_remove(fd, name, e);
}

static int sweep_namespace(struct removal *x, int fd, const char *path, const char *name,
                           struct err *e)
{
    char place[PLACE_BYTES];

    (void)fd;
    (void)snprintf(place, sizeof place, "%s/%s", path, name);
    return each_entry(x->of->dir_fd, place, sweep_claim, x, e);
}

static void run_removal(void *ctx, struct engine *en, const struct err *e)
{
    struct removal *x = ctx;

    (void)en; /* sandboxes that still use it see an empty directory */
    (void)e;
    if (x->claim)
        x->rc = volumes_remove_claim(x->of->dir_fd, x->claim, &x->e);
    else
        x->rc = each_entry(x->of->dir_fd, VOLUMES_CLAIMS, sweep_namespace, x, &x->e);
}

static void removed(void *ctx)
{
    struct removal *x = ctx;
    struct claims *cs = x->of;

    if (x->rc < 0)
        log_error("claim.remove", KV("claim", x->claim ? object_name(x->claim) : "*"),
                  KV("err", &x->e));
    else if (x->claim || x->removed)
        log_info("claim.gone", KV("claim", x->claim ? object_name(x->claim) : "*"));
    for (size_t i = 0; i < x->kept_count; i++)
        free(x->kept[i]);
    free(x->kept);
    object_unref(x->claim);
    free(x);
    cs->jobs--;
    let_go(cs);
}

static void submit(struct claims *cs, struct removal *x)
{
    x->of = cs;
    cs->jobs++;
    crew_submit(cs->crew, &x->job, run_removal, removed, x);
}

/* ---- binding ---- */

static void on_bound(void *ctx, const struct kube_answer *answer)
{
    struct claims *cs = ctx;

    /* Whoever changed it meanwhile is told to us too, and then it is tried again. */
    if (answer->refusal)
        log_debug("claim.bind", KV("code", answer->refusal->code));
    cs->jobs--;
    let_go(cs);
}

static int write_status(const struct object *claim, struct buf *body, struct err *e)
{
    struct json_out o;

    json_out_init(&o, body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "metadata");
    json_out_object_begin(&o);
    json_out_key(&o, "uid"), json_out_cstr(&o, object_uid(claim));
    json_out_object_end(&o);
    json_out_key(&o, "status");
    json_out_object_begin(&o);
    json_out_key(&o, "phase"), json_out_cstr(&o, "Bound");
    json_out_key(&o, "accessModes"), json_out_value(&o, object_at(claim, "spec.accessModes"));
    json_out_key(&o, "capacity"), json_out_value(&o, object_at(claim, "spec.resources.requests"));
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

/* Its directory is there when it is needed: nothing has to be waited for. */
static void bind(struct claims *cs, const struct object *claim)
{
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    const char *phase = object_text(claim, "status.phase");
    struct err e;

    if (object_is_deleting(claim) || (phase && strcmp(phase, "Bound") == 0))
        return;
    if (write_status(claim, &body, &e) < 0) {
        log_warn("claim.bind", KV("claim", object_name(claim)), KV("err", &e));
        return;
    }
    cs->jobs++;
    (void)kube_call_start(cs->client,
                          &(struct kube_request){ .verb = KUBE_PATCH,
                                                  .kind = object_kind(claim),
                                                  .namespace = object_namespace(claim),
                                                  .name = object_name(claim),
                                                  .sub = "status",
                                                  .patch = KUBE_PATCH_MERGE,
                                                  .body = buf_span(&body) },
                          on_bound, cs);
}

/* ---- what is told ---- */

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    (void)is_initial;
    bind(ctx, o);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    bind(ctx, now);
}

static void on_delete(void *ctx, struct object *last)
{
    struct claims *cs = ctx;
    struct removal *x = NEW(struct removal);

    x->claim = object_ref(last);
    submit(cs, x);
}

/* Directories of claims that went while nobody watched. */
static void on_synced(void *ctx)
{
    struct claims *cs = ctx;
    struct removal *x = NEW(struct removal);
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *claim;

    x->kept = own_array(informer_count(cs->copy), sizeof *x->kept);
    informer_walk_all(&w, cs->copy);
    while ((claim = informer_walk_next(&w))) {
        char place[PLACE_BYTES];

        if (volume_claim_place(claim, place, sizeof place))
            x->kept[x->kept_count++] = own_strdup(place);
    }
    submit(cs, x);
}

static const struct informer_listener listener = { on_add, on_update, on_delete, on_synced };

int claims_open(const struct claims_spec *spec, struct claims **ret, struct err *e)
{
    struct claims *cs = NEW(struct claims);

    cs->client = spec->client;
    cs->crew = spec->crew;
    cs->dir_fd = spec->dir_fd;
    if (informer_new(
            cs->client,
            &(struct informer_spec){ .kind = kind_find("", "v1", "persistentvolumeclaims") },
            &cs->copy, e) < 0) {
        free(cs);
        return -1;
    }
    informer_listen(cs->copy, &listener, cs);
    informer_start(cs->copy);
    *ret = cs;
    return 0;
}

void claims_close(struct claims *cs)
{
    if (!cs)
        return;
    informer_close(cs->copy);
    cs->is_closed = true;
    let_go(cs);
}
