#include "isolate/lock.h"

#include <errno.h>
#include <fcntl.h>

/* A lock of the open file, not of the process: whoever shares it keeps it, so the keeper's children close theirs. */
int lock_take(const struct dir *d, int *ret_fd, struct err *e)
{
    OWN_FD int fd = openat(d->fd, DIR_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fd < 0)
        return err_sys(e, "cannot open '" DIR_LOCK "'");
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return err_set(e, ERR_EXISTS, "this data directory has a keeper already");
        return err_sys(e, "cannot lock '" DIR_LOCK "'");
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

bool lock_is_taken(const struct dir *d)
{
    OWN_FD int fd = openat(d->fd, DIR_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}
