/* Paths in a small tree whose links come from the input too. The input is lines: a letter for the rules (P, S or
 * D) and the path, then the targets of the links; "%" at the start of one stands for the tree. The answers are
 * compared with realpath(3) where that has one, and with a resolver on plain texts for what does not exist. */
#include "runtime/files/path.h"
#include "runtime/files/path_walk.h"
#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_INPUT_MAX_BYTES 2048
#define CHECK(ok)                                                                                  \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static const char *const link_names[] = { "app/l0", "app/dir/l1", "out/l2", "app/l3" };
static struct scratch tree;
static struct path_root root;

static void remove_tree(void)
{
    path_root_close(&root);
    scratch_remove(&tree);
}

static void make_tree(void)
{
    struct err e;

    scratch_make(&tree);
    scratch_dir(&tree, "app");
    scratch_dir(&tree, "app2");
    scratch_dir(&tree, "out");
    scratch_file(&tree, "out/s", "");
    scratch_dir(&tree, "app/dir");
    scratch_dir(&tree, "app/dir/deep");
    scratch_file(&tree, "app/f", "");
    CHECK(path_root_open(&root, scratch_path(&tree, "app"), &e) == 0);
    (void)atexit(remove_tree);
}

/* A line of the input with the tree's place filled in. */
static void expand(struct span line, struct buf *out)
{
    struct err e;

    if (line.n && line.p[0] == '%') {
        (void)buf_add(out, span_cstr(tree.path), &e);
        line = span_skip(line, 1);
    }
    (void)buf_add(out, line, &e);
}

static void make_links(struct span lines)
{
    EACH(name, link_names) {
        OWN(buf_done) struct buf target = BUF_INIT(PATH_MAX);
        struct span line = SPAN_NONE;

        (void)unlinkat(tree.fd, *name, 0);
        (void)span_cut(&lines, '\n', &line);
        expand(line, &target);
        if (target.n && span_find(buf_span(&target), '\0') == SIZE_MAX)
            (void)symlinkat(buf_cstr(&target), tree.fd, *name);
    }
}

/* The Python rules on texts: what a name is comes from lstat of the whole text so far. */
static void slow_walk(const char *start, struct span rest, struct buf *text)
{
    OWN(buf_done) struct buf todo = BUF_INIT(1 << 20);
    int links = 0;
    struct err e;

    (void)buf_add(text, span_cstr(start), &e);
    CHECK(buf_add(&todo, rest, &e) == 0);
    while (todo.n) {
        char target[PATH_MAX + 1], name[FUZZ_INPUT_MAX_BYTES + PATH_MAX];
        size_t n = MIN(span_find(buf_span(&todo), '/'), todo.n), before = text->n;
        ssize_t got;

        memcpy(name, todo.p, n);
        name[n] = '\0';
        buf_consume(&todo, MIN(n + 1, todo.n));
        if (!n || strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            char *slash = text->n ? strrchr(buf_cstr(text), '/') : NULL;

            text->n = slash ? (size_t)(slash - (char *)text->p) : 0;
            if (text->p)
                text->p[text->n] = '\0';
            continue;
        }
        CHECK(buf_addf(text, &e, "/%s", name) == 0);
        got = readlink(buf_cstr(text), target, PATH_MAX);
        if (got < 0 || links++ >= PATH_LINKS_MAX)
            continue;
        target[got] = '\0';
        text->n = target[0] == '/' ? 0 : before;
        text->p[text->n] = '\0';
        {
            OWN(buf_done) struct buf left = BUF_INIT(1 << 20);

            CHECK(buf_addf(&left, &e, "%s/", target) == 0 &&
                  buf_add(&left, buf_span(&todo), &e) == 0);
            buf_clear(&todo);
            CHECK(buf_add(&todo, buf_span(&left), &e) == 0);
        }
    }
}

static bool is_inside(const char *text)
{
    return span_starts(span_cstr(text), root.real) && strchr("/", text[strlen(root.real)]);
}

/* Whatever was asked: what we hold is inside, and the flags tell the truth. */
static void check_answer(const struct path_at *at)
{
    char link[64], where[PATH_MAX + 1];
    struct stat st;
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", at->dir_fd);
    n = readlink(link, where, PATH_MAX);
    CHECK(n > 0);
    where[n] = '\0';
    CHECK(is_inside(where) && is_inside(at->abs));
    CHECK(!strstr(at->rel, "//") && at->rel[0] != '/' && !strstr(at->abs, "/../"));
    CHECK(at->exists == (at->sys == 0));
    if (strlen(at->abs) >= PATH_MAX)
        return;
    if (lstat(at->abs, &st) == 0)
        CHECK((at->exists || at->is_link) && st.st_ino == at->st.st_ino);
    else
        CHECK(!at->exists && !at->is_link);
}

/* The kernel's own idea of the text, if all of it exists. */
static char *kernel_path(struct span rest)
{
    OWN(buf_done) struct buf full = BUF_INIT(16384);
    struct err e;

    if (buf_addf(&full, &e, "%s/", root.real) < 0 || buf_add(&full, rest, &e) < 0)
        return NULL;
    return realpath(buf_cstr(&full), NULL);
}

static void compare(enum path_rules rules, struct span path, const struct path_at *at,
                    const struct err *e)
{
    OWN(buf_done) struct buf want = BUF_INIT(1 << 20);
    OWN(buf_done) struct buf clean = BUF_INIT(1 << 20);
    OWN_MEM char *kernel = NULL;
    struct span rest = path;
    struct err ignored;

    if (e && e->sys == ENAMETOOLONG)
        return;
    if (rules != PATH_PYTHON) {
        CHECK(path_clean(path, &clean, &ignored) == 0);
        rest = buf_span(&clean);
        if (span_starts(rest, "../") || span_is(rest, "..") || span_starts(rest, root.real))
            return; /* decided before links are looked at */
    }
    while (rest.n && rest.p[0] == '/')
        rest = span_skip(rest, 1);
    kernel = kernel_path(rest);
    if (kernel && is_inside(kernel))
        CHECK(at && strcmp(at->abs, kernel) == 0 && at->exists);
    if (kernel && !is_inside(kernel))
        CHECK(e && path_is_escape(e));
    if (rules != PATH_PYTHON)
        return;
    slow_walk(root.real, rest, &want);
    if (is_inside(buf_cstr(&want)))
        CHECK(at && strcmp(at->abs, buf_cstr(&want)) == 0);
    else
        CHECK(e && path_is_escape(e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN(buf_done) struct buf path = BUF_INIT(2 * FUZZ_INPUT_MAX_BYTES);
    struct span in = span_of(data, size), line = SPAN_NONE;
    enum path_rules rules;
    struct err e = { 0 };
    bool has_nul;

    if (size > FUZZ_INPUT_MAX_BYTES)
        return 0;
    if (!root.real)
        make_tree();
    (void)span_cut(&in, '\n', &line);
    rules = line.n && line.p[0] == 'S'   ? PATH_SANDBOXD
            : line.n && line.p[0] == 'D' ? PATH_PYDANTIC
                                         : PATH_PYTHON;
    expand(span_skip(line, 1), &path);
    make_links(in);
    has_nul = span_find(buf_span(&path), '\0') != SIZE_MAX;
    if (path_resolve(&root, rules, buf_span(&path), 0, &at, &e) < 0) {
        CHECK(e.code != ERR_NONE && e.msg[0]);
        if (!has_nul)
            compare(rules, buf_span(&path), NULL, &e);
        return 0;
    }
    CHECK(!has_nul);
    check_answer(&at);
    compare(rules, buf_span(&path), &at, NULL);
    return 0;
}
