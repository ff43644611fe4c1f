#include "apiserver/disk_impl.h"

#include "apiserver/limits.h"
#include "apiserver/wal.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define RESERVE_FILE "reserve"
#define LOCK_FILE    "lock"

/* ---- before anything is opened ---- */

static int lock(struct disk *d, struct err *e)
{
    d->dir_fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir_fd < 0)
        return err_sys(e, "cannot open the data directory '%s'", d->dir);
    d->lock_fd = openat(d->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->lock_fd < 0)
        return err_sys(e, "cannot open '%s/" LOCK_FILE "'", d->dir);
    if (flock(d->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return err_sys(e, "cannot lock '%s'", d->dir);
    (void)err_set(e, ERR_BUSY, "the data directory '%s' is in use by another process", d->dir);
    err_hint(e, "stop the other server, or choose another directory with --data");
    return -1;
}

/* -1: it is not there. */
static off_t size_of(const struct disk *d, const char *name)
{
    struct stat st;

    return fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : -1;
}

static int look_at_log(struct disk *d, struct err *e)
{
    OWN_FD int fd = openat(d->dir_fd, LOG_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    off_t size = size_of(d, LOG_FILE);
    struct err why;
    void *p;
    int rc;

    if (fd < 0 && errno != ENOENT)
        return err_sys(e, "cannot open '%s/" LOG_FILE "'", d->dir);
    if (fd < 0 || size <= 0)
        return 0;
    p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return err_sys(e, "cannot read '%s/" LOG_FILE "'", d->dir);
    rc = wal_check(span_of(p, (size_t)size), &why);
    (void)munmap(p, (size_t)size);
    return rc < 0 ? disk_damaged(d->dir, why.msg, e) : 0;
}

/* SQLite takes an empty file for a new database and then removes the log beside it. The reserve is made after the file was
 * filled for the first time, so an empty one beside it was emptied. */
static int look_at_files(struct disk *d, struct err *e)
{
    off_t size = size_of(d, STORE_FILE);

    if (size <= 0 && size_of(d, LOG_FILE) > 0)
        return disk_damaged(d->dir, LOG_FILE " is there without its " STORE_FILE, e);
    if (size == 0 && size_of(d, RESERVE_FILE) >= 0)
        return disk_damaged(d->dir, STORE_FILE " is empty", e);
    return look_at_log(d, e);
}

/* ---- opening ---- */

/* Until all has been read and found whole, closing leaves the files as they are. */
static void set_close_checkpoints(sqlite3 *db, bool is_on)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !is_on, NULL);
}

/* SQLite would make it with the mode that the umask leaves; its log and index take the file's mode. One of an older release
 * has been made so. */
static int make_private(const struct disk *d, struct err *e)
{
    static const char *const files[] = { STORE_FILE, LOG_FILE, STORE_FILE "-shm" };

    EACH(file, files) {
        const int makes_it = file == files ? O_CREAT : 0;
        OWN_FD int fd = openat(d->dir_fd, *file, O_RDWR | makes_it | O_NOFOLLOW | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 077 && fchmod(fd, 0600) < 0))
            return err_sys(e, "cannot open '%s/%s'", d->dir, *file);
    }
    return 0;
}

static int connect(struct disk *d, const char *vfs, sqlite3 **ret, struct err *e)
{
    OWN(buf_done) struct buf path = BUF_INIT(DISK_PATH_MAX_BYTES);
    int rc;

    if (buf_addf(&path, e, "%s/" STORE_FILE, d->dir) < 0)
        return -1;
    rc = sqlite3_open_v2(buf_cstr(&path), ret,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_NOFOLLOW,
                         vfs);
    if (rc != SQLITE_OK)
        return disk_fail(d->dir, *ret, rc, "open", e);
    (void)sqlite3_extended_result_codes(*ret, 1);
    (void)sqlite3_busy_timeout(*ret, DISK_BUSY_TIMEOUT_MS);
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    set_close_checkpoints(*ret, false);
    return disk_format_agree(d->dir, *ret, e);
}

/* The pages' shape and who uses them; what stands in them is checked while they are read. */
static int check_pages(struct disk *d, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(d->writer, "PRAGMA quick_check(1)", -1, &st, NULL);
    const char *verdict;

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    verdict = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (!verdict)
        rc = disk_fail(d->dir, d->writer, rc, "read", e);
    else if (strcmp(verdict, "ok") == 0)
        rc = 0;
    else /* one line of it: the first one says which database */
        rc = disk_damaged(d->dir, strchr(verdict, '\n') ? strchr(verdict, '\n') + 1 : verdict, e);
    (void)sqlite3_finalize(st);
    return rc;
}

static int prepare(struct disk *d, struct err *e)
{
    const struct {
        sqlite3_stmt **st;
        const char *sql;
    } all[] = {
        { &d->begin, "BEGIN IMMEDIATE" },
        { &d->commit, "COMMIT" },
        { &d->rollback, "ROLLBACK" },
        { &d->insert, "INSERT INTO log VALUES(?1,?2,?3,?4,?5,?6,?7)" },
        { &d->remove, "DELETE FROM log WHERE version=?1 RETURNING sum" },
        { &d->set_state, DISK_SET_STATE },
    };

    EACH(p, all) {
        int rc = sqlite3_prepare_v3(d->writer, p->sql, -1, SQLITE_PREPARE_PERSISTENT, p->st, NULL);

        if (rc != SQLITE_OK)
            return disk_fail(d->dir, d->writer, rc, "read", e);
    }
    return 0;
}

static int on_wal(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct disk *d = ctx;

    (void)db, (void)name;
    d->wal_pages = pages;
    return SQLITE_OK;
}

static int begin(struct disk *d, const char *vfs, struct err *e)
{
    if (lock(d, e) < 0 || look_at_files(d, e) < 0 || make_private(d, e) < 0)
        return -1;
    if (connect(d, vfs, &d->writer, e) < 0 || check_pages(d, e) < 0)
        return -1;
    if (connect(d, vfs, &d->checkpointer, e) < 0 || prepare(d, e) < 0)
        return -1;
    (void)sqlite3_wal_hook(d->writer, on_wal, d);
    return disk_format_state(d->dir, d->writer, &d->state, e);
}

/* A small disk keeps less of itself back. The log may become twice as long as it should while a checkpoint is late, and
 * then all of it must find room in the file. */
static void size_up(struct disk *d)
{
    struct statvfs fs;
    uint64_t bytes = DISK_RESERVE_BYTES;

    if (fstatvfs(d->dir_fd, &fs) == 0)
        bytes = MIN(bytes, (uint64_t)fs.f_blocks * fs.f_frsize / DISK_RESERVE_PART);
    d->reserve_bytes = (off_t)bytes;
    d->checkpoint_pages = MIN(DISK_CHECKPOINT_PAGES, (int)(bytes / DISK_PAGE_BYTES / 2));
}

int disk_open(const struct disk_config *config, struct disk **ret, struct err *e)
{
    struct disk *d = NEW(struct disk);

    d->dir = own_strdup(config->dir);
    d->dir_fd = d->lock_fd = -1;
    if (begin(d, config->vfs, e) < 0) {
        disk_close(d);
        return -1;
    }
    size_up(d);
    if (config->checkpoint_pages)
        d->checkpoint_pages = config->checkpoint_pages;
    *ret = d;
    return 0;
}

void disk_close(struct disk *d)
{
    if (!d)
        return;
    sqlite3_stmt *all[] = { d->begin, d->commit, d->rollback, d->insert, d->remove, d->set_state };

    EACH(st, all) {
        (void)sqlite3_finalize(*st);
    }
    (void)sqlite3_close(d->checkpointer);
    (void)sqlite3_close(d->writer);
    own_fd_close(&d->lock_fd);
    own_fd_close(&d->dir_fd);
    free(d->dir);
    free(d);
}

/* ---- the reserve ---- */

void disk_release(struct disk *d)
{
    d->is_reserved = false;
    (void)unlinkat(d->dir_fd, RESERVE_FILE, 0);
}

/* times 2: there is as much room again behind it. */
static bool take_reserve(struct disk *d, int times)
{
    OWN_FD int fd =
        openat(d->dir_fd, RESERVE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    d->is_reserved = fd >= 0 &&
                     (fallocate(fd, 0, 0, times * d->reserve_bytes) == 0 || errno == EOPNOTSUPP) &&
                     (times == 1 || ftruncate(fd, d->reserve_bytes) == 0);
    if (!d->is_reserved)
        disk_release(d);
    return d->is_reserved;
}

bool disk_is_reserved(const struct disk *d)
{
    return d->is_reserved;
}

bool disk_has_room(struct disk *d)
{
    int64_t unused = 0;
    struct err ignored;

    /* What the log holds goes to the file, and its room back to the disk. */
    (void)sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    d->is_tight = !take_reserve(d, 2);
    return !d->is_tight ||
           (disk_ask(d->dir, d->writer, "PRAGMA freelist_count", &unused, &ignored) == 0 &&
            unused * DISK_PAGE_BYTES >= d->reserve_bytes && take_reserve(d, 1));
}

/* ---- reading ---- */

static struct span column(sqlite3_stmt *st, int i)
{
    const void *p = sqlite3_column_blob(st, i);

    return span_of(p, (size_t)sqlite3_column_bytes(st, i));
}

static int damaged_at(const struct disk *d, uint64_t version, struct err *e)
{
    char text[64];

    (void)snprintf(text, sizeof text, "at version %llu", (unsigned long long)version);
    return disk_damaged(d->dir, text, e);
}

/* All of it is here and whole: from now on the file may be changed. The log begins anew, as wal.h wants it. */
static int trust(struct disk *d, struct err *e)
{
    int rc = sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    set_close_checkpoints(d->writer, true);
    set_close_checkpoints(d->checkpointer, true);
    d->is_log_new = rc == SQLITE_OK;
    (void)take_reserve(d, 1); /* a disk that is full already can still be read and deleted from */
    return rc == SQLITE_OK || (rc & 0xff) == SQLITE_FULL || (rc & 0xff) == SQLITE_IOERR
               ? 0
               : disk_fail(d->dir, d->writer, rc, "checkpoint", e);
}

int disk_load(struct disk *d, int (*fn)(void *ctx, const struct disk_row *row, struct err *e),
              void *ctx, struct err *e)
{
    sqlite3_stmt *st = NULL;
    struct disk_state seen = { .compacted = d->state.compacted };
    int rc = sqlite3_prepare_v2(d->writer, "SELECT * FROM log ORDER BY version", -1, &st, NULL);
    int verdict = 0;

    while (verdict == 0 && (rc == SQLITE_OK || rc == SQLITE_ROW)) {
        struct disk_row row;

        rc = sqlite3_step(st);
        if (rc != SQLITE_ROW)
            break;
        row = (struct disk_row){ .version = (uint64_t)sqlite3_column_int64(st, 0),
                                 .op = (enum disk_op)sqlite3_column_int(st, 1),
                                 .resource = column(st, 2),
                                 .namespace = column(st, 3),
                                 .name = column(st, 4),
                                 .body = column(st, 6) };
        seen.rows++;
        seen.total += (uint64_t)disk_format_sum(&row);
        verdict = sqlite3_column_int64(st, 5) == disk_format_sum(&row)
                      ? fn(ctx, &row, e)
                      : damaged_at(d, row.version, e);
    }
    if (verdict == 0 && rc != SQLITE_DONE)
        verdict = disk_fail(d->dir, d->writer, rc, "read", e);
    (void)sqlite3_finalize(st);
    if (verdict < 0)
        return -1;
    if (memcmp(&seen, &d->state, sizeof seen) != 0)
        return disk_damaged(d->dir, "there are not the writes in it that there were", e);
    return trust(d, e);
}

uint64_t disk_compacted(const struct disk *d)
{
    return d->state.compacted;
}

/* ---- writing ---- */

static int run(sqlite3_stmt *st)
{
    int rc = sqlite3_step(st);

    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int insert(struct disk *d, const struct disk_row *row, struct disk_state *next)
{
    int64_t sum = disk_format_sum(row);
    sqlite3_stmt *st = d->insert;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (sqlite3_int64)row->version);
    (void)sqlite3_bind_int(st, 2, (int)row->op);
    (void)sqlite3_bind_text64(st, 3, (const char *)row->resource.p, row->resource.n, NULL,
                              SQLITE_UTF8);
    (void)sqlite3_bind_text64(st, 4, row->namespace.n ? (const char *)row->namespace.p : "",
                              row->namespace.n, NULL, SQLITE_UTF8);
    (void)sqlite3_bind_text64(st, 5, (const char *)row->name.p, row->name.n, NULL, SQLITE_UTF8);
    (void)sqlite3_bind_int64(st, 6, sum);
    (void)sqlite3_bind_blob64(st, 7, row->body.p, row->body.n, NULL);
    rc = run(st);
    (void)sqlite3_clear_bindings(st);
    next->rows++;
    next->total += (uint64_t)sum;
    return rc;
}

static int forget(struct disk *d, uint64_t version, struct disk_state *next)
{
    int rc;

    (void)sqlite3_bind_int64(d->remove, 1, (sqlite3_int64)version);
    rc = sqlite3_step(d->remove);
    if (rc == SQLITE_ROW) {
        next->rows--;
        next->total -= (uint64_t)sqlite3_column_int64(d->remove, 0);
        rc = sqlite3_step(d->remove);
    }
    (void)sqlite3_reset(d->remove);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int fill(struct disk *d, const struct disk_batch *b, struct disk_state *next)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < b->row_count && rc == SQLITE_OK; i++)
        rc = insert(d, &b->rows[i], next);
    for (size_t i = 0; i < b->garbage_count && rc == SQLITE_OK; i++)
        rc = forget(d, b->garbage[i], next);
    next->compacted = MAX(next->compacted, b->compacted);
    if (rc != SQLITE_OK)
        return rc;
    disk_format_bind_state(d->set_state, next);
    return run(d->set_state);
}

/* There is no room for a log that grows. */
static bool is_short_of_room(const struct disk *d)
{
    return !d->is_reserved || d->is_tight;
}

/* The log begins anew after a commit that failed, whose frames may stand in it; each time where there is no room for a longer
 * one; and when it has become long because each checkpoint beside it came too late for the last commit. Between two commits,
 * so nothing can come in between. */
static void tend_log(struct disk *d)
{
    if (!d->is_log_new)
        d->is_log_new = sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                                  NULL) == SQLITE_OK;
    else if (is_short_of_room(d))
        (void)sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    else if (d->wal_pages >= 2 * d->checkpoint_pages)
        (void)sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

int disk_write(struct disk *d, const struct disk_batch *b, struct err *e)
{
    struct disk_state next = d->state;
    int rc;

    tend_log(d);
    rc = run(d->begin);
    if (rc == SQLITE_OK)
        rc = fill(d, b, &next);
    if (rc == SQLITE_OK)
        rc = run(d->commit);
    if (rc == SQLITE_OK) {
        d->state = next;
        return 0;
    }
    (void)disk_fail(d->dir, d->writer, rc, "write to", e);
    d->is_log_new = false;
    if (!sqlite3_get_autocommit(d->writer))
        (void)run(d->rollback);
    return -1;
}

bool disk_wants_checkpoint(const struct disk *d)
{
    return d->wal_pages >= d->checkpoint_pages && !is_short_of_room(d); /* else see tend_log */
}

int disk_checkpoint(struct disk *d, struct err *e)
{
    int rc =
        sqlite3_wal_checkpoint_v2(d->checkpointer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    return rc == SQLITE_OK || rc == SQLITE_BUSY
               ? 0
               : disk_fail(d->dir, d->checkpointer, rc, "checkpoint", e);
}
