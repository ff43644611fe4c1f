#include "isolate/logfile.h"

#include "base/fd.h"
#include "base/time.h"
#include "isolate/dir.h"
#include "isolate/limits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#define STAMP_MAX_BYTES 64 /* time, stream and tag of one line */

int logfile_format(const char *stream, struct timespec now, struct span piece, struct buf *out,
                   struct err *e)
{
    char second[TIME_TEXT_BYTES];

    (void)time_rfc3339(second, now, false); /* ends in 'Z' */
    second[strlen(second) - 1] = '\0';
    while (piece.n) {
        size_t end = span_find(piece, '\n');
        bool is_whole = end != SIZE_MAX && end <= LOG_LINE_MAX_BYTES;
        struct span line = span_slice(piece, 0, is_whole ? end : LOG_LINE_MAX_BYTES);

        if (buf_addf(out, e, "%s.%09ldZ %s %c ", second, now.tv_nsec, stream,
                     is_whole ? 'F' : 'P') < 0 ||
            buf_add(out, line, e) < 0 || buf_addc(out, '\n', e) < 0)
            return -1;
        piece = span_skip(piece, line.n + is_whole);
    }
    return 0;
}

int logfile_add(int box_fd, const char *stream, struct span piece, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(piece.n * (STAMP_MAX_BYTES + 1) + STAMP_MAX_BYTES);
    OWN_FD int fd = -1;
    struct timespec now;
    struct stat st;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (logfile_format(stream, now, piece, &text, e) < 0)
        return -1;
    fd = openat(box_fd, DIR_LOG, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot open the log");
    if (st.st_size && (uint64_t)st.st_size + text.n > LOG_MAX_BYTES) {
        if (renameat(box_fd, DIR_LOG, box_fd, DIR_OLD_LOG) < 0)
            return err_sys(e, "cannot begin a new log");
        own_fd_close(&fd);
        fd = openat(box_fd, DIR_LOG, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_sys(e, "cannot open the log");
    }
    return fd_write_all(fd, buf_span(&text), e);
}
