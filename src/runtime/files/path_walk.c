#include "runtime/files/path_walk.h"
#include "runtime/files/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

/* What is still to be gone along lies at the end of one block and is eaten from the front, so the target of a
 * link is put before it without moving anything. */
#define TODO_MAX_BYTES (16 * 1024)

struct todo {
    char bytes[TODO_MAX_BYTES];
    size_t at; /* the first byte to go along */
    size_t
        given_n; /* so many bytes at the end are the caller's own text; what is before came from links */
};

static struct span todo_left(const struct todo *t)
{
    return span_of(t->bytes + t->at, sizeof t->bytes - t->at);
}

/* The next component, without the slashes around it. *ret_is_given: it is the caller's own, and given_n counts
 * what is left of that text behind it. */
static bool todo_next(struct todo *t, struct span *ret, bool *ret_is_given)
{
    while (t->at < sizeof t->bytes && t->bytes[t->at] == '/')
        t->at++;
    if (t->at == sizeof t->bytes)
        return false;
    *ret_is_given = sizeof t->bytes - t->at <= t->given_n;
    *ret = span_slice(todo_left(t), 0, span_find(todo_left(t), '/'));
    t->at += ret->n;
    if (*ret_is_given)
        t->given_n = sizeof t->bytes - t->at;
    return true;
}

static int todo_push(struct todo *t, struct span text, struct err *e)
{
    if (text.n + 1 > t->at)
        return err_errno(e, ENAMETOOLONG, "cannot follow links");
    t->bytes[--t->at] = '/';
    t->at -= text.n;
    if (text.n)
        memcpy(t->bytes + t->at, text.p, text.n);
    return 0;
}

static bool only_slashes(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '/')
            return false;
    return true;
}

int path_walk_init(struct path_walk *w, int fd, const char *text, struct err *e)
{
    *w = (struct path_walk){ .text = BUF_INIT(PATH_REAL_MAX_BYTES), .fd = -1 };
    if (buf_add(&w->text, span_cstr(text), e) < 0)
        return -1;
    w->real_n = w->text.n;
    w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (w->fd < 0) {
        buf_done(&w->text);
        return err_sys(e, "cannot duplicate a directory");
    }
    return 0;
}

void path_walk_done(struct path_walk *w)
{
    own_fd_close(&w->fd);
    w->fd = -1;
    buf_done(&w->text);
}

static void set_fd(struct path_walk *w, int fd)
{
    own_fd_close(&w->fd);
    w->fd = fd;
}

static int add_name(struct path_walk *w, struct span name, struct err *e)
{
    if (w->text.n + 1 + name.n > w->text.max)
        return err_errno(e, ENAMETOOLONG, "cannot resolve a path");
    /* Fits: looked at above. */
    (void)buf_addc(&w->text, '/', e);
    return buf_add(&w->text, name, e);
}

static void cut_text(struct path_walk *w, size_t n)
{
    w->text.n = n;
    if (w->text.p)
        w->text.p[n] = '\0';
}

static int go_top(struct path_walk *w, struct err *e)
{
    int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (top < 0)
        return err_sys(e, "cannot open '/'");
    set_fd(w, top);
    cut_text(w, 0);
    w->real_n = 0;
    w->sys = 0;
    return 0;
}

static int go_up(struct path_walk *w, struct err *e)
{
    size_t n = w->text.n;
    int up;

    if (!n)
        return 0; /* the parent of `/` is `/` */
    while (w->text.p[n - 1] != '/')
        n--;
    cut_text(w, n - 1);
    if (w->text.n > w->real_n)
        return 0;
    w->sys = 0;
    if (w->text.n == w->real_n)
        return 0; /* it was text behind an existing directory: we are still there */
    w->real_n = w->text.n;
    up = openat(w->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (up < 0) { /* a directory that may not be searched does not show its parent either */
        OWN_FD int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        up = top < 0 ? -1 : path_open_plain(top, buf_cstr(&w->text), O_PATH | O_DIRECTORY);
    }
    if (up < 0)
        return err_sys(e, "cannot open '%s/'", buf_cstr(&w->text));
    set_fd(w, up);
    return 0;
}

enum look { LOOK_DIR, LOOK_LINK, LOOK_OTHER, LOOK_NOTHING };

/* What `name` is in the current directory. LOOK_DIR: *ret_fd is it. LOOK_LINK: target holds where it points.
 * LOOK_NOTHING: errno says why. */
static enum look look(const struct path_walk *w, struct span name, int *ret_fd, struct buf *target)
{
    OWN_FD int fd = -1;
    char text[NAME_MAX + 1];
    struct stat st;
    struct err e;
    ssize_t n;

    if (name.n > NAME_MAX) {
        errno = ENAMETOOLONG;
        return LOOK_NOTHING;
    }
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    fd = openat(w->fd, text, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return LOOK_NOTHING;
    if (S_ISDIR(st.st_mode)) {
        *ret_fd = take_fd(&fd);
        return LOOK_DIR;
    }
    if (!S_ISLNK(st.st_mode))
        return LOOK_OTHER;
    buf_clear(target);
    if (buf_reserve(target, PATH_MAX, &e) < 0)
        abort(); /* the ceiling is ours: PATH_MAX and more */
    n = readlinkat(fd, "", (char *)target->p, PATH_MAX); /* of the very link we opened */
    if (n < 0)
        return LOOK_NOTHING;
    buf_grown(target, (size_t)n);
    return LOOK_LINK;
}

/* The state before the component of the caller's text that we are in, for when that leads nowhere. */
struct checkpoint {
    struct buf text;
    struct span given; /* the caller's text from that component on */
};

static void checkpoint_done(struct checkpoint *c)
{
    buf_done(&c->text);
}

/* Back to the checkpoint; from there on the caller's words stay text. */
static int keep_own(struct path_walk *w, const struct checkpoint *c, struct err *e)
{
    struct span given = c->given;
    struct span name;

    cut_text(w, 0);
    if (buf_add(&w->text, buf_span(&c->text), e) < 0)
        return -1;
    w->real_n = w->text.n;
    w->sys = ENOENT;
    while (span_cut(&given, '/', &name))
        if (name.n && add_name(w, name, e) < 0)
            return -1;
    return 0;
}

struct stepping {
    enum path_missing missing;
    bool keep_last;
    int *links;
    struct buf *target;
    const struct checkpoint *before;
};

static int follow(struct path_walk *w, struct todo *t, struct span target, struct err *e)
{
    if (target.n && target.p[0] == '/' && go_top(w, e) < 0)
        return -1;
    return todo_push(t, target, e);
}

/* A component that leads nowhere: kept as text by the one rule, an error by the other. */
static int keep_text(struct path_walk *w, struct span name, enum path_missing missing, int sys,
                     struct err *e)
{
    if (missing == PATH_MISSING_OWN && sys)
        return err_errno(e, sys, "cannot resolve '%s/%.*s'", buf_cstr(&w->text), SPAN_ARG(name));
    if (!w->sys)
        w->sys = sys;
    return add_name(w, name, e);
}

/* A component that can be looked up: the text before it is all real. */
static int step(struct path_walk *w, struct todo *t, struct span name, const struct stepping *how,
                struct err *e)
{
    int fd = -1;

    switch (look(w, name, &fd, how->target)) {
    case LOOK_DIR:
        set_fd(w, fd);
        if (add_name(w, name, e) < 0)
            return -1;
        w->real_n = w->text.n;
        return 0;
    case LOOK_LINK:
        if (how->keep_last && only_slashes(todo_left(t))) {
            w->kept_link = true;
            return add_name(w, name, e);
        }
        if ((*how->links)++ >= PATH_LINKS_MAX)
            return keep_text(w, name, how->missing, ELOOP, e);
        return follow(w, t, buf_span(how->target), e);
    case LOOK_OTHER:
        return keep_text(w, name, how->missing, 0, e);
    case LOOK_NOTHING:
        if (how->missing == PATH_MISSING_OWN && errno == ENOENT) {
            t->at = sizeof t->bytes; /* nothing more to look up */
            return keep_own(w, how->before, e);
        }
        return keep_text(w, name, how->missing, errno, e);
    }
    return err_set(e, ERR_INTERNAL, "a path component of no kind");
}

int path_walk_along(struct path_walk *w, struct span rest, enum path_missing missing,
                    bool keep_last, struct err *e)
{
    OWN(checkpoint_done) struct checkpoint before = { .text = BUF_INIT(PATH_REAL_MAX_BYTES) };
    OWN(buf_done) struct buf target = BUF_INIT(2 * PATH_MAX);
    OWN_MEM struct todo *t = own_resize(NULL, 1, sizeof *t); /* not zeroed: read where written */
    struct stepping how = { missing, keep_last, &(int){ 0 }, &target, &before };
    struct span name;
    bool is_given;

    if (rest.n > PATH_TEXT_MAX_BYTES)
        return err_errno(e, ENAMETOOLONG, "cannot resolve a path of %zu bytes", rest.n);
    t->at = sizeof t->bytes;
    if (todo_push(t, rest, e) < 0)
        return -1;
    t->given_n = rest.n + 1;
    while (todo_next(t, &name, &is_given)) {
        bool is_behind = w->text.n > w->real_n; /* a file, or what does not exist */

        if (span_is(name, "."))
            continue;
        if (is_given && missing == PATH_MISSING_OWN) {
            buf_clear(&before.text);
            if (buf_add(&before.text, buf_span(&w->text), e) < 0)
                return -1;
            before.given = span_skip(rest, rest.n + 1 - t->given_n - name.n);
        }
        if (is_behind && (missing == PATH_MISSING_OWN || !span_is(name, ".."))) {
            if (keep_text(w, name, missing, w->sys ? w->sys : ENOTDIR, e) < 0)
                return -1;
        } else if (span_is(name, "..")) {
            if (go_up(w, e) < 0)
                return -1;
        } else if (step(w, t, name, &how, e) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Where the last component of out begins, from `floor` on. */
static size_t last_start(const struct buf *out, size_t floor)
{
    size_t n = out->n;

    while (n > floor && out->p[n - 1] != '/')
        n--;
    return n;
}

int path_clean(struct span path, struct buf *out, struct err *e)
{
    bool is_absolute = path.n && path.p[0] == '/';
    size_t floor = is_absolute; /* `..` cannot remove what lies before this */
    struct span name;

    buf_clear(out);
    if (is_absolute && buf_addc(out, '/', e) < 0)
        return -1;
    while (span_cut(&path, '/', &name)) {
        bool is_up = span_is(name, "..");

        if (!name.n || span_is(name, "."))
            continue;
        if (is_up && out->n > floor) {
            size_t n = last_start(out, floor);

            out->n = n > floor ? n - 1 : n;
            continue;
        }
        if (is_up && is_absolute)
            continue;
        if (out->n > is_absolute && buf_addc(out, '/', e) < 0)
            return -1;
        if (buf_add(out, name, e) < 0)
            return -1;
        if (is_up)
            floor = out->n;
    }
    if (!out->n)
        return buf_addc(out, '.', e);
    out->p[out->n] = '\0';
    return 0;
}
