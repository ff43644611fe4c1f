#include "cli/command.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>

int command_fail(const struct err *e, int code)
{
    fprintf(stderr, "silica: %s\n", e->msg);
    if (e->hint[0])
        fprintf(stderr, "hint: %s\n", e->hint);
    return code;
}

int command_fail_up(const struct err *e)
{
    return command_fail(e, e->code == ERR_NOT_FOUND ? EXIT_NOT_UP : EXIT_FAILED);
}

int command_show(void (*make)(const struct opt_program *, struct buf *),
                 const struct opt_program *program)
{
    OWN(buf_done) struct buf text = BUF_INIT(256 * 1024);
    struct err e;

    make(program, &text);
    return fd_write_all(1, buf_span(&text), &e) < 0 ? EXIT_FAILED : 0;
}

static bool wants_help(const struct opt_program *program, const void *options)
{
    for (size_t i = 0; i < program->opt_count; i++) {
        if (strcmp(program->opts[i].flag, "--help") == 0)
            return *(const bool *)((const char *)options + program->opts[i].offset);
    }
    return false;
}

int command_parse(const struct opt_program *program, int argc, char **argv, void *options,
                  int *ret_rest)
{
    struct err e;
    int rest;

    if (opt_parse(program, argc, argv, options, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (wants_help(program, options))
        return command_show(opt_help, program);
    if (ret_rest) {
        *ret_rest = rest;
    } else if (rest < argc) {
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
        return command_fail(&e, EXIT_USAGE);
    }
    return COMMAND_GOES_ON;
}

int command_choice(const char *flag, const char *text, const char *no, const char *yes, bool *ret,
                   struct err *e)
{
    *ret = strcmp(text, yes) == 0;
    if (*ret || strcmp(text, no) == 0)
        return 0;
    return err_set(e, ERR_USAGE, "%s: '%s' is neither '%s' nor '%s'", flag, text, no, yes);
}

int command_missing(const char *flag)
{
    struct err e;

    (void)err_set(&e, ERR_USAGE, "%s is missing", flag);
    return command_fail(&e, EXIT_USAGE);
}

void command_let_go(int fd)
{
    struct err e;
    OWN_FD int null_fd = fd <= 2 ? fd_open_null(&e) : -1;

    if (null_fd < 0 || dup2(null_fd, fd) < 0)
        (void)close(fd);
}

int command_take_fd(int fd, int *ret_fd, struct err *e)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (moved < 0)
        return err_sys(e, "cannot take over descriptor %d", fd);
    command_let_go(fd);
    *ret_fd = moved;
    return 0;
}
