#include "base/scratch.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "scratch: %s: %s\n", what, strerrordesc_np(errno));
    abort();
}

void scratch_make(struct scratch *s)
{
    static const char *const candidates[] = { "/dev/shm", "/tmp", "." };
    char text[64];

    EACH(dir, candidates) {
        snprintf(text, sizeof text, "%s/silica-scratch-XXXXXX", *dir);
        if (mkdtemp(text))
            break;
    }
    s->fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(s->fd >= 0, text);
    OWN_MEM char *real = realpath(text, NULL);
    must(real && strlen(real) < sizeof s->path, "realpath");
    snprintf(s->path, sizeof s->path, "%s", real);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

/* So that directories made unreadable by a test can be removed by their owner. */
static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    if (type == FTW_D || type == FTW_DNR)
        (void)chmod(path, 0700);
    return 0;
}

void scratch_remove(struct scratch *s)
{
    own_fd_close(&s->fd);
    (void)nftw(s->path, open_up, 16, FTW_PHYS);
    (void)nftw(s->path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

void scratch_dir(const struct scratch *s, const char *path)
{
    must(mkdirat(s->fd, path, 0777) == 0, path);
}

void scratch_file(const struct scratch *s, const char *path, const char *content)
{
    OWN_FD int fd = openat(s->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct err e;

    must(fd >= 0, path);
    must(fd_write_all(fd, span_cstr(content), &e) == 0, path);
}

void scratch_link(const struct scratch *s, const char *path, const char *target)
{
    must(symlinkat(target, s->fd, path) == 0, path);
}

const char *scratch_path(const struct scratch *s, const char *rest)
{
    static _Thread_local char texts[4][8192];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 4];

    snprintf(text, sizeof texts[0], "%s%s%s", s->path, rest[0] ? "/" : "", rest);
    return text;
}

const char *scratch_read(const struct scratch *s, const char *path)
{
    static _Thread_local struct buf content = BUF_INIT(1024 * 1024);
    OWN_FD int fd = openat(s->fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct err e;

    buf_clear(&content);
    if (fd < 0)
        return strerrorname_np(errno);
    must(fd_read_all(fd, &content, &e) == 0, path);
    return buf_cstr(&content);
}

mode_t scratch_mode(const struct scratch *s, const char *path)
{
    struct stat st;

    must(fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0, path);
    return st.st_mode & 07777;
}

bool scratch_has(const struct scratch *s, const char *path)
{
    struct stat st;

    return fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

unsigned scratch_count(const struct scratch *s, const char *path)
{
    DIR *dir = opendir(scratch_path(s, path));
    unsigned n = 0;

    must(dir != NULL, path);
    for (struct dirent *d = readdir(dir); d; d = readdir(dir))
        n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
    closedir(dir);
    return n;
}
