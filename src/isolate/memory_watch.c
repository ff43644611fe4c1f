#include "isolate/memory_watch.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/below.h"
#include "isolate/limits.h"
#include "isolate/tree.h"

#include <fcntl.h>
#include <sys/vfs.h>

#define FILE_MAX_BYTES (64 * 1024)

/* "Name:   12 kB" */
static bool read_kib(struct span text, const char *name, uint64_t *ret_bytes)
{
    struct span line;
    uint64_t kib;

    while (span_cut(&text, '\n', &line)) {
        if (!span_starts(line, name))
            continue;
        line = span_trim(span_skip(line, strlen(name)));
        if (!str_u64(span_slice(line, 0, span_find(line, ' ')), UINT64_MAX >> 10, &kib))
            return false;
        *ret_bytes = kib << 10;
        return true;
    }
    return false;
}

bool memory_watch_parse(struct span meminfo, uint64_t *ret_bytes)
{
    return read_kib(meminfo, "MemAvailable:", ret_bytes);
}

uint64_t memory_watch_wait_ms(uint64_t available, uint64_t floor)
{
    uint64_t ms = available > floor ? (available - floor) / WATCH_BYTES_PER_MS : 0;

    return MIN(MAX(ms, (uint64_t)WATCH_STEP_MS), (uint64_t)WATCH_REST_MS);
}

static size_t most_over(const struct memory_use *v, size_t n)
{
    size_t found = SIZE_MAX;
    uint64_t most = 0;

    for (size_t i = 0; i < n; i++)
        if (v[i].bytes > v[i].share && v[i].bytes - v[i].share > most) {
            most = v[i].bytes - v[i].share;
            found = i;
        }
    return found;
}

static size_t largest(const struct memory_use *v, size_t n)
{
    size_t found = SIZE_MAX;
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        double part = (double)v[i].bytes / (double)MAX(v[i].share, (uint64_t)1);

        if (v[i].bytes >= WATCH_LEAST_BYTES && part > most) {
            most = part;
            found = i;
        }
    }
    return found;
}

size_t memory_watch_choose(const struct memory_use *v, size_t n, uint64_t available, uint64_t floor)
{
    size_t found = available < floor ? most_over(v, n) : SIZE_MAX;

    return found == SIZE_MAX && available < floor / 2 ? largest(v, n) : found;
}

static uint64_t statfs_bytes(int fd)
{
    struct statfs st;

    if (fd < 0 || fstatfs(fd, &st) < 0 || st.f_blocks < st.f_bfree)
        return 0;
    return (uint64_t)(st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize;
}

/* Its writable root and /dev/shm are file systems in memory. */
static uint64_t measure_files(pid_t pid)
{
    OWN_FD int root_fd = -1;
    OWN_FD int shm_fd = -1;
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/root", pid);
    /* by path: the kernel's link in /proc. */
    root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return 0;
    shm_fd = below_open(root_fd, "dev/shm");
    return statfs_bytes(root_fd) + statfs_bytes(shm_fd);
}

static void add_share(void *ctx, pid_t pid, uint64_t resident_bytes)
{
    OWN(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
    uint64_t *sum = ctx, bytes = resident_bytes;
    char path[64];
    struct err gone;

    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (fd_read_file(path, &text, &gone) == 0)
        (void)read_kib(buf_span(&text), "Pss:", &bytes);
    *sum += bytes;
}

uint64_t memory_watch_measure(pid_t pid)
{
    uint64_t sum = measure_files(pid);

    tree_each(pid, add_share, &sum);
    return sum;
}
