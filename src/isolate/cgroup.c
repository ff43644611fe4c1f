#include "isolate/cgroup.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/time.h"
#include "isolate/limits.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#define PROC_FILE_MAX_BYTES (1 << 20)
#define LEAF_PREFIX         "silica-"
#define CPU_PERIOD_US       100000 /* what the kernel has by default */

/* What a hierarchy is called in v1, and the controller's name in v2. */
static const char *const controllers[CGROUP_KINDS] = { "", "memory", "pids", "cpu", "freezer" };

/* The n-th field of a line, cut at single blanks. */
static struct span field(struct span line, size_t n)
{
    struct span part = SPAN_NONE;

    for (size_t i = 0; i <= n; i++)
        if (!span_cut(&line, ' ', &part))
            return SPAN_NONE;
    return part;
}

static bool has_word(struct span list, uint8_t sep, const char *word)
{
    struct span part;

    while (span_cut(&list, sep, &part))
        if (span_is(part, word))
            return true;
    return false;
}

/* "4:memory:/a/b" is our path in the memory hierarchy, "0::/a/b" in v2. */
static struct span own_path(struct span own, const char *controller)
{
    struct span line, id, names;

    while (span_cut(&own, '\n', &line)) {
        if (!span_cut(&line, ':', &id) || !span_cut(&line, ':', &names))
            continue;
        if (*controller ? has_word(names, ',', controller) : span_is(id, "0") && names.n == 0)
            return line;
    }
    return SPAN_NONE;
}

static void set_dir(struct cgroup_host *host, enum cgroup_kind kind, struct span mount,
                    struct span own)
{
    struct span path = own_path(own, controllers[kind]);
    int n;

    if (!path.p || host->dirs[kind][0])
        return;
    if (span_is(path, "/"))
        path.n = 0;
    n = snprintf(host->dirs[kind], CGROUP_PATH_MAX_BYTES, "%.*s%.*s", SPAN_ARG(mount),
                 SPAN_ARG(path));
    if (n >= CGROUP_PATH_MAX_BYTES)
        host->dirs[kind][0] = '\0'; /* a group nested so deep is one we do without */
}

void cgroup_host_parse(struct span mountinfo, struct span own, struct cgroup_host *ret)
{
    struct span line;

    *ret = (struct cgroup_host){ 0 };
    while (span_cut(&mountinfo, '\n', &line)) {
        size_t dash = span_find_str(line, SPAN(" - "));
        struct span mount = field(line, 4), tail, type, options;

        if (dash == SIZE_MAX || !span_is(field(line, 3), "/"))
            continue; /* a part of a hierarchy: paths in it are not those we know */
        tail = span_skip(line, dash + 3);
        type = field(tail, 0);
        options = field(tail, 2);
        if (span_is(type, "cgroup2"))
            set_dir(ret, CGROUP_V2, mount, own);
        if (!span_is(type, "cgroup"))
            continue;
        for (int kind = CGROUP_MEMORY; kind < CGROUP_KINDS; kind++)
            if (has_word(options, ',', controllers[kind]))
                set_dir(ret, (enum cgroup_kind)kind, mount, own);
    }
}

/* Looked at once in a process: its child may have been moved. */
const struct cgroup_host *cgroup_host(void)
{
    static struct cgroup_host known;
    static pid_t known_by;
    OWN(buf_done) struct buf mounts = BUF_INIT(PROC_FILE_MAX_BYTES);
    OWN(buf_done) struct buf own = BUF_INIT(PROC_FILE_MAX_BYTES);
    struct err e;

    if (known_by != getpid() && fd_read_file("/proc/self/mountinfo", &mounts, &e) == 0 &&
        fd_read_file("/proc/self/cgroup", &own, &e) == 0)
        cgroup_host_parse(buf_span(&mounts), buf_span(&own), &known);
    known_by = getpid();
    return &known;
}

static int write_at(const char *dir, const char *file, const char *text, struct err *e)
{
    char path[CGROUP_PATH_MAX_BYTES + 64];
    OWN_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    /* by path: the cgroup file system has no links. */
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open '%s'", path);
    return fd_write_all(fd, span_cstr(text), e) < 0 ? err_wrap(e, "'%s'", path) : 0;
}

PRINTF(4, 5)
static int write_number(const char *dir, const char *file, struct err *e, const char *fmt, ...)
{
    char text[64];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return write_at(dir, file, text, e);
}

static bool read_number(const char *dir, const char *file, const char *key, uint64_t *ret)
{
    OWN(buf_done) struct buf text = BUF_INIT(PROC_FILE_MAX_BYTES);
    char path[CGROUP_PATH_MAX_BYTES + 64];
    struct span rest, line;
    struct err e;

    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    if (fd_read_file(path, &text, &e) < 0)
        return false;
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);) {
        if (!key)
            return str_u64(line, UINT64_MAX, ret);
        if (span_is(field(line, 0), key))
            return str_u64(field(line, 1), UINT64_MAX, ret);
    }
    return false;
}

/* Groups that are being made: their leaf, and what they are made below. */
struct making {
    struct cgroup *cg;
    const struct cgroup *parent; /* or NULL */
    char leaf[96];
};

static const char *above_of(const struct making *m, enum cgroup_kind kind)
{
    return m->parent && *m->parent->dirs[kind] ? m->parent->dirs[kind] : cgroup_host()->dirs[kind];
}

static int make_dir(struct making *m, enum cgroup_kind kind, struct err *e)
{
    const char *above = above_of(m, kind);
    char path[CGROUP_PATH_MAX_BYTES];

    if (!*above)
        return err_set(e, ERR_UNSUPPORTED, "this host has no cgroup for it");
    if (snprintf(path, sizeof path, "%s/%s", above, m->leaf) >= (int)sizeof path)
        return err_set(e, ERR_LIMIT, "the cgroup '%s' is nested too deep", above);
    if (mkdir(path, 0755) < 0) /* by path: the kernel's own tree; mode: as of all groups */
        return err_sys(e, "cannot make the cgroup '%s'", path);
    memcpy(m->cg->dirs[kind], path, sizeof path);
    return 0;
}

/* The directory that takes the limit: of v1 where the host has the controller there, else our v2 group, whose parent
 * then has to hand the controller down. */
static int make_for_limit(struct making *m, enum cgroup_kind kind, struct err *e)
{
    if (*m->cg->dirs[kind])
        return 0; /* ahead */
    if (*cgroup_host()->dirs[kind])
        return make_dir(m, kind, e);
    if (!*m->cg->dirs[CGROUP_V2])
        return -1; /* *e says why the v2 group could not be made */
    if (write_number(above_of(m, CGROUP_V2), "cgroup.subtree_control", e, "+%s",
                     controllers[kind]) < 0)
        return -1;
    m->cg->is_v2[kind] = true;
    return 0;
}

/* Where a limit of that kind is written; NULL: there is none. */
static const char *dir_of_limit(const struct cgroup *cg, enum cgroup_kind kind)
{
    return cg->is_v2[kind] ? cg->dirs[CGROUP_V2] : *cg->dirs[kind] ? cg->dirs[kind] : NULL;
}

static int limit_memory(const struct cgroup *cg, uint64_t bytes, struct err *e)
{
    const char *dir = dir_of_limit(cg, CGROUP_MEMORY);
    unsigned long long n = bytes;
    struct err ignored;

    if (cg->is_v2[CGROUP_MEMORY]) {
        (void)write_at(dir, "memory.swap.max", "0", &ignored); /* not there without swap */
        return write_number(dir, "memory.max", e, "%llu", n);
    }
    /* With swap never below the limit without: first where that grows, last where it shrinks. */
    (void)write_number(dir, "memory.memsw.limit_in_bytes", &ignored, "%llu", n);
    if (write_number(dir, "memory.limit_in_bytes", e, "%llu", n) < 0)
        return -1;
    (void)write_number(dir, "memory.memsw.limit_in_bytes", &ignored, "%llu", n);
    return 0;
}

static int limit_pids(const struct cgroup *cg, uint64_t pids, struct err *e)
{
    return write_number(dir_of_limit(cg, CGROUP_PIDS), "pids.max", e, "%llu",
                        (unsigned long long)pids);
}

static int limit_cpu(const struct cgroup *cg, uint64_t milli, struct err *e)
{
    const char *dir = dir_of_limit(cg, CGROUP_CPU);
    unsigned long long quota_us = MAX(milli * (CPU_PERIOD_US / 1000), 1000ull);

    if (cg->is_v2[CGROUP_CPU])
        return write_number(dir, "cpu.max", e, "%llu %d", quota_us, CPU_PERIOD_US);
    return write_number(dir, "cpu.cfs_quota_us", e, "%llu", quota_us);
}

/* The kernel's own default is 1024 in v1, which is 100 in v2. */
static int weigh_cpu(const struct cgroup *cg, uint64_t shares, struct err *e)
{
    const char *dir = dir_of_limit(cg, CGROUP_CPU);
    unsigned long long n = MIN(MAX(shares, 2ull), 262144ull);

    if (cg->is_v2[CGROUP_CPU])
        return write_number(dir, "cpu.weight", e, "%llu", MIN(MAX(n * 100 / 1024, 1ull), 10000ull));
    return write_number(dir, "cpu.shares", e, "%llu", n);
}

static void add_missing(struct buf *missing, const char *what, const struct err *why, struct err *e)
{
    struct err full;

    if (!missing->n)
        *e = *why;
    (void)buf_addf(missing, &full, "%s%s", missing->n ? ", " : "", what); /* fits: three words */
}

static bool is_limited(const struct box_limits *l, enum cgroup_kind kind)
{
    return kind == CGROUP_MEMORY ? l->memory_bytes
           : kind == CGROUP_PIDS ? l->pids
                                 : kind == CGROUP_CPU && (l->cpu_milli || l->cpu_shares);
}

/* The group of a limit, and the limit. */
static int make_limit(struct making *m, enum cgroup_kind kind, const struct box_limits *l,
                      struct err *e)
{
    bool is_there = *m->cg->dirs[kind];

    if (make_for_limit(m, kind, e) < 0)
        return -1;
    if (is_there)
        return 0;
    if (kind != CGROUP_CPU)
        return kind == CGROUP_MEMORY ? limit_memory(m->cg, l->memory_bytes, e)
                                     : limit_pids(m->cg, l->pids, e);
    if (l->cpu_shares && l->cpu_shares != DEFAULT_CPU_SHARES &&
        weigh_cpu(m->cg, l->cpu_shares, e) < 0)
        return -1;
    return l->cpu_milli ? limit_cpu(m->cg, l->cpu_milli, e) : 0;
}

static void name_leaf(struct making *m, const char *name)
{
    static unsigned counter;
    size_t n = (size_t)snprintf(m->leaf, sizeof m->leaf, LEAF_PREFIX "%d-%u-", getpid(), ++counter);

    for (; *name && n < sizeof m->leaf - 1; name++)
        m->leaf[n++] = isalnum((unsigned char)*name) ? *name : '-';
    m->leaf[n] = '\0';
}

void cgroup_make(struct cgroup *cg, const struct cgroup *parent, const char *name,
                 const struct box_limits *limits, struct buf *missing, struct err *e)
{
    struct making m = { .cg = cg, .parent = parent };
    struct err why = { 0 };

    name_leaf(&m, name);
    if (make_dir(&m, CGROUP_V2, &why) < 0 && *cgroup_host()->dirs[CGROUP_FREEZER]) {
        struct err ignored;

        (void)make_dir(&m, CGROUP_FREEZER, &ignored);
    }
    if (limits->pids && make_limit(&m, CGROUP_PIDS, limits, &(struct err){ 0 }) < 0)
        cg->is_v2[CGROUP_PIDS] = false;
    if (limits->memory_bytes && make_limit(&m, CGROUP_MEMORY, limits, &why) < 0)
        add_missing(missing, "memory", &why, e);
    if (is_limited(limits, CGROUP_CPU) && make_limit(&m, CGROUP_CPU, limits, &why) < 0 &&
        limits->cpu_milli)
        add_missing(missing, "cpu", &why, e);
}

void cgroup_make_ahead(struct cgroup *cg, const struct cgroup *parent,
                       const struct box_limits *limits)
{
    struct making m = { .cg = cg, .parent = parent };
    struct err ignored;

    *cg = (struct cgroup){ 0 };
    name_leaf(&m, "next");
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++)
        if (is_limited(limits, kind) && *cgroup_host()->dirs[kind])
            (void)make_limit(&m, kind, limits, &ignored);
}

void cgroup_limit(const struct cgroup *cg, const struct box_limits *limits, struct buf *missing,
                  struct err *e)
{
    struct err why;

    (void)err_set(&why, ERR_UNSUPPORTED, "there is no cgroup for it");
    if (limits->pids && (!dir_of_limit(cg, CGROUP_PIDS) || limit_pids(cg, limits->pids, &why) < 0))
        add_missing(missing, "pids", &why, e);
    if (limits->memory_bytes &&
        (!dir_of_limit(cg, CGROUP_MEMORY) || limit_memory(cg, limits->memory_bytes, &why) < 0))
        add_missing(missing, "memory", &why, e);
    if (limits->cpu_shares && dir_of_limit(cg, CGROUP_CPU) &&
        weigh_cpu(cg, limits->cpu_shares, &why) < 0)
        add_missing(missing, "weight", &why, e);
    if (limits->cpu_milli &&
        (!dir_of_limit(cg, CGROUP_CPU) || limit_cpu(cg, limits->cpu_milli, &why) < 0))
        add_missing(missing, "cpu", &why, e);
}

bool cgroup_limits_pids(const struct cgroup *cg)
{
    return *cg->dirs[CGROUP_PIDS] || cg->is_v2[CGROUP_PIDS];
}

int cgroup_open_v2(const struct cgroup *cg)
{
    /* by path: the cgroup file system has no links. */
    return *cg->dirs[CGROUP_V2] ? open(cg->dirs[CGROUP_V2], O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                : -1;
}

/* ---- born in them ---- */

/* Of this process: the `tasks` files of its own groups, and in which hierarchies it has gone from there. */
static struct {
    pid_t pid;
    int fds[CGROUP_KINDS];                          /* 0: not opened yet, -1: it cannot be */
    char away[CGROUP_KINDS][CGROUP_PATH_MAX_BYTES]; /* "": at home */
} home;

static int home_fd(enum cgroup_kind kind)
{
    char path[CGROUP_PATH_MAX_BYTES + 64];

    if (home.pid != getpid()) {
        /* Descriptors of the process that forked us: CLOEXEC, or closed with all others of its. */
        memset(&home, 0, sizeof home);
        home.pid = getpid();
    }
    if (home.fds[kind] == 0) {
        (void)snprintf(path, sizeof path, "%s/tasks", cgroup_host()->dirs[kind]);
        /* by path: the cgroup file system has no links. */
        home.fds[kind] = open(path, O_WRONLY | O_CLOEXEC);
    }
    return home.fds[kind];
}

static const char *dir_to_enter(const struct cgroup *cg, const struct cgroup *parent, int kind)
{
    return *cg->dirs[kind] ? cg->dirs[kind] : parent ? parent->dirs[kind] : "";
}

static bool go_home(int kind)
{
    if (*home.away[kind] && write(home.fds[kind], "0", 1) != 1)
        return false;
    home.away[kind][0] = '\0';
    return true;
}

static bool go_to(int kind, const char *dir)
{
    struct err ignored;

    if (home_fd((enum cgroup_kind)kind) < 0)
        return false;
    if (strcmp(home.away[kind], dir) == 0)
        return true;
    if (write_at(dir, "tasks", "0", &ignored) < 0)
        return false;
    (void)snprintf(home.away[kind], sizeof home.away[kind], "%s", dir);
    return true;
}

bool cgroup_enter(const struct cgroup *cg, const struct cgroup *parent)
{
    for (int kind = CGROUP_V2 + 1; kind < CGROUP_KINDS; kind++) {
        const char *dir = dir_to_enter(cg, parent, kind);

        if (*dir ? go_to(kind, dir) : home.pid != getpid() || go_home(kind))
            continue;
        cgroup_leave();
        return false;
    }
    return true;
}

void cgroup_leave(void)
{
    if (home.pid != getpid())
        return;
    for (int kind = CGROUP_V2 + 1; kind < CGROUP_KINDS; kind++)
        (void)go_home(kind); /* it was open before we went */
}

int cgroup_join(const struct cgroup *cg, const struct cgroup *parent, pid_t pid, bool is_born_in_v2,
                bool is_born_in_v1, struct err *e)
{
    if (!is_born_in_v2 && *cg->dirs[CGROUP_V2] &&
        write_number(cg->dirs[CGROUP_V2], "cgroup.procs", e, "%d", pid) < 0)
        return err_wrap(e, "cannot move the sandbox into its cgroup");
    for (int kind = CGROUP_V2 + 1; kind < CGROUP_KINDS && !is_born_in_v1; kind++) {
        const char *dir = dir_to_enter(cg, parent, kind);

        if (*dir && write_number(dir, "cgroup.procs", e, "%d", pid) < 0 && *cg->dirs[kind])
            return err_wrap(e, "cannot move the sandbox into its cgroup");
    }
    return 0;
}

/* v2 tells by cgroup.events, v1 by the state's text; both settle within a few milliseconds. */
static bool is_settled(const struct cgroup *cg, bool is_frozen)
{
    OWN(buf_done) struct buf text = BUF_INIT(PROC_FILE_MAX_BYTES);
    char path[CGROUP_PATH_MAX_BYTES + 64];
    uint64_t frozen = 0;
    struct err e;

    if (*cg->dirs[CGROUP_V2])
        return read_number(cg->dirs[CGROUP_V2], "cgroup.events", "frozen", &frozen) &&
               (frozen == 1) == is_frozen;
    (void)snprintf(path, sizeof path, "%s/freezer.state", cg->dirs[CGROUP_FREEZER]);
    return fd_read_file(path, &text, &e) == 0 &&
           span_is(buf_span(&text), is_frozen ? "FROZEN\n" : "THAWED\n");
}

int cgroup_freeze(const struct cgroup *cg, bool is_frozen, struct err *e)
{
    uint64_t end_ms = time_mono_ms() + BOX_FREEZE_TIMEOUT_MS;

    if (*cg->dirs[CGROUP_V2]) {
        if (write_at(cg->dirs[CGROUP_V2], "cgroup.freeze", is_frozen ? "1" : "0", e) < 0)
            return -1;
    } else if (*cg->dirs[CGROUP_FREEZER]) {
        if (write_at(cg->dirs[CGROUP_FREEZER], "freezer.state", is_frozen ? "FROZEN" : "THAWED",
                     e) < 0)
            return -1;
    } else {
        return err_set(e, ERR_UNSUPPORTED, "no cgroup to freeze");
    }
    while (!is_settled(cg, is_frozen)) {
        if (time_mono_ms() > end_ms)
            return err_set(e, ERR_TIMEOUT, "not %s within %d ms", is_frozen ? "frozen" : "thawed",
                           BOX_FREEZE_TIMEOUT_MS);
        (void)poll(NULL, 0, 1);
    }
    return 0;
}

bool cgroup_is_frozen(const struct cgroup *cg, bool *ret)
{
    uint64_t asked = 0;

    if (*cg->dirs[CGROUP_V2] && read_number(cg->dirs[CGROUP_V2], "cgroup.freeze", NULL, &asked))
        *ret = asked == 1;
    else if (*cg->dirs[CGROUP_FREEZER] && !*cg->dirs[CGROUP_V2])
        *ret = !is_settled(cg, false);
    else
        return false;
    return true;
}

bool cgroup_kill(const struct cgroup *cg)
{
    struct err e;

    return *cg->dirs[CGROUP_V2] && write_at(cg->dirs[CGROUP_V2], "cgroup.kill", "1", &e) == 0;
}

void cgroup_stats(const struct cgroup *cg, struct box_stats *ret)
{
    const char *v2 = cg->dirs[CGROUP_V2], *memory = cg->dirs[CGROUP_MEMORY];
    const char *pids = cg->dirs[CGROUP_PIDS];

    if (*memory)
        ret->has_memory = read_number(memory, "memory.usage_in_bytes", NULL, &ret->memory_bytes);
    else if (cg->is_v2[CGROUP_MEMORY])
        ret->has_memory = read_number(v2, "memory.current", NULL, &ret->memory_bytes);
    if (*pids || cg->is_v2[CGROUP_PIDS])
        ret->has_pids = read_number(*pids ? pids : v2, "pids.current", NULL, &ret->pids);
    if (*v2)
        ret->has_cpu = read_number(v2, "cpu.stat", "usage_usec", &ret->cpu_us);
}

bool cgroup_ran_out(const struct cgroup *cg)
{
    uint64_t kills = 0;

    if (*cg->dirs[CGROUP_MEMORY])
        (void)read_number(cg->dirs[CGROUP_MEMORY], "memory.oom_control", "oom_kill", &kills);
    else if (cg->is_v2[CGROUP_MEMORY])
        (void)read_number(cg->dirs[CGROUP_V2], "memory.events", "oom_kill", &kills);
    return kills > 0;
}

bool cgroup_remove(struct cgroup *cg)
{
    bool is_gone = true;

    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        if (!*cg->dirs[kind])
            continue;
        /* by path: the kernel's own tree; links are not made in it. */
        if (rmdir(cg->dirs[kind]) < 0 && errno == EBUSY)
            is_gone = false;
        else
            cg->dirs[kind][0] = '\0';
    }
    return is_gone;
}

void cgroup_done(struct cgroup *cg)
{
    uint64_t end_ms = time_mono_ms() + BOX_FREEZE_TIMEOUT_MS;

    /* The last task of a group is still leaving it when its death has been told. */
    while (!cgroup_remove(cg) && time_mono_ms() < end_ms)
        (void)poll(NULL, 0, 1);
}

/* The maker's pid out of a name of ours, or 0. */
static pid_t maker_of(const char *name)
{
    struct span rest = span_cstr(name), pid;
    uint64_t number;

    if (!span_starts(rest, LEAF_PREFIX))
        return 0;
    rest = span_skip(rest, sizeof LEAF_PREFIX - 1);
    return span_cut(&rest, '-', &pid) && str_u64(pid, INT32_MAX, &number) ? (pid_t)number : 0;
}

bool cgroup_is_ours(const char *dir)
{
    const char *leaf = strrchr(dir, '/');

    return dir[0] == '/' && leaf && maker_of(leaf + 1) > 0;
}

static bool is_dead(pid_t maker)
{
    return maker > 0 && kill(maker, 0) < 0 && errno == ESRCH;
}

bool cgroup_is_stray(const struct cgroup *cg)
{
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        if (*cg->dirs[kind])
            return is_dead(maker_of(strrchr(cg->dirs[kind], '/') + 1));
    return false;
}

/* One that is not empty stays: somebody is alive in it. Groups in groups of ours (cgroup_parent.h) come first. */
static size_t sweep_dir(int above_fd, const char *path, bool is_parent)
{
    int fd = openat(above_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    size_t swept = 0;

    while (dir && (entry = readdir(dir))) {
        pid_t maker = maker_of(entry->d_name);

        if (maker <= 0)
            continue;
        if (!is_parent)
            swept += sweep_dir(dirfd(dir), entry->d_name, true);
        if (is_dead(maker) && unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0)
            swept++;
    }
    if (dir)
        (void)closedir(dir);
    return swept;
}

size_t cgroup_sweep(void)
{
    size_t swept = 0;

    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        if (*cgroup_host()->dirs[kind])
            swept += sweep_dir(AT_FDCWD, cgroup_host()->dirs[kind], false);
    return swept;
}
