#include "cli/payload.h"

#include "base/fd.h"

extern const uint8_t payload_runtime[];
extern const uint64_t payload_runtime_bytes;

struct span payload_bytes(void)
{
    return span_of(payload_runtime, (size_t)payload_runtime_bytes);
}

int payload_open(int *ret_fd, struct err *e)
{
    OWN_FD int fd = fd_open_program(e);

    if (fd < 0 || fd_write_all(fd, payload_bytes(), e) < 0 || fd_seal_program(fd, e) < 0)
        return err_wrap(e, "silica-runtime in memory");
    *ret_fd = take_fd(&fd);
    return 0;
}
