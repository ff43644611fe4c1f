/* file_write: a file's new content, whole or not at all.
 *
 * Owns:     a temporary file `.sandboxd-tmp-*` beside the target until it is renamed over it or removed.
 * Used by:  /upload, /write and /edit, PUT. Blocking: on a worker, one call at a time per writer.
 *
 *     struct file_write w = FILE_WRITE_NONE;
 *     if (file_write_begin(&w, root, path, &how, e) == 0 && file_write_add(&w, piece, e) == 0 ... )
 *         file_write_commit(&w, e);
 *     file_write_done(&w);           // removes what was not committed
 *
 * A failure leaves the old content in place. A killed process leaves at most a `.sandboxd-tmp-*` file.
 *
 * Where rename cannot do what the contract wants and how->in_place allows, the content is collected elsewhere
 * and then written over the target's own inode: the directory refuses new entries or is sticky, the target is
 * a mount point, or it belongs to a user we cannot give a new file to. Space is reserved first, so that a full
 * disk is found out before the old content is touched; a crash in the middle of that copy is the one case that
 * can leave a mixed file. Otherwise other hard links of the target keep the old content.
 *
 * Errors carry e->sys; file_write_path() is the absolute path for the message, "" if the path was refused.
 * Targets that are directories are EISDIR; other than regular files, ENXIO when in_place (nobody waits for the
 * reader of a FIFO here), else replaced as rename does.
 */
#ifndef SILICA_RUNTIME_FILE_WRITE_H
#define SILICA_RUNTIME_FILE_WRITE_H

#include "runtime/files/path.h"

struct file_write_how {
    enum path_rules rules;
    mode_t parent_mode; /* of directories to create, minus umask */
    bool in_place;      /* keep mode and owner of an existing target, and write in place if need be;
                         * a new file gets 0666 minus umask */
    mode_t mode;        /* !in_place: exactly this mode, whatever was there */
    bool sync;          /* on disk before it replaces the old content */
};

extern const struct file_write_how file_write_upload;   /* /upload: A.2.4 */
extern const struct file_write_how file_write_pydantic; /* /write, /edit */
struct file_write_how file_write_put(mode_t mode);      /* PUT: B.4.4 */

struct file_write {
    struct path_at at;
    struct file_write_how how;
    int fd; /* what is being written: the temporary file, or the target itself */
    int target_fd; /* the existing target, open for writing; -1 when it does not exist or only rename is wanted */
    bool is_in_place; /* commit copies instead of renaming */
    char temp[32];    /* its name in at.dir_fd, "" when it has none */
    uint64_t size;    /* bytes written so far */
};
#define FILE_WRITE_NONE                                                                            \
    {                                                                                              \
        .at = PATH_AT_NONE, .fd = -1, .target_fd = -1                                              \
    }

/* Resolves the path, creates its parents, opens the temporary file. -1: as path_resolve, or EISDIR, EACCES... */
int file_write_begin(struct file_write *w, const struct path_root *root, struct span path,
                     const struct file_write_how *how, struct err *e);
int file_write_add(struct file_write *w, struct span bytes, struct err *e);
/* Makes it the file's content. Once; then only done. */
int file_write_commit(struct file_write *w, struct err *e);
/* At any time: what was not committed is removed. */
void file_write_done(struct file_write *w);
const char *file_write_path(const struct file_write *w);

#endif
