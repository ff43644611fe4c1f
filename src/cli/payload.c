#include "cli/payload.h"

#include "base/fd.h"

#include <limits.h>

extern const uint8_t payload_runtime[];
extern const uint64_t payload_runtime_bytes;

struct span payload_bytes(void)
{
    return span_of(payload_runtime, (size_t)payload_runtime_bytes);
}

const char *payload_path(void)
{
    static const char name[] = "silica-runtime";
    static char path[PATH_MAX + sizeof name];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    char *slash;

    path[MAX(n, 0)] = '\0';
    slash = strrchr(path, '/');
    if (slash)
        memcpy(slash + 1, name, sizeof name);
    else
        path[0] = '\0';
    return path;
}

int payload_seal(const char *name, struct span bytes, int *ret_fd, struct err *e)
{
    OWN_FD int fd = fd_open_program(name, e);

    if (fd < 0 || fd_write_all(fd, bytes, e) < 0 || fd_seal_program(fd, e) < 0)
        return err_wrap(e, "%s in memory", name);
    *ret_fd = take_fd(&fd);
    return 0;
}

int payload_open(int *ret_fd, struct err *e)
{
    return payload_seal("silica-runtime", payload_bytes(), ret_fd, e);
}
