/* file_pattern: glob patterns, matched without backtracking into the exponential.
 *
 * Owns:     nothing; a file_pattern borrows its text. Does no I/O.
 * Used by:  /glob, and the file filter of /grep.
 *
 * `*` any characters within a name, `?` one, `[a-z]` one of a set, `[!a-z]` or `[^a-z]` one that is not in it, a
 * component `**` any number of directories, none included. A `[` without `]` is itself; there is no escape
 * character (write `[*]`). A leading dot is nothing special, as in `find`. Characters are UTF-8; a byte that is
 * none is a character of its own.
 */
#ifndef SILICA_RUNTIME_FILE_PATTERN_H
#define SILICA_RUNTIME_FILE_PATTERN_H

#include "base/buf.h"

/* Then ERR_LIMIT; bounds the work per name: its length times this */
#define FILE_PATTERN_MAX_BYTES 1024
#define FILE_PATTERN_MAX_PARTS 62 /* components; a set of places in the pattern is one word */

struct file_pattern {
    struct span parts[FILE_PATTERN_MAX_PARTS];
    size_t n;
};

/* Empty components and `.` are dropped. ERR_INVALID: empty, or a `..` in it. */
int file_pattern_init(struct file_pattern *p, struct span text, struct err *e);
bool file_pattern_matches(const struct file_pattern *p, struct span path);
/* Whether something below the directory `path` can match: else it need not be entered. "" is the start. */
bool file_pattern_leads_below(const struct file_pattern *p, struct span path);
/* One component alone. */
bool file_pattern_name(struct span pattern, struct span name);

#endif
