#include "kubeclient/file.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int file_read(const char *path, struct buf *out, struct err *e)
{
    OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return err_sys(e, "cannot open '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_sys(e, "cannot look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "'%s' is not a file", path);
    return fd_read_all(fd, out, e) < 0 ? err_wrap(e, "'%s'", path) : 0;
}

void file_wipe(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->n);
    buf_done(b);
}

bool file_has_changed(const char *path, struct file_stamp *stamp)
{
    struct file_stamp now = { 0 };
    struct stat st;

    if (stat(path, &st) == 0)
        now = (struct file_stamp){ st.st_dev, st.st_ino, st.st_size, st.st_ctim };
    if (now.device == stamp->device && now.inode == stamp->inode && now.size == stamp->size &&
        now.changed.tv_sec == stamp->changed.tv_sec &&
        now.changed.tv_nsec == stamp->changed.tv_nsec)
        return false;
    *stamp = now;
    return true;
}
