#include "isolate/tree.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/time.h"
#include "isolate/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PROC_FILE_MAX_BYTES (1 << 20)

/* What is known of one process. */
struct member {
    pid_t pid, parent;
};

struct tree {
    struct member *v;
    size_t n, cap;
};

static void tree_done(struct tree *t)
{
    free(t->v);
}

static int add(struct tree *t, pid_t pid, pid_t parent, struct err *e)
{
    if (t->n == TREE_MAX)
        return err_set(e, ERR_LIMIT, "more than %d processes in the sandbox", TREE_MAX);
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->v = own_resize(t->v, t->cap, sizeof *t->v);
    }
    t->v[t->n++] = (struct member){ pid, parent };
    return 0;
}

static int add_children(struct tree *t, pid_t parent, const char *task, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(PROC_FILE_MAX_BYTES);
    char path[320];
    struct span rest, word;
    struct err gone;
    uint64_t pid;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%s/children", parent, task);
    if (fd_read_file(path, &text, &gone) < 0)
        return 0; /* it has ended */
    for (rest = buf_span(&text); span_cut(&rest, ' ', &word);)
        if (str_u64(word, INT32_MAX, &pid) && add(t, (pid_t)pid, parent, e) < 0)
            return -1;
    return 0;
}

/* Everything below `top`, itself first. */
static int look(struct tree *t, pid_t top, struct err *e)
{
    t->n = 0;
    if (add(t, top, 0, e) < 0)
        return -1;
    for (size_t i = 0; i < t->n; i++) {
        char path[64];
        struct dirent *task;
        DIR *tasks;
        int rc = 0;

        (void)snprintf(path, sizeof path, "/proc/%d/task", t->v[i].pid);
        tasks = opendir(path);
        while (tasks && rc == 0 && (task = readdir(tasks)))
            if (task->d_name[0] != '.')
                rc = add_children(t, t->v[i].pid, task->d_name, e);
        if (tasks)
            (void)closedir(tasks);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* The fields of /proc/PID/stat behind the name, which may hold anything: [0] is the state, [1] the parent. */
static bool read_stat(pid_t pid, struct buf *text, struct span *ret_fields)
{
    char path[64];
    struct err e;
    size_t at;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    buf_clear(text);
    if (fd_read_file(path, text, &e) < 0)
        return false;
    for (at = text->n; at > 0 && text->p[at - 1] != ')'; at--)
        continue;
    *ret_fields = span_trim(span_skip(buf_span(text), at));
    return at > 0;
}

static uint64_t number_at(struct span fields, size_t n)
{
    struct span part = SPAN_NONE;
    uint64_t number = 0;

    for (size_t i = 0; i <= n; i++)
        if (!span_cut(&fields, ' ', &part))
            return 0;
    (void)str_u64(part, UINT64_MAX, &number);
    return number;
}

/* True when it was signalled, or is already as the signal would have it. */
static bool send(const struct member *m, int signal_number, bool *ret_is_new)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192);
    OWN_FD int fd = (int)syscall(SYS_pidfd_open, m->pid, 0);
    struct span fields;

    *ret_is_new = false;
    if (fd < 0 || !read_stat(m->pid, &text, &fields))
        return errno == ESRCH || errno == ENOENT;
    if (m->parent && number_at(fields, 1) != (uint64_t)m->parent)
        return true; /* another process by now, or another's child: the next round finds it */
    if (signal_number == SIGSTOP && (fields.p[0] == 'T' || fields.p[0] == 'Z'))
        return true;
    /* One in the kernel's hands ('D') stops on its way out and forks no more: a parent that waits in vfork for a child
     * that stands still would be waited for in vain. */
    *ret_is_new = fields.p[0] != 'D';
    return syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0) == 0 || errno == ESRCH;
}

static int send_all(pid_t top, int signal_number, bool *ret_is_new, struct err *e)
{
    OWN(tree_done) struct tree t = { 0 };

    *ret_is_new = false;
    if (look(&t, top, e) < 0)
        return -1;
    for (size_t i = 0; i < t.n; i++) {
        bool is_new;

        if (!send(&t.v[i], signal_number, &is_new))
            return err_sys(e, "cannot signal process %d of the sandbox", t.v[i].pid);
        *ret_is_new |= is_new;
    }
    return 0;
}

int tree_stop(pid_t top, struct err *e)
{
    uint64_t end_ms = time_mono_ms() + BOX_FREEZE_TIMEOUT_MS;
    bool is_new;

    for (int quiet = 0; quiet < 2;) { /* twice: whom the first found quiet may have just forked */
        if (send_all(top, SIGSTOP, &is_new, e) < 0)
            return -1;
        quiet = is_new ? 0 : quiet + 1;
        if (is_new && time_mono_ms() > end_ms)
            return err_set(e, ERR_TIMEOUT,
                           "the sandbox makes processes faster than they can be stopped");
        if (is_new)
            (void)poll(NULL, 0, 1); /* each stops when it next runs */
    }
    return 0;
}

int tree_continue(pid_t top, struct err *e)
{
    bool is_new;

    return send_all(top, SIGCONT, &is_new, e);
}

void tree_stats(pid_t top, struct box_stats *ret)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192);
    OWN(tree_done) struct tree t = { 0 };
    uint64_t pages = 0, ticks = 0, page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t tick_us = 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    struct span fields;
    struct err e;

    if (look(&t, top, &e) < 0)
        return;
    for (size_t i = 0; i < t.n; i++) {
        if (!read_stat(t.v[i].pid, &text, &fields))
            continue;
        for (size_t n = 11; n <= 14;
             n++) /* user and system time, its own and of children it waited for */
            ticks += number_at(fields, n);
        pages += number_at(fields, 21);
    }
    if (!ret->has_memory)
        ret->memory_bytes = pages * page_bytes;
    if (!ret->has_pids)
        ret->pids = t.n;
    if (!ret->has_cpu)
        ret->cpu_us = ticks * tick_us;
    ret->has_memory = ret->has_pids = ret->has_cpu = true;
}

void tree_each(pid_t top, void (*fn)(void *ctx, pid_t pid, uint64_t resident_bytes), void *ctx)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192);
    OWN(tree_done) struct tree t = { 0 };
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct span fields;
    struct err e;

    if (look(&t, top, &e) < 0 && e.code != ERR_LIMIT)
        return;
    for (size_t i = 0; i < t.n; i++)
        if (read_stat(t.v[i].pid, &text, &fields))
            fn(ctx, t.v[i].pid, number_at(fields, 21) * page_bytes);
}

bool tree_start_ticks(pid_t pid, uint64_t *ret)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192);
    struct span fields;

    if (!read_stat(pid, &text, &fields))
        return false;
    *ret = number_at(fields, 19);
    return fields.p[0] != 'Z' && fields.p[0] != 'X';
}

bool tree_is_stopped(pid_t pid)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192);
    struct span fields;

    return read_stat(pid, &text, &fields) && fields.p[0] == 'T';
}

/* A directory of /proc belongs to the effective user of its process, that of a dead one too. */
bool tree_is_of_ids(uid_t base, uint32_t count)
{
    OWN(buf_done) struct buf text = BUF_INIT(PROC_FILE_MAX_BYTES);
    DIR *all = opendir("/proc");
    const struct dirent *d;
    struct span fields;
    bool is_found = false;
    struct stat st;
    uint64_t pid;

    while (all && !is_found && (d = readdir(all)))
        is_found = str_u64(span_cstr(d->d_name), INT32_MAX, &pid) &&
                   fstatat(dirfd(all), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   st.st_uid >= base && st.st_uid - base < count &&
                   read_stat((pid_t)pid, &text, &fields) && fields.n && fields.p[0] != 'Z' &&
                   fields.p[0] != 'X';
    if (all)
        (void)closedir(all);
    return is_found;
}
