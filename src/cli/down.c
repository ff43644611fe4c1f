/* silica down: ends what `silica up` started. */
#include "cli/command.h"

#include "up/place.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

struct down_options {
    const char *data;
    uint64_t timeout_ms;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct down_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory it was started with" },
    { "--timeout", NULL, OPT_MS, AT_FIELD(timeout_ms), "60s", 1, 3600000, "TIME", "wait so long for its end, then fail" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", NULL, 'h' },
};
/* clang-format on */

const struct opt_program down_program = {
    .name = "silica down",
    .usage = "[--data DIR]",
    .example = "silica down",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Objects, volumes and keys stay in the data directory for the next `silica up`. It is no error when nothing is up.",
};

/* By a descriptor of the process, so that no other one can be meant: the place was still taken after it was opened. */
static int end(const struct place *place, pid_t pid, uint64_t timeout_ms, struct err *e)
{
    OWN_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = { .fd = fd, .events = POLLIN };

    if (fd < 0 && errno == ESRCH)
        return 0;
    if (fd < 0)
        return err_sys(e, "cannot find process %d", (int)pid);
    if (!place_is_taken(place))
        return 0;
    if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
        return err_sys(e, "cannot end process %d", (int)pid);
    if (poll(&ended, 1, (int)timeout_ms) == 1)
        return 0;
    (void)err_set(e, ERR_TIMEOUT, "process %d has not ended yet", (int)pid);
    err_hint(e, "it may be killed: kill -9 %d loses nothing", (int)pid);
    return -1;
}

int down_command(int argc, char **argv)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    struct down_options o = { 0 };
    struct err e;
    int rest;

    if (opt_parse(&down_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &down_program);
    if (rest < argc) {
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
        return command_fail(&e, EXIT_USAGE);
    }
    if (place_open(&place, o.data, false, &e) < 0 || place_read(&place, &info, &e) < 0) {
        if (e.code != ERR_NOT_FOUND)
            return command_fail(&e, EXIT_FAILED);
        printf("%s\n", e.msg);
        return 0;
    }
    if (end(&place, info.pid, o.timeout_ms, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    printf("silica is down; what was written is kept in '%s'\n", place.path);
    return 0;
}
