#include "isolate/mounts.h"

#include "base/fd.h"
#include "isolate/below.h"
#include "isolate/ground.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define INODE_SHARE_BYTES 4096 /* a tmpfs may hold one file for each page of its size */

int mounts_clone_tree(int dir_fd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir_fd, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | flags);
}

int mounts_clone_row(const struct plan_row *row)
{
    OWN_FD int dir_fd = -1, fd = -1;

    if (!row->sub)
        return mounts_clone_tree(AT_FDCWD, row->source, 0);
    /* by path: the volume itself is where its owner says; what is in it is a stranger's. */
    dir_fd = open(row->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return -1;
    fd = below_open(dir_fd, row->sub);
    return fd < 0 ? -1 : mounts_clone_tree(fd, "", AT_EMPTY_PATH);
}

int mounts_restrict(int tree_fd, unsigned flags, struct err *e)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID };

    if (flags & PLAN_RDONLY)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (flags & PLAN_NODEV)
        attr.attr_set |= MOUNT_ATTR_NODEV;
    if (flags & PLAN_NOEXEC)
        attr.attr_set |= MOUNT_ATTR_NOEXEC;
    if (syscall(SYS_mount_setattr, tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) <
        0)
        return err_sys(e, "cannot restrict a mount");
    return 0;
}

int mounts_hold_row(const struct plan_row *row, int map_fd)
{
    OWN_FD int fd = mounts_clone_row(row);
    /* Private: what the host mounts below a volume later does not show inside. */
    struct mount_attr attr = { .propagation = MS_PRIVATE };
    struct err ignored;

    if (map_fd >= 0) {
        attr.attr_set = MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)map_fd;
    }
    if (fd < 0 ||
        syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0 ||
        mounts_restrict(fd, row->flags, &ignored) < 0)
        return -1;
    return take_fd(&fd);
}

int mounts_init(struct mounts *m, const struct plan *plan, struct frame *frame, struct err *e)
{
    m->plan = plan;
    m->root_fd = -1;
    m->frame = *frame;
    *frame = (struct frame)FRAME_INIT;
    own_fd_close(&m->frame.ground_fd);
    m->frame.ground_fd = -1;
    m->is_on_ground = m->frame.lens_fd >= 0;
    if (m->is_on_ground)
        return mounts_place(m->frame.lens_fd, AT_FDCWD, GROUND_LENS) < 0
                   ? err_sys(e, "cannot put a proc on the ground")
                   : 0;
    /* Nothing of ours shows outside, nothing mounted outside later shows in here. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, "cannot make the mounts private");
    return 0;
}

static int hold_row(struct mounts *m, size_t i, struct err *e)
{
    const struct plan_row *row = &m->plan->rows[i];
    struct stat st;

    if (m->tree_fds[i] < 0) {
        m->tree_fds[i] = mounts_clone_row(row);
        if (m->tree_fds[i] < 0 && errno == ENOENT && (row->flags & PLAN_OPTIONAL))
            return 0;
        if (m->tree_fds[i] < 0)
            return err_sys(e, "cannot show '%s%s%s' inside", row->source, row->sub ? "/" : "",
                           row->sub ? row->sub : "");
        if (mounts_restrict(m->tree_fds[i], row->flags, e) < 0)
            return err_wrap(e, "'%s'", row->source);
    }
    if (fstat(m->tree_fds[i], &st) < 0)
        return err_sys(e, "cannot look at '%s'", row->source);
    m->is_dir[i] = S_ISDIR(st.st_mode);
    return 0;
}

int mounts_hold(struct mounts *m, const int *held_fds, struct err *e)
{
    for (size_t i = 0; i < m->plan->n; i++) {
        m->tree_fds[i] = held_fds ? held_fds[i] : -1;
        if (m->plan->rows[i].op == PLAN_BIND && hold_row(m, i, e) < 0)
            return -1;
    }
    return 0;
}

/* A path below the new root; a link of a caller's tree cannot lead out of it. */
static int open_inside(const struct mounts *m, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, m->root_fd, *path ? path : ".", &how, sizeof how);
}

/* Where the row's target is made: a directory and the rest of the way. On our own way there are only directories that
 * we made; a caller's may lead through its trees, so its directory is found first, and held. */
static int start_of(const struct mounts *m, const struct plan_row *row, int *held_fd,
                    const char **ret_name, struct err *e)
{
    const char *slash = strrchr(row->target, '/');
    char above[PLAN_TEXT_MAX_BYTES];

    *ret_name = row->target;
    if (!(row->flags & PLAN_FOREIGN))
        return m->root_fd;
    if (slash)
        *ret_name = slash + 1;
    (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - row->target) : 0,
                   row->target);
    *held_fd = open_inside(m, above, O_PATH | O_DIRECTORY);
    return *held_fd < 0 ? err_sys(e, "cannot open '/%s' inside", above) : *held_fd;
}

static int make_dir(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    const struct ids *ids = &m->plan->ids;
    const char *name;
    OWN_FD int held_fd = -1;
    int dir_fd = start_of(m, row, &held_fd, &name, e);

    if (dir_fd < 0)
        return -1;
    if (mkdirat(dir_fd, name, row->mode) < 0)
        return errno == EEXIST ? 0 : err_sys(e, "cannot make '/%s' inside", row->target);
    if ((row->flags & PLAN_OF_USER) && ids->kind != IDS_ONE &&
        fchownat(dir_fd, name, ids->uid, ids->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, "cannot give '/%s' to its user", row->target);
    return 0;
}

static int make_link(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    const char *name;
    OWN_FD int held_fd = -1;
    int dir_fd = start_of(m, row, &held_fd, &name, e);

    if (dir_fd < 0)
        return -1;
    return symlinkat(row->source, dir_fd, name) < 0
               ? err_sys(e, "cannot make the link '/%s' inside", row->target)
               : 0;
}

static int make_file(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    const char *name;
    OWN_FD int held_fd = -1;
    int dir_fd = start_of(m, row, &held_fd, &name, e);
    OWN_FD int fd = -1;

    if (dir_fd < 0)
        return -1;
    fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, row->mode);
    if (fd < 0)
        return err_sys(e, "cannot make '/%s' inside", row->target);
    return fd_write_all(fd, span_cstr(row->source), e) < 0 ? err_wrap(e, "'/%s'", row->target) : 0;
}

/* A caller's place may be on what cannot be written: then there is none, and nobody is harmed. */
static int touch(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    const char *name;
    OWN_FD int held_fd = -1;
    int dir_fd = start_of(m, row, &held_fd, &name, e);

    if (dir_fd < 0)
        return -1;
    return mknodat(dir_fd, name, S_IFREG | row->mode, 0) < 0 && errno != EEXIST &&
                   !(row->flags & PLAN_FOREIGN)
               ? err_sys(e, "cannot make '/%s' inside", row->target)
               : 0;
}

int mounts_place(int tree_fd, int target_fd, const char *name)
{
    return (int)syscall(SYS_move_mount, tree_fd, "", target_fd, name,
                        MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
}

static int place(int tree_fd, int target_fd, const char *name, const char *target, struct err *e)
{
    if (mounts_place(tree_fd, target_fd, name) < 0)
        return err_sys(e, "cannot mount at '/%s' inside", target);
    return 0;
}

/* What the tree will cover: a directory for a directory, a file for anything else. It may be there. */
static int make_under(const struct mounts *m, size_t i, struct err *e)
{
    const struct plan_row *row = &m->plan->rows[i];
    const char *name;
    OWN_FD int held_fd = -1;
    int dir_fd = start_of(m, row, &held_fd, &name, e);

    if (dir_fd < 0)
        return -1;
    /* mode: in the sandbox's own root, and something is mounted over it */
    if ((m->is_dir[i] ? mkdirat(dir_fd, name, 0755) : mknodat(dir_fd, name, S_IFREG | 0644, 0)) <
            0 &&
        errno != EEXIST)
        return err_sys(e, "cannot make '/%s' inside", row->target);
    return 0;
}

static int put_bind(struct mounts *m, size_t i, struct err *e)
{
    const struct plan_row *row = &m->plan->rows[i];
    OWN_FD int tree_fd = take_fd(&m->tree_fds[i]);
    OWN_FD int target_fd = -1;

    if (tree_fd < 0)
        return 0;
    if (!(row->flags & PLAN_FOREIGN))
        return make_under(m, i, e) < 0 ? -1
                                       : place(tree_fd, m->root_fd, row->target, row->target, e);
    target_fd = open_inside(m, row->target, O_PATH);
    if (target_fd < 0) {
        if (make_under(m, i, e) < 0)
            return -1;
        target_fd = open_inside(m, row->target, O_PATH);
    }
    if (target_fd < 0)
        return err_sys(e, "cannot open '/%s' inside", row->target);
    return place(tree_fd, target_fd, "", row->target, e);
}

static int set_option(int fs_fd, const char *key, uint64_t value, bool is_octal)
{
    char text[32];

    (void)snprintf(text, sizeof text, is_octal ? "%llo" : "%llu", (unsigned long long)value);
    return (int)syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, key, text, 0);
}

/* A file system of its own, not mounted anywhere yet. */
static int make_fs(const char *type, const struct plan_row *row, struct err *e)
{
    unsigned attrs = MOUNT_ATTR_NOSUID | (row->flags & PLAN_NODEV ? MOUNT_ATTR_NODEV : 0) |
                     (row->flags & PLAN_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
    OWN_FD int fs_fd = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
    bool is_bad = fs_fd < 0;
    int fd;

    if (row->bytes)
        is_bad =
            is_bad || set_option(fs_fd, "size", row->bytes, false) < 0 ||
            set_option(fs_fd, "nr_inodes", MAX(row->bytes / INODE_SHARE_BYTES, 1024ull), false) < 0;
    if (row->mode)
        is_bad = is_bad || set_option(fs_fd, "mode", row->mode, true) < 0;
    if (row->op == PLAN_DEVPTS) /* newinstance is what every mount is; gid=5 is no id of ours */
        is_bad = is_bad || set_option(fs_fd, "ptmxmode", 0666, true) < 0 ||
                 set_option(fs_fd, "max", BOX_TERMINALS_MAX, false) < 0;
    if (is_bad || syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, "cannot make a %s", type);
    fd = (int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, attrs);
    if (fd < 0)
        return err_sys(e, "cannot mount a %s", type);
    return fd;
}

int mounts_make_proc(struct err *e)
{
    return make_fs("proc", &(struct plan_row){ .op = PLAN_PROC, .flags = PLAN_NODEV | PLAN_NOEXEC },
                   e);
}

int mounts_make_tmpfs(const struct plan_row *row, struct err *e)
{
    return make_fs("tmpfs", row, e);
}

static int put_fs(const struct mounts *m, const char *type, const struct plan_row *row,
                  struct err *e)
{
    OWN_FD int tree_fd = make_fs(type, row, e);

    if (tree_fd < 0 && row->op == PLAN_PROC && e->sys == EPERM)
        err_hint(e, "the host's /proc is masked, as in a container: use procMount: Unmasked");
    if (tree_fd < 0)
        return -1;
    return place(tree_fd, m->root_fd, row->target, row->target, e);
}

static int write_setting(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    OWN_FD int fd = open_inside(m, row->target, O_WRONLY);

    if (fd < 0)
        return err_sys(e, "cannot open '/%s'", row->target);
    return fd_write_all(fd, span_cstr(row->source), e) < 0
               ? err_wrap(e, "cannot set '/%s' to %s", row->target, row->source)
               : 0;
}

/* What is there stays as it is when what is around it is sealed; a caller's trees may have changed the way. */
static int keep(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    OWN_FD int target_fd = open_inside(m, row->target, O_PATH);
    OWN_FD int tree_fd = -1;

    if (target_fd < 0)
        return err_sys(e, "cannot open '/%s' inside", row->target);
    tree_fd = mounts_clone_tree(target_fd, "", AT_EMPTY_PATH);
    if (tree_fd < 0)
        return err_sys(e, "cannot clone '/%s' inside", row->target);
    if (mounts_restrict(tree_fd, PLAN_NODEV, e) < 0)
        return err_wrap(e, "'/%s'", row->target);
    return place(tree_fd, target_fd, "", row->target, e);
}

/* Nothing of a caller's is on these ways yet. */
static int put_alias(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    OWN_FD int tree_fd = mounts_clone_tree(m->root_fd, row->source, 0);

    if (tree_fd < 0)
        return err_sys(e, "cannot clone '/%s' inside", row->source);
    if (mounts_restrict(tree_fd, PLAN_NODEV, e) < 0)
        return err_wrap(e, "'/%s'", row->source);
    return place(tree_fd, m->root_fd, row->target, row->target, e);
}

static int clone_restricted(const struct mounts *m, const char *path, unsigned flags, struct err *e)
{
    OWN_FD int fd = mounts_clone_tree(m->root_fd, path, 0);

    if (fd < 0)
        return err_sys(e, "cannot clone '/%s' inside", path);
    if (mounts_restrict(fd, flags, e) < 0)
        return err_wrap(e, "'/%s'", path);
    return take_fd(&fd);
}

static int seal(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    OWN_FD int tree_fd = clone_restricted(m, row->target, PLAN_RDONLY, e);

    return tree_fd < 0 ? -1 : place(tree_fd, m->root_fd, row->target, row->target, e);
}

/* Most of what is hidden is not there on one host or another, and a clone that finds no place costs more than all others:
 * the kernel waits for every processor before it lets go of a mount. So a cover that is restricted as it should be already
 * is mounted by its path, in one call, and for others we look first. Nothing of a caller's is on these ways yet. */
static int hide(const struct mounts *m, const struct plan_row *row, struct err *e)
{
    OWN_FD int cover_fd = -1;
    struct stat st;

    if (!(row->flags & PLAN_RDONLY))
        return mount(row->source, row->target, NULL, MS_BIND, NULL) < 0
                   ? err_sys(e, "cannot hide '/%s'", row->target)
                   : 0;
    if (fstatat(m->root_fd, row->target, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, "cannot hide '/%s'", row->target);
    cover_fd = clone_restricted(m, row->source, row->flags, e);
    return cover_fd < 0 ? -1 : place(cover_fd, m->root_fd, row->target, row->target, e);
}

int mounts_seal(int tree_fd)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

    return (int)syscall(SYS_mount_setattr, tree_fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

static int seal_root(const struct mounts *m, struct err *e)
{
    return mounts_seal(m->root_fd) < 0 ? err_sys(e, "cannot make the root read-only") : 0;
}

static int put_frame(struct mounts *m, const struct plan_row *row, struct err *e)
{
    OWN_FD int tree_fd =
        take_fd(strcmp(row->target, "etc") == 0 ? &m->frame.etc_fd : &m->frame.dev_fd);

    return place(tree_fd, m->root_fd, row->target, row->target, e);
}

static int do_row(struct mounts *m, size_t i, struct err *e)
{
    const struct plan_row *row = &m->plan->rows[i];

    switch (row->op) {
    case PLAN_DIR:
        return make_dir(m, row, e);
    case PLAN_LINK:
        return make_link(m, row, e);
    case PLAN_FILE:
        return make_file(m, row, e);
    case PLAN_BIND:
        return put_bind(m, i, e);
    case PLAN_TMPFS:
        return put_fs(m, "tmpfs", row, e);
    case PLAN_PROC:
        return put_fs(m, "proc", row, e);
    case PLAN_DEVPTS:
        return put_fs(m, "devpts", row, e);
    case PLAN_WRITE:
        return write_setting(m, row, e);
    case PLAN_SEAL:
        return seal(m, row, e);
    case PLAN_HIDE:
        return hide(m, row, e);
    case PLAN_KEEP:
        return keep(m, row, e);
    case PLAN_SEAL_ROOT:
        return seal_root(m, e);
    case PLAN_FRAME:
        return put_frame(m, row, e);
    case PLAN_TOUCH:
        return touch(m, row, e);
    case PLAN_ALIAS:
        return put_alias(m, row, e);
    }
    return 0;
}

enum stage { DIRS, FILES, FRAME, HELD, LAST };

/* Which rows may be done when: directories, files and the frame stand on nothing of the host's, then come the trees that are
 * held, then what is made of these; and from the first row of a caller on, all in order. No row of a plan is on a file system
 * that another row mounts, but for what covers others. */
static enum stage stage_of(const struct plan_row *row)
{
    switch (row->op) {
    case PLAN_DIR:
    case PLAN_FRAME:
        return DIRS;
    case PLAN_LINK:
    case PLAN_FILE:
    case PLAN_TOUCH:
        return FILES;
    case PLAN_TMPFS:
    case PLAN_PROC:
    case PLAN_DEVPTS:
    case PLAN_WRITE:
    case PLAN_SEAL:
    case PLAN_ALIAS:
        return FRAME;
    case PLAN_BIND:
        return HELD;
    case PLAN_HIDE:
    case PLAN_KEEP:
    case PLAN_SEAL_ROOT:
        break;
    }
    return LAST;
}

static int do_rows(struct mounts *m, enum stage stage, struct err *e)
{
    bool is_callers = false;

    for (size_t i = 0; i < m->plan->n; i++) {
        const struct plan_row *row = &m->plan->rows[i];

        is_callers = is_callers || (row->flags & PLAN_FOREIGN);
        if ((is_callers ? LAST : stage_of(row)) != stage)
            continue;
        if (do_row(m, i, e) < 0 && !((row->flags & PLAN_OPTIONAL) && e->sys == ENOENT))
            return -1;
    }
    return 0;
}

static int make_root(const struct plan *plan, struct err *e)
{
    const struct plan_row root = {
        .op = PLAN_TMPFS, .flags = PLAN_NODEV, .mode = 0755, .bytes = plan->root_bytes
    };

    return make_fs("tmpfs", &root, e);
}

static int build_loose(struct mounts *m, struct err *e)
{
    struct mount_attr attr = { .propagation = MS_PRIVATE };

    if (mounts_hold(m, NULL, e) < 0)
        return -1;
    for (size_t i = 0; i < m->plan->n; i++)
        if (do_row(m, i, e) < 0 && !((m->plan->rows[i].flags & PLAN_OPTIONAL) && e->sys == ENOENT))
            return -1;
    /* What the host mounts below a source later does not show here: nobody has made the mounts private before they were
     * copied, as the child of box_start does. */
    if (syscall(SYS_mount_setattr, m->root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                sizeof attr) < 0)
        return err_sys(e, "cannot make a tree private");
    return 0;
}

int mounts_build_loose(struct mounts *m, const struct plan *plan, struct err *e)
{
    int rc = -1;

    *m = (struct mounts){ .plan = plan, .root_fd = make_root(plan, e), .frame = FRAME_INIT };
    for (size_t i = 0; i < plan->n; i++)
        m->tree_fds[i] = -1;
    if (m->root_fd >= 0)
        rc = build_loose(m, e);
    for (size_t i = 0; i < plan->n && rc < 0; i++)
        own_fd_close(&m->tree_fds[i]);
    if (rc < 0)
        own_fd_close(&m->root_fd);
    return rc;
}

int mounts_build_dirs(struct mounts *m, struct err *e)
{
    OWN_FD int old_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    m->root_fd = make_root(m->plan, e);
    if (m->root_fd < 0)
        return -1;
    /* On top of the old root, whose paths go on meaning what they did: our root directory does not move with it. */
    if (old_fd < 0 || place(m->root_fd, old_fd, "", "", e) < 0)
        return err_wrap(e, "the new root");
    return do_rows(m, DIRS, e);
}

int mounts_build_files(struct mounts *m, struct err *e)
{
    return do_rows(m, FILES, e);
}

int mounts_build_frame(struct mounts *m, struct err *e)
{
    return do_rows(m, FRAME, e);
}

int mounts_enter(const struct mounts *m, struct err *e)
{
    if (fchdir(m->root_fd) < 0)
        return err_sys(e, "cannot enter the new root");
    if (m->is_on_ground)
        return chroot(".") < 0 ? err_sys(e, "cannot make the new root the root") : 0;
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return err_sys(e, "cannot make the new root the root");
    return 0;
}

/* No path leads to the ground any more, so the lens is named by its descriptor. */
static int drop_lens(struct mounts *m, struct err *e)
{
    OWN_FD int lens_fd = take_fd(&m->frame.lens_fd);
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", lens_fd);
    return umount2(path, MNT_DETACH) < 0 ? err_sys(e, "cannot clear the ground") : 0;
}

int mounts_drop_old(struct mounts *m, struct err *e)
{
    if (m->is_on_ground)
        return drop_lens(m, e);
    /* Both roots sit on "/"; the old one is on top and goes, with everything below it. A path from "/" does not meet it:
     * only what is mounted, or unmounted, at "/" itself does. */
    return umount2("/", MNT_DETACH) < 0 ? err_sys(e, "cannot let go of the old root") : 0;
}

int mounts_build_held(struct mounts *m, struct err *e)
{
    return do_rows(m, HELD, e);
}

int mounts_build_last(struct mounts *m, struct err *e)
{
    int rc = do_rows(m, LAST, e);

    own_fd_close(&m->root_fd);
    m->root_fd = -1;
    return rc;
}
