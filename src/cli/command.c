#include "cli/command.h"

#include "base/fd.h"

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
