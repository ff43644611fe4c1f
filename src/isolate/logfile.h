/* logfile: output of a sandbox's main command on disk, with a ceiling.
 *
 * Format:   lines as container runtimes write them for the kubelet, both streams in one file, in the order they came:
 *               2026-11-16T09:30:00.123456789Z stdout F a whole line, or the end of one
 *               2026-11-16T09:30:00.123456789Z stderr P a piece of a line: more of it follows on that stream
 *           Bytes are the command's own; a reader that shows them on a terminal has to mind that.
 * Ceiling:  LOG_MAX_BYTES; then the file becomes the old one, whose predecessor goes: twice the ceiling at most.
 * Owns:     nothing: opened and closed for each piece, so an idle sandbox costs no descriptor.
 * Used by:  keeper_box.c.
 */
#ifndef SILICA_ISOLATE_LOGFILE_H
#define SILICA_ISOLATE_LOGFILE_H

#include "base/buf.h"

/* What the file gets for a piece of output; for tests, too. */
int logfile_format(const char *stream, struct timespec now, struct span piece, struct buf *out,
                   struct err *e);
int logfile_add(int box_fd, const char *stream, struct span piece, struct err *e);

#endif
