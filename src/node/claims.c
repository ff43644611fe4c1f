#include "node/claims.h"

#include "base/log.h"
#include "isolate/dir.h"
#include "kube/informer.h"
#include "kube/time.h"
#include "node/crew.h"
#include "node/dirtree.h"
#include "node/volumes.h"
#include "node/volumes_in_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define BODY_MAX_BYTES 4096
#define PLACE_BYTES    1024
#define TOGETHER_S     1 /* whole seconds are told: one may have passed between a claim and its Pod */
/* Whose claims these are: the uid of the API server's namespace kube-system. */
#define SERVER_FILE      ".server"
#define SERVER_MAX_BYTES 256

struct claims {
    struct node *node;
    struct kube_client *client;
    struct crew *crew;
    int dir_fd;
    struct informer *copy;
    char **found; /* directories that stood here before we asked what there is */
    size_t found_count;
    struct removal *removals;
    size_t jobs; /* under way */
    bool is_synced, has_begun, is_closed;
};

/* A claim that is gone; or, at the start, all those that went while nobody watched. */
struct removal {
    struct claims *of;
    struct removal *next;
    struct crew_job job;
    struct object *claim; /* that was seen to go; its place is places[0] */
    char **places;
    size_t n;
    char *server; /* which API server says so */
    int rc;
    struct err e;
};

static void free_texts(char **v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(v[i]);
    free(v);
}

static void let_go(struct claims *cs)
{
    if (!cs->is_closed || cs->jobs)
        return;
    free_texts(cs->found, cs->found_count);
    free(cs);
}

/* ---- what stands here ---- */

typedef int (*entry_fn)(struct claims *cs, const char *place, struct err *e);

/* Calls fn with the place of each entry of a directory, which may not be there. */
static int each_entry(struct claims *cs, const char *path, entry_fn fn, struct err *e)
{
    const struct dirent *d;
    int fd = -1, rc = 0;
    DIR *dir;

    if (dirtree_find(cs->dir_fd, path, &fd, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    dir = fdopendir(fd);
    if (!dir) {
        (void)err_sys(e, "cannot read '%s'", path);
        own_fd_close(&fd);
        return -1;
    }
    while (rc == 0 && (d = readdir(dir))) {
        char place[PLACE_BYTES];

        (void)snprintf(place, sizeof place, "%s/%s", path, d->d_name);
        if (d->d_name[0] != '.')
            rc = fn(cs, place, e);
    }
    (void)closedir(dir);
    return rc;
}

static int add_found(struct claims *cs, const char *place, struct err *e)
{
    (void)e;
    cs->found = own_resize(cs->found, cs->found_count + 1, sizeof *cs->found);
    cs->found[cs->found_count++] = own_strdup(place);
    return 0;
}

static int look_into(struct claims *cs, const char *place, struct err *e)
{
    return each_entry(cs, place, add_found, e);
}

/* ---- removing ---- */

/* A directory that was used with another API server holds its claims too: they are not this one's to remove. */
static int check_server(const struct removal *x, struct err *e)
{
    OWN(buf_done) struct buf known = BUF_INIT(SERVER_MAX_BYTES);
    OWN_FD int fd = -1;

    if (dirtree_open(x->of->dir_fd, VOLUMES_CLAIMS, 0700, &fd, e) < 0)
        return -1;
    if (dir_read(fd, SERVER_FILE, &known, e) < 0)
        return e->code != ERR_NOT_FOUND ? -1 : dir_write(fd, SERVER_FILE, span_cstr(x->server), e);
    if (span_is(buf_span(&known), x->server))
        return 0;
    return err_set(e, ERR_CONFLICT, "'%s' holds claims of another API server: they are left alone",
                   VOLUMES_CLAIMS);
}

static int remove_places(struct removal *x, struct err *e)
{
    if (check_server(x, e) < 0)
        return -1;
    for (size_t i = 0; i < x->n; i++)
        if (volumes_remove_at(x->of->dir_fd, x->places[i], e) < 0)
            return -1;
    return 0;
}

static void run_removal(void *ctx, struct engine *en, const struct err *e)
{
    struct removal *x = ctx;

    (void)en; /* no sandbox has it: that was asked on the loop, and none is given it meanwhile */
    (void)e;
    x->rc =
        x->claim ? volumes_remove_claim(x->of->dir_fd, x->claim, &x->e) : remove_places(x, &x->e);
}

static struct removal *new_removal(struct claims *cs)
{
    struct removal *x = NEW(struct removal);

    x->of = cs;
    x->next = cs->removals;
    cs->removals = x;
    cs->jobs++;
    return x;
}

static void add_place(struct removal *x, const char *place)
{
    x->places = own_resize(x->places, x->n + 1, sizeof *x->places);
    x->places[x->n++] = own_strdup(place);
}

static void finish_removal(struct removal *x)
{
    struct claims *cs = x->of;
    struct removal **at = &cs->removals;

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    free_texts(x->places, x->n);
    free(x->server);
    object_unref(x->claim);
    free(x);
    cs->jobs--;
    let_go(cs);
}

static void removed(void *ctx)
{
    struct removal *x = ctx;
    const char *name = x->claim ? object_name(x->claim) : "*";

    if (x->rc < 0)
        log_warn("claim.remove", KV("claim", name), KV("err", &x->e));
    else if (x->claim || x->n)
        log_info("claim.gone", KV("claim", name));
    finish_removal(x);
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

/* ---- what a Pod is given ---- */

static time_t made_at(const struct object *o)
{
    struct timespec t = { 0 };

    (void)kube_time_parse(json_str(object_at(o, "metadata.creationTimestamp")), &t);
    return t.tv_sec;
}

struct object *claims_of_pod(struct claims *cs, const struct object *pod, const char *name)
{
    struct object *claim = informer_get(cs->copy, object_namespace(pod), name);
    time_t before_s = claim ? made_at(pod) - made_at(claim) : 0;

    return claim && !object_is_deleting(claim) && before_s >= 0 && before_s <= TOGETHER_S ? claim
                                                                                          : NULL;
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
    char place[PLACE_BYTES];
    struct removal *x;

    if (!cs->has_begun || !volume_claim_place(last, place, sizeof place))
        return; /* it is among those that are looked for at the beginning */
    if (volumes_in_use_find(cs->node, place)) {
        log_info("claim.in_use", KV("claim", object_name(last)));
        return;
    }
    x = new_removal(cs);
    x->claim = object_ref(last);
    add_place(x, place);
    crew_submit(cs->crew, &x->job, run_removal, removed, x);
}

/* Its uid is the server's own: a store that is made anew has another. */
static void on_server(void *ctx, const struct kube_answer *answer)
{
    struct removal *x = ctx;

    if (answer->refusal || x->of->is_closed) {
        log_debug("claim.sweep", KV("code", answer->refusal ? answer->refusal->code : 0));
        finish_removal(x);
        return;
    }
    x->server = own_strdup(object_uid(answer->object));
    crew_submit(x->of->crew, &x->job, run_removal, removed, x);
}

/* "claims/NAMESPACE/NAME.UID", taken apart; false: it is none. */
static bool read_place(const char *place, char **ret_namespace, char **ret_name)
{
    const char *space = strchr(place, '/'), *slash = space ? strchr(space + 1, '/') : NULL;
    const char *dot = slash ? strrchr(slash, '.') : NULL;

    if (!dot)
        return false;
    *ret_namespace = span_dup(span_of(space + 1, (size_t)(slash - space - 1)));
    *ret_name = span_dup(span_of(slash + 1, (size_t)(dot - slash - 1)));
    return true;
}

struct object *claims_at(const struct claims *cs, const char *place)
{
    OWN_MEM char *namespace = NULL, *name = NULL;
    struct object *claim;
    char own[PLACE_BYTES];

    if (!read_place(place, &namespace, &name))
        return NULL;
    claim = informer_get(cs->copy, namespace, name);
    return claim && volume_claim_place(claim, own, sizeof own) && strcmp(own, place) == 0 ? claim
                                                                                          : NULL;
}

/* Takes the removal, of places whose claims are gone: from this API server. */
static void ask_server(struct removal *x)
{
    (void)kube_call_start(x->of->client,
                          &(struct kube_request){ .verb = KUBE_GET,
                                                  .kind = kind_find("", "v1", "namespaces"),
                                                  .name = "kube-system" },
                          on_server, x);
}

/* Directories of claims that went while nobody watched, or whose removal was cut short. */
static void sweep(struct claims *cs)
{
    struct removal *x;

    if (!cs->is_synced || !cs->has_begun)
        return;
    x = new_removal(cs);
    for (size_t i = 0; i < cs->found_count; i++)
        if (!claims_at(cs, cs->found[i]) && !volumes_in_use_find(cs->node, cs->found[i]))
            add_place(x, cs->found[i]);
    ask_server(x);
}

static void on_synced(void *ctx)
{
    struct claims *cs = ctx;

    cs->is_synced = true;
    sweep(cs);
}

void claims_begin(struct claims *cs)
{
    cs->has_begun = true;
    sweep(cs);
}

/* ---- what sandboxes had ---- */

bool claims_is_removing(const struct claims *cs, const char *place)
{
    for (const struct removal *x = cs->removals; x; x = x->next)
        for (size_t i = 0; i < x->n; i++)
            if (strcmp(x->places[i], place) == 0)
                return true;
    return false;
}

/* The copy may not have heard of a new claim yet: the server's word counts. */
static void on_claim(void *ctx, const struct kube_answer *answer)
{
    struct removal *x = ctx;
    const char *uid = strrchr(x->places[0], '.') + 1;
    bool is_gone = answer->refusal ? answer->refusal->code == 404
                                   : strcmp(object_uid(answer->object), uid) != 0;

    if (is_gone && !x->of->is_closed && !volumes_in_use_find(x->of->node, x->places[0]))
        ask_server(x);
    else
        finish_removal(x);
}

void claims_released(struct claims *cs, const char *place)
{
    OWN_MEM char *namespace = NULL, *name = NULL;
    struct removal *x;

    if (!cs->is_synced) {
        (void)add_found(cs, place, NULL);
        return;
    }
    if (claims_at(cs, place) || volumes_in_use_find(cs->node, place) ||
        claims_is_removing(cs, place) || !read_place(place, &namespace, &name))
        return;
    x = new_removal(cs);
    add_place(x, place);
    (void)kube_call_start(
        cs->client,
        &(struct kube_request){ .verb = KUBE_GET,
                                .kind = kind_find("", "v1", "persistentvolumeclaims"),
                                .namespace = namespace,
                                .name = name },
        on_claim, x);
}

static const struct informer_listener listener = { on_add, on_update, on_delete, on_synced };

int claims_open(const struct claims_spec *spec, struct claims **ret, struct err *e)
{
    struct claims *cs = NEW(struct claims);

    cs->node = spec->node;
    cs->client = spec->client;
    cs->crew = spec->crew;
    cs->dir_fd = spec->dir_fd;
    if (each_entry(cs, VOLUMES_CLAIMS, look_into, e) < 0 ||
        informer_new(
            cs->client,
            &(struct informer_spec){ .kind = kind_find("", "v1", "persistentvolumeclaims") },
            &cs->copy, e) < 0) {
        free_texts(cs->found, cs->found_count);
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
