/* Which build the keeper is of, and another one in its place. */
#include "isolate/engine_impl.h"

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

void engine_renew(struct engine *en)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct wire_answer a;
    struct pollfd gone;
    struct err e;

    /* One that refuses, or is too old to know what that is, goes on. */
    if (engine_connect(en, false, &e) < 0 ||
        wire_write_ask(WIRE_RETIRE, "keeper", &packet, &e) < 0 ||
        engine_ask(en, buf_span(&packet), KEEPER_START_MS, &a, &e) < 0)
        return;
    gone = (struct pollfd){ .fd = en->fd, .events = POLLIN };
    (void)poll(&gone, 1, KEEPER_START_MS);
    own_fd_close(&en->fd);
}

/* The program of a process as the kernel runs it, also where its file is gone. -1: it cannot be known. */
static int open_program(pid_t pid, struct stat *ret)
{
    char path[64], name[32];
    ssize_t n;
    OWN_FD int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    n = readlink(path, name, sizeof name);
    if (n < 8 || memcmp(name, "/memfd:", 7) != 0) /* the front of the program, or a test */
        return -1;
    /* by path: the kernel's own link, to what that process runs. */
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || fstat(fd, ret) < 0 ? -1 : take_fd(&fd);
}

static bool is_same_content(int a, int b, size_t n)
{
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, a, 0);
    void *q = mmap(NULL, n, PROT_READ, MAP_PRIVATE, b, 0);
    bool is_same = p == MAP_FAILED || q == MAP_FAILED || memcmp(p, q, n) == 0;

    if (p != MAP_FAILED)
        (void)munmap(p, n);
    if (q != MAP_FAILED)
        (void)munmap(q, n);
    return is_same;
}

bool engine_keeper_is_other(struct engine *en)
{
    OWN_FD int theirs = -1;
    OWN_FD int ours = -1;
    struct stat its, own;
    struct ucred peer;
    socklen_t n = sizeof peer;
    struct err e;

    if (engine_connect(en, false, &e) < 0 ||
        getsockopt(en->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return false;
    theirs = open_program(peer.pid, &its);
    ours = open_program(getpid(), &own);
    if (theirs < 0 || ours < 0 || (its.st_ino == own.st_ino && its.st_dev == own.st_dev))
        return false;
    return its.st_size != own.st_size || !is_same_content(theirs, ours, (size_t)own.st_size);
}
