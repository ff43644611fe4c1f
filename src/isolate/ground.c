#include "isolate/ground.h"

#include "isolate/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- there and back ---- */

static bool look_at_root(struct statx *ret)
{
    return statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, ret) == 0 &&
           (ret->stx_mask & STATX_MNT_ID);
}

/* By going there from where we are: who has a root below the namespace's would lose it. */
int ground_find_home(void)
{
    OWN_FD int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    OWN_FD int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    OWN_FD int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct statx before, after;
    bool is_same;

    if (fd < 0 || root_fd < 0 || cwd_fd < 0 || !look_at_root(&before) || setns(fd, CLONE_NEWNS) < 0)
        return -1;
    is_same = look_at_root(&after) && before.stx_mnt_id == after.stx_mnt_id &&
              before.stx_ino == after.stx_ino;
    if (!is_same && (fchdir(root_fd) < 0 || chroot(".") < 0))
        abort(); /* rights that setns has just asked for are gone, and we stand in another's root */
    return fchdir(cwd_fd) == 0 && is_same ? take_fd(&fd) : -1;
}

void ground_go_home(int home_fd)
{
    if (setns(home_fd, CLONE_NEWNS) < 0)
        abort(); /* we were there: only memory can be short */
}

/* ---- making it ---- */

static _Noreturn void mount_proc(void)
{
    struct err e;

    _exit(mounts_make_proc(&e) < 0);
}

/* Root of the host may mount a proc where parts of the host's are covered, and a lens would show them. So the kernel is asked
 * by one who is in a user namespace, as every sandbox is. */
static bool is_proc_for_all(void)
{
    struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID };
    long pid = syscall(SYS_clone3, &args, sizeof args);
    int status;

    if (pid == 0)
        mount_proc();
    return pid > 0 && TEMP_FAILURE_RETRY(waitpid((pid_t)pid, &status, __WALL)) == pid &&
           status == 0;
}

/* It is the ground when only the empty root is left of it. */
int ground_clear(struct mounts *m, int *ret_fd, struct err *e)
{
    OWN_FD int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    OWN_FD int old_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || old_fd < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mounts_place(m->root_fd, old_fd, "") < 0)
        return err_sys(e, "cannot clear a mount namespace");
    if (mounts_enter(m, e) < 0 || mounts_drop_old(m, e) < 0)
        return -1;
    *ret_fd = take_fd(&fd);
    return 0;
}

int ground_make(struct ground *ret, struct err *e)
{
    static struct mounts mounts; /* a yard has one thread, and one ground */
    OWN(plan_done) struct plan plan = { 0 };
    OWN(ground_done) struct ground g = GROUND_INIT;
    OWN_FD int home_fd = ground_find_home();
    int rc;

    if (home_fd < 0)
        return err_set(e, ERR_UNSUPPORTED, "there is no way back to this mount namespace");
    if (!is_proc_for_all())
        return err_set(e, ERR_UNSUPPORTED, "no proc for user namespaces");
    g.lens_fd = mounts_make_proc(e);
    if (g.lens_fd < 0 || plan_make_ground(&plan, e) < 0 ||
        mounts_build_loose(&mounts, &plan, e) < 0)
        return -1;
    rc = unshare(CLONE_NEWNS) < 0 ? err_sys(e, "cannot make a mount namespace")
                                  : ground_clear(&mounts, &g.mounts_fd, e);
    ground_go_home(home_fd);
    own_fd_close(&mounts.root_fd);
    if (rc < 0)
        return -1;
    *ret = g;
    g = (struct ground)GROUND_INIT;
    return 0;
}

void ground_done(struct ground *g)
{
    own_fd_close(&g->mounts_fd);
    own_fd_close(&g->lens_fd);
    *g = (struct ground)GROUND_INIT;
}

/* ---- what is put on it ---- */

bool ground_hold(const struct plan *plan, int *tree_fds)
{
    for (size_t i = 0; i < plan->n; i++) {
        if (plan->rows[i].op != PLAN_BIND || tree_fds[i] >= 0)
            continue;
        tree_fds[i] = mounts_hold_row(&plan->rows[i], -1);
        if (tree_fds[i] < 0)
            return false;
    }
    return true;
}
