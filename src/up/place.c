#include "up/place.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/time.h"
#include "isolate/lock.h"
#include "net/listen.h"
#include "up/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK_FILE  "up.lock"
#define INFO_FILE  "up.json"
#define STORE_LOCK "lock" /* the API server's (apiserver/disk.c) */

/* The parts and the kubeconfig's readers have other working directories. */
static int make_absolute(struct place *p, struct err *e)
{
    char *full = realpath(p->path, NULL);

    if (!full)
        return err_sys(e, "cannot find the data directory '%s'", p->path);
    free(p->path);
    p->path = full;
    return 0;
}

int place_open(struct place *p, const char *given, bool makes_it, struct err *e)
{
    if (dir_default(given, &p->path, e) < 0)
        return -1;
    if (dir_open(&p->dir, p->path, makes_it, e) == 0)
        return p->path[0] == '/' ? 0 : make_absolute(p, e);
    if (!makes_it && e->sys == ENOENT) {
        (void)err_set(e, ERR_NOT_FOUND, "nothing was ever up in '%s'", p->path);
        err_hint(e, "silica up");
    }
    return -1;
}

void place_done(struct place *p)
{
    free(p->path);
    dir_done(&p->dir);
    own_fd_close(&p->lock_fd);
    *p = (struct place)PLACE_INIT;
}

/* ---- who has it ---- */

static void nap(void)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = UP_NAP_MS * 1000000L }, NULL);
}

/* The parts of one that was killed die with it, but not in the same instant. */
static int wait_for_store(const struct place *p, struct err *e)
{
    uint64_t deadline_ms = time_mono_ms() + UP_REST_MS;
    OWN_FD int fd = openat(p->dir.fd, STORE_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "cannot open '%s/" STORE_LOCK "'", p->path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (time_mono_ms() > deadline_ms) {
            (void)err_set(e, ERR_EXISTS, "another API server has the data directory '%s'", p->path);
            err_hint(e, "end that one (silica apiserver), or choose another directory with --data");
            return -1;
        }
        nap();
    }
    return 0;
}

int place_take(struct place *p, struct err *e)
{
    if (lock_file(p->dir.fd, LOCK_FILE, &p->lock_fd, e) < 0) {
        if (e->code != ERR_EXISTS)
            return -1;
        (void)err_set(e, ERR_EXISTS, "silica is up already, in '%s'", p->path);
        err_hint(e, "silica status shows it, silica down ends it; --data DIR starts another");
        return -1;
    }
    return wait_for_store(p, e);
}

bool place_is_taken(const struct place *p)
{
    return lock_file_is_taken(p->dir.fd, LOCK_FILE);
}

int place_open_log(const struct place *p, const char *part, int *ret_fd, struct err *e)
{
    OWN_FD int logs_fd = -1;
    int fd;

    if (mkdirat(p->dir.fd, "logs", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s/logs'", p->path);
    logs_fd = openat(p->dir.fd, "logs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (logs_fd < 0)
        return err_sys(e, "cannot open '%s/logs'", p->path);
    if (mkdirat(logs_fd, part, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s/logs/%s'", p->path, part);
    fd = openat(logs_fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open '%s/logs/%s'", p->path, part);
    *ret_fd = fd;
    return 0;
}

/* ---- ports ---- */

static uint16_t remembered(const struct place *p, const char *file)
{
    OWN(buf_done) struct buf text = BUF_INIT(64);
    uint64_t port = 0;
    struct err e;

    if (dir_read(p->dir.fd, file, &text, &e) < 0 ||
        !str_u64(span_trim(buf_span(&text)), UINT16_MAX, &port))
        return 0;
    return (uint16_t)port;
}

static int listen_on(uint16_t port, int *ret_fd, struct err *e)
{
    struct net_addr at;
    char text[64];

    (void)snprintf(text, sizeof text, "127.0.0.1:%u", port);
    return net_addr_parse(text, &at, e) < 0 ? -1 : net_listen_socket(&at, ret_fd, e);
}

static int listen_anywhere(const struct place *p, const struct place_port *port, int *ret_fd,
                           struct err *e)
{
    uint16_t last = remembered(p, port->file);

    if (last && listen_on(last, ret_fd, e) == 0)
        return 0;
    for (unsigned i = 0; i < PORTS_TRIED; i++) {
        if (listen_on((uint16_t)(port->port + i), ret_fd, e) == 0)
            return 0;
        if (e->sys != EADDRINUSE)
            return -1;
    }
    return listen_on(0, ret_fd, e);
}

int place_remember(const struct place *p, const char *file, int listen_fd, struct err *e)
{
    struct net_addr at = { .len = sizeof at.sa };
    char text[16];

    if (getsockname(listen_fd, (struct sockaddr *)&at.sa, &at.len) < 0)
        return err_sys(e, "cannot learn the port");
    (void)snprintf(text, sizeof text, "%u", net_addr_port(&at));
    return dir_write(p->dir.fd, file, span_cstr(text), e);
}

int place_listen(const struct place *p, const struct place_port *port, int *ret_fd, struct err *e)
{
    OWN_FD int fd = -1;
    struct net_addr at;

    if (port->given) {
        if (net_addr_parse(port->given, &at, e) < 0 || net_listen_socket(&at, &fd, e) < 0) {
            if (e->sys == EADDRINUSE)
                err_hint(e, "another program listens there: choose another port with %s",
                         port->option);
            else if (e->sys == EACCES)
                err_hint(e, "ports below 1024 need a privilege: choose a higher one with %s",
                         port->option);
            return err_wrap(e, "%s", port->option);
        }
    } else if (listen_anywhere(p, port, &fd, e) < 0)
        return -1;
    *ret_fd = take_fd(&fd);
    return 0;
}

int place_address(int listen_fd, char *text, size_t n, struct err *e)
{
    struct net_addr at = { .len = sizeof at.sa };
    char full[NET_ADDR_TEXT_BYTES];

    if (getsockname(listen_fd, (struct sockaddr *)&at.sa, &at.len) < 0)
        return err_sys(e, "cannot learn the address of a listener");
    (void)net_addr_text(&at, full);
    if (strncmp(full, "0.0.0.0:", 8) == 0 || strncmp(full, "[::]:", 5) == 0)
        (void)snprintf(full, sizeof full, "127.0.0.1:%u", net_addr_port(&at));
    (void)snprintf(text, n, "%s", full);
    return 0;
}

/* ---- what runs ---- */

int place_write(const struct place *p, struct span json, struct err *e)
{
    return dir_write(p->dir.fd, INFO_FILE, json, e);
}

static int read_info(struct place_info *info, struct err *e)
{
    const struct json *root = json_doc_root(info->doc);
    uint64_t pid;

    if (!json_u64(json_get(root, "pid"), &pid) || pid < 2 || pid > INT32_MAX)
        return err_set(e, ERR_INVALID, "'" INFO_FILE "' names no process");
    info->pid = (pid_t)pid;
    info->listen = json_cstr(json_at(json_get(root, "listen"), 0));
    info->router = json_cstr(json_get(root, "router"));
    info->kubeconfig = json_cstr(json_get(root, "kubeconfig"));
    info->parts = json_get(root, "parts");
    if (!info->listen || !info->kubeconfig)
        return err_set(e, ERR_INVALID, "'" INFO_FILE "' has no addresses");
    return 0;
}

int place_read(const struct place *p, struct place_info *ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(UP_FILE_MAX_BYTES);

    if (!place_is_taken(p) || dir_read(p->dir.fd, INFO_FILE, &text, e) < 0) {
        (void)err_set(e, ERR_NOT_FOUND, "silica is not up in '%s'", p->path);
        err_hint(e, "silica up -d starts it; --data DIR looks elsewhere");
        return -1;
    }
    *ret = (struct place_info){ 0 };
    if (json_parse(buf_span(&text), NULL, &ret->doc, e) == 0 && read_info(ret, e) == 0)
        return 0;
    place_info_done(ret);
    return err_wrap(e, "'%s'", p->path);
}

void place_info_done(struct place_info *info)
{
    json_doc_unref(info->doc);
    *info = (struct place_info){ 0 };
}
