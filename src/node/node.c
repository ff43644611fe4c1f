#include "node/node_impl.h"

#include "node/address_demand.h"
#include "node/claims.h"
#include "node/disk_watch.h"
#include "node/event.h"
#include "node/hook.h"
#include "node/identity.h"
#include "node/limits.h"
#include "node/port_conflict.h"
#include "node/sockets.h"
#include "node/streams.h"

#include "base/log.h"
#include "base/time.h"
#include "isolate/default_limits.h"
#include "isolate/dir.h"
#include "net/tls.h"
#include "isolate/ranged.h"
#include "node/dirtree.h"
#include "node/volumes.h"
#include "node/volumes_in_use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>

#define LOCK_NAME "node.lock"

const char *const node_fail_reasons[4] = { NODE_FAILED_LOST, NODE_FAILED_EVICTED,
                                           NODE_FAILED_DEADLINE, NODE_FAILED_REFUSED };

void node_own_name(char name[NODE_NAME_BYTES])
{
    name[NODE_NAME_BYTES - 1] = '\0';
    if (gethostname(name, NODE_NAME_BYTES - 1) < 0 || !*name)
        (void)snprintf(name, NODE_NAME_BYTES, "silica");
}

uint64_t node_wall_ms(void)
{
    return time_wall_ms();
}

void node_wake(struct node *n, const struct record *r)
{
    if (n->queue && n->has_begun)
        queue_add(n->queue, r->namespace, r->name, QUEUE_NORMAL);
}

/* ---- what is told ---- */

static void wake_pod(struct node *n, const struct object *pod, bool is_initial)
{
    if (n->queue && n->has_begun)
        queue_add(n->queue, object_namespace(pod), object_name(pod),
                  is_initial ? QUEUE_LOW : QUEUE_NORMAL);
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    wake_pod(ctx, o, is_initial);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    wake_pod(ctx, now, false);
}

static void on_delete(void *ctx, struct object *last)
{
    wake_pod(ctx, last, false);
}

/* The keeper wrote down that a sandbox has ended. */
static void on_exit_told(void *ctx, const char *box)
{
    struct node *n = ctx;
    struct run_id id;
    struct record *r;
    size_t at;

    if (!run_read(box, &id) || !(r = record_find_uid(n, id.uid)))
        return;
    at = record_container(r, id.container);
    if (at == SIZE_MAX || r->life.v[at].now.attempt != id.attempt)
        return;
    r->parts[at].has_news = true;
    node_wake(n, r);
}

static void doubt(struct keymap_node *node, void *ctx)
{
    struct record *r = CONTAINER(node, struct record, by_name);

    for (size_t i = 0; i < r->life.n; i++)
        r->parts[i].has_news = true;
    node_wake(ctx, r);
}

static void on_keeper_lost(void *ctx)
{
    struct node *n = ctx;

    if (n->has_begun)
        keymap_each(&n->by_name, doubt, n);
}

/* ---- the beginning: what was there ---- */

/* The keeper may be one that was started with others. */
static void limit_all(struct node *n, struct engine *en)
{
    const struct box_limits all = n->all.limits;
    struct err e;

    if (engine_limit_all(en, &all, &n->all, &e) == 0)
        return;
    (void)snprintf(n->all.unenforced, sizeof n->all.unenforced, "pids, memory");
    log_warn("node.limits", KV("err", &e));
}

static void run_list(void *ctx, struct engine *en, const struct err *e)
{
    struct node *n = ctx;

    n->list_error.code = ERR_NONE;
    if (en)
        limit_all(n, en);
    if (!en)
        n->list_error = *e;
    else
        (void)engine_list(en, &n->found, &n->found_count, &n->list_error);
}

static int newest_first(const void *a, const void *b)
{
    struct run_id x, y;
    int order;

    if (!run_read(((const struct engine_info *)a)->name, &x) ||
        !run_read(((const struct engine_info *)b)->name, &y))
        return 0;
    order = strcmp(x.uid, y.uid);
    if (!order)
        order = strcmp(x.container, y.container);
    return order ? order : x.attempt < y.attempt ? 1 : x.attempt > y.attempt ? -1 : 0;
}

static void add_stray(struct node *n, const char *box)
{
    n->strays = own_resize(n->strays, n->stray_count + 1, sizeof *n->strays);
    (void)snprintf(n->strays[n->stray_count++], sizeof *n->strays, "%s", box);
}

static void run_sweep(void *ctx, struct engine *en, const struct err *e)
{
    struct node *n = ctx;
    struct err ignored;

    (void)e;
    for (size_t i = 0; en && i < n->stray_count; i++)
        (void)engine_destroy(en, n->strays[i], &ignored); /* the next start tries again */
}

static void swept(void *ctx)
{
    struct node *n = ctx;

    free(n->strays);
    n->strays = NULL;
    n->stray_count = 0;
}

/* Volumes of Pods of which nothing else is left. */
static void adopt_volumes(struct node *n)
{
    const struct dirent *d;
    struct err ignored;
    int fd = -1;
    DIR *dir;

    if (dirtree_find(n->dir_fd, VOLUMES_PODS, &fd, &ignored) < 0)
        return; /* no Pod had any */
    dir = fdopendir(fd);
    while (dir && (d = readdir(dir)))
        if (d->d_name[0] != '.' && !record_find_uid(n, d->d_name) &&
            strlen(d->d_name) <= RUN_UID_BYTES)
            (void)record_of_orphan(n, d->d_name);
    if (dir)
        (void)closedir(dir);
    else
        own_fd_close(&fd);
}

/* Sandboxes find their Pods; those of Pods that are gone become records of their own, to be removed. */
static void adopt_boxes(struct node *n)
{
    struct engine_info *v = n->found;
    size_t kept = 0, adopted = 0;
    struct run_id id;

    for (size_t i = 0; i < n->found_count; i++)
        if (run_read(v[i].name, &id))
            v[kept++] = v[i]; /* the others are people's, who run sandboxes in the same directory */
    if (kept)
        qsort(v, kept, sizeof *v, newest_first);
    for (size_t i = 0; i < kept; i++) {
        struct record *r;

        (void)run_read(v[i].name, &id);
        r = record_find_uid(n, id.uid);
        if (!r)
            r = record_of_orphan(n, id.uid);
        if (!v[i].has_exit)
            volumes_in_use_adopt(r, v[i].name);
        if (record_add_box(r, &id, &v[i]))
            adopted++;
        else
            add_stray(n, v[i].name);
    }
    adopt_volumes(n);
    log_info("node.adopt", KV("sandboxes", adopted), KV("strays", n->stray_count));
    free(n->found);
    n->found = NULL;
    if (n->stray_count)
        crew_submit(n->crew, &n->sweep_job, run_sweep, swept, n);
}

static void resume(struct keymap_node *node, void *ctx)
{
    struct record *r = CONTAINER(node, struct record, by_name);

    if (r->pod)
        record_add_status(r);
    /* It was made, and we were killed before its status could say where. */
    if (r->pod && !*r->ip && record_running(r) != SIZE_MAX)
        addresses_take(&r->node->addresses, r->namespace, r->name, r->ip);
    for (size_t i = 0; i < r->life.n; i++) {
        if (r->life.v[i].now.state != RUN_UP)
            continue;
        work_watch(r, i);
        disk_watch_add(r, NULL);
        if (r->parts[i].was_frozen)
            disk_watch_was_frozen(r);
        if (r->pod)
            ready_begin(r, i);
    }
    node_wake(ctx, r);
}

/* Not before the Pods are known: who asks earlier would hear that there are none. */
static void open_sockets(struct node *n)
{
    struct err e;
    int fd;

    if (dir_listen(n->dir_fd, NODE_SOCKETS_FILE, SOCK_SEQPACKET, &fd, &e) < 0 ||
        sockets_open(n, fd, &n->sockets, &e) < 0)
        log_warn("sockets.open", KV("err", &e)); /* Pods are reached at their addresses */
    if (dir_listen(n->dir_fd, NODE_ADDRESSES_FILE, SOCK_SEQPACKET, &fd, &e) < 0 ||
        address_demand_listen(n->address_demand, fd, &e) < 0)
        log_warn("addresses.open", KV("err", &e));
}

/* Once for each start; the Node's condition says it for as long as it is so. */
static void tell_limits(struct node *n)
{
    char text[256];

    if (!*n->all.unenforced)
        return;
    (void)snprintf(text, sizeof text, IDENTITY_LIMITS_LACK, n->all.unenforced);
    node_event(n->events, &(struct event_spec){ .node = n->name,
                                                .is_warning = true,
                                                .reason = "LimitsNotEnforced",
                                                .message = text });
}

static void begin(struct node *n)
{
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *pod;
    struct record *r;
    struct err e;

    if (!n->is_listed || !informer_is_synced(n->pods) || !informer_is_synced(n->services) ||
        n->has_begun || n->is_closing)
        return;
    informer_walk_all(&w, n->pods);
    while ((pod = informer_walk_next(&w))) {
        const char *host = object_text(pod, "spec.nodeName");

        if (!host || strcmp(host, n->name) != 0)
            continue;
        address_demand_resume(n->address_demand, pod);
        if (record_of_pod(n, pod, &r, &e) < 0) {
            r->life.failed = NODE_FAILED_REFUSED;
            r->fail_message = own_strdup(e.msg);
        }
    }
    adopt_boxes(n);
    n->has_begun = true;
    claims_begin(n->claims);
    keymap_each(&n->by_name, resume, n);
    informer_walk_done(&w);
    informer_walk_all(&w, n->pods);
    while ((pod = informer_walk_next(&w)))
        wake_pod(n, pod, true);
    n->identity = identity_open(n->client, n->name, n->pods_max, n->all.unenforced);
    tell_limits(n);
    open_sockets(n);
    n->started(n->ctx);
}

static void listed(void *ctx)
{
    struct node *n = ctx;

    if (n->is_closing)
        return;
    if (n->list_error.code) {
        log_error("node.list", KV("err", &n->list_error));
        crew_submit(n->crew, &n->list_job, run_list, listed, n);
        return;
    }
    n->is_listed = true;
    begin(n);
}

static void on_synced(void *ctx)
{
    begin(ctx);
}

/* ---- life ---- */

static int lock_dir(struct node *n, struct err *e)
{
    n->lock_fd = openat(n->dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (n->lock_fd < 0)
        return err_sys(e, "cannot open '%s/" LOCK_NAME "'", n->dir);
    if (flock(n->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return err_sys(e, "cannot lock '%s'", n->dir);
    return err_set(e, ERR_EXISTS, "another node has the directory '%s'", n->dir);
}

/* What is mounted is named from the root on. */
static int find_path(struct node *n, struct err *e)
{
    /* by path: the operator's data directory. */
    char *full = realpath(n->dir, NULL);

    if (!full)
        return err_sys(e, "cannot find '%s'", n->dir);
    free(n->dir);
    n->dir = full;
    return 0;
}

static int open_copies(struct node *n, struct err *e)
{
    static const struct informer_listener listener = {
        .on_add = on_add, .on_update = on_update, .on_delete = on_delete, .on_synced = on_synced
    };
    static const struct informer_listener of_services = { .on_synced = on_synced };
    static const struct informer_index by_namespace = { informer_keys_namespace, NULL, false };

    if (informer_new(n->client,
                     &(struct informer_spec){ .kind = kind_find("", "v1", "pods"),
                                              .trim = informer_trim_managed },
                     &n->pods, e) < 0 ||
        informer_new(n->client,
                     &(struct informer_spec){ .kind = kind_find("", "v1", "services"),
                                              .trim = informer_trim_managed,
                                              .indexes = &by_namespace,
                                              .index_count = 1 },
                     &n->services, e) < 0 ||
        claims_open(
            &(struct claims_spec){
                .node = n, .client = n->client, .crew = n->crew, .dir_fd = n->dir_fd },
            &n->claims, e) < 0)
        return -1;
    informer_listen(n->pods, &listener, n);
    informer_listen(n->services, &of_services, n);
    return 0;
}

/* Before the loop reaps children, and before sandboxes are made. */
static void look_at_ids(struct node *n)
{
    struct err e;

    n->has_ids = geteuid() == 0 || ranged_check(&e) == 0;
    if (!n->has_ids)
        log_info("node.ids", KV("why_one", &e));
}

static int open_parts(struct node *n, int listen_fd, struct err *e)
{
    OWN_FD int fd = listen_fd;

    look_at_ids(n);
    if (crew_open(n->loop,
                  &(struct crew_spec){
                      .data = n->dir, .all = n->all.limits, .on_lost = on_keeper_lost, .ctx = n },
                  &n->crew, e) < 0)
        return -1;
    /* by path: the owner's own word. */
    n->dir_fd = open(n->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (n->dir_fd < 0)
        return err_sys(e, "cannot open '%s'", n->dir);
    if (find_path(n, e) < 0 || lock_dir(n, e) < 0 ||
        images_load(n->dir_fd, n->dir, &n->images, e) < 0 ||
        exits_open(n->loop, n->dir, on_exit_told, n, &n->exits, e) < 0 ||
        streams_open(n, take_fd(&fd), &n->streams, e) < 0 || open_copies(n, e) < 0)
        return -1;
    n->queue = queue_new(
        n->loop, &(struct queue_spec){
                     .name = "pod", .workers = NODE_POD_WORKERS, .work = work_start, .ctx = n });
    return 0;
}

static void choose_limits(struct node *n, const struct node_config *config)
{
    const struct machine *m = default_limits_machine();
    const struct box_limits one = default_limits_one(m), all = default_limits_all(m);

    n->limits = default_limits_fill(&config->limits, &one);
    n->all.limits = default_limits_fill(&config->all, &all);
}

int node_open(struct ev_loop *loop, const struct node_config *config, struct node **ret,
              struct err *e)
{
    struct node *n = NEW(struct node);

    n->loop = loop;
    n->client = config->client;
    n->events = node_events_open(config->client);
    n->name = own_strdup(config->name);
    n->dir = own_strdup(config->data);
    n->dir_fd = n->lock_fd = -1;
    n->is_scheduler = config->is_scheduler;
    n->disk = disk_watch_new(n, config->disk_floor_bytes);
    n->pod_port_min = config->pod_port_min;
    n->pods_max = config->pods_max;
    n->address_demand = address_demand_new(n, config->is_every_address);
    n->port_conflicts = port_conflicts_new(n);
    choose_limits(n, config);
    n->started = config->started;
    n->ctx = config->ctx;
    if (open_parts(n, config->listen_fd, e) < 0) {
        node_free(n);
        return -1;
    }
    crew_submit(n->crew, &n->list_job, run_list, listed, n);
    informer_start(n->pods);
    informer_start(n->services);
    *ret = n;
    return 0;
}

static void queue_closed(void *ctx)
{
    struct node *n = ctx;

    n->queue = NULL;
    n->closed(n->closed_ctx);
}

static void identity_closed(void *ctx)
{
    struct node *n = ctx;

    n->identity = NULL;
    queue_close(n->queue, queue_closed, n);
}

void node_close(struct node *n, ev_fn closed, void *ctx)
{
    n->is_closing = true;
    n->closed = closed;
    n->closed_ctx = ctx;
    ready_close(n);
    hook_close(n);
    node_events_send(n->events);
    if (n->identity)
        identity_close(n->identity, identity_closed, n);
    else
        queue_close(n->queue, queue_closed, n);
}

static void drop(struct keymap_node *node, void *ctx)
{
    struct record **list = ctx;
    struct record *r = CONTAINER(node, struct record, by_name);

    r->next_dropped = *list;
    *list = r;
}

void node_free(struct node *n)
{
    struct record *list = NULL, *r;

    if (!n)
        return;
    n->is_closing = true;
    ready_close(n);
    hook_close(n);
    sockets_close(n->sockets);
    streams_close(n->streams);
    claims_close(n->claims);
    crew_close(n->crew);
    port_conflicts_free(n->port_conflicts);
    exits_close(n->exits);
    if (n->pods)
        informer_close(n->pods);
    if (n->services)
        informer_close(n->services);
    tls_free(n->probe_tls);
    node_events_close(n->events);
    keymap_each(&n->by_name, drop, &list);
    while ((r = list)) {
        list = r->next_dropped;
        record_free(r);
    }
    address_demand_free(n->address_demand);
    keymap_done(&n->by_name);
    keymap_done(&n->by_uid);
    disk_watch_free(n->disk);
    addresses_done(&n->addresses);
    images_free(n->images);
    free(n->found);
    free(n->strays);
    own_fd_close(&n->lock_fd);
    own_fd_close(&n->dir_fd);
    free(n->name);
    free(n->dir);
    free(n);
}
