#include "isolate/cellar.h"

#include "isolate/below.h"
#include "isolate/ground.h"
#include "isolate/holder.h"
#include "isolate/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define STACK_BYTES (256 * 1024)

/* ---- there and back ---- */

typedef int (*errand_fn)(void *ctx, struct err *e);

struct errand {
    int cellar_fd; /* -1: it is yet to be made */
    errand_fn fn;
    void *ctx;
    int rc;
    struct err *e;
};

/* The spawner has rights there already; an account's other processes get them in the user namespace that owns it. */
static int enter(int cellar_fd, struct err *e)
{
    OWN_FD int owner_fd = -1;

    if (setns(cellar_fd, CLONE_NEWNS) == 0)
        return 0;
    if (errno == EPERM) {
        owner_fd = ioctl(cellar_fd, NS_GET_USERNS);
        if (owner_fd >= 0 && setns(owner_fd, CLONE_NEWUSER) == 0 &&
            setns(cellar_fd, CLONE_NEWNS) == 0)
            return 0;
    }
    return err_sys(e, "cannot enter the namespace of volumes in memory");
}

/* Who: a process of one thread on its maker's memory and descriptors; the thread that made it stands still, and what is
 * allocated here is as if that one did. */
static int run(void *ctx)
{
    struct errand *job = ctx;

    if (job->cellar_fd >= 0 && enter(job->cellar_fd, job->e) < 0)
        job->rc = -1;
    else
        job->rc = job->fn(job->ctx, job->e);
    return 0;
}

static int go(int cellar_fd, errand_fn fn, void *ctx, struct err *e)
{
    struct errand job = { .cellar_fd = cellar_fd, .fn = fn, .ctx = ctx, .rc = -1, .e = e };
    OWN_MEM char *stack = own_new(STACK_BYTES);
    bool is_dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
    sigset_t all, before;
    pid_t child;
    int sys;

    /* A handler of ours must not run over there, in another user namespace on shared memory. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    child = clone(run, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES, &job);
    sys = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return err_errno(e, sys, "cannot send a process to the volumes in memory");
    (void)TEMP_FAILURE_RETRY(waitpid(child, NULL, __WCLONE));
    if (is_dumpable) /* new rights over there took it away, from memory that is ours */
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return job.rc;
}

/* ---- making it ---- */

struct opening {
    int engine_fd;
    int fd;
};

static int open_cellar(void *ctx, struct err *e)
{
    struct opening *o = ctx;
    struct plan_row root = {
        .op = PLAN_TMPFS, .flags = PLAN_NODEV | PLAN_NOEXEC, .mode = 0711, .bytes = CELLAR_BYTES
    };
    struct mounts m = { .root_fd = -1, .frame = FRAME_INIT };
    int rc;

    if (o->engine_fd >= 0 && setns(o->engine_fd, CLONE_NEWUSER) < 0)
        return err_sys(e, "cannot enter the engine's user namespace");
    if (unshare(CLONE_NEWNS) < 0)
        return err_sys(e, "cannot make a mount namespace");
    m.root_fd = mounts_make_tmpfs(&root, e);
    if (m.root_fd < 0)
        return -1;
    rc = ground_clear(&m, &o->fd, e);
    own_fd_close(&m.root_fd);
    return rc;
}

int cellar_open(int engine_fd, struct err *e)
{
    struct opening o = { .engine_fd = engine_fd, .fd = -1 };

    if (go(-1, open_cellar, &o, e) < 0)
        return err_wrap(e, "volumes in memory");
    return o.fd;
}

/* ---- one volume ---- */

/* A tmpfs that is a place in the cellar is another file system than the cellar. */
static bool is_made(const char *place)
{
    struct stat above, it;

    return stat("/", &above) == 0 && lstat(place, &it) == 0 && it.st_dev != above.st_dev;
}

/* Whoever runs inside may write; the owner is right before anybody can see it. */
static int give_to_group(int tree_fd, gid_t group, struct err *e)
{
    OWN_FD int fd = openat(tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fchown(fd, (uid_t)-1, group) < 0 || fchmod(fd, 02777) < 0)
        return err_sys(e, "cannot give it to group %u", group);
    return 0;
}

static int make_volume(void *ctx, struct err *e)
{
    const struct cellar_volume *v = ctx;
    struct plan_row row = {
        .op = PLAN_TMPFS, .flags = PLAN_NODEV, .mode = 0777, .bytes = v->bytes
    };
    char place[CELLAR_NAME_MAX_BYTES + 2];
    OWN_FD int tree_fd = -1;

    (void)snprintf(place, sizeof place, "/%s", v->name);
    if (is_made(place))
        return 0;
    /* by path: below the root of the keeper's own mounts, which no sandbox sees. */
    if (mkdir(place, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make a place");
    tree_fd = mounts_make_tmpfs(&row, e);
    if (tree_fd < 0 || (v->has_group && give_to_group(tree_fd, v->group, e) < 0))
        return -1;
    return mounts_place(tree_fd, AT_FDCWD, place) < 0 ? err_sys(e, "cannot mount it") : 0;
}

static bool is_name(const char *name)
{
    return *name && !strchr(name, '/') && name[0] != '.' && strlen(name) <= CELLAR_NAME_MAX_BYTES;
}

int cellar_make(int cellar_fd, const struct cellar_volume *v, struct err *e)
{
    struct cellar_volume copy = *v;

    if (!is_name(v->name) || !v->bytes)
        return err_set(e, ERR_INVALID, "'%s' cannot be a volume in memory", v->name);
    return go(cellar_fd, make_volume, &copy, e) < 0 ? err_wrap(e, "memory") : 0;
}

/* ---- what a sandbox has of them ---- */

struct holding {
    const struct plan *plan;
    int *tree_fds;
    int map_fd;
};

static int hold_row(struct plan_row row, int map_fd, int *ret_fd, struct err *e)
{
    char place[CELLAR_NAME_MAX_BYTES + 2];
    OWN_FD int dir_fd = -1;

    (void)snprintf(place, sizeof place, "/%s", row.memory);
    if (!is_made(place))
        return err_set(e, ERR_NOT_FOUND, "there is no volume '%s' in memory", row.memory);
    row.source = place;
    dir_fd = open(place, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0)
        return err_sys(e, "cannot open volume '%s'", row.memory);
    if (row.sub && below_make(dir_fd, row.sub, e) < 0)
        return -1;
    *ret_fd = mounts_hold_row(&row, row.flags & PLAN_IDMAP ? map_fd : -1);
    if (*ret_fd < 0 && (row.flags & PLAN_IDMAP)) /* before Linux 6.3 no tmpfs can be mapped */
        *ret_fd = mounts_hold_row(&row, -1);
    return *ret_fd < 0 ? err_sys(e, "cannot show volume '%s'", row.memory) : 0;
}

static int hold_rows(void *ctx, struct err *e)
{
    struct holding *h = ctx;

    for (size_t i = 0; i < h->plan->n; i++)
        if (h->plan->rows[i].memory &&
            hold_row(h->plan->rows[i], h->map_fd, &h->tree_fds[i], e) < 0)
            return -1;
    return 0;
}

int cellar_hold(int cellar_fd, const struct plan *plan, int *tree_fds, struct err *e)
{
    struct holding h = { .plan = plan, .tree_fds = tree_fds, .map_fd = -1 };
    bool is_mapped = false;
    int rc;

    for (size_t i = 0; i < plan->n; i++) {
        if (!plan->rows[i].memory)
            continue;
        if (!is_name(plan->rows[i].memory))
            return err_set(e, ERR_INVALID, "'%s' is no volume in memory", plan->rows[i].memory);
        is_mapped |= (plan->rows[i].flags & PLAN_IDMAP) != 0;
    }
    if (is_mapped)
        h.map_fd = holder_open_map(&plan->ids, e);
    if (is_mapped && h.map_fd < 0)
        return err_wrap(e, "volumes");
    rc = go(cellar_fd, hold_rows, &h, e);
    own_fd_close(&h.map_fd);
    return rc;
}

/* ---- the end ---- */

static int drop_volumes(void *ctx, struct err *e)
{
    const char *prefix = ctx;
    DIR *dir = opendir("/");
    const struct dirent *d;
    int sys = 0;

    if (!dir)
        return err_sys(e, "cannot list volumes");
    while ((d = readdir(dir))) {
        char place[CELLAR_NAME_MAX_BYTES + 2];

        if (!span_starts(span_cstr(d->d_name), prefix) || !is_name(d->d_name))
            continue;
        (void)snprintf(place, sizeof place, "/%s", d->d_name);
        if (umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)
            sys = errno;
        /* by path: as above, and empty. */
        if (rmdir(place) < 0)
            sys = errno;
    }
    (void)closedir(dir);
    return sys ? err_errno(e, sys, "cannot take volumes away") : 0;
}

int cellar_drop(int cellar_fd, const char *prefix, struct err *e)
{
    if (!is_name(prefix))
        return err_set(e, ERR_INVALID, "'%s' cannot be the name of volumes", prefix);
    return go(cellar_fd, drop_volumes, (void *)(uintptr_t)prefix, e) < 0 ? err_wrap(e, "memory")
                                                                         : 0;
}

static int count_volumes(void *ctx, struct err *e)
{
    DIR *dir = opendir("/");
    const struct dirent *d;
    size_t *n = ctx;

    if (!dir)
        return err_sys(e, "cannot list volumes");
    while ((d = readdir(dir)))
        *n += is_name(d->d_name);
    (void)closedir(dir);
    return 0;
}

int cellar_count(int cellar_fd, size_t *ret, struct err *e)
{
    size_t n = 0;

    if (go(cellar_fd, count_volumes, &n, e) < 0)
        return err_wrap(e, "memory");
    *ret = n;
    return 0;
}
