#include "runtime/files/file_glob.h"
#include "runtime/files/file_list.h"
#include "runtime/files/file_tree.h"

#include <errno.h>
#include <fcntl.h>

struct search {
    struct file_glob *g;
    const struct path_root *root;
    const char *start_rel; /* where the walk starts, below the root */
    struct file_pattern pattern;
};

/* The root's own path in front of a pattern, or 0. */
static size_t root_prefix(const struct path_root *root, struct span pattern)
{
    const char *names[] = { root->configured, root->real };

    EACH(name, names) {
        size_t n = strlen(*name);

        if (n && span_starts(pattern, *name) && pattern.n > n && pattern.p[n] == '/')
            return n;
    }
    return 0;
}

static int add_row(struct search *s, const char *rel, const struct stat *st, struct err *e)
{
    struct file_glob *g = s->g;
    size_t at = g->texts.n;

    if (buf_addf(&g->texts, e, "%s%s%s", s->start_rel, s->start_rel[0] ? "/" : "", rel) < 0 ||
        buf_addc(&g->texts, '\0', e) < 0)
        return -1;
    if (g->n == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 64;
        g->rows = own_resize(g->rows, g->cap, sizeof *g->rows);
    }
    g->rows[g->n++] = (struct file_glob_row){
        .size = (uint64_t)st->st_size,
        .modified = st->st_mtim,
        .text_at = at,
    };
    return 0;
}

static enum file_tree_step look_at(void *ctx, const struct file_tree_entry *entry)
{
    struct search *s = ctx;
    struct span rel = span_cstr(entry->rel);
    struct stat st;
    struct err e;

    if (entry->is_dir)
        return file_pattern_leads_below(&s->pattern, rel) ? FILE_TREE_ENTER : FILE_TREE_PASS;
    if (!file_pattern_matches(&s->pattern, rel))
        return FILE_TREE_PASS;
    if (entry->is_link) {
        OWN(buf_done) struct buf dir = BUF_INIT(2 * PATH_REAL_MAX_BYTES);
        size_t n = rel.n - strlen(entry->name);

        if (buf_addf(&dir, &e, "%s/%.*s", s->start_rel, (int)n, entry->rel) < 0 ||
            !file_entry_stat(s->root, entry->dir_fd, buf_cstr(&dir), entry->name, PATH_PYDANTIC,
                             &st))
            return FILE_TREE_PASS;
    } else if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return FILE_TREE_PASS;
    }
    if (!S_ISREG(st.st_mode))
        return FILE_TREE_PASS;
    if (s->g->n == FILE_GLOB_MAX_ROWS || add_row(s, entry->rel, &st, &e) < 0) {
        s->g->is_cut = true;
        return FILE_TREE_STOP;
    }
    return FILE_TREE_PASS;
}

static int by_path(const void *left, const void *right)
{
    const struct file_glob_row *a = left, *b = right;

    return strcmp(a->rel, b->rel);
}

static void finish(struct file_glob *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct file_glob_row *row = &g->rows[i];
        const char *slash;

        row->rel = (const char *)g->texts.p + row->text_at;
        slash = strrchr(row->rel, '/');
        row->name = slash ? slash + 1 : row->rel;
    }
    if (g->n)
        qsort(g->rows, g->n, sizeof *g->rows, by_path);
}

int file_glob(struct file_glob *g, const struct path_root *root, struct span path,
              struct span pattern, uint64_t deadline_ms, struct err *e)
{
    struct file_tree_limits limits = { deadline_ms, FILE_TREE_MAX_ENTRIES };
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct search s = { .g = g, .root = root };
    OWN_FD int fd = -1;
    bool is_cut = false;

    if (pattern.n && pattern.p[0] == '/') {
        path = SPAN("");
        pattern = span_skip(pattern, root_prefix(root, pattern));
    }
    if (file_pattern_init(&s.pattern, pattern, e) < 0 ||
        path_open(root, PATH_PYDANTIC, path, O_RDONLY | O_DIRECTORY, &at, &fd, e) < 0)
        return -1;
    s.start_rel = at.rel;
    if (file_tree_walk(fd, &limits, look_at, &s, &is_cut, e) < 0)
        return -1;
    g->is_cut |= is_cut;
    finish(g);
    return 0;
}

void file_glob_done(struct file_glob *g)
{
    buf_done(&g->texts);
    free(g->rows);
    g->rows = NULL;
    g->n = g->cap = 0;
}
