#include "apiserver/disk_impl.h"

#include <errno.h>
#include <string.h>

#define APPLICATION_ID 0x53694c69 /* what `file` can know it by */
#define FORMAT         2

static const char log_sql[] =
    "CREATE TABLE log(version INTEGER PRIMARY KEY, op INTEGER NOT NULL, resource TEXT NOT NULL, "
    "namespace TEXT NOT NULL, name TEXT NOT NULL, sum INTEGER NOT NULL, body BLOB NOT NULL);";
static const char state_sql[] =
    "CREATE TABLE state(id INTEGER PRIMARY KEY, compacted INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "total INTEGER NOT NULL, seal INTEGER NOT NULL);"
    "INSERT INTO state VALUES(1, 0, 0, 0, 0);";

/* ---- errors and small questions ---- */

int disk_fail(const char *dir, sqlite3 *db, int rc, const char *what, struct err *e)
{
    enum err_code code = ERR_INTERNAL;

    switch (rc & 0xff) {
    case SQLITE_FULL:
        code = ERR_NO_SPACE;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* the statements are ours, so it is the file that does not fit them */
        return disk_damaged(dir, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc), e);
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
    return err_set(e, code, "cannot %s the store in '%s': %s", what, dir,
                   db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

int disk_damaged(const char *dir, const char *what, struct err *e)
{
    (void)err_set(e, ERR_INVALID, "the store in '%s' is damaged: %s", dir, what);
    err_hint(e, "restore " STORE_FILE " and " LOG_FILE " from a backup, or move both away to begin "
                "with an empty store");
    return -1;
}

int disk_exec(const char *dir, sqlite3 *db, const char *sql, const char *what, struct err *e)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : disk_fail(dir, db, rc, what, e);
}

int disk_ask(const char *dir, sqlite3 *db, const char *sql, int64_t *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    if (rc != SQLITE_ROW)
        (void)disk_fail(dir, db, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, "read", e);
    (void)sqlite3_finalize(st);
    return rc == SQLITE_ROW ? 0 : -1;
}

/* ---- sums ---- */

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
int64_t disk_format_sum(const struct disk_row *row)
{
    uint64_t sum = mix(row->version, &(uint8_t){ (uint8_t)row->op }, 1);

    sum = mix(sum, row->resource.p, row->resource.n);
    sum = mix(sum, row->namespace.p, row->namespace.n);
    sum = mix(sum, row->name.p, row->name.n);
    return (int64_t)mix(sum, row->body.p, row->body.n);
}

static int64_t seal_of(const struct disk_state *state)
{
    uint64_t parts[] = { state->compacted, state->rows, state->total };

    return (int64_t)mix(FORMAT, parts, sizeof parts);
}

void disk_format_bind_state(sqlite3_stmt *st, const struct disk_state *state)
{
    (void)sqlite3_bind_int64(st, 1, (sqlite3_int64)state->compacted);
    (void)sqlite3_bind_int64(st, 2, (sqlite3_int64)state->rows);
    (void)sqlite3_bind_int64(st, 3, (sqlite3_int64)state->total);
    (void)sqlite3_bind_int64(st, 4, seal_of(state));
}

int disk_format_state(const char *dir, sqlite3 *db, struct disk_state *ret, struct err *e)
{
    static const char *const columns[] = { "compacted", "rows", "total", "seal" };
    int64_t values[LEN(columns)];
    char sql[64];

    for (size_t i = 0; i < LEN(columns); i++) {
        (void)sqlite3_snprintf(sizeof sql, sql, "SELECT %s FROM state WHERE id=1", columns[i]);
        if (disk_ask(dir, db, sql, &values[i], e) < 0)
            return -1;
    }
    *ret = (struct disk_state){ (uint64_t)values[0], (uint64_t)values[1], (uint64_t)values[2] };
    return seal_of(ret) == values[3] ? 0 : disk_damaged(dir, "its own state is not whole", e);
}

static int set_state(const char *dir, sqlite3 *db, const struct disk_state *state, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, DISK_SET_STATE, -1, &st, NULL);

    if (rc == SQLITE_OK) {
        disk_format_bind_state(st, state);
        rc = sqlite3_step(st);
    }
    if (rc != SQLITE_DONE)
        (void)disk_fail(dir, db, rc, "write to", e);
    (void)sqlite3_finalize(st);
    return rc == SQLITE_DONE ? 0 : -1;
}

/* ---- from format to format; each within one transaction ---- */

static int create(const char *dir, sqlite3 *db, struct err *e)
{
    return disk_exec(dir, db, log_sql, "create", e) < 0 ||
                   disk_exec(dir, db, state_sql, "create", e) < 0
               ? -1
               : set_state(dir, db, &(struct disk_state){ 0 }, e);
}

static int from_1_to_2(const char *dir, sqlite3 *db, struct err *e)
{
    struct disk_state state = { 0 };
    int64_t compacted;
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT sum FROM log", -1, &st, NULL);

    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(st);
        if (rc != SQLITE_ROW)
            break;
        state.rows++;
        state.total += (uint64_t)sqlite3_column_int64(st, 0);
    }
    if (rc != SQLITE_DONE)
        (void)disk_fail(dir, db, rc, "read", e);
    (void)sqlite3_finalize(st);
    if (rc != SQLITE_DONE ||
        disk_ask(dir, db, "SELECT value FROM meta WHERE key='compacted'", &compacted, e) < 0)
        return -1;
    state.compacted = (uint64_t)compacted;
    if (disk_exec(dir, db, state_sql, "convert", e) < 0 || set_state(dir, db, &state, e) < 0)
        return -1;
    return disk_exec(dir, db, "DROP TABLE meta", "convert", e);
}

/* steps[n] leads from format n to n + 1. */
static int (*const steps[FORMAT])(const char *dir, sqlite3 *db, struct err *e) = {
    [1] = from_1_to_2,
};

static int mark(const char *dir, sqlite3 *db, struct err *e)
{
    char sql[96];

    (void)sqlite3_snprintf(sizeof sql, sql, "PRAGMA application_id=%d;PRAGMA user_version=%d",
                           APPLICATION_ID, FORMAT);
    return disk_exec(dir, db, sql, "create", e);
}

/* From a format, 0 being none, to today's. The file itself says what it is from then on, not only its log. */
static int convert(const char *dir, sqlite3 *db, int64_t version, struct err *e)
{
    struct err ignored;
    int rc = disk_exec(dir, db, "BEGIN IMMEDIATE", "write to", e);

    if (rc == 0 && version == 0)
        rc = create(dir, db, e);
    else
        for (; rc == 0 && version < FORMAT; version++)
            rc = steps[version](dir, db, e);
    if (rc == 0)
        rc = mark(dir, db, e);
    if (rc == 0)
        rc = disk_exec(dir, db, "COMMIT", "write to", e);
    if (rc < 0 && !sqlite3_get_autocommit(db))
        (void)disk_exec(dir, db, "ROLLBACK", "write to", &ignored);
    return rc < 0 ? -1 : disk_exec(dir, db, "PRAGMA wal_checkpoint(TRUNCATE)", "write to", e);
}

static int refuse(const char *dir, const char *why, struct err *e)
{
    (void)err_set(e, ERR_INVALID, "'%s/" STORE_FILE "' %s", dir, why);
    err_hint(e, "choose another directory with --data, or move the file away");
    return -1;
}

int disk_format_agree(const char *dir, sqlite3 *db, struct err *e)
{
    static const char settings[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
        "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY;"
        /* In KiB: the pages of a large commit and those that its garbage is in. None is written twice in one commit. */
        "PRAGMA cache_size=-8192; PRAGMA cache_spill=OFF;";
    int64_t id, version, tables;
    bool is_nobodys;

    /* Whose it is comes first: the settings change a file. */
    if (disk_ask(dir, db, "PRAGMA application_id", &id, e) < 0 ||
        disk_ask(dir, db, "PRAGMA user_version", &version, e) < 0 ||
        disk_ask(dir, db, "SELECT count(*) FROM sqlite_schema", &tables, e) < 0)
        return -1;
    is_nobodys = tables == 0 && id == 0 && version == 0;
    if (!is_nobodys && id != APPLICATION_ID)
        return refuse(dir, "is a database of another program", e);
    if (version > FORMAT) {
        (void)err_set(e, ERR_UNSUPPORTED,
                      "the store in '%s' has format %lld, this program knows formats up to %d", dir,
                      (long long)version, FORMAT);
        err_hint(e, "use the newer silica that wrote it");
        return -1;
    }
    if (!is_nobodys && version < 1)
        return refuse(dir, "has no known format", e);
    if (disk_exec(dir, db, settings, "open", e) < 0)
        return -1;
    return version == FORMAT ? 0 : convert(dir, db, is_nobodys ? 0 : version, e);
}
