#include "node/question.h"

#include "net/tls.h"
#include "sandbox/sandbox.h"

#include <sys/socket.h>

static void finish(struct question *q, bool is_success, const char *message)
{
    q->is_busy = false;
    free(take_ptr(&q->cwd));
    sandbox_close(take_ptr(&q->sandbox));
    q->spec.done(q->spec.ctx, is_success, message);
}

static void on_probed(void *ctx, bool is_success, const char *message)
{
    struct question *q = ctx;

    q->prober = NULL;
    finish(q, is_success, message);
}

static void reach(void *ctx, struct engine *en, const struct err *e)
{
    struct question *q = ctx;
    int rc = -1;

    q->fd = -1;
    if (!en)
        q->e = *e;
    else if (prober_kind(q->spec.handler) == PROBER_EXEC)
        rc = engine_control(en, q->spec.box, &q->fd, &q->e);
    else
        rc = engine_socket(en, q->spec.box, AF_INET, SOCK_STREAM, &q->fd, &q->e);
    if (rc < 0)
        q->fd = -1;
}

static struct conn_filter_maker *believer(struct node *n)
{
    struct err e;

    if (!n->probe_tls && tls_new(&(struct tls_config){ .role = TLS_CLIENT, .is_insecure = true },
                                 &n->probe_tls, &e) < 0)
        return NULL;
    return tls_maker(n->probe_tls);
}

static void reached(void *ctx)
{
    struct question *q = ctx;
    const struct question_spec *s = &q->spec;

    if (q->fd < 0 || q->is_called_off) {
        own_fd_close(&q->fd);
        finish(q, false, q->is_called_off ? "it was called off" : q->e.msg);
        return;
    }
    if (prober_kind(s->handler) == PROBER_EXEC &&
        sandbox_open(s->node->loop, take_fd(&q->fd), &q->sandbox, &q->e) < 0) {
        finish(q, false, q->e.msg);
        return;
    }
    q->prober = prober_start(&(struct prober_spec){ .loop = s->node->loop,
                                                    .probe = s->handler,
                                                    .container = s->container,
                                                    .pod_ip = q->pod_ip,
                                                    .timeout_ms = s->timeout_ms,
                                                    .takes_any_status = s->takes_any_status,
                                                    .fd = take_fd(&q->fd),
                                                    .sandbox = q->sandbox,
                                                    .cwd = q->cwd,
                                                    .maker = believer(s->node),
                                                    .done = on_probed,
                                                    .ctx = q });
}

void question_start(struct question *q, const struct question_spec *spec)
{
    *q = (struct question){ .spec = *spec, .fd = -1, .is_busy = true };
    (void)snprintf(q->pod_ip, sizeof q->pod_ip, "%s", spec->pod_ip);
    q->cwd = own_strdup(spec->cwd);
    q->spec.pod_ip = q->spec.cwd = NULL;
    crew_submit(spec->node->crew, &q->job, reach, reached, q);
}

void question_cancel(struct question *q)
{
    if (!q->is_busy)
        return;
    q->is_called_off = true;
    if (q->prober)
        prober_cancel(q->prober);
}
