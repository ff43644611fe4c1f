#include "isolate/idmap.h"

#include "isolate/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static int hold(const struct plan_row *row, int map_fd)
{
    OWN_FD int fd = mounts_clone_row(row);
    /* Private: what the host mounts below a volume later does not show inside. */
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP,
                               .propagation = MS_PRIVATE,
                               .userns_fd = (uint64_t)map_fd };
    struct err ignored;

    if (fd < 0 ||
        syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0 ||
        mounts_restrict(fd, row->flags, &ignored) < 0)
        return -1;
    return take_fd(&fd);
}

int idmap_hold(struct idmap *m, const struct plan *plan, struct err *e)
{
    OWN_FD int map_fd = -1;

    m->n = plan->n;
    for (size_t i = 0; i < plan->n; i++)
        m->tree_fds[i] = -1;
    for (size_t i = 0; i < plan->n; i++) {
        if (!(plan->rows[i].flags & PLAN_IDMAP))
            continue;
        if (map_fd < 0)
            map_fd = ids_open_namespace(&plan->ids, e);
        if (map_fd < 0)
            return err_wrap(e, "volumes");
        m->tree_fds[i] = hold(&plan->rows[i], map_fd);
    }
    return 0;
}

void idmap_done(struct idmap *m)
{
    for (size_t i = 0; i < m->n; i++)
        own_fd_close(&m->tree_fds[i]);
    m->n = 0;
}
