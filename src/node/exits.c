#include "node/exits.h"

#include "ev/io.h"
#include "isolate/dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#define BUCKETS 1024

struct watch {
    struct watch *next;
    int wd;
    char box[];
};

struct exits {
    struct ev_io io;
    int fd;
    char *dir;
    exits_fn fn;
    void *ctx;
    struct watch *buckets[BUCKETS]; /* by the kernel's number */
};

static struct watch **find(struct exits *x, int wd)
{
    struct watch **at = &x->buckets[(unsigned)wd % BUCKETS];

    while (*at && (*at)->wd != wd)
        at = &(*at)->next;
    return at;
}

static void take_event(struct exits *x, const struct inotify_event *ev)
{
    struct watch **at = find(x, ev->wd), *w = *at;

    if (!w)
        return;
    if (ev->mask & IN_IGNORED) { /* its directory is gone */
        *at = w->next;
        free(w);
        return;
    }
    if (ev->len && strcmp(ev->name, DIR_EXIT) == 0)
        x->fn(x->ctx, w->box);
}

static void tell_all(struct exits *x)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct watch *w = x->buckets[i]; w; w = w->next)
            x->fn(x->ctx, w->box);
}

static void on_ready(void *ctx, unsigned ready)
{
    _Alignas(struct inotify_event) char text[16 * 1024];
    struct exits *x = ctx;
    ssize_t n = read(x->fd, text, sizeof text);

    (void)ready;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *ev = (const void *)(text + at);

        if (ev->mask & IN_Q_OVERFLOW)
            tell_all(x); /* too much at once: all have to be looked at */
        else
            take_event(x, ev);
        at += (ssize_t)(sizeof *ev + ev->len);
    }
}

int exits_open(struct ev_loop *loop, const char *dir, exits_fn fn, void *ctx, struct exits **ret,
               struct err *e)
{
    struct exits *x = NEW(struct exits);

    x->dir = own_strdup(dir);
    x->fn = fn;
    x->ctx = ctx;
    x->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (x->fd < 0) {
        (void)err_sys(e, "cannot watch directories");
        if (e->sys == EMFILE)
            err_hint(e, "raise fs.inotify.max_user_instances with sysctl");
    } else if (ev_io_open(&x->io, loop, x->fd, on_ready, x, e) == 0) {
        ev_io_want(&x->io, EV_READ);
        *ret = x;
        return 0;
    }
    exits_close(x);
    return -1;
}

void exits_close(struct exits *x)
{
    if (!x)
        return;
    if (ev_io_is_open(&x->io))
        ev_io_close(&x->io);
    own_fd_close(&x->fd);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct watch *w = x->buckets[i], *next; w; w = next) {
            next = w->next;
            free(w);
        }
    free(x->dir);
    free(x);
}

int exits_watch(struct exits *x, const char *box, bool *ret_is_over, struct err *e)
{
    size_t n = strlen(box) + 1;
    struct watch **at, *w;
    char path[4096];
    int wd;

    if (snprintf(path, sizeof path, "%s/sandboxes/%s", x->dir, box) >= (int)sizeof path)
        return err_set(e, ERR_LIMIT, "the path to sandbox '%s' is too long", box);
    wd = inotify_add_watch(x->fd, path, IN_MOVED_TO | IN_ONLYDIR);
    if (wd < 0) {
        (void)err_sys(e, "cannot watch sandbox '%s'", box);
        if (e->sys == ENOSPC)
            err_hint(e, "raise fs.inotify.max_user_watches with sysctl");
        return -1;
    }
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/" DIR_EXIT);
    *ret_is_over = access(path, F_OK) == 0;
    at = find(x, wd);
    if (*at)
        return 0;
    w = own_new(sizeof *w + n);
    w->wd = wd;
    memcpy(w->box, box, n);
    *at = w;
    return 0;
}
