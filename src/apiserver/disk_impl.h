/* disk_impl: what the files of the store's file share. disk.c is its life, disk_format.c what it looks like inside. */
#ifndef SILICA_APISERVER_DISK_IMPL_H
#define SILICA_APISERVER_DISK_IMPL_H

#include "apiserver/disk.h"

#include <sqlite3.h>

#define STORE_FILE "store.db"
#define LOG_FILE   "store.db-wal"

/* What the sealed row says of all others. */
struct disk_state {
    uint64_t compacted;
    uint64_t rows;  /* how many there are */
    uint64_t total; /* their checksums, added */
};

struct disk {
    char *dir;
    int dir_fd, lock_fd;
    sqlite3 *writer, *checkpointer;
    sqlite3_stmt *begin, *commit, *rollback, *insert, *remove, *set_state;
    struct disk_state state;
    off_t reserve_bytes;
    int checkpoint_pages; /* of the log: then they go to the file, and at twice that writes wait for it */
    int wal_pages;        /* after the last commit */
    bool is_reserved; /* the reserve is there */
    bool is_tight;    /* there is room within the file, and hardly any on the disk */
    bool is_log_new;  /* no transaction of it has failed */
};

/* -1 with what SQLite says; db may be NULL. */
int disk_fail(const char *dir, sqlite3 *db, int rc, const char *what, struct err *e);
/* -1, ERR_INVALID, with what can be done. what: "is damaged at version 5". */
int disk_damaged(const char *dir, const char *what, struct err *e);
int disk_exec(const char *dir, sqlite3 *db, const char *sql, const char *what, struct err *e);
/* The first column of the first row. */
int disk_ask(const char *dir, sqlite3 *db, const char *sql, int64_t *ret, struct err *e);

/* disk_format.c. Formats, by SQLite's user_version:
 *     1  log: a row per write; meta: "compacted"
 *     2  meta gave way to state: one row, sealed, with the number and the sum of the rows of log
 * A database of nobody becomes ours, an older one is brought to today's form, a newer one is left as it is. */
int disk_format_agree(const char *dir, sqlite3 *db, struct err *e);
int disk_format_state(const char *dir, sqlite3 *db, struct disk_state *ret, struct err *e);
/* Bound to the statement that DISK_SET_STATE makes. */
#define DISK_SET_STATE "UPDATE state SET compacted=?1,rows=?2,total=?3,seal=?4 WHERE id=1"
void disk_format_bind_state(sqlite3_stmt *st, const struct disk_state *state);
int64_t disk_format_sum(const struct disk_row *row);

#endif
