#include "cli/payload.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3; there a plain file may be refused execution by policy */
#endif

extern const uint8_t payload_runtime[];
extern const uint64_t payload_runtime_bytes;

static int make_file(void)
{
    int fd = memfd_create("silica-runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("silica-runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

int payload_open(int *ret_fd, struct err *e)
{
    OWN_FD int fd = make_file();

    if (fd < 0)
        return err_sys(e, "cannot make a file in memory for silica-runtime");
    if (fd_write_all(fd, span_of(payload_runtime, (size_t)payload_runtime_bytes), e) < 0)
        return err_wrap(e, "cannot write silica-runtime to memory");
    if (fd_seal_program(fd, e) < 0)
        return err_wrap(e, "silica-runtime in memory");
    *ret_fd = take_fd(&fd);
    return 0;
}
