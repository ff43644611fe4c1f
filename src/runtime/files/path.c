#include "runtime/files/path.h"
#include "runtime/files/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

/* Copies the component at p, up to a slash or the end. False when no file can have such a name. */
static bool copy_name(char name[NAME_MAX + 1], const char *p)
{
    size_t n = strcspn(p, "/");

    if (n > NAME_MAX)
        return false;
    memcpy(name, p, n);
    name[n] = '\0';
    return true;
}

int path_open_plain(int dir_fd, const char *rel, int open_flags)
{
    OWN_FD int cur = -1;
    char name[NAME_MAX + 1];

    for (;;) {
        const char *slash;
        int fd;

        rel += strspn(rel, "/");
        slash = strchr(rel, '/');
        if (!copy_name(name, rel)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (!slash || !slash[strspn(slash, "/")])
            return openat(cur < 0 ? dir_fd : cur, name[0] ? name : ".",
                          open_flags | O_NOFOLLOW | O_CLOEXEC);
        fd = openat(cur < 0 ? dir_fd : cur, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -1;
        own_fd_close(&cur);
        cur = fd;
        rel = slash;
    }
}

/* Component-wise: `/app2` is not below `/app`. The root `/` is "". */
static bool is_below(struct span text, const char *root)
{
    size_t n = strlen(root);

    return span_starts(text, root) && (text.n == n || text.p[n] == '/');
}

static int escape(struct err *e, struct span user)
{
    return err_set(e, ERR_DENIED, "path '%.*s' leaves the root",
                   SPAN_ARG(span_slice(user, 0, 200)));
}

bool path_is_escape(const struct err *e)
{
    return e->code == ERR_DENIED && e->sys == 0; /* the system's own refusals carry their errno */
}

/* --- the root --- */

/* Absolute and cleaned, "" for `/`. */
static int absolute(const char *text, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf full = BUF_INIT(PATH_REAL_MAX_BYTES);
    char cwd[PATH_MAX];

    if (!text[0])
        return err_set(e, ERR_INVALID, "the root directory has an empty name");
    if (text[0] != '/') {
        if (!getcwd(cwd, sizeof cwd))
            return err_sys(e, "cannot find the working directory");
        if (buf_addf(&full, e, "%s/", cwd) < 0)
            return -1;
    }
    if (buf_add(&full, span_cstr(text), e) < 0 || path_clean(buf_span(&full), out, e) < 0)
        return -1;
    if (out->n == 1)
        buf_clear(out);
    return 0;
}

int path_root_open(struct path_root *root, const char *text, struct err *e)
{
    OWN(buf_done) struct buf full = BUF_INIT(PATH_REAL_MAX_BYTES);
    OWN(path_walk_done) struct path_walk w = { .fd = -1 };
    OWN_FD int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (top < 0)
        return err_sys(e, "cannot open '/'");
    if (absolute(text, &full, e) < 0 || path_walk_init(&w, top, "", e) < 0 ||
        path_walk_along(&w, buf_span(&full), PATH_MISSING_KEPT, false, e) < 0)
        return err_wrap(e, "cannot open the root directory '%s'", text);
    if (w.real_n < w.text.n)
        return err_errno(e, w.sys ? w.sys : ENOTDIR, "cannot open the root directory '%s'", text);
    root->fd = take_fd(&w.fd);
    root->configured = own_strdup(buf_cstr(&full));
    root->real = own_strdup(buf_cstr(&w.text));
    return 0;
}

void path_root_close(struct path_root *root)
{
    own_fd_close(&root->fd);
    free(root->configured);
    free(root->real);
    *root = (struct path_root)PATH_ROOT_NONE;
}

int path_root_make(const char *text, mode_t mode, struct err *e)
{
    OWN(path_root_close) struct path_root top = PATH_ROOT_NONE;
    OWN(buf_done) struct buf full = BUF_INIT(PATH_REAL_MAX_BYTES);
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;

    if (absolute(text, &full, e) < 0 || path_root_open(&top, "/", e) < 0 ||
        path_resolve(&top, PATH_PYTHON, buf_span(&full), 0, &at, e) < 0 ||
        path_make_parents(&at, mode, e) < 0)
        return err_wrap(e, "cannot create the directory '%s'", text);
    if (at.exists && !S_ISDIR(at.st.st_mode))
        return err_errno(e, ENOTDIR, "cannot use '%s' as a directory", text);
    if (!at.exists && mkdirat(at.dir_fd, at.name, mode) < 0 && errno != EEXIST)
        return err_sys(e, "cannot create the directory '%s'", text);
    return 0;
}

/* --- from text to real path: advice --- */

/* The text below the root that a path means by sandboxd's rules, before links are looked at. */
static int confine_text(const struct path_root *root, enum path_rules rules, struct span user,
                        struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf clean = BUF_INIT(PATH_REAL_MAX_BYTES);
    OWN(buf_done) struct buf joined = BUF_INIT(2 * PATH_REAL_MAX_BYTES);
    struct span rest;

    if (path_clean(user, &clean, e) < 0)
        return -1;
    rest = buf_span(&clean);
    if (is_below(rest, root->real))
        rest = span_skip(rest, strlen(root->real));
    else if (rules == PATH_PYDANTIC && is_below(rest, root->configured))
        rest = span_skip(rest, strlen(root->configured));
    if (buf_addf(&joined, e, "%s/", root->real) < 0 || buf_add(&joined, rest, e) < 0 ||
        path_clean(buf_span(&joined), out, e) < 0)
        return -1;
    if (!is_below(buf_span(out), root->real))
        return escape(e, user);
    buf_consume(out, strlen(root->real));
    return 0;
}

static int real_path(const struct path_root *root, enum path_rules rules, struct span user,
                     int flags, struct path_walk *w, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(2 * PATH_REAL_MAX_BYTES);
    enum path_missing missing = rules == PATH_PYTHON ? PATH_MISSING_KEPT : PATH_MISSING_OWN;
    bool keep_last = flags & PATH_KEEP_LAST_LINK;
    struct span rest = user;

    if (span_find(user, '\0') != SIZE_MAX)
        return rules == PATH_PYTHON ? escape(e, user)
                                    : err_errno(e, EINVAL, "cannot use a path with a NUL");
    if (user.n > PATH_TEXT_MAX_BYTES)
        return err_errno(e, ENAMETOOLONG, "cannot use a path of %zu bytes", user.n);
    if (rules != PATH_PYTHON) {
        if (confine_text(root, rules, user, &text, e) < 0)
            return -1;
        rest = buf_span(&text);
    }
    while (rest.n && rest.p[0] == '/')
        rest = span_skip(rest, 1);
    if (path_walk_init(w, root->fd, root->real, e) < 0)
        return -1;
    if (path_walk_along(w, rest, missing, keep_last, e) == 0 &&
        is_below(buf_span(&w->text), root->real))
        return 0;
    /* Outside, what went wrong there is not told: that would show what exists. */
    return is_below(buf_span(&w->text), root->real) ? -1 : escape(e, user);
}

/* --- from real path to descriptor: the guard --- */

/* A link where the walk saw none. */
static bool is_raced(const struct path_walk *w, enum path_rules rules, const char *name,
                     const struct path_at *at)
{
    size_t end = (size_t)(name - at->abs) + strcspn(name, "/");

    if (end <= w->real_n)
        return true;
    if (w->kept_link)
        return end < w->text.n;
    return w->sys != ELOOP && !(rules != PATH_PYTHON && w->sys == ENOENT);
}

enum reach { REACH_DONE, REACH_RACED, REACH_FAILED };

/* Opens the directories of at->rel up to the last component or the first that is missing. */
static enum reach reach_parent(const struct path_walk *w, enum path_rules rules, struct path_at *at)
{
    char name[NAME_MAX + 1];
    struct stat st;

    for (const char *p = at->rel; p < at->name; p += strcspn(p, "/") + 1) {
        OWN_FD int fd = -1;

        at->missing_at = (size_t)(p - at->rel);
        errno = ENAMETOOLONG;
        if (copy_name(name, p))
            fd = openat(at->dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0) {
            at->sys = errno;
            return REACH_DONE;
        }
        if (S_ISLNK(st.st_mode)) {
            at->sys = w->sys ? w->sys : ENOTDIR;
            return is_raced(w, rules, p, at) ? REACH_RACED : REACH_DONE;
        }
        if (!S_ISDIR(st.st_mode)) {
            at->sys = ENOTDIR;
            return REACH_DONE;
        }
        own_fd_close(&at->dir_fd);
        at->dir_fd = take_fd(&fd);
    }
    at->has_parent = true;
    return REACH_DONE;
}

static enum reach reach_entry(const struct path_walk *w, enum path_rules rules, struct path_at *at)
{
    if (fstatat(at->dir_fd, at->name, &at->st, AT_SYMLINK_NOFOLLOW) < 0) {
        at->sys = errno;
        return REACH_DONE;
    }
    at->is_link = S_ISLNK(at->st.st_mode);
    at->exists = !at->is_link;
    if (!at->is_link)
        return REACH_DONE;
    at->sys = w->sys ? w->sys : ENOENT;
    return is_raced(w, rules, at->name, at) ? REACH_RACED : REACH_DONE;
}

static enum reach reach(const struct path_root *root, const struct path_walk *w,
                        enum path_rules rules, struct path_at *at, struct err *e)
{
    enum reach reached;
    const char *slash;

    at->abs = own_strdup(w->text.n ? buf_cstr(&w->text) : "/");
    at->rel = at->abs + strlen(root->real);
    at->rel += at->rel[0] == '/';
    slash = strrchr(at->rel, '/');
    at->is_root = !at->rel[0];
    at->name = at->is_root ? "." : slash ? slash + 1 : at->rel;
    at->dir_fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
    if (at->dir_fd < 0) {
        (void)err_sys(e, "cannot duplicate the root directory");
        return REACH_FAILED;
    }
    at->has_parent = at->is_root;
    reached = at->is_root ? REACH_DONE : reach_parent(w, rules, at);
    if (reached == REACH_DONE && at->has_parent)
        reached = reach_entry(w, rules, at);
    return reached;
}

int path_resolve(const struct path_root *root, enum path_rules rules, struct span user, int flags,
                 struct path_at *ret, struct err *e)
{
    for (int i = 0; i < PATH_TRIES; i++) {
        OWN(path_walk_done) struct path_walk w = { .fd = -1 };
        OWN(path_at_done) struct path_at at = PATH_AT_NONE;

        if (real_path(root, rules, user, flags, &w, e) < 0)
            return -1;
        switch (reach(root, &w, rules, &at, e)) {
        case REACH_DONE:
            *ret = at;
            at = (struct path_at)PATH_AT_NONE;
            return 0;
        case REACH_RACED:
            break;
        case REACH_FAILED:
            return -1;
        }
    }
    return err_set(e, ERR_BUSY, "path '%.*s' changes faster than it can be followed",
                   SPAN_ARG(span_slice(user, 0, 200)));
}

void path_at_done(struct path_at *at)
{
    own_fd_close(&at->dir_fd);
    free(at->abs);
    *at = (struct path_at)PATH_AT_NONE;
}

int path_make_parents(struct path_at *at, mode_t mode, struct err *e)
{
    if (at->has_parent)
        return 0;
    for (const char *p = at->rel + at->missing_at; p < at->name; p += strcspn(p, "/") + 1) {
        char name[NAME_MAX + 1];
        int fd;

        if (!copy_name(name, p))
            return err_errno(e, ENAMETOOLONG, "cannot create a directory for '%s'", at->abs);
        if (mkdirat(at->dir_fd, name, mode) < 0 && errno != EEXIST)
            return err_sys(e, "cannot create the directory '%s' for '%s'", name, at->abs);
        /* What is there now may be someone else's link: never through it. */
        fd = openat(at->dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, "cannot open the directory '%s' for '%s'", name, at->abs);
        own_fd_close(&at->dir_fd);
        at->dir_fd = fd;
        at->missing_at = (size_t)(p - at->rel) + strlen(name) + 1;
    }
    at->has_parent = true;
    return 0;
}

/* The entry changed its kind between resolving and opening. */
static bool is_swapped(const struct path_at *at, int fd, int open_flags, int sys)
{
    struct stat st;

    if (fd < 0)
        return sys == ELOOP || sys == ENOENT || (sys == ENOTDIR && S_ISDIR(at->st.st_mode));
    return (open_flags & O_PATH) && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

int path_open(const struct path_root *root, enum path_rules rules, struct span user, int open_flags,
              struct path_at *ret, int *ret_fd, struct err *e)
{
    for (int i = 0; i < PATH_TRIES; i++) {
        OWN(path_at_done) struct path_at at = PATH_AT_NONE;
        OWN_FD int fd = -1;

        if (path_resolve(root, rules, user, 0, &at, e) < 0)
            return -1;
        if (!at.exists)
            return err_errno(e, at.sys, "cannot open '%s'", at.abs);
        fd = openat(at.dir_fd, at.name, open_flags | O_NOFOLLOW | O_CLOEXEC);
        if (is_swapped(&at, fd, open_flags, errno))
            continue;
        if (fd < 0)
            return err_sys(e, "cannot open '%s'", at.abs);
        *ret_fd = take_fd(&fd);
        if (ret) {
            *ret = at;
            at = (struct path_at)PATH_AT_NONE;
        }
        return 0;
    }
    return err_set(e, ERR_BUSY, "path '%.*s' changes faster than it can be followed",
                   SPAN_ARG(span_slice(user, 0, 200)));
}
