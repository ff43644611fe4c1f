#include "node/dialin.h"

#include "net/dial.h"
#include "node/limits.h"
#include "node/run.h"

#include <netinet/in.h>

struct dialin {
    struct ev_loop *loop;
    struct crew *crew;
    struct crew_job job;
    char box[RUN_NAME_BYTES];
    uint16_t port;
    int family; /* 127.0.0.1 is tried first, then ::1 */
    int fd;
    struct err e;
    struct dial *dial;
    dialin_fn done; /* NULL: called off */
    void *ctx;
};

static void try_family(struct dialin *d, int family);

static void finish(struct dialin *d, int fd, const struct err *e)
{
    if (d->done)
        d->done(d->ctx, fd, e);
    else if (fd >= 0)
        (void)close(fd);
    free(d);
}

static void on_dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    struct dialin *d = ctx;

    d->dial = NULL;
    if (!e)
        finish(d, r->fd, NULL);
    else if (d->done && d->family == AF_INET && e->code == ERR_UNAVAILABLE)
        try_family(d, AF_INET6);
    else
        finish(d, -1, e);
}

static void connect_inside(struct dialin *d)
{
    struct net_addr at = { .len = 0 };
    struct sockaddr_in *v4 = (void *)&at.sa;
    struct sockaddr_in6 *v6 = (void *)&at.sa;

    if (d->family == AF_INET) {
        *v4 = (struct sockaddr_in){ .sin_family = AF_INET,
                                    .sin_port = htons(d->port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        at.len = sizeof *v4;
    } else {
        *v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
                                     .sin6_port = htons(d->port),
                                     .sin6_addr = in6addr_loopback };
        at.len = sizeof *v6;
    }
    d->dial = dial_start(
        d->loop,
        &(struct dial_spec){ .addr = &at, .fd = take_fd(&d->fd), .timeout_ms = NODE_DIAL_MS },
        on_dialed, d);
}

static void run(void *ctx, struct engine *en, const struct err *e)
{
    struct dialin *d = ctx;

    d->fd = -1;
    if (!en)
        d->e = *e;
    else if (engine_socket(en, d->box, d->family, SOCK_STREAM, &d->fd, &d->e) < 0)
        d->fd = -1;
}

static void made(void *ctx)
{
    struct dialin *d = ctx;

    if (d->fd >= 0 && d->done)
        connect_inside(d);
    else
        finish(d, take_fd(&d->fd), &d->e);
}

static void try_family(struct dialin *d, int family)
{
    d->family = family;
    crew_submit(d->crew, &d->job, run, made, d);
}

struct dialin *dialin_start(struct ev_loop *loop, struct crew *crew, const char *box, uint16_t port,
                            dialin_fn done, void *ctx)
{
    struct dialin *d = NEW(struct dialin);

    d->loop = loop;
    d->crew = crew;
    (void)snprintf(d->box, sizeof d->box, "%s", box);
    d->port = port;
    d->fd = -1;
    d->done = done;
    d->ctx = ctx;
    try_family(d, AF_INET);
    return d;
}

void dialin_cancel(struct dialin *d)
{
    d->done = NULL;
    if (d->dial)
        dial_cancel(d->dial);
}
