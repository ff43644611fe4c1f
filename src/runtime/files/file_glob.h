/* file_glob: the files below a directory whose path matches a pattern (/glob).
 *
 * Owns:     the rows, until file_glob_done(). Blocking: on a worker.
 *
 * Regular files only, and links to such inside the root. The path and the pattern are by the pydantic rules (a
 * pattern that starts with a slash counts from the root, also when it repeats the root's own path). Rows come
 * sorted by path in byte order.
 */
#ifndef SILICA_RUNTIME_FILE_GLOB_H
#define SILICA_RUNTIME_FILE_GLOB_H

#include "runtime/files/file_pattern.h"
#include "runtime/files/path.h"

/* Then is_cut: more than any caller reads, and about 3 MiB of JSON */
#define FILE_GLOB_MAX_ROWS 10000

struct file_glob_row {
    const char *rel;  /* below the root */
    const char *name; /* its last component */
    uint64_t size;
    struct timespec modified;
    size_t text_at; /* of rel in texts: they move while rows are added */
};

struct file_glob {
    struct buf texts;
    struct file_glob_row *rows;
    size_t n, cap;
    bool is_cut; /* the limit or the deadline was reached: there may be more */
};
#define FILE_GLOB_NONE                                                                             \
    {                                                                                              \
        .texts = BUF_INIT((size_t)FILE_GLOB_MAX_ROWS * PATH_TEXT_MAX_BYTES)                        \
    }

/* `deadline_ms` by time_mono_ms(), 0 for none. -1: as path_resolve; ENOTDIR, ERR_NOT_FOUND; a bad pattern. */
int file_glob(struct file_glob *g, const struct path_root *root, struct span path,
              struct span pattern, uint64_t deadline_ms, struct err *e);
void file_glob_done(struct file_glob *g);

#endif
