#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3; there a plain file may be refused execution by policy */
#endif

int fd_write_all(int fd, struct span s, struct err *e)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "cannot write %zu bytes", s.n);
        s = span_skip(s, (size_t)n);
    }
    return 0;
}

int fd_read_exact(int fd, void *p, size_t n, struct err *e)
{
    uint8_t *at = p;

    while (n) {
        ssize_t got = read(fd, at, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, "cannot read");
        if (got == 0)
            return err_set(e, ERR_CLOSED, "end of file with %zu bytes still to come", n);
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int fd_read_all(int fd, struct buf *out, struct err *e)
{
    for (;;) {
        size_t ask = MIN((size_t)4096, out->max - out->n);
        ssize_t got;

        if (ask == 0) {
            uint8_t one;

            got = read(fd, &one, 1);
            if (got > 0)
                return err_set(e, ERR_LIMIT, "more than %zu bytes", out->max);
        } else {
            if (buf_reserve(out, ask, e) < 0)
                return -1;
            got = read(fd, out->p + out->n, buf_room(out));
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, "cannot read");
        if (got == 0)
            return 0;
        buf_grown(out, (size_t)got);
    }
}

int fd_read_file(const char *path, struct buf *out, struct err *e)
{
    OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "cannot open '%s'", path);
    if (fd_read_all(fd, out, e) < 0)
        return err_wrap(e, "'%s'", path);
    return 0;
}

int fd_set_nonblock(int fd, struct err *e)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_sys(e, "cannot make descriptor %d non-blocking", fd);
    return 0;
}

int fd_open_null(struct err *e)
{
    OWN_FD int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd >= 0)
        return take_fd(&fd);
    (void)err_sys(e, "cannot open '/dev/null'");
    /* Sealed, or what one child writes into its empty input the next would read. */
    fd = memfd_create("null", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -1;
    return take_fd(&fd);
}

int fd_check_own_dir(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "cannot look at '%s'", path);
    if (st.st_uid != geteuid()) {
        (void)err_set(e, ERR_DENIED, "the data directory '%s' belongs to user %u", path, st.st_uid);
        err_hint(e, "run this as that user: setpriv --reuid %u --regid ...; or name another --data",
                 st.st_uid);
        return -1;
    }
    if (st.st_mode & 077) {
        (void)err_set(e, ERR_DENIED, "others can enter the data directory '%s'", path);
        err_hint(e, "chmod 700 '%s'", path);
        return -1;
    }
    return 0;
}

int fd_fill_stdio(struct err *e)
{
    for (int want = 0; want < 3; want++) {
        int fd;

        if (fcntl(want, F_GETFD) >= 0)
            continue;
        fd = fd_open_null(e); /* the lowest free number, so it is the one we want */
        if (fd < 0)
            return err_wrap(e, "descriptor %d is closed", want);
        (void)fcntl(fd, F_SETFD, 0); /* like an inherited one: a command that we run has it too */
    }
    return 0;
}

int fd_open_program(const char *name, struct err *e)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? err_sys(e, "cannot make a file in memory for '%s'", name) : fd;
}

int fd_seal_program(int fd, struct err *e)
{
    /* No mapping that writes was ever made, so FUTURE_WRITE is all there is to forbid; WRITE would wait for pages that
     * memory management holds for a moment. */
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

    if (fchmod(fd, 0555) < 0)
        return err_sys(e, "cannot make descriptor %d executable", fd);
    return fcntl(fd, F_ADD_SEALS, seals) < 0 ? err_sys(e, "cannot seal descriptor %d", fd) : 0;
}

int fd_raise_limit(struct rlimit *ret_before, struct err *e)
{
    struct rlimit all;

    if (getrlimit(RLIMIT_NOFILE, ret_before) < 0)
        return err_sys(e, "cannot read the limit of open files");
    all = (struct rlimit){ ret_before->rlim_max, ret_before->rlim_max };
    return setrlimit(RLIMIT_NOFILE, &all) < 0 ? err_sys(e, "cannot raise the limit of open files")
                                              : 0;
}
