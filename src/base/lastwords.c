#include "base/lastwords.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define MARK          "\0silica last words "
#define NUMBER_BYTES  5    /* four digits, and a line's end */
#define DRAIN_STEP_MS 1    /* between two looks whether all was read */
#define DRAIN_MOST_MS 1000 /* a keeper that takes longer is in trouble, and output goes first */

void lastwords_find(const char *path, struct buf *ret)
{
    OWN_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    struct err unused;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
        buf_reserve(ret, LASTWORDS_MAX_BYTES, &unused) < 0)
        return;
    n = pread(fd, ret->p + ret->n, LASTWORDS_MAX_BYTES,
              MAX(st.st_size - LASTWORDS_MAX_BYTES, (off_t)0));
    if (n > 0)
        buf_grown(ret, (size_t)n);
}

void lastwords_send(int fd, struct span words)
{
    OWN(buf_done) struct buf all = BUF_INIT(sizeof MARK + NUMBER_BYTES + LASTWORDS_MAX_BYTES);
    struct err unused;
    int unread;

    if (!words.n || words.n > LASTWORDS_MAX_BYTES || buf_add(&all, SPAN(MARK), &unused) < 0 ||
        buf_addf(&all, &unused, "%04zu\n", words.n) < 0 || buf_add(&all, words, &unused) < 0)
        return;
    for (int ms = 0; ms < DRAIN_MOST_MS; ms += DRAIN_STEP_MS) {
        if (ioctl(fd, FIONREAD, &unread) < 0)
            return; /* no pipe: nobody reads them there */
        if (unread == 0) {
            (void)fd_write_all(fd, buf_span(&all), &unused);
            return;
        }
        (void)poll(NULL, 0, DRAIN_STEP_MS);
    }
}

bool lastwords_read(struct span *in, struct span *ret_words)
{
    struct span mark = SPAN(MARK), rest;
    uint64_t n;

    if (in->n < mark.n + NUMBER_BYTES || memcmp(in->p, mark.p, mark.n) != 0)
        return false;
    rest = span_skip(*in, mark.n);
    if (!str_u64(span_slice(rest, 0, NUMBER_BYTES - 1), LASTWORDS_MAX_BYTES, &n) ||
        rest.p[NUMBER_BYTES - 1] != '\n' || n > rest.n - NUMBER_BYTES)
        return false;
    *ret_words = span_slice(rest, NUMBER_BYTES, NUMBER_BYTES + (size_t)n);
    *in = span_skip(rest, NUMBER_BYTES + (size_t)n);
    return true;
}
