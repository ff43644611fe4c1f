/* file_list: what a directory holds, entry by entry.
 *
 * Owns:     nothing after the call. Sorted orders hold all entries for its duration, at most
 *           FILE_LIST_MAX_ENTRIES. Blocking: on a worker.
 * Used by:  /list, GET /v1/files of a directory, /ls. The caller writes its JSON from the callback.
 *
 * Links are shown as what they lead to when that is inside the root. Those that leave it, dangle or loop are
 * left out by the sandboxd rules; by the others they are shown as themselves: a file, with the link's own size
 * and time (the reference server fails the whole listing there). Entries that vanish meanwhile are left out.
 */
#ifndef SILICA_RUNTIME_FILE_LIST_H
#define SILICA_RUNTIME_FILE_LIST_H

#include "runtime/files/path.h"

/* Then ERR_LIMIT: about 100 MiB of memory here and of JSON there, more than any client reads in one answer. */
#define FILE_LIST_MAX_ENTRIES 1000000

enum file_order {
    FILE_AS_STORED,  /* as the directory gives them: A */
    FILE_BY_NAME,    /* byte order: B */
    FILE_DIRS_FIRST, /* directories, then the rest, each by name: E */
};

struct file_entry {
    const char *name; /* bytes as stored: UTF-8 is not certain; for the call only */
    bool is_dir;
    uint64_t size;
    struct timespec modified;
    mode_t mode; /* 0777 bits */
};
/* Returns 0, or -1 with *e to end the listing. */
typedef int (*file_entry_fn)(void *ctx, const struct file_entry *entry, struct err *e);

struct file_list_how {
    enum path_rules rules;
    enum file_order order;
};
extern const struct file_list_how file_list_python;
extern const struct file_list_how file_list_sandboxd;
extern const struct file_list_how file_list_pydantic;

/* `dir_fd` and `at` are of one directory, as path_open() or file_read_open() gave them. Without `.` and `..`. */
int file_list(const struct path_root *root, const struct path_at *at, int dir_fd,
              const struct file_list_how *how, file_entry_fn each, void *ctx, struct err *e);
/* The same by path. ENOTDIR in e->sys when it is no directory. */
int file_list_path(const struct path_root *root, struct span path, const struct file_list_how *how,
                   file_entry_fn each, void *ctx, struct err *e);

/* What one name in a directory is, following a link if it stays inside. False: not to be shown. `rel` is the
 * directory's path below the root. */
bool file_entry_stat(const struct path_root *root, int dir_fd, const char *rel, const char *name,
                     enum path_rules rules, struct stat *ret);

#endif
