#include "apiserver/testdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define SECTOR    512
#define FILES_MAX 8

/* A name on the disk. `synced` is what it held at its last sync; a dirty sector is newer than that. */
struct file {
    char *path;
    uint8_t *synced;
    size_t synced_size, synced_cap;
    uint8_t *dirty; /* by sector */
    size_t sectors;
    bool is_gone; /* the name was taken away, and its directory was not synced since */
};

/* What SQLite holds; the real file's follows. */
struct handle {
    sqlite3_file base;
    struct file *file; /* NULL: nobody looks at it */
    bool is_new_log;   /* SQLite syncs the directory of a journal or log with its first sync */
    sqlite3_file *real;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t flow;
    sqlite3_vfs vfs, *real;
    struct file files[FILES_MAX];
    size_t file_count;
    uint64_t seed;
    unsigned cut_after, odds, syncs;
    enum testdisk_fault fault;
    bool is_cut, is_held, is_lying;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER, .flow = PTHREAD_COND_INITIALIZER };

/* ---- chance ---- */

static unsigned chance(unsigned end)
{
    disk.seed = disk.seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(disk.seed >> 33) % end;
}

/* Counts a call down to the cut; the lock is held. */
static bool goes_dark(void)
{
    if (disk.cut_after && --disk.cut_after == 0)
        disk.is_cut = true;
    return disk.is_cut;
}

static bool fails(enum testdisk_fault fault)
{
    return disk.fault == fault && chance(disk.odds) == 0;
}

/* ---- what was synced ---- */

static struct file *find_file(const char *path)
{
    for (size_t i = 0; i < disk.file_count; i++)
        if (strcmp(disk.files[i].path, path) == 0)
            return &disk.files[i];
    assert(disk.file_count < FILES_MAX);
    disk.files[disk.file_count].path = own_strdup(path);
    return &disk.files[disk.file_count++];
}

static void mark(struct file *f, size_t from, size_t to)
{
    size_t sectors = (to + SECTOR - 1) / SECTOR;

    if (sectors > f->sectors) {
        f->dirty = own_resize(f->dirty, sectors, 1);
        memset(f->dirty + f->sectors, 0, sectors - f->sectors);
        f->sectors = sectors;
    }
    for (size_t i = from / SECTOR; i < sectors; i++)
        f->dirty[i] = 1;
}

static void set_synced_size(struct file *f, size_t size)
{
    if (size > f->synced_cap) {
        f->synced_cap = size * 2;
        f->synced = own_resize(f->synced, f->synced_cap, 1);
    }
    if (size > f->synced_size)
        memset(f->synced + f->synced_size, 0, size - f->synced_size);
    f->synced_size = size;
}

/* Takes what the real file holds now: every dirty sector, or those that chance picks. */
static void settle(struct file *f, int fd, bool is_all)
{
    off_t end = lseek(fd, 0, SEEK_END);
    size_t size = end < 0 ? 0 : (size_t)end;

    if (is_all || chance(2))
        set_synced_size(f, size);
    for (size_t i = 0; i < f->sectors && i * SECTOR < MIN(f->synced_size, size); i++) {
        size_t at = i * SECTOR, left = MIN(f->synced_size, size) - at;

        if (f->dirty[i] && (is_all || chance(2)))
            (void)!pread(fd, f->synced + at, MIN((size_t)SECTOR, left), (off_t)at);
    }
    if (is_all && f->sectors)
        memset(f->dirty, 0, f->sectors);
}

static void settle_path(struct file *f, bool is_all)
{
    OWN_FD int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    settle(f, fd, is_all);
}

static void settle_names(void)
{
    for (size_t i = 0; i < disk.file_count; i++) {
        if (disk.files[i].is_gone)
            set_synced_size(&disk.files[i], 0);
        disk.files[i].is_gone = false;
    }
}

/* ---- calls on a file ---- */

static struct handle *of(sqlite3_file *file)
{
    return (struct handle *)(void *)file;
}

#define REAL(file, call, ...) (of(file)->real->pMethods->call(of(file)->real, ##__VA_ARGS__))

static int on_close(sqlite3_file *file)
{
    return REAL(file, xClose);
}

static int on_read(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
    return disk.is_cut ? SQLITE_IOERR_READ : REAL(file, xRead, p, n, at);
}

static int judge_write(sqlite3_file *file, sqlite3_int64 end)
{
    sqlite3_int64 size = 0;

    if (goes_dark())
        return SQLITE_IOERR_WRITE;
    if (fails(TESTDISK_BROKEN)) {
        errno = EIO;
        return SQLITE_IOERR_WRITE;
    }
    (void)REAL(file, xFileSize, &size);
    if (end > size && fails(TESTDISK_FULL))
        return SQLITE_FULL;
    return SQLITE_OK;
}

static int on_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
    int rc;

    (void)pthread_mutex_lock(&disk.lock);
    rc = judge_write(file, at + n);
    if (rc == SQLITE_OK)
        rc = REAL(file, xWrite, p, n, at);
    if (rc == SQLITE_OK && of(file)->file)
        mark(of(file)->file, (size_t)at, (size_t)(at + n));
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = SQLITE_IOERR_TRUNCATE;

    (void)pthread_mutex_lock(&disk.lock);
    if (!goes_dark())
        rc = REAL(file, xTruncate, size);
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int on_sync(sqlite3_file *file, int flags)
{
    int rc = SQLITE_OK;

    (void)flags;
    (void)pthread_mutex_lock(&disk.lock);
    disk.syncs++;
    while (disk.is_held)
        (void)pthread_cond_wait(&disk.flow, &disk.lock);
    if (goes_dark()) {
        rc = SQLITE_IOERR_FSYNC;
    } else if (fails(TESTDISK_BROKEN)) {
        errno = EIO;
        rc = SQLITE_IOERR_FSYNC;
    } else if (of(file)->file && !disk.is_lying) {
        settle_path(of(file)->file, true);
        if (of(file)->is_new_log)
            settle_names();
        of(file)->is_new_log = false;
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return REAL(file, xFileSize, ret);
}

static int on_lock(sqlite3_file *file, int level)
{
    return REAL(file, xLock, level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    return REAL(file, xUnlock, level);
}

static int on_check(sqlite3_file *file, int *ret)
{
    return REAL(file, xCheckReservedLock, ret);
}

/* A hint of how large the file will be is a write, and not one of ours. */
static int on_control(sqlite3_file *file, int op, void *arg)
{
    return op == SQLITE_FCNTL_SIZE_HINT ? SQLITE_OK : REAL(file, xFileControl, op, arg);
}

static int on_sector(sqlite3_file *file)
{
    (void)file;
    return SECTOR;
}

static int on_traits(sqlite3_file *file)
{
    (void)file;
    return 0; /* nothing is promised: no atomic writes, no order, no safe append */
}

static int on_shm_map(sqlite3_file *file, int region, int size, int is_grown, void volatile **ret)
{
    return REAL(file, xShmMap, region, size, is_grown, ret);
}

static int on_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    return REAL(file, xShmLock, at, n, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
    REAL(file, xShmBarrier);
}

static int on_shm_unmap(sqlite3_file *file, int is_deleted)
{
    return REAL(file, xShmUnmap, is_deleted);
}

static const sqlite3_io_methods methods = { .iVersion = 2,
                                            .xClose = on_close,
                                            .xRead = on_read,
                                            .xWrite = on_write,
                                            .xTruncate = on_truncate,
                                            .xSync = on_sync,
                                            .xFileSize = on_size,
                                            .xLock = on_lock,
                                            .xUnlock = on_unlock,
                                            .xCheckReservedLock = on_check,
                                            .xFileControl = on_control,
                                            .xSectorSize = on_sector,
                                            .xDeviceCharacteristics = on_traits,
                                            .xShmMap = on_shm_map,
                                            .xShmLock = on_shm_lock,
                                            .xShmBarrier = on_shm_barrier,
                                            .xShmUnmap = on_shm_unmap };

/* ---- calls on names ---- */

static int on_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret)
{
    struct handle *h = of(file);
    int rc = SQLITE_CANTOPEN;

    (void)vfs;
    h->base.pMethods = NULL;
    h->real = (sqlite3_file *)(void *)(h + 1);
    (void)pthread_mutex_lock(&disk.lock);
    h->is_new_log =
        path && access(path, F_OK) < 0 && flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL);
    if (!disk.is_cut)
        rc = disk.real->xOpen(disk.real, path, h->real, flags, ret);
    if (rc == SQLITE_OK) {
        h->base.pMethods = &methods;
        h->file = path ? find_file(path) : NULL;
        if (h->file)
            h->file->is_gone = false;
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

/* A name that goes without a sync of its directory may be there again after a cut, with what it held. */
static int on_delete(sqlite3_vfs *vfs, const char *path, int is_synced)
{
    int rc = SQLITE_IOERR_DELETE;

    (void)vfs;
    (void)pthread_mutex_lock(&disk.lock);
    if (!goes_dark()) {
        rc = disk.real->xDelete(disk.real, path, 0);
        find_file(path)->is_gone = true;
        if (is_synced)
            settle_names();
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

/* ---- the test's side ---- */

void testdisk_init(unsigned seed)
{
    testdisk_done();
    disk.seed = seed * 2654435761u + 1;
    disk.cut_after = disk.syncs = 0;
    disk.is_cut = disk.is_held = disk.is_lying = false;
    disk.fault = TESTDISK_WELL;
    if (disk.real)
        return;
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.pNext = NULL;
    disk.vfs.zName = TESTDISK;
    disk.vfs.szOsFile = (int)sizeof(struct handle) + disk.real->szOsFile;
    disk.vfs.xOpen = on_open;
    disk.vfs.xDelete = on_delete;
    (void)sqlite3_vfs_register(&disk.vfs, 0);
}

void testdisk_done(void)
{
    for (size_t i = 0; i < disk.file_count; i++) {
        free(disk.files[i].path);
        free(disk.files[i].synced);
        free(disk.files[i].dirty);
        disk.files[i] = (struct file){ 0 };
    }
    disk.file_count = 0;
}

void testdisk_know(const char *path)
{
    struct file *f = find_file(path);
    OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    mark(f, 0, (size_t)lseek(fd, 0, SEEK_END));
    settle(f, fd, true);
}

void testdisk_cut_after(unsigned calls)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.cut_after = calls;
    (void)pthread_mutex_unlock(&disk.lock);
}

bool testdisk_is_cut(void)
{
    bool is_cut;

    (void)pthread_mutex_lock(&disk.lock);
    is_cut = disk.is_cut;
    (void)pthread_mutex_unlock(&disk.lock);
    return is_cut;
}

static void restore(struct file *f, unsigned mode)
{
    OWN_FD int fd = -1;

    if (mode > 0) /* of what was not synced, all or some is there */
        settle_path(f, mode == 1);
    (void)unlink(f->path);
    if (f->synced_size == 0)
        return;
    fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert(pwrite(fd, f->synced, f->synced_size, 0) == (ssize_t)f->synced_size);
    if (f->sectors)
        memset(f->dirty, 0, f->sectors);
}

void testdisk_restore(void)
{
    unsigned mode = chance(4);

    for (size_t i = 0; i < disk.file_count; i++) {
        size_t n = strlen(disk.files[i].path);

        if (n > 4 && strcmp(disk.files[i].path + n - 4, "-shm") == 0)
            continue;
        restore(&disk.files[i], mode);
    }
    disk.is_cut = false;
    disk.cut_after = 0;
}

void testdisk_fail(enum testdisk_fault fault, unsigned odds)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.fault = fault;
    disk.odds = odds ? odds : 1;
    (void)pthread_mutex_unlock(&disk.lock);
}

void testdisk_lie(bool is_lying)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.is_lying = is_lying;
    (void)pthread_mutex_unlock(&disk.lock);
}

void testdisk_hold_syncs(bool is_held)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.is_held = is_held;
    (void)pthread_cond_broadcast(&disk.flow);
    (void)pthread_mutex_unlock(&disk.lock);
}

unsigned testdisk_syncs(void)
{
    unsigned n;

    (void)pthread_mutex_lock(&disk.lock);
    n = disk.syncs;
    (void)pthread_mutex_unlock(&disk.lock);
    return n;
}
