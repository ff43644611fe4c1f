/* silica down: ends what `silica up` started. */
#include "cli/command.h"

#include "isolate/engine.h"
#include "node/run.h"
#include "up/place.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

struct down_options {
    const char *data;
    uint64_t timeout_ms;
    bool is_all, is_help;
};

#define AT_FIELD(field) offsetof(struct down_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory it was started with" },
    { "--sandboxes", NULL, OPT_BOOL, AT_FIELD(is_all), NULL, 0, 0, NULL, "end those of its Pods, too; else they run on, and the next `silica up` takes them over" },
    { "--timeout", NULL, OPT_MS, AT_FIELD(timeout_ms), "60s", 1, 3600000, "TIME", "wait so long for its end, then fail" },
    COMMAND_HELP(AT_FIELD(is_help), NULL),
};
/* clang-format on */

const struct opt_program down_program = {
    .name = "silica down",
    .usage = "[--sandboxes] [--data DIR]",
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

/* Others are of `silica run`. */
static bool is_of_a_pod(const char *name)
{
    struct run_id id;

    return run_read(name, &id);
}

/* Those that run; is_ending: none does any more when it returns. */
static int count_sandboxes(const struct place *place, bool is_ending, size_t *ret, struct err *e)
{
    OWN_MEM struct engine_info *v = NULL;
    struct engine *en = NULL;
    size_t n = 0, count = 0;
    int rc;

    if (engine_open(&(struct engine_spec){ .dir = place->path }, &en, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    rc = engine_list(en, &v, &n, e);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!is_of_a_pod(v[i].name))
            continue;
        count += v[i].pid != 0;
        if (is_ending && engine_destroy(en, v[i].name, e) < 0 && e->code != ERR_NOT_FOUND)
            rc = -1;
    }
    engine_close(en);
    *ret = count;
    return rc;
}

static int tell(const struct place *place, bool was_up, bool is_ending, struct err *e)
{
    size_t n = 0;

    if (count_sandboxes(place, is_ending, &n, e) < 0)
        return -1;
    if (was_up)
        printf("silica is down; what was written is kept in '%s'\n", place->path);
    if (n && is_ending)
        printf("%zu sandboxes were ended\n", n);
    else if (n)
        printf("%zu sandboxes run on: silica down --sandboxes ends them\n", n);
    return 0;
}

int down_command(int argc, char **argv)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    struct down_options o = { 0 };
    bool was_up;
    struct err e;
    int code = command_parse(&down_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (place_open(&place, o.data, false, &e) < 0) {
        if (e.code != ERR_NOT_FOUND)
            return command_fail(&e, EXIT_FAILED);
        printf("%s\n", e.msg);
        return 0;
    }
    was_up = place_read(&place, &info, &e) == 0;
    if (!was_up && e.code != ERR_NOT_FOUND)
        return command_fail(&e, EXIT_FAILED);
    if (!was_up)
        printf("%s\n", e.msg);
    if ((was_up && end(&place, info.pid, o.timeout_ms, &e) < 0) ||
        tell(&place, was_up, o.is_all, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}
