#include "isolate/userns.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/limits.h"

#include <errno.h>
#include <fcntl.h>

#define MAP_MAX_BYTES 8192 /* the kernel takes 340 lines, and one page at a time */

uint32_t ids_base_of_name(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return IDS_BASE + hash % IDS_SLOTS * IDS_COUNT;
}

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

/* In a container root may have been given fewer ids than the range wants. */
static bool may_give(const char *file, uint32_t base)
{
    OWN(buf_done) struct buf map = BUF_INIT(MAP_MAX_BYTES);
    struct err e;

    return fd_read_file(file, &map, &e) == 0 && ids_map_covers(buf_span(&map), base, IDS_COUNT);
}

int ids_choose(const char *name, uid_t uid, gid_t gid, struct ids *ret, struct err *e)
{
    struct ids ids = { .kind = IDS_ONE, .uid = uid, .gid = gid };
    uint32_t base = ids_base_of_name(name);

    if (uid == (uid_t)-1 || gid == (gid_t)-1)
        return err_set(e, ERR_INVALID, "user %u:%u is not an id", uid, gid);
    if (geteuid() == 0 && may_give("/proc/self/uid_map", base) &&
        may_give("/proc/self/gid_map", base)) {
        if (uid >= IDS_COUNT || gid >= IDS_COUNT)
            return err_set(e, ERR_INVALID, "user %u:%u: ids inside go up to %u", uid, gid,
                           IDS_COUNT - 1);
        ids.kind = IDS_ROOT;
        ids.base = base;
        ids.count = IDS_COUNT;
        ids.outside_uid = base + uid;
        ids.outside_gid = base + gid;
    } else {
        ids.count = 1;
        ids.outside_uid = geteuid();
        ids.outside_gid = getegid();
    }
    *ret = ids;
    return 0;
}

int ids_lines(const struct ids *ids, bool is_gid, struct buf *out, struct err *e)
{
    switch (ids->kind) {
    case IDS_ROOT:
        return buf_addf(out, e, "0 %u %u\n", ids->base, ids->count);
    case IDS_ONE:
    case IDS_RANGE:
        return buf_addf(out, e, "%u %u 1\n", is_gid ? ids->gid : ids->uid,
                        is_gid ? ids->outside_gid : ids->outside_uid);
    }
    return 0;
}

static int write_file(pid_t pid, const char *file, struct span text, struct err *e)
{
    char path[64];
    OWN_FD int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open '%s' of the new user namespace", file);
    if (fd_write_all(fd, text, e) == 0)
        return 0;
    if (e->sys == EPERM)
        err_hint(e, "this host forbids user namespaces to this account; see 'silica doctor'");
    return err_wrap(e, "cannot write '%s' of the new user namespace", file);
}

static int write_map(const struct ids *ids, pid_t pid, bool is_gid, struct err *e)
{
    OWN(buf_done) struct buf lines = BUF_INIT(MAP_MAX_BYTES);

    if (ids_lines(ids, is_gid, &lines, e) < 0)
        return -1;
    return write_file(pid, is_gid ? "gid_map" : "uid_map", buf_span(&lines), e);
}

int ids_write(const struct ids *ids, pid_t pid, struct err *e)
{
    /* Without it an account could drop a group that is there to keep it out (user_namespaces(7)). */
    if (ids->kind == IDS_ONE && write_file(pid, "setgroups", SPAN("deny"), e) < 0)
        return -1;
    return write_map(ids, pid, true, e) < 0 ? -1 : write_map(ids, pid, false, e);
}
