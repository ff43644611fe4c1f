#include "cli/command.h"

#include "base/fd.h"

#include <fcntl.h>

int command_fail(const struct err *e, int code)
{
    fprintf(stderr, "silica: %s\n", e->msg);
    if (e->hint[0])
        fprintf(stderr, "hint: %s\n", e->hint);
    return code;
}

int command_show(void (*make)(const struct opt_program *, struct buf *),
                 const struct opt_program *program)
{
    OWN(buf_done) struct buf text = BUF_INIT(256 * 1024);
    struct err e;

    make(program, &text);
    return fd_write_all(1, buf_span(&text), &e) < 0 ? EXIT_FAILED : 0;
}

int command_take_stdin(int *ret_fd, struct err *e)
{
    OWN_FD int null_fd = fd_open_null(e);
    OWN_FD int moved = fcntl(0, F_DUPFD_CLOEXEC, 3);

    if (null_fd < 0)
        return -1;
    if (moved < 0 || dup2(null_fd, 0) < 0)
        return err_sys(e, "cannot move standard input aside");
    *ret_fd = take_fd(&moved);
    return 0;
}
