#include "runtime/files/file_grep.h"
#include "runtime/files/file_ere.h"
#include "runtime/files/file_pattern.h"
#include "runtime/files/file_tree.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>

struct search {
    const struct file_grep_how *how;
    const char *start_rel;
    struct file_ere *ere; /* NULL: plain text */
    struct file_pattern glob;
    bool glob_has_slash;
    file_grep_fn each;
    void *ctx;
    uint64_t rows;
    bool is_cut;
    struct buf line; /* what is known of the line that a piece ended in */
    uint8_t *piece;
    struct err *e;
};

static void search_done(struct search *s)
{
    file_ere_free(s->ere);
    buf_done(&s->line);
    free(s->piece);
}

static bool is_late(struct search *s)
{
    if (s->how->deadline_ms && time_mono_ms() > s->how->deadline_ms)
        s->is_cut = true;
    return s->is_cut;
}

/* -1: no more, because of an error in *s->e or of a limit. */
static int give_line(struct search *s, const char *rel, uint64_t number, struct span text)
{
    struct span shown = span_slice(text, 0, FILE_GREP_LINE_MAX_BYTES);
    bool found = s->ere ? file_ere_matches(s->ere, shown)
                        : span_find_str(shown, s->how->pattern) != SIZE_MAX;
    OWN(buf_done) struct buf full = BUF_INIT(2 * PATH_REAL_MAX_BYTES);
    struct file_grep_row row = { .line = number, .text = shown };

    if (is_late(s))
        return -1;
    if (!found)
        return 0;
    if (s->rows == FILE_GREP_MAX_ROWS) {
        s->is_cut = true;
        return -1;
    }
    s->rows++;
    if (buf_addf(&full, s->e, "%s%s%s", s->start_rel, s->start_rel[0] && rel[0] ? "/" : "", rel) <
        0)
        return -1;
    row.rel = buf_cstr(&full);
    return s->each(s->ctx, &row, s->e);
}

/* Gives each whole line of the piece, and keeps the start of the last one, as much as will be looked at. */
static int give_piece(struct search *s, const char *rel, struct span piece, uint64_t *number)
{
    while (piece.n) {
        size_t end = span_find(piece, '\n');
        struct span text = span_slice(piece, 0, end);
        int rc;

        if (s->line.n || end == SIZE_MAX)
            (void)buf_add_capped(&s->line, text);
        if (end == SIZE_MAX)
            return 0;
        rc = give_line(s, rel, ++*number, s->line.n ? buf_span(&s->line) : text);
        buf_clear(&s->line);
        if (rc < 0)
            return -1;
        piece = span_skip(piece, end + 1);
    }
    return 0;
}

/* Takes fd. */
static int search_file(struct search *s, int file_fd, const char *rel)
{
    OWN_FD int fd = file_fd;
    uint64_t number = 0;
    bool is_first = true;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    buf_clear(&s->line);
    for (;;) {
        ssize_t n = read(fd, s->piece, FILE_GREP_PIECE_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (is_first && memchr(s->piece, '\0', (size_t)n))
            return 0;
        is_first = false;
        if (give_piece(s, rel, span_of(s->piece, (size_t)n), &number) < 0)
            return -1;
    }
    return s->line.n ? give_line(s, rel, number + 1, buf_span(&s->line)) : 0;
}

static enum file_tree_step look_at(void *ctx, const struct file_tree_entry *entry)
{
    struct search *s = ctx;
    struct stat st;

    if (entry->is_dir)
        return FILE_TREE_ENTER;
    if (entry->is_link ||
        (s->how->glob.n &&
         !file_pattern_matches(&s->glob, span_cstr(s->glob_has_slash ? entry->rel : entry->name))))
        return FILE_TREE_PASS;
    /* Looked at before it is opened: opening a device can do things. */
    if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return FILE_TREE_PASS;
    if (search_file(
            s, openat(entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
            entry->rel) < 0)
        return FILE_TREE_STOP;
    return FILE_TREE_PASS;
}

static int prepare(struct search *s)
{
    const struct file_grep_how *how = s->how;

    if (how->glob.n && file_pattern_init(&s->glob, how->glob, s->e) < 0)
        return -1;
    s->glob_has_slash = span_find(how->glob, '/') != SIZE_MAX;
    if (how->is_literal && !how->ignore_case)
        return 0;
    if (how->is_literal)
        return err_set(s->e, ERR_UNSUPPORTED, "plain text is searched with its case only");
    return file_ere_new(how->pattern, how->ignore_case, &s->ere, s->e);
}

int file_grep(const struct path_root *root, const struct file_grep_how *how, file_grep_fn each,
              void *ctx, bool *ret_is_cut, struct err *e)
{
    struct file_tree_limits limits = { how->deadline_ms, FILE_TREE_MAX_ENTRIES };
    struct err failed = { 0 };
    OWN(search_done)
    struct search s = { .how = how,
                        .each = each,
                        .ctx = ctx,
                        .line = BUF_INIT(FILE_GREP_LINE_MAX_BYTES),
                        .e = &failed };
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN_FD int fd = -1;
    bool is_cut = false;

    if (prepare(&s) < 0) {
        *e = failed;
        return -1;
    }
    if (path_open(root, PATH_PYDANTIC, how->path, O_PATH, &at, &fd, e) < 0)
        return -1;
    s.start_rel = at.rel;
    s.piece = own_array(1, FILE_GREP_PIECE_BYTES);
    if (!S_ISDIR(at.st.st_mode)) {
        if (!S_ISREG(at.st.st_mode))
            return err_set(e, ERR_UNSUPPORTED, "'%s' is not a regular file", at.abs);
        own_fd_close(&fd);
        fd = openat(at.dir_fd, at.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, "cannot open '%s'", at.abs);
        (void)search_file(&s, take_fd(&fd), "");
    } else if (file_tree_walk(fd, &limits, look_at, &s, &is_cut, e) < 0) {
        return -1;
    }
    if (failed.code != ERR_NONE) {
        *e = failed;
        return -1;
    }
    *ret_is_cut = s.is_cut || is_cut;
    return 0;
}
