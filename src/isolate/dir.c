#include "isolate/dir.h"

#include "base/fd.h"
#include "isolate/limits.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#define BACKLOG   128 /* callers that wait for the same sandbox to answer */
#define CONNECT_S 10  /* for a place among them */

static const char *const box_files[] = { DIR_SPEC,        DIR_STATE,        DIR_EXIT,
                                         DIR_CONTROL,     DIR_LOG,          DIR_OLD_LOG,
                                         DIR_SPEC ".new", DIR_STATE ".new", DIR_EXIT ".new" };

/* Few have these: looked for where a directory is not empty without. */
static const char *const rare_files[] = { DIR_MESSAGE, DIR_MESSAGE ".new" };

int dir_default(const char *given, char **ret, struct err *e)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n;

    if (given && *given)
        n = asprintf(&path, "%s", given);
    else if (geteuid() == 0)
        n = asprintf(&path, "/var/lib/silica");
    else if (state && state[0] == '/')
        n = asprintf(&path, "%s/silica", state);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.local/state/silica", home);
    else
        return err_set(e, ERR_INVALID, "no data directory: neither --data nor HOME is given");
    if (n < 0)
        abort();
    *ret = path;
    return 0;
}

int dir_make_path(const char *path, struct err *e)
{
    OWN_MEM char *copy = own_strdup(path);

    for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        /* by path: the operator's, before there is a tenant; dir_open() judges what it leads to. */
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            return err_sys(e, "cannot make the directory '%s'", copy);
        if (!slash)
            return 0;
        *slash = '/';
    }
}

static int open_dir(int at_fd, const char *path)
{
    return openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int dir_open(struct dir *d, const char *path, bool makes_it, struct err *e)
{
    OWN_FD int fd = -1;
    OWN_FD int boxes_fd = -1;

    if (makes_it && dir_make_path(path, e) < 0)
        return -1;
    /* by path: the owner may have linked it elsewhere. */
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open the data directory '%s'", path);
    if (fd_check_own_dir(fd, path, e) < 0)
        return -1;
    if (makes_it && mkdirat(fd, "sandboxes", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s/sandboxes'", path);
    boxes_fd = open_dir(fd, "sandboxes");
    if (boxes_fd < 0)
        return err_sys(e, "cannot open '%s/sandboxes'", path);
    d->fd = take_fd(&fd);
    d->boxes_fd = take_fd(&boxes_fd);
    return 0;
}

void dir_done(struct dir *d)
{
    own_fd_close(&d->fd);
    own_fd_close(&d->boxes_fd);
}

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > BOX_NAME_MAX_BYTES || !isalnum((unsigned char)name[0]))
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_' && *c != '-')
            return false;
    return true;
}

int dir_check_name(const char *name, struct err *e)
{
    if (name && is_name(name))
        return 0;
    (void)err_set(e, ERR_INVALID, "'%.200s' cannot be the name of a sandbox", name ? name : "");
    err_hint(e, "letters, digits, '.', '_' and '-', at most %d, the first a letter or digit",
             BOX_NAME_MAX_BYTES);
    return -1;
}

int dir_make_box(const struct dir *d, const char *name, int *ret_fd, struct err *e)
{
    if (dir_check_name(name, e) < 0)
        return -1;
    if (mkdirat(d->boxes_fd, name, 0700) < 0) {
        if (errno == EEXIST)
            return err_set(e, ERR_EXISTS, "there is a sandbox '%s' already", name);
        return err_sys(e, "cannot make the directory of sandbox '%s'", name);
    }
    return dir_open_box(d, name, ret_fd, e);
}

int dir_open_box(const struct dir *d, const char *name, int *ret_fd, struct err *e)
{
    int fd;

    if (dir_check_name(name, e) < 0)
        return -1;
    fd = open_dir(d->boxes_fd, name);
    if (fd < 0 && errno == ENOENT) {
        (void)err_set(e, ERR_NOT_FOUND, "there is no sandbox '%s'", name);
        err_hint(e, "silica ps -a lists them");
        return -1;
    }
    if (fd < 0)
        return err_sys(e, "cannot open the directory of sandbox '%s'", name);
    *ret_fd = fd;
    return 0;
}

int dir_remove_box(const struct dir *d, const char *name, struct err *e)
{
    OWN_FD int fd = -1;

    if (dir_check_name(name, e) < 0)
        return -1;
    fd = open_dir(d->boxes_fd, name);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "cannot open the directory of sandbox '%s'", name);
    for (size_t i = 0; i < LEN(box_files); i++)
        if (unlinkat(fd, box_files[i], 0) < 0 && errno != ENOENT)
            return err_sys(e, "cannot remove '%s' of sandbox '%s'", box_files[i], name);
    if (unlinkat(d->boxes_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    for (size_t i = 0; i < LEN(rare_files); i++)
        (void)unlinkat(fd, rare_files[i], 0);
    if (unlinkat(d->boxes_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove the directory of sandbox '%s'", name);
    return 0;
}

static int keep_names(const struct dirent *entry)
{
    return is_name(entry->d_name);
}

int dir_each_box(const struct dir *d, bool (*fn)(void *ctx, const char *name), void *ctx,
                 struct err *e)
{
    struct dirent **entries;
    int n = scandirat(d->boxes_fd, ".", &entries, keep_names, alphasort);
    bool is_going = true;

    if (n < 0)
        return err_sys(e, "cannot list the sandboxes");
    for (int i = 0; i < n; i++) {
        is_going = is_going && fn(ctx, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

/* One that was left by a write cut short may have another mode than a key should. */
static int make_file(int fd, const char *name)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int made = openat(fd, name, flags, 0600);

    if (made < 0 && errno == EEXIST && unlinkat(fd, name, 0) == 0)
        made = openat(fd, name, flags, 0600);
    return made;
}

int dir_write(int fd, const char *file, struct span text, struct err *e)
{
    OWN_FD int file_fd = -1;
    char fresh[64];

    (void)snprintf(fresh, sizeof fresh, "%s.new", file);
    file_fd = make_file(fd, fresh);
    if (file_fd < 0)
        return err_sys(e, "cannot make '%s'", file);
    if (fd_write_all(file_fd, text, e) < 0)
        (void)err_wrap(e, "'%s'", file);
    else if (renameat(fd, fresh, fd, file) < 0)
        (void)err_sys(e, "cannot put '%s' in its place", file);
    else
        return 0;
    (void)unlinkat(fd, fresh, 0);
    return -1;
}

int dir_read(int fd, const char *file, struct buf *text, struct err *e)
{
    OWN_FD int file_fd = openat(fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (file_fd < 0)
        return err_sys(e, "cannot open '%s'", file);
    return fd_read_all(file_fd, text, e) < 0 ? err_wrap(e, "'%s'", file) : 0;
}

int dir_sync(int fd, const char *file, struct err *e)
{
    OWN_FD int file_fd = openat(fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (file_fd < 0 || fsync(file_fd) < 0 || fsync(fd) < 0)
        return err_sys(e, "cannot bring '%s' to the disk", file);
    return 0;
}

/* ---- sockets ---- */

static void address_of(int fd, const char *file, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", fd, file);
}

int dir_listen(int fd, const char *file, int type, int *ret_fd, struct err *e)
{
    OWN_FD int sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at;

    address_of(fd, file, &at);
    if (unlinkat(fd, file, 0) < 0 && errno != ENOENT)
        return err_sys(e, "cannot replace '%s'", file);
    /* The socket's file is born with the mode of the socket. */
    if (sock < 0 || fchmod(sock, 0600) < 0 || bind(sock, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(sock, BACKLOG) < 0)
        return err_sys(e, "cannot listen on '%s'", file);
    *ret_fd = take_fd(&sock);
    return 0;
}

/* A queue that is full is waited for, but not for ever. */
static int set_deadline(int sock, time_t seconds)
{
    const struct timeval t = { .tv_sec = seconds };

    return setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

int dir_connect(int fd, const char *file, int type, int *ret_fd, struct err *e)
{
    OWN_FD int sock = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    struct sockaddr_un at;

    address_of(fd, file, &at);
    if (sock < 0 || set_deadline(sock, CONNECT_S) < 0 ||
        connect(sock, (struct sockaddr *)&at, sizeof at) < 0 || set_deadline(sock, 0) < 0) {
        (void)err_sys(e, "cannot connect to '%s'", file);
        if (e->sys == ECONNREFUSED)
            e->code = ERR_UNAVAILABLE;
        if (e->sys == EAGAIN)
            e->code = ERR_TIMEOUT;
        return -1;
    }
    *ret_fd = take_fd(&sock);
    return 0;
}
