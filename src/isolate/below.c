#include "isolate/below.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int below_open(int dir_fd, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

int below_make(int dir_fd, const char *path, struct err *e)
{
    OWN_FD int fd = below_open(dir_fd, ".");
    OWN_MEM char *text = own_strdup(path);

    for (char *at = text; fd >= 0 && at;) {
        char *slash = strchr(at, '/'), *name = at;
        int next;

        if (slash)
            *slash = '\0';
        next = below_open(dir_fd, text);
        /* Made beside what was found: a name, never a path. mode: the containers', which may have any id; the volume is
         * below our 0700. */
        if (next < 0 && errno == ENOENT && mkdirat(fd, name, 0777) == 0) {
            next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next >= 0)
                (void)fchmod(next, 0777);
        }
        own_fd_close(&fd);
        fd = next;
        at = slash ? slash + 1 : NULL;
        if (slash)
            *slash = '/';
    }
    return fd < 0 ? err_sys(e, "cannot use '%s' of the volume", path) : 0;
}
