#include "isolate/id_range.h"

#include "base/fd.h"
#include "isolate/tree.h"
#include "isolate/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define MACHINE_DIR "/run/silica" /* gone with a reboot, as every holder is */
#define FILE_NAME   "ids"

struct id_ranges {
    const char *dir;
    pid_t opened_by; /* 0: nobody yet. A copy of the process has neither its locks nor its counts */
    int fd;
    size_t slots;              /* how many of them are ours to give */
    uint16_t users[IDS_SLOTS]; /* sandboxes of this process in each */
};

struct id_ranges *id_ranges_of_machine(void)
{
    static struct id_ranges machine = { .dir = MACHINE_DIR, .fd = -1 };

    return &machine;
}

struct id_ranges *id_ranges_new(const char *dir)
{
    struct id_ranges *r = NEW(struct id_ranges);

    r->dir = dir;
    r->fd = -1;
    return r;
}

void id_ranges_free(struct id_ranges *r)
{
    if (!r)
        return;
    own_fd_close(&r->fd);
    free(r);
}

/* ---- which there are ---- */

uint32_t id_range_base(size_t slot)
{
    return slot < IDS_LOW_SLOTS ? IDS_BASE + (uint32_t)slot * IDS_STRIDE
                                : IDS_HIGH_BASE + (uint32_t)(slot - IDS_LOW_SLOTS) * IDS_STRIDE;
}

static size_t slot_of_base(uint32_t base)
{
    return base < IDS_HIGH_BASE ? (base - IDS_BASE) / IDS_STRIDE
                                : IDS_LOW_SLOTS + (base - IDS_HIGH_BASE) / IDS_STRIDE;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return hash;
}

size_t id_range_of_name(const char *name)
{
    return hash_of(name) % IDS_LOW_SLOTS;
}

/* ---- the file ---- */

/* Whoever could open it could lock all of it. */
static int open_file(const char *path, struct err *e)
{
    OWN_FD int dir_fd = -1;
    OWN_FD int fd = -1;
    struct stat st;

    /* by path: in /run, where root alone makes names; judged below. */
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s'", path);
    dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0 || fstat(dir_fd, &st) < 0)
        return err_sys(e, "cannot open '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, ERR_DENIED, "'%s' can be changed by other users", path);
    fd = openat(dir_fd, FILE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot open '%s/" FILE_NAME "'", path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(e, ERR_DENIED, "'%s/" FILE_NAME "' can be opened by other users", path);
    return take_fd(&fd);
}

/* Root's sandboxes have ranges where root has the ids: all that there are, or those below 2^31. */
static size_t slots_to_give(void)
{
    static const size_t counts[] = { IDS_SLOTS, IDS_LOW_SLOTS };

    if (geteuid() != 0)
        return 0;
    for (size_t i = 0; i < LEN(counts); i++) {
        uint32_t all = id_range_base(counts[i] - 1) + IDS_COUNT - IDS_BASE;

        if (ids_may_give(false, IDS_BASE, all) && ids_may_give(true, IDS_BASE, all))
            return counts[i];
    }
    return 0;
}

/* Once in each process: a copy of one that has locks would share them, and could not tell its own from that one's. */
static int settle(struct id_ranges *r, struct err *e)
{
    if (r->opened_by == getpid())
        return 0;
    own_fd_close(&r->fd);
    if (r->opened_by)
        memset(r->users, 0, sizeof r->users);
    r->slots = slots_to_give();
    if (r->slots) {
        r->fd = open_file(r->dir, e);
        if (r->fd < 0) {
            err_hint(e, "root's sandboxes take their ids there; it is a directory of root's on a "
                        "writable file system");
            return err_wrap(e, "cannot take ids for a sandbox");
        }
    }
    r->opened_by = getpid();
    return 0;
}

static int set_lock(const struct id_ranges *r, size_t slot, short type)
{
    struct flock byte = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1
    };

    return fcntl(r->fd, F_OFD_SETLK, &byte);
}

/* ---- taking one ---- */

/* The kernel knows at once that a user runs nothing. Where one does, it may be dead and not reaped: then all are looked at. */
static bool has_processes(uint32_t base, uid_t uid)
{
    const uid_t inside[] = { 0, 1000, uid };

    for (size_t i = 0; i < LEN(inside); i++) {
        errno = 0;
        (void)getpriority(PRIO_USER, base + inside[i]);
        if (errno != ESRCH)
            return tree_is_of_ids(base, IDS_COUNT);
    }
    return false;
}

/* 1: it is ours; 0: it is not free. */
static int try_slot(struct id_ranges *r, size_t slot, uid_t uid, struct err *e)
{
    if (r->users[slot])
        return 0;
    if (set_lock(r, slot, F_WRLCK) < 0)
        return errno == EAGAIN || errno == EACCES ? 0 : err_sys(e, "cannot take ids for a sandbox");
    if (has_processes(id_range_base(slot), uid)) {
        (void)set_lock(r, slot, F_UNLCK);
        return 0;
    }
    r->users[slot] = 1;
    return 1;
}

int id_range_take(struct id_ranges *r, const char *name, uid_t uid, uint32_t *ret_base,
                  struct err *e)
{
    size_t slot = id_range_of_name(name), next = hash_of(name) / IDS_LOW_SLOTS;
    int rc = 0;

    if (settle(r, e) < 0)
        return -1;
    if (!r->slots || uid >= IDS_COUNT) { /* ids_choose refuses such a user */
        *ret_base = 0;
        return 0;
    }
    /* The next ones start elsewhere for each name: in a row they would run into each other. */
    for (size_t i = 0; rc == 0 && i <= r->slots; i++, next++) {
        if (i)
            slot = next % r->slots;
        rc = try_slot(r, slot, uid, e);
    }
    if (rc < 0)
        return -1;
    if (rc == 0) {
        (void)err_set(e, ERR_BUSY, "all %zu ranges of ids for root's sandboxes are taken",
                      r->slots);
        err_hint(e, "remove sandboxes that are not needed any more");
        return -1;
    }
    *ret_base = id_range_base(slot);
    return 0;
}

void id_range_share(struct id_ranges *r, uint32_t base)
{
    if (base && r->opened_by == getpid())
        r->users[slot_of_base(base)]++;
}

void id_range_release(struct id_ranges *r, uint32_t base)
{
    size_t slot = base ? slot_of_base(base) : 0;

    if (!base || r->opened_by != getpid() || !r->users[slot])
        return;
    if (--r->users[slot] == 0)
        (void)set_lock(r, slot, F_UNLCK);
}
