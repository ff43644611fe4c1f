#include "isolate/lock.h"

#include <errno.h>
#include <fcntl.h>

/* A lock of the open file, not of the process: whoever shares it keeps it, so the holder's children close theirs. */
int lock_file(int dir_fd, const char *name, int *ret_fd, struct err *e)
{
    OWN_FD int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fd < 0)
        return err_sys(e, "cannot open '%s'", name);
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return err_set(e, ERR_EXISTS, "another process has '%s'", name);
        return err_sys(e, "cannot lock '%s'", name);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

bool lock_file_is_taken(int dir_fd, const char *name)
{
    OWN_FD int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

int lock_take(const struct dir *d, int *ret_fd, struct err *e)
{
    if (lock_file(d->fd, DIR_LOCK, ret_fd, e) == 0)
        return 0;
    return e->code == ERR_EXISTS
               ? err_set(e, ERR_EXISTS, "this data directory has a keeper already")
               : -1;
}

bool lock_is_taken(const struct dir *d)
{
    return lock_file_is_taken(d->fd, DIR_LOCK);
}
