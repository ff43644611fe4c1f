/* file_read: files for download, text by lines, and replacing a string in a text.
 *
 * Owns:     a file_read owns its descriptor and path. Blocking: on a worker.
 * Used by:  /download, GET /v1/files, /read, /edit.
 */
#ifndef SILICA_RUNTIME_FILE_READ_H
#define SILICA_RUNTIME_FILE_READ_H

#include "runtime/files/path.h"

/* /read and /edit hold the text in memory. A text that does not fit is an error and never a shorter text: the
 * client writes back what it read. */
#define FILE_TEXT_MAX_BYTES (64 * 1024 * 1024)

#define FILE_ETAG_BYTES 48

struct file_read {
    int fd; /* blocking, at its start; a directory's is readable for file_list */
    bool is_dir;
    struct stat st; /* of fd */
    struct path_at at;
    /* Opaque and quoted: size and time of change with nanoseconds, in hex. Starlette's is an MD5 of about the
     * same, but no client computes it, and a hash hides nothing here. "" for a directory. */
    char etag[FILE_ETAG_BYTES];
};
#define FILE_READ_NONE                                                                             \
    {                                                                                              \
        .fd = -1, .at = PATH_AT_NONE                                                               \
    }

/* Opens a regular file or a directory. Other kinds are ERR_UNSUPPORTED, and never block. -1: as path_open. */
int file_read_open(struct file_read *f, const struct path_root *root, enum path_rules rules,
                   struct span path, struct err *e);
void file_read_done(struct file_read *f);

/* Adds `limit` lines from line `offset` (counted from 0) to out, byte for byte; what is not UTF-8 is replaced by
 * U+FFFD. A last line without newline counts. ERR_LIMIT when out, or FILE_TEXT_MAX_BYTES, is too small. */
int file_read_lines(int fd, uint64_t offset, uint64_t limit, struct buf *out, struct err *e);

struct file_edit {
    struct span path; /* by the pydantic rules */
    struct span old_text, new_text;
    bool replace_all;
};
/* Replaces the string in the file. The messages are the pydantic client's own: ERR_NOT_FOUND with "File '...'
 * not found" or "String '...' not found in file"; ERR_CONFLICT with "String '...' found N times. ...". */
int file_edit(const struct path_root *root, const struct file_edit *edit, uint64_t *ret_count,
              struct err *e);

#endif
