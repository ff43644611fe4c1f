#include "isolate/idmap.h"

#include "isolate/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A process that only is: its user namespace is the map. */
static pid_t start_holder(struct err *e)
{
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    pid_t parent = getpid();
    long pid = syscall(SYS_clone3, &args, sizeof args);

    if (pid < 0)
        return err_sys(e, "cannot make a user namespace");
    if (pid > 0)
        return (pid_t)pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        _exit(1); /* nobody would end us */
    for (;;)
        (void)pause();
}

static int open_map(const struct ids *ids, struct err *e)
{
    pid_t holder = start_holder(e);
    char path[64];
    int fd = -1;

    if (holder < 0)
        return -1;
    if (ids_write(ids, holder, e) == 0) {
        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", holder);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            (void)err_sys(e, "cannot open the map of ids");
    }
    (void)kill(holder, SIGKILL);
    (void)TEMP_FAILURE_RETRY(waitpid(holder, NULL, 0));
    return fd;
}

static int hold(const struct plan_row *row, int map_fd)
{
    OWN_FD int fd = mounts_clone_tree(AT_FDCWD, row->source, 0);
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)map_fd };
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
            map_fd = open_map(&plan->ids, e);
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
