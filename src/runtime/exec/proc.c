#include "runtime/exec/proc.h"

#include "base/buf.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PATH_BYTES        64
#define STAT_BYTES        1024
#define FORKED_NOT_EXECED 0x40 /* PF_FORKNOEXEC of the kernel, in the flags of /proc/PID/stat */
#define EXITING           0x04 /* PF_EXITING */

static int open_of(pid_t pid, const char *name, int flags)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return open(path, flags | O_RDONLY | O_CLOEXEC);
}

/* The next blank-separated number; 0 where there is none, as a line cut short would have. */
static uint64_t next_number(struct span *rest)
{
    struct span piece = SPAN_NONE;
    int64_t value = 0;

    if (span_cut(rest, ' ', &piece))
        (void)str_i64(piece, INT64_MIN, INT64_MAX, &value);
    return (uint64_t)value;
}

bool proc_read(pid_t pid, struct proc *ret)
{
    char text[STAT_BYTES];
    OWN_FD int fd = open_of(pid, "stat", 0);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    struct span rest;
    uint64_t field[23] = { 0 };
    const char *end;

    if (n <= 0)
        return false;
    /* The name is in parentheses and may hold any byte, also a parenthesis: the last one closes it. */
    end = memrchr(text, ')', (size_t)n);
    if (!end || end + 4 > text + n)
        return false;
    rest = span_of(end + 4, (size_t)(text + n - (end + 4)));
    for (size_t i = 4; i < LEN(field); i++) /* numbered as in proc(5), from 1 */
        field[i] = next_number(&rest);
    *ret = (struct proc){
        .pid = pid,
        .state = end[2],
        .ppid = (pid_t)field[4],
        .pgrp = (pid_t)field[5],
        .session = (pid_t)field[6],
        .has_execed = !(field[9] & FORKED_NOT_EXECED),
        .is_exiting = field[9] & EXITING,
        .threads = (unsigned)field[20],
        .start = field[22],
    };
    return true;
}

bool proc_is_alive(const struct proc *p)
{
    return (p->state != 'Z' && p->state != 'X' && !p->is_exiting) || p->threads > 1;
}

bool proc_is_stopped(const struct proc *p)
{
    return p->state == 'T' || p->state == 't';
}

static bool is_pid(const char *name, pid_t *ret)
{
    uint64_t value;

    if (!str_u64(span_cstr(name), INT32_MAX, &value) || value == 0)
        return false;
    *ret = (pid_t)value;
    return true;
}

/* The file is a line of pids; it may be longer than what we read at once, and a read may cut a number. */
static void tell_children(int fd, proc_child_fn fn, void *ctx)
{
    char text[4096];
    uint64_t value = 0;
    bool has_digit = false;
    ssize_t n;

    while ((n = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                value = value * 10 + (uint64_t)(text[i] - '0');
                has_digit = true;
            } else if (has_digit) {
                fn(ctx, (pid_t)value);
                value = 0;
                has_digit = false;
            }
        }
    }
}

bool proc_children(pid_t pid, proc_child_fn fn, void *ctx)
{
    int task_fd = open_of(pid, "task", O_DIRECTORY);
    DIR *tasks = task_fd < 0 ? NULL : fdopendir(task_fd);
    bool is_listed = true;
    pid_t tid;

    if (!tasks) {
        own_fd_close(&task_fd);
        return true; /* gone, and its children with it or elsewhere */
    }
    for (struct dirent *d = readdir(tasks); d; d = readdir(tasks)) {
        char path[PATH_BYTES];
        OWN_FD int fd = -1;

        if (!is_pid(d->d_name, &tid))
            continue;
        (void)snprintf(path, sizeof path, "%d/children", tid);
        fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            tell_children(fd, fn, ctx);
        else if (errno == ENOENT && faccessat(task_fd, d->d_name, F_OK, 0) == 0)
            is_listed = false; /* the thread is there, the file is not: built without it */
    }
    (void)closedir(tasks);
    return is_listed;
}

static int by_pid(const void *a, const void *b)
{
    const struct proc *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

void proc_table_read(struct proc_table *t)
{
    DIR *dir = opendir("/proc");
    struct proc p;
    pid_t pid;

    t->n = 0;
    if (!dir)
        return;
    for (struct dirent *d = readdir(dir); d && t->n < PROC_MAX; d = readdir(dir)) {
        if (!is_pid(d->d_name, &pid) || !proc_read(pid, &p))
            continue;
        if (t->n == t->cap) {
            t->cap = t->cap ? t->cap * 2 : 256;
            t->rows = own_resize(t->rows, t->cap, sizeof *t->rows);
        }
        t->rows[t->n++] = p;
    }
    (void)closedir(dir);
    if (t->n)
        qsort(t->rows, t->n, sizeof *t->rows, by_pid);
}

void proc_table_done(struct proc_table *t)
{
    free(t->rows);
    *t = (struct proc_table){ 0 };
}

const struct proc *proc_table_find(const struct proc_table *t, pid_t pid)
{
    struct proc key = { .pid = pid };

    return t->n ? bsearch(&key, t->rows, t->n, sizeof *t->rows, by_pid) : NULL;
}

bool proc_holds(pid_t pid, const char *const *links, size_t count)
{
    int dir_fd = open_of(pid, "fd", O_DIRECTORY);
    DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
    bool is_held = false;

    if (!dir) {
        own_fd_close(&dir_fd);
        return false;
    }
    for (struct dirent *d = readdir(dir); d && !is_held; d = readdir(dir)) {
        char link[PATH_BYTES];
        /* Reading the link, not following it: that could wait for a file system that hangs. */
        ssize_t n = readlinkat(dir_fd, d->d_name, link, sizeof link);

        for (size_t i = 0; i < count && n > 0; i++)
            is_held |= span_is(span_of(link, (size_t)n), links[i]);
    }
    (void)closedir(dir);
    return is_held;
}

bool proc_is_our_program(pid_t pid)
{
    char path[PATH_BYTES];
    struct stat ours, its;

    (void)snprintf(path, sizeof path, "/proc/%d/exe", pid);
    return stat("/proc/self/exe", &ours) == 0 && stat(path, &its) == 0 &&
           ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

bool proc_signal_fd(int pid_fd, int sig)
{
    return syscall(SYS_pidfd_send_signal, pid_fd, sig, NULL, 0) == 0;
}

int proc_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool proc_signal(pid_t pid, uint64_t start, int sig)
{
    OWN_FD int fd = proc_open(pid);
    bool has_no_pidfd =
        fd < 0 && errno != ESRCH; /* an old kernel, a filter, or no descriptor left */
    struct proc now;

    /* The descriptor first: what is read after it is about the same process, or that one has ended and the
     * signal goes nowhere. */
    if ((fd < 0 && !has_no_pidfd) || !proc_read(pid, &now) || now.start != start)
        return false;
    return has_no_pidfd ? kill(pid, sig) == 0 : proc_signal_fd(fd, sig);
}
