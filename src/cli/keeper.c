/* silica keeper: the process that long-lived sandboxes belong to. Started by who makes the first of them, never by hand. */
#include "isolate/keeper.h"

#include "base/log.h"
#include "cli/command.h"
#include "cli/payload.h"
#include "isolate/limits.h"

struct keeper_options {
    const char *data;
    uint64_t linger_ms, memory_bytes, pids;
    bool is_help;
};

#define AT(field) offsetof(struct keeper_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", "SILICA_DATA", OPT_STR, AT(data), NULL, 0, 0, "DIR", "the data directory" },
    { "--linger", NULL, OPT_MS, AT(linger_ms), "3s", 1, 0, "TIME", "end this long after the last sandbox" },
    { "--total-memory", NULL, OPT_BYTES, AT(memory_bytes), NULL, 0, 0, "SIZE", "memory of all sandboxes together; 0: the machine's but for 1 GiB or a tenth" },
    { "--total-pids", NULL, OPT_U64, AT(pids), NULL, 0, 4194304, "N", "processes and threads of all sandboxes together; 0: three quarters of the machine's" },
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program keeper_program = {
    .name = "silica keeper",
    .usage = "--data DIR",
    .example = "silica keeper --data DIR      what `silica run -d` starts by itself",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog = "Standard input is closed when it serves. It ends with its last sandbox.",
};

int keeper_command(int argc, char **argv)
{
    struct keeper_options o = { 0 };
    struct keeper_spec spec = { .ready_fd = -1 };
    OWN_FD int runtime_fd = -1;
    struct err e;
    int code = command_parse(&keeper_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (!o.data)
        return command_missing("--data");
    log_open(2, LOG_INFO, LOG_TEXT);
    /* Whoever started us waits for the end of our standard input: so it moves aside until we serve. */
    if (command_take_fd(0, &spec.ready_fd, &e) < 0 || payload_open(&runtime_fd, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    spec.dir = o.data;
    spec.runtime_fd = runtime_fd;
    spec.linger_ms = o.linger_ms;
    spec.all = (struct box_limits){ .memory_bytes = o.memory_bytes, .pids = o.pids };
    if (keeper_run(&spec, &e) == 0)
        return 0;
    if (e.code != ERR_EXISTS)
        log_error("keeper.fail", KV("err", &e));
    return EXIT_FAILED;
}
