#include "runtime/files/file_read.h"
#include "runtime/files/file_write.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>

#define SHOWN_MAX_BYTES 200 /* of a client's text inside a message */

int file_read_open(struct file_read *f, const struct path_root *root, enum path_rules rules,
                   struct span path, struct err *e)
{
    struct stat st;

    /* The kind is looked at before opening (opening a device can do things) and again afterwards (it may have
     * been swapped); O_NONBLOCK keeps a FIFO from waiting for its writer in between. */
    if (path_resolve(root, rules, path, 0, &f->at, e) < 0)
        return -1;
    if (!f->at.exists)
        return err_errno(e, f->at.sys, "cannot open '%s'", f->at.abs);
    if (!S_ISREG(f->at.st.st_mode) && !S_ISDIR(f->at.st.st_mode))
        return err_set(e, ERR_UNSUPPORTED, "'%s' is not a regular file", f->at.abs);
    path_at_done(&f->at);
    if (path_open(root, rules, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &f->at, &f->fd, e) < 0)
        return -1;
    if (fstat(f->fd, &st) < 0)
        return err_sys(e, "cannot stat '%s'", f->at.abs);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_UNSUPPORTED, "'%s' is not a regular file", f->at.abs);
    f->st = st;
    f->is_dir = S_ISDIR(st.st_mode);
    if (!f->is_dir)
        snprintf(f->etag, sizeof f->etag, "\"%lx.%lx-%lx\"", (unsigned long)st.st_mtim.tv_sec,
                 (unsigned long)st.st_mtim.tv_nsec, (unsigned long)st.st_size);
    return 0;
}

void file_read_done(struct file_read *f)
{
    own_fd_close(&f->fd);
    path_at_done(&f->at);
}

/* Moves *p behind the next `count` lines of s, or as far as s goes; returns how many ends of line were passed. */
static uint64_t skip_lines(struct span s, uint64_t count, size_t *p)
{
    uint64_t passed = 0;

    while (passed < count && *p < s.n) {
        const uint8_t *end = memchr(s.p + *p, '\n', s.n - *p);

        *p = end ? (size_t)(end - s.p) + 1 : s.n;
        passed += end != NULL;
    }
    return passed;
}

int file_read_lines(int fd, uint64_t offset, uint64_t limit, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf raw = BUF_INIT(FILE_TEXT_MAX_BYTES);
    OWN_MEM uint8_t *piece = own_array(1, 65536);

    while (limit) {
        ssize_t n = read(fd, piece, 65536);
        size_t from = 0, to;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "cannot read");
        if (n == 0)
            break;
        offset -= skip_lines(span_of(piece, (size_t)n), offset, &from);
        to = from;
        if (offset == 0)
            limit -= skip_lines(span_of(piece, (size_t)n), limit, &to);
        if (buf_add(&raw, span_of(piece + from, to - from), e) < 0)
            return err_set(e, ERR_LIMIT, "the text is longer than %d bytes", FILE_TEXT_MAX_BYTES);
    }
    return str_utf8_lossy(buf_span(&raw), out, e);
}

/* --- edit --- */

static uint64_t count_of(struct span text, struct span needle)
{
    uint64_t count = 0;

    for (size_t at = span_find_str(text, needle); at != SIZE_MAX;
         at = span_find_str(text, needle)) {
        text = span_skip(text, at + needle.n);
        count++;
    }
    return count;
}

static int replace(struct span text, const struct file_edit *edit, struct buf *out, struct err *e)
{
    for (size_t at = span_find_str(text, edit->old_text); at != SIZE_MAX;
         at = span_find_str(text, edit->old_text)) {
        if (buf_add(out, span_slice(text, 0, at), e) < 0 || buf_add(out, edit->new_text, e) < 0)
            return -1;
        text = span_skip(text, at + edit->old_text.n);
    }
    return buf_add(out, text, e);
}

static int load(const struct path_root *root, struct span path, struct buf *text, struct err *e)
{
    OWN(file_read_done) struct file_read f = FILE_READ_NONE;

    if (file_read_open(&f, root, PATH_PYDANTIC, path, e) < 0) {
        if (e->code == ERR_NOT_FOUND)
            (void)err_set(e, ERR_NOT_FOUND, "File '%.*s' not found", SPAN_ARG(path));
        return -1;
    }
    if (f.is_dir)
        return err_errno(e, EISDIR, "cannot edit '%.*s'", SPAN_ARG(path));
    return fd_read_all(f.fd, text, e);
}

static int store(const struct path_root *root, struct span path, struct span text, struct err *e)
{
    OWN(file_write_done) struct file_write w = FILE_WRITE_NONE;

    if (file_write_begin(&w, root, path, &file_write_pydantic, e) < 0 ||
        file_write_add(&w, text, e) < 0)
        return -1;
    return file_write_commit(&w, e);
}

int file_edit(const struct path_root *root, const struct file_edit *edit, uint64_t *ret_count,
              struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(FILE_TEXT_MAX_BYTES);
    OWN(buf_done) struct buf edited = BUF_INIT(FILE_TEXT_MAX_BYTES);
    struct span shown = span_slice(edit->old_text, 0, SHOWN_MAX_BYTES);
    uint64_t count;

    if (!edit->old_text.n)
        return err_set(e, ERR_INVALID, "the string to replace is empty");
    if (load(root, edit->path, &text, e) < 0)
        return -1;
    count = count_of(buf_span(&text), edit->old_text);
    if (!count)
        return err_set(e, ERR_NOT_FOUND, "String '%.*s' not found in file", SPAN_ARG(shown));
    if (count > 1 && !edit->replace_all)
        return err_set(
            e, ERR_CONFLICT,
            "String '%.*s' found %lu times. Use replace_all=True to replace all, or provide more "
            "context.",
            SPAN_ARG(shown), (unsigned long)count);
    if (replace(buf_span(&text), edit, &edited, e) < 0 ||
        store(root, edit->path, buf_span(&edited), e) < 0)
        return -1;
    *ret_count = count;
    return 0;
}
