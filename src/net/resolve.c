#include "net/resolve.h"

#include "ev/io.h"
#include "ev/timer.h"
#include "net/limits.h"

#include <ares.h>
#include <netinet/in.h>
#include <sys/time.h>

struct resolver {
    struct dial_resolver base;
    struct ev_loop *loop;
    char *servers;
    int try_ms, tries;
    size_t load;
};

/* A socket of c-ares that we watch for it. */
struct watch {
    struct watch *next;
    struct dial_lookup *lookup;
    int fd;
    struct ev_io io;
};

struct dial_lookup {
    struct resolver *resolver;
    ares_channel channel; /* NULL when it could not be made */
    struct watch *watches;
    struct ev_timer timer;
    struct ev_task task;
    uint16_t port;
    bool is_over; /* the answer is known, and its telling posted */
    struct net_addr addrs[DIAL_ADDRS_MAX];
    size_t addr_count;
    struct err err;
    dial_lookup_fn fn;
    void *ctx;
    char host[256];
};

static void arm(struct dial_lookup *l);

static void lookup_free(void *obj)
{
    free(obj);
}

static void tell(void *ctx)
{
    struct dial_lookup *l = ctx;

    if (l->channel)
        ares_destroy(
            l->channel); /* not inside a callback of its own; closes its sockets through on_socket_state */
    ev_timer_stop(l->resolver->loop, &l->timer);
    l->resolver->load--;
    l->fn(l->ctx, l->addrs, l->addr_count, l->err.code ? &l->err : NULL);
    ev_free_later(l->resolver->loop, l, lookup_free);
}

static void end(struct dial_lookup *l)
{
    if (l->is_over)
        return;
    l->is_over = true;
    ev_post(l->resolver->loop, &l->task, tell, l);
}

static void on_socket(void *ctx, unsigned ready)
{
    struct watch *w = ctx;
    struct dial_lookup *l = w->lookup;
    int fd = w->fd;

    if (l->is_over)
        return;
    ares_process_fd(l->channel, ready & EV_READ ? fd : ARES_SOCKET_BAD,
                    ready & EV_WRITE ? fd : ARES_SOCKET_BAD); /* may free w */
    arm(l);
}

static void on_timer(void *ctx)
{
    struct dial_lookup *l = ctx;

    if (l->is_over)
        return;
    ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    arm(l);
}

static void arm(struct dial_lookup *l)
{
    struct timeval space, *tv = l->is_over ? NULL : ares_timeout(l->channel, NULL, &space);

    if (tv)
        ev_timer_start(l->resolver->loop, &l->timer,
                       (uint64_t)tv->tv_sec * 1000 + (uint64_t)tv->tv_usec / 1000 + 1, on_timer, l);
    else
        ev_timer_stop(l->resolver->loop, &l->timer);
}

static void on_socket_state(void *ctx, ares_socket_t fd, int is_readable, int is_writable)
{
    struct dial_lookup *l = ctx;
    struct watch **at = &l->watches, *w;
    struct err e;

    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    w = *at;
    if (!is_readable && !is_writable) { /* c-ares closes it next */
        if (!w)
            return;
        ev_io_close(&w->io);
        *at = w->next;
        free(w);
        return;
    }
    if (!w) {
        w = NEW(struct watch);
        w->lookup = l;
        w->fd = fd;
        if (ev_io_open(&w->io, l->resolver->loop, fd, on_socket, w, &e) < 0) {
            free(w); /* the try will run into its deadline */
            return;
        }
        w->next = l->watches;
        l->watches = w;
    }
    ev_io_want(&w->io, (is_readable ? EV_READ : 0u) | (is_writable ? EV_WRITE : 0u));
}

static enum err_code code_of(int status)
{
    switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
        return ERR_NOT_FOUND;
    case ARES_ETIMEOUT:
        return ERR_TIMEOUT;
    default:
        return ERR_UNAVAILABLE;
    }
}

static void set_port(struct net_addr *a, uint16_t port)
{
    if (a->sa.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&a->sa)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)&a->sa)->sin6_port = htons(port);
}

static void on_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *info)
{
    struct dial_lookup *l = ctx;

    (void)timeouts;
    if (status == ARES_EDESTRUCTION) /* tell() or cancel has the last word */
        return;
    for (struct ares_addrinfo_node *n = info ? info->nodes : NULL;
         n && l->addr_count < LEN(l->addrs); n = n->ai_next) {
        struct net_addr *a = &l->addrs[l->addr_count];

        if ((n->ai_family != AF_INET && n->ai_family != AF_INET6) || n->ai_addrlen > sizeof a->sa)
            continue;
        memcpy(&a->sa, n->ai_addr, n->ai_addrlen);
        a->len = n->ai_addrlen;
        set_port(a, l->port);
        l->addr_count++;
    }
    if (info)
        ares_freeaddrinfo(info);
    if (l->addr_count == 0)
        (void)err_set(&l->err, status == ARES_SUCCESS ? ERR_NOT_FOUND : code_of(status),
                      "cannot resolve '%s': %s", l->host,
                      status == ARES_SUCCESS ? "it has no address" : ares_strerror(status));
    end(l);
}

static int open_channel(struct dial_lookup *l)
{
    static char files_then_dns[] = "fb";
    struct ares_options options = {
        .timeout = l->resolver->try_ms,
        .tries = l->resolver->tries,
        .lookups = files_then_dns,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = l,
    };
    int status = ares_init_options(&l->channel, &options,
                                   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                                       ARES_OPT_SOCK_STATE_CB);

    if (status != ARES_SUCCESS) {
        l->channel = NULL;
        return status;
    }
    return l->resolver->servers ? ares_set_servers_ports_csv(l->channel, l->resolver->servers)
                                : ARES_SUCCESS;
}

static struct dial_lookup *lookup_start(struct dial_resolver *base, const char *host, uint16_t port,
                                        dial_lookup_fn fn, void *ctx)
{
    static const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
                                                      .ai_socktype = SOCK_STREAM };
    struct dial_lookup *l = NEW(struct dial_lookup);
    int status;

    l->resolver = CONTAINER(base, struct resolver, base);
    l->resolver->load++;
    l->port = port;
    l->fn = fn;
    l->ctx = ctx;
    (void)snprintf(l->host, sizeof l->host, "%s", host);
    status = open_channel(l);
    if (status != ARES_SUCCESS) {
        (void)err_set(&l->err, ERR_UNAVAILABLE, "cannot resolve '%s': %s", l->host,
                      ares_strerror(status));
        end(l);
        return l;
    }
    ares_getaddrinfo(l->channel, l->host, NULL, &hints, on_answer,
                     l); /* may answer at once: told later */
    arm(l);
    return l;
}

static void lookup_cancel(struct dial_lookup *l)
{
    (void)err_set(&l->err, ERR_CANCELED, "resolving '%s' was called off", l->host);
    l->addr_count = 0;
    end(l);
}

static const struct dial_resolver_ops ops = { lookup_start, lookup_cancel };

int resolver_new(struct ev_loop *loop, const struct resolver_config *config, struct resolver **ret,
                 struct err *e)
{
    static bool is_ready;
    struct resolver *r;
    int status = is_ready ? ARES_SUCCESS : ares_library_init(ARES_LIB_INIT_ALL);

    if (status != ARES_SUCCESS)
        return err_set(e, ERR_INTERNAL, "cannot start the resolver: %s", ares_strerror(status));
    is_ready = true;
    r = NEW(struct resolver);
    r->base.ops = &ops;
    r->loop = loop;
    r->servers = config->servers ? own_strdup(config->servers) : NULL;
    r->try_ms = (int)MIN(config->try_ms ? config->try_ms : RESOLVE_TRY_MS, (uint64_t)INT32_MAX);
    r->tries = config->tries ? (int)MIN(config->tries, 10u) : RESOLVE_TRIES;
    *ret = r;
    return 0;
}

struct dial_resolver *resolver_dial(struct resolver *r)
{
    return &r->base;
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    assert(r->load == 0);
    free(r->servers);
    free(r);
}
