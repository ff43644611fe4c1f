#include "apiserver/disk.h"

#include "apiserver/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>

#define STORE_FILE     "store.db"
#define RESERVE_FILE   "reserve"
#define LOCK_FILE      "lock"
#define APPLICATION_ID 0x53694c69 /* what `file` can know it by */
#define SCHEMA_VERSION 1

struct disk {
    char *dir;
    int dir_fd, lock_fd;
    sqlite3 *writer, *checkpointer;
    sqlite3_stmt *begin, *commit, *rollback, *insert, *remove, *set_compacted;
    uint64_t compacted;
    int wal_pages; /* after the last commit */
};

static const char schema_sql[] =
    "CREATE TABLE log(version INTEGER PRIMARY KEY, op INTEGER NOT NULL, resource TEXT NOT NULL, "
    "namespace TEXT NOT NULL, name TEXT NOT NULL, sum INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('compacted', 0);";

/* ---- errors ---- */

static int fail(struct disk *d, sqlite3 *db, int rc, const char *what, struct err *e)
{
    enum err_code code = ERR_INTERNAL;

    switch (rc & 0xff) {
    case SQLITE_FULL:
        code = ERR_NO_SPACE;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        code = ERR_INVALID;
        break;
    case SQLITE_BUSY:
        code = ERR_BUSY;
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        code = ERR_DENIED;
        break;
    case SQLITE_IOERR:
        if (db && sqlite3_system_errno(db) == ENOSPC)
            code = ERR_NO_SPACE;
        break;
    default:
        break;
    }
    (void)err_set(e, code, "cannot %s the store in '%s': %s", what, d->dir,
                  db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    if (code == ERR_INVALID)
        err_hint(e, "restore " STORE_FILE " from a backup, or move it away to begin with an empty "
                    "store");
    return -1;
}

static int exec(struct disk *d, sqlite3 *db, const char *sql, const char *what, struct err *e)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(d, db, rc, what, e);
}

/* ---- opening ---- */

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
        return fail(d, *ret, rc, "open", e);
    (void)sqlite3_extended_result_codes(*ret, 1);
    (void)sqlite3_busy_timeout(*ret, DISK_BUSY_TIMEOUT_MS);
    (void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return exec(d, *ret,
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY;",
                "open", e);
}

static int ask(struct disk *d, const char *sql, int64_t *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(d->writer, sql, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return rc == SQLITE_ROW ? 0 : fail(d, d->writer, rc, "read", e);
}

static int refuse(struct disk *d, const char *why, struct err *e)
{
    (void)err_set(e, ERR_INVALID, "'%s/" STORE_FILE "' %s", d->dir, why);
    err_hint(e, "choose another directory with --data, or move the file away");
    return -1;
}

/* A file of nobody becomes ours; an older one is brought to today's form; a newer one is left as it is. */
static int agree_on_schema(struct disk *d, struct err *e)
{
    OWN(buf_done) struct buf sql = BUF_INIT(2048);
    int64_t id, version, tables;

    if (ask(d, "PRAGMA application_id", &id, e) < 0 ||
        ask(d, "PRAGMA user_version", &version, e) < 0 ||
        ask(d, "SELECT count(*) FROM sqlite_schema", &tables, e) < 0)
        return -1;
    if (tables == 0 && id == 0 && version == 0) {
        if (buf_addf(&sql, e,
                     "BEGIN IMMEDIATE;%sPRAGMA application_id=%d;PRAGMA user_version=%d;COMMIT;",
                     schema_sql, APPLICATION_ID, SCHEMA_VERSION) < 0)
            return -1;
        return exec(d, d->writer, buf_cstr(&sql), "create", e);
    }
    if (id != APPLICATION_ID)
        return refuse(d, "is a database of another program", e);
    if (version > SCHEMA_VERSION) {
        (void)err_set(e, ERR_UNSUPPORTED,
                      "the store in '%s' has format %lld, this program knows formats up to %d",
                      d->dir, (long long)version, SCHEMA_VERSION);
        err_hint(e, "use the newer silica that wrote it");
        return -1;
    }
    return version == SCHEMA_VERSION ? 0 : refuse(d, "has no known format", e);
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
        { &d->remove, "DELETE FROM log WHERE version=?1" },
        { &d->set_compacted, "UPDATE meta SET value=?1 WHERE key='compacted'" },
    };

    EACH(p, all) {
        int rc = sqlite3_prepare_v3(d->writer, p->sql, -1, SQLITE_PREPARE_PERSISTENT, p->st, NULL);

        if (rc != SQLITE_OK)
            return fail(d, d->writer, rc, "read", e);
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
    int64_t compacted;

    if (lock(d, e) < 0 || connect(d, vfs, &d->writer, e) < 0 || agree_on_schema(d, e) < 0)
        return -1;
    if (connect(d, vfs, &d->checkpointer, e) < 0 || prepare(d, e) < 0)
        return -1;
    if (ask(d, "SELECT value FROM meta WHERE key='compacted'", &compacted, e) < 0)
        return -1;
    d->compacted = (uint64_t)compacted;
    (void)sqlite3_wal_hook(d->writer, on_wal, d);
    return 0;
}

int disk_open(const char *dir, const char *vfs, struct disk **ret, struct err *e)
{
    struct disk *d = NEW(struct disk);
    struct err ignored;

    d->dir = own_strdup(dir);
    d->dir_fd = d->lock_fd = -1;
    if (begin(d, vfs, e) < 0) {
        disk_close(d);
        return -1;
    }
    (void)disk_reserve(
        d, &ignored); /* a disk that is full already can still be read and deleted from */
    *ret = d;
    return 0;
}

void disk_close(struct disk *d)
{
    if (!d)
        return;
    sqlite3_stmt *all[] = {
        d->begin, d->commit, d->rollback, d->insert, d->remove, d->set_compacted
    };

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

/* ---- rows ---- */

static uint64_t mix(uint64_t sum, const void *p, size_t n)
{
    const uint8_t *at = p;
    uint64_t word;

    for (; n >= 8; at += 8, n -= 8) {
        memcpy(&word, at, 8);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    for (word = n; n > 0; n--)
        word = word << 8 | *at++;
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 32;
}

/* SQLite checks its pages' shape, not their bytes: this finds a flipped bit in a row. */
static int64_t sum_of(const struct disk_row *row)
{
    uint64_t sum = mix(row->version, &(uint8_t){ (uint8_t)row->op }, 1);

    sum = mix(sum, row->resource.p, row->resource.n);
    sum = mix(sum, row->namespace.p, row->namespace.n);
    sum = mix(sum, row->name.p, row->name.n);
    return (int64_t)mix(sum, row->body.p, row->body.n);
}

static struct span column(sqlite3_stmt *st, int i)
{
    const void *p = sqlite3_column_blob(st, i);

    return span_of(p, (size_t)sqlite3_column_bytes(st, i));
}

int disk_load(struct disk *d, int (*fn)(void *ctx, const struct disk_row *row, struct err *e),
              void *ctx, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(d->writer, "SELECT * FROM log ORDER BY version", -1, &st, NULL);
    int verdict = 0;

    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
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
        if (sqlite3_column_int64(st, 5) != sum_of(&row)) {
            (void)err_set(e, ERR_INVALID, "the store in '%s' is damaged at version %llu", d->dir,
                          (unsigned long long)row.version);
            err_hint(e, "restore " STORE_FILE " from a backup, or move it away to begin with an "
                        "empty store");
            verdict = -1;
        } else {
            verdict = fn(ctx, &row, e);
        }
        if (verdict < 0)
            break;
    }
    (void)sqlite3_finalize(st);
    if (verdict < 0)
        return -1;
    return rc == SQLITE_DONE ? 0 : fail(d, d->writer, rc, "read", e);
}

uint64_t disk_compacted(const struct disk *d)
{
    return d->compacted;
}

static int run(sqlite3_stmt *st)
{
    int rc = sqlite3_step(st);

    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int insert(struct disk *d, const struct disk_row *row)
{
    sqlite3_stmt *st = d->insert;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (sqlite3_int64)row->version);
    (void)sqlite3_bind_int(st, 2, (int)row->op);
    (void)sqlite3_bind_text64(st, 3, (const char *)row->resource.p, row->resource.n, NULL,
                              SQLITE_UTF8);
    (void)sqlite3_bind_text64(st, 4, row->namespace.n ? (const char *)row->namespace.p : "",
                              row->namespace.n, NULL, SQLITE_UTF8);
    (void)sqlite3_bind_text64(st, 5, (const char *)row->name.p, row->name.n, NULL, SQLITE_UTF8);
    (void)sqlite3_bind_int64(st, 6, sum_of(row));
    (void)sqlite3_bind_blob64(st, 7, row->body.p, row->body.n, NULL);
    rc = run(st);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

static int fill(struct disk *d, const struct disk_batch *b)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < b->row_count && rc == SQLITE_OK; i++)
        rc = insert(d, &b->rows[i]);
    for (size_t i = 0; i < b->garbage_count && rc == SQLITE_OK; i++) {
        (void)sqlite3_bind_int64(d->remove, 1, (sqlite3_int64)b->garbage[i]);
        rc = run(d->remove);
    }
    if (rc == SQLITE_OK && b->garbage_count) {
        (void)sqlite3_bind_int64(d->set_compacted, 1, (sqlite3_int64)b->compacted);
        rc = run(d->set_compacted);
    }
    return rc;
}

int disk_write(struct disk *d, const struct disk_batch *b, struct err *e)
{
    int rc = run(d->begin);

    if (rc == SQLITE_OK)
        rc = fill(d, b);
    if (rc == SQLITE_OK)
        rc = run(d->commit);
    if (rc == SQLITE_OK) {
        if (b->garbage_count)
            d->compacted = b->compacted;
        return 0;
    }
    (void)fail(d, d->writer, rc, "write to", e);
    if (!sqlite3_get_autocommit(d->writer))
        (void)run(d->rollback);
    return -1;
}

bool disk_wants_checkpoint(const struct disk *d)
{
    return d->wal_pages >= DISK_CHECKPOINT_PAGES;
}

int disk_checkpoint(struct disk *d, struct err *e)
{
    int rc =
        sqlite3_wal_checkpoint_v2(d->checkpointer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : fail(d, d->checkpointer, rc, "checkpoint", e);
}

/* ---- the reserve ---- */

void disk_release(struct disk *d)
{
    (void)unlinkat(d->dir_fd, RESERVE_FILE, 0);
}

int disk_reserve(struct disk *d, struct err *e)
{
    OWN_FD int fd =
        openat(d->dir_fd, RESERVE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_sys(e, "cannot make '%s/" RESERVE_FILE "'", d->dir);
    if (fallocate(fd, 0, 0, DISK_RESERVE_BYTES) == 0 || errno == EOPNOTSUPP)
        return 0;
    (void)err_sys(e, "cannot reserve space in '%s'", d->dir);
    disk_release(d);
    return -1;
}
