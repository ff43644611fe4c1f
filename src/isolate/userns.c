#include "isolate/userns.h"

#include "base/fd.h"
#include "base/str.h"
#include "ev/spawn.h"
#include "isolate/holder.h"
#include "isolate/limits.h"
#include "isolate/user_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ID_FILE_MAX_BYTES (4 << 20) /* /etc/passwd of a large site */
#define MAP_WORDS_MAX     6         /* two lines of three numbers */
#define MAP_MAX_BYTES     8192      /* the kernel takes 340 lines, and one page at a time */

/* The next number of a line of a map. */
static bool cut_number(struct span *line, uint64_t *ret)
{
    size_t n = 0;

    *line = span_trim(*line);
    while (n < line->n && line->p[n] != ' ')
        n++;
    if (!str_u64(span_of(line->p, n), UINT32_MAX, ret))
        return false;
    *line = span_skip(*line, n);
    return true;
}

bool ids_map_covers(struct span map, uint32_t base, uint32_t count)
{
    struct span line;
    uint64_t inside, outside, n;

    while (span_cut(&map, '\n', &line))
        if (cut_number(&line, &inside) && cut_number(&line, &outside) && cut_number(&line, &n) &&
            inside <= base && (uint64_t)base + count <= inside + n)
            return true;
    return false;
}

/* In a container root may have been given fewer ids than the range wants. Once written a map stays as it is, and a process
 * that makes many sandboxes need not read it again; its child may be in another user namespace. */
bool ids_may_give(bool is_gid, uint32_t base, uint32_t count)
{
    static struct {
        char text[256]; /* a map that is longer is read each time */
        size_t n;
        pid_t read_by;
    } known[2];
    OWN(buf_done) struct buf map = BUF_INIT(MAP_MAX_BYTES);
    struct err e;

    if (known[is_gid].read_by == getpid())
        return ids_map_covers(span_of(known[is_gid].text, known[is_gid].n), base, count);
    if (fd_read_file(is_gid ? "/proc/self/gid_map" : "/proc/self/uid_map", &map, &e) < 0)
        return false;
    if (map.n && map.n <= sizeof known[is_gid].text) {
        memcpy(known[is_gid].text, map.p, map.n);
        known[is_gid].n = map.n;
        known[is_gid].read_by = getpid();
    }
    return ids_map_covers(buf_span(&map), base, count);
}

struct span ids_find_name(struct span passwd, uid_t uid)
{
    struct span line, name, secret, number;
    uint64_t found;

    while (span_cut(&passwd, '\n', &line))
        if (span_cut(&line, ':', &name) && span_cut(&line, ':', &secret) &&
            span_cut(&line, ':', &number) && str_u64(number, UINT32_MAX, &found) && found == uid)
            return name;
    return SPAN_NONE;
}

bool ids_find_range(struct span file, struct span name, uid_t uid, uint32_t want,
                    uint32_t *ret_base)
{
    struct span line, who, start;
    uint64_t number, base, count;

    while (span_cut(&file, '\n', &line)) {
        if (!span_cut(&line, ':', &who) || !span_cut(&line, ':', &start) ||
            !str_u64(start, UINT32_MAX, &base) || !str_u64(line, UINT32_MAX, &count))
            continue;
        if (!(name.n && span_eq(who, name)) &&
            !(str_u64(who, UINT32_MAX, &number) && number == uid))
            continue;
        if (count < want || base + count > UINT32_MAX)
            continue;
        *ret_base = (uint32_t)base;
        return true;
    }
    return false;
}

/* A file that is missing names nobody. */
static int read_if_there(const char *path, struct buf *out, struct err *e)
{
    return fd_read_file(path, out, e) < 0 && e->code != ERR_NOT_FOUND ? -1 : 0;
}

static int choose_range(struct ids *ids, struct err *e)
{
    OWN(buf_done) struct buf passwd = BUF_INIT(ID_FILE_MAX_BYTES);
    OWN(buf_done) struct buf subuid = BUF_INIT(ID_FILE_MAX_BYTES);
    OWN(buf_done) struct buf subgid = BUF_INIT(ID_FILE_MAX_BYTES);
    struct span name;

    if (read_if_there("/etc/passwd", &passwd, e) < 0 ||
        read_if_there("/etc/subuid", &subuid, e) < 0 ||
        read_if_there("/etc/subgid", &subgid, e) < 0)
        return -1;
    name = ids_find_name(buf_span(&passwd), geteuid());
    if (!ids_find_range(buf_span(&subuid), name, geteuid(), IDS_COUNT, &ids->base) ||
        !ids_find_range(buf_span(&subgid), name, geteuid(), IDS_COUNT, &ids->gid_base)) {
        (void)err_set(e, ERR_UNSUPPORTED, "user %u has no %u ids in /etc/subuid and /etc/subgid",
                      geteuid(), IDS_COUNT);
        err_hint(e, "an administrator gives them with usermod --add-subuids and --add-subgids");
        return -1;
    }
    ids->kind = IDS_RANGE;
    ids->count = IDS_COUNT;
    return 0;
}

int ids_choose(uint32_t base, uid_t uid, gid_t gid, bool wants_range, struct ids *ret,
               struct err *e)
{
    struct ids ids = { .kind = IDS_ONE, .uid = uid, .gid = gid, .count = 1 };
    bool is_root = base != 0;

    if (uid == (uid_t)-1 || gid == (gid_t)-1)
        return err_set(e, ERR_INVALID, "user %u:%u is not an id", uid, gid);
    if ((is_root || wants_range) && (uid >= IDS_COUNT || gid >= IDS_COUNT))
        return err_set(e, ERR_INVALID, "user %u:%u: ids inside go up to %u", uid, gid,
                       IDS_COUNT - 1);
    ids.outside_uid = is_root ? base + uid : geteuid();
    ids.outside_gid = is_root ? base + gid : getegid();
    if (is_root) {
        ids.kind = IDS_ROOT;
        ids.base = ids.gid_base = base;
        ids.count = IDS_COUNT;
    } else if (wants_range && choose_range(&ids, e) < 0) {
        return -1;
    }
    *ret = ids;
    return 0;
}

int ids_lines(const struct ids *ids, bool is_gid, struct buf *out, struct err *e)
{
    uint32_t self = is_gid ? ids->gid : ids->uid;
    uint32_t outside = is_gid ? ids->outside_gid : ids->outside_uid;
    uint32_t base = is_gid ? ids->gid_base : ids->base;

    switch (ids->kind) {
    case IDS_ROOT:
        return buf_addf(out, e, "0 %u %u\n", base, ids->count);
    case IDS_ONE:
        return buf_addf(out, e, "%u %u 1\n", self, outside);
    case IDS_ENGINE:
        return buf_addf(out, e, "%u %u 1\n%u %u %u\n", outside, outside, base, base, ids->count);
    case IDS_RANGE:
        return buf_addf(out, e, "0 %u 1\n1 %u %u\n", outside, base, ids->count - 1);
    }
    return 0;
}

static int write_file(pid_t pid, const char *file, struct span text, struct err *e)
{
    char path[64];
    OWN_FD int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    /* by path: a file of /proc. */
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open '%s' of the new user namespace", file);
    if (fd_write_all(fd, text, e) == 0)
        return 0;
    if (e->sys == EPERM)
        err_hint(e, "this host forbids user namespaces to this account; see 'silica doctor'");
    return err_wrap(e, "cannot write '%s' of the new user namespace", file);
}

/* newuidmap and newgidmap may write what the caller may not, and check that the range is the caller's. */
static int run_helper(pid_t pid, bool is_gid, struct span lines, struct err *e)
{
    char *argv[MAP_WORDS_MAX + 3], target[16];
    OWN(buf_done) struct buf words = BUF_INIT(MAP_MAX_BYTES);
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    OWN_FD int null_fd = fd_open_null(e);
    size_t n = 0;
    pid_t helper;
    int status;

    if (null_fd < 0 || buf_add(&words, lines, e) < 0)
        return -1;
    (void)snprintf(target, sizeof target, "%d", pid);
    argv[n++] = is_gid ? (char[]){ "newgidmap" } : (char[]){ "newuidmap" };
    argv[n++] = target;
    for (char *at = (char *)words.p; *at && n < LEN(argv) - 1;) {
        size_t word = strcspn(at, " \n");

        argv[n++] = at;
        at += word;
        *at++ = '\0';
    }
    argv[n] = NULL;
    spec.argv = argv;
    spec.envp = (char *[]){ NULL };
    spec.fds[0] = spec.fds[1] = spec.fds[2] = null_fd;
    helper = spawn(&spec, &fail);
    if (helper < 0) {
        (void)spawn_err(e, &spec, fail);
        err_hint(e, "install the package 'uidmap'");
        return -1;
    }
    if (TEMP_FAILURE_RETRY(waitpid(helper, &status, 0)) < 0)
        return err_sys(e, "cannot wait for '%s'", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)err_set(e, ERR_DENIED, "'%s' refused the ids of this account", argv[0]);
        err_hint(e, "its line of /etc/%s must be ids that are no account's, its own neither",
                 is_gid ? "subgid" : "subuid");
        return -1;
    }
    return 0;
}

static int write_map(const struct ids *ids, pid_t pid, bool is_gid, struct err *e)
{
    OWN(buf_done) struct buf lines = BUF_INIT(MAP_MAX_BYTES);

    if (ids_lines(ids, is_gid, &lines, e) < 0)
        return -1;
    if ((ids->kind == IDS_RANGE && !ids->is_nested) || ids->kind == IDS_ENGINE)
        return run_helper(pid, is_gid, buf_span(&lines), e);
    if (write_file(pid, is_gid ? "gid_map" : "uid_map", buf_span(&lines), e) == 0)
        return 0;
    if (ids->is_nested && ids->kind == IDS_RANGE)
        err_hint(e, "the keeper has no range: it is read when a keeper starts, which ends with its "
                    "last sandbox");
    return -1;
}

int ids_write(const struct ids *ids, pid_t pid, struct err *e)
{
    /* Without it an account could drop a group that is there to keep it out (user_namespaces(7)). */
    if (ids->kind == IDS_ONE && write_file(pid, "setgroups", SPAN("deny"), e) < 0)
        return -1;
    return write_map(ids, pid, true, e) < 0 ? -1 : write_map(ids, pid, false, e);
}

int ids_open_engine(int *ret_fd, struct err *ret_why, struct err *e)
{
    struct ids ids = { .kind = IDS_ENGINE,
                       .uid = geteuid(),
                       .gid = getegid(),
                       .outside_uid = geteuid(),
                       .outside_gid = getegid() };
    struct user_counts counts;
    int fd = -1;

    user_counts_begin(&counts, 0);
    *ret_why = (struct err){ 0 };
    if (choose_range(&ids, ret_why) == 0) {
        ids.kind = IDS_ENGINE;
        fd = holder_open_map(&ids, ret_why);
    }
    if (fd < 0) { /* no range, no newuidmap, or one that refuses */
        ids.kind = IDS_ONE;
        ids.count = 1;
        fd = holder_open_map(&ids, e);
    }
    user_counts_end(&counts);
    *ret_fd = fd;
    return fd < 0 ? -1 : 0;
}
