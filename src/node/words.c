#include "node/words.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/dir.h"
#include "sandbox/logs.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Of the log: that many lines with their stamps, and as many bytes of text, twice over */
#define TAIL_BYTES (16 * 1024)

bool words_are_wanted(const struct json *container)
{
    return span_is(json_str(json_get(container, "terminationMessagePolicy")),
                   "FallbackToLogsOnError");
}

static void add_entry(void *ctx, const struct logs_entry *entry)
{
    struct buf *text = ctx;
    struct err unused;

    (void)buf_add(text, entry->text, &unused); /* less than what was read */
    if (entry->is_end)
        (void)buf_addc(text, '\n', &unused);
}

static struct span last_lines(struct span text)
{
    size_t lines = 0;

    for (size_t i = text.n; i-- > 0;) {
        /* The newline at the very end ends the last line; the one before the first wanted begins it. */
        if (text.p[i] == '\n' && i + 1 < text.n && ++lines == WORDS_LAST_LINES)
            return span_skip(text, i + 1);
    }
    return text;
}

/* At most so many bytes from the end of a text, made valid. */
static void put_end(struct span text, size_t max, char ret[WORDS_LAST_BYTES + 1])
{
    OWN(buf_done) struct buf clean = BUF_INIT(8 * TAIL_BYTES);
    struct span words;
    struct err unused;

    (void)str_utf8_lossy(text, &clean, &unused); /* at most three times as long */
    words = buf_span(&clean);
    if (words.n > max)
        words = span_skip(words, words.n - max);
    while (words.n && (words.p[0] & 0xc0) == 0x80) /* the rest of a character that was cut */
        words = span_skip(words, 1);
    if (words.n)
        memcpy(ret, words.p, words.n);
    ret[words.n] = '\0';
    for (size_t i = 0; i < words.n; i++) /* a text ends at its first zero */
        if (!ret[i])
            ret[i] = ' ';
}

/* Up to n bytes from the end of a file, behind what is in *out. */
static void add_tail(int dir_fd, const char *name, size_t n, struct buf *out)
{
    OWN_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    struct err unused;
    ssize_t got;

    if (fd < 0 || fstat(fd, &st) < 0 || buf_reserve(out, n, &unused) < 0)
        return;
    got = pread(fd, out->p + out->n, n, MAX(st.st_size - (off_t)n, (off_t)0));
    if (got > 0)
        buf_grown(out, (size_t)got);
}

void words_of_log(struct span log, char ret[WORDS_LAST_BYTES + 1])
{
    OWN(buf_done) struct buf text = BUF_INIT(2 * TAIL_BYTES);
    struct logs reader;

    logs_init(&reader, add_entry, &text);
    logs_feed(&reader, log);
    logs_end(&reader);
    logs_done(&reader);
    put_end(last_lines(buf_span(&text)), WORDS_LOG_BYTES, ret);
}

void words_of_box(int box_fd, bool wants_log, char ret[WORDS_LAST_BYTES + 1])
{
    OWN(buf_done) struct buf newest = BUF_INIT(TAIL_BYTES), all = BUF_INIT(2 * TAIL_BYTES);
    OWN(buf_done) struct buf file = BUF_INIT(WORDS_LAST_BYTES);
    struct err unused;

    add_tail(box_fd, DIR_MESSAGE, WORDS_LAST_BYTES, &file);
    put_end(buf_span(&file), WORDS_LAST_BYTES, ret);
    if (*ret || !wants_log)
        return;
    add_tail(box_fd, DIR_LOG, TAIL_BYTES, &newest);
    if (newest.n < TAIL_BYTES) /* it was begun a moment ago: the file before has the rest */
        add_tail(box_fd, DIR_OLD_LOG, TAIL_BYTES - newest.n, &all);
    /* Fits: sized for two tails. */
    (void)buf_add(&all, buf_span(&newest), &unused);
    words_of_log(buf_span(&all), ret);
}

void words_read(struct engine *en, const char *box, bool wants_log, char ret[WORDS_LAST_BYTES + 1])
{
    OWN_FD int dir_fd = -1;
    struct err unused;

    ret[0] = '\0';
    if (engine_open_logs(en, box, &dir_fd, &unused) == 0)
        words_of_box(dir_fd, wants_log, ret);
}
