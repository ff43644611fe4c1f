/* file_grep: lines that match, in a file or in all files below a directory (/grep).
 *
 * Owns:     nothing after the call; one line in memory. Blocking: on a worker.
 *
 * The documents of the pydantic client name this route but nothing calls it, so its shape is ours: the path by
 * the pydantic rules, a pattern (file_ere.h, or plain text), optionally a glob: matched against the name, or, if
 * it has a slash, against the path below the start. Files with a NUL in their first FILE_GREP_PIECE_BYTES are
 * taken for binary and passed over, as are all that are not regular, and links unless the path itself is one.
 */
#ifndef SILICA_RUNTIME_FILE_GREP_H
#define SILICA_RUNTIME_FILE_GREP_H

#include "runtime/files/path.h"

#define FILE_GREP_MAX_ROWS       10000       /* then is_cut */
#define FILE_GREP_LINE_MAX_BYTES (16 * 1024) /* a longer line is looked at and shown up to here */
#define FILE_GREP_PIECE_BYTES    (64 * 1024) /* read at once */

struct file_grep_how {
    struct span path;
    struct span pattern;
    struct span glob; /* empty: every file */
    bool is_literal;
    bool ignore_case; /* ASCII letters */
    uint64_t deadline_ms;
};

struct file_grep_row {
    const char *rel;  /* below the root */
    uint64_t line;    /* from 1 */
    struct span text; /* without its newline; bytes as stored; for the call only */
};
/* Returns 0, or -1 with *e to end the search. */
typedef int (*file_grep_fn)(void *ctx, const struct file_grep_row *row, struct err *e);

/* Rows of one file come in order; files in the order of their directory. */
int file_grep(const struct path_root *root, const struct file_grep_how *how, file_grep_fn each,
              void *ctx, bool *ret_is_cut, struct err *e);

#endif
