#include "node/streams.h"

#include "node/dialin.h"
#include "node/limits.h"
#include "node/node_impl.h"

#include "podstream/pod_server.h"

#include <string.h>

#define FILE_THREADS 2

struct streams {
    struct pod_backend backend;
    struct node *node;
    struct ev_pool *files;
    struct pod_server *server;
};

static struct streams *of(struct pod_backend *b)
{
    return CONTAINER(b, struct streams, backend);
}

/* ---- whom it is for ---- */

/* The Pod that was meant, and no later one of its name. */
static struct record *find(struct node *n, const struct pod_request *r, struct err *e)
{
    struct record *found = record_find(n, r->ns, r->pod);

    if (found && found->pod && (!*r->uid || strcmp(found->uid, r->uid) == 0))
        return found;
    (void)err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", r->pod);
    return NULL;
}

static int admit(struct pod_backend *b, const struct pod_request *r, struct err *e)
{
    struct record *found = find(of(b)->node, r, e);

    if (!found)
        return -1;
    if (r->verb == POD_FORWARD || !*r->container ||
        record_container(found, r->container) != SIZE_MAX)
        return 0;
    return err_set(e, ERR_NOT_FOUND, "container %s is not valid for pod %s", r->container, r->pod);
}

static int start(struct pod_backend *b, const struct pod_request *r,
                 const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                 struct err *e)
{
    if (r->verb == POD_ATTACH)
        return attach_start(of(b)->node, of(b)->files, r, events, ctx, ret, e);
    return exec_start(of(b)->node, r, events, ctx, ret, e);
}

static int write_to(struct pod_process *p, struct span bytes, struct err *e)
{
    return p->ops->write(p, bytes, e);
}

static bool is_full(const struct pod_process *p)
{
    return p->ops->is_full(p);
}

static void close_stdin(struct pod_process *p)
{
    p->ops->close_stdin(p);
}

static void resize(struct pod_process *p, uint16_t cols, uint16_t rows)
{
    p->ops->resize(p, cols, rows);
}

static void pause_output(struct pod_process *p, bool is_paused)
{
    p->ops->pause(p, is_paused);
}

static void leave(struct pod_process *p)
{
    p->ops->leave(p);
}

void streams_box_dir(const struct record *r, size_t at, uint32_t attempt, char *ret, size_t size)
{
    char box[RUN_NAME_BYTES];

    record_box(r, at, attempt, box);
    (void)snprintf(ret, size, "%s/sandboxes/%s", crew_dir(r->node->crew), box);
}

/* ---- ports ---- */

struct pod_dial {
    struct dialin *dial;
    struct ev_loop *loop;
    struct ev_task refusal;
    struct err e;
    pod_dial_fn done;
    void *ctx;
};

static void dialed(void *ctx, int fd, const struct err *e)
{
    OWN_MEM struct pod_dial *d = ctx;

    d->done(d->ctx, fd, e);
}

static void refuse(void *ctx)
{
    OWN_MEM struct pod_dial *d = ctx;

    d->done(d->ctx, -1, &d->e);
}

static struct pod_dial *dial(struct pod_backend *b, const struct pod_request *r, uint16_t port,
                             pod_dial_fn done, void *ctx)
{
    struct node *n = of(b)->node;
    struct pod_dial *d = NEW(struct pod_dial);
    struct record *found = find(n, r, &d->e);
    size_t at = found ? record_running(found) : SIZE_MAX;
    char box[RUN_NAME_BYTES];

    d->loop = n->loop;
    d->done = done;
    d->ctx = ctx;
    if (at == SIZE_MAX) {
        if (found)
            (void)err_set(&d->e, ERR_NOT_FOUND, "pod %s has no container that runs", r->pod);
        ev_post(n->loop, &d->refusal, refuse, d);
        return d;
    }
    record_box(found, at, found->life.v[at].now.attempt, box);
    d->dial = dialin_start(n->loop, n->crew, box, port, dialed, d);
    return d;
}

static void dial_forget(struct pod_dial *d)
{
    if (d->dial)
        dialin_cancel(d->dial);
    ev_post_cancel(&d->refusal);
    free(d);
}

static int open_log(struct pod_backend *b, const struct pod_request *r,
                    const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                    struct err *e)
{
    return log_open_of(of(b)->node, of(b)->files, r, events, ctx, ret, e);
}

static const struct pod_backend_ops ops = {
    .admit = admit,
    .start = start,
    .write = write_to,
    .is_full = is_full,
    .close_stdin = close_stdin,
    .resize = resize,
    .pause = pause_output,
    .leave = leave,
    .dial = dial,
    .dial_cancel = dial_forget,
    .log = open_log,
    .log_pause = log_pause,
    .log_leave = log_leave,
};

/* ---- serving ---- */

int streams_open(struct node *n, int listen_fd, struct streams **ret, struct err *e)
{
    struct streams *s = NEW(struct streams);

    s->backend.ops = &ops;
    s->node = n;
    if (ev_pool_new(n->loop, "files", FILE_THREADS, &s->files, e) < 0) {
        (void)close(listen_fd);
        free(s);
        return -1;
    }
    if (pod_server_open(n->loop, &s->backend, listen_fd, &s->server, e) < 0) {
        streams_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void streams_close(struct streams *s)
{
    if (!s)
        return;
    pod_server_close(s->server);
    ev_pool_free(s->files);
    free(s);
}
