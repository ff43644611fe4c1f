/* silica pause, silica resume: all processes of a sandbox stand still, and go on. */
#include "cli/command.h"

#include "cli/target.h"
#include "node/run.h"

struct freeze_options {
    const char *data;
    bool is_help;
};

#define AT(field) offsetof(struct freeze_options, field)

/* clang-format off */
static const struct opt opts[] = {
    TARGET_DATA_OPT(AT(data)),
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program pause_program = {
    .name = "silica pause",
    .usage = "[options] NAME...",
    .example = "silica pause demo",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Nothing in it runs until `silica resume`; its memory and files stay. A Pod's sandbox is not paused: its Pod would\n"
        "still be said to be ready. The exit code is 0, or 125 when one of them could not be paused.",
};

const struct opt_program resume_program = {
    .name = "silica resume",
    .usage = "[options] NAME...",
    .example = "silica resume demo",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog = "The exit code is 0, or 125 when one of them could not be resumed.",
};

typedef int (*freeze_fn)(struct engine *en, const char *name, struct err *e);

static int pause_one(struct engine *en, const char *name, struct err *e)
{
    struct run_id id;

    if (!run_read(name, &id))
        return engine_pause(en, name, e);
    (void)err_set(e, ERR_CONFLICT, "sandbox '%s' belongs to the Pod with uid %s, which a node runs",
                  name, id.uid);
    err_hint(
        e,
        "kubectl patch sandbox NAME --type=merge -p '{\"spec\":{\"operatingMode\":\"Suspended\"}}'");
    return -1;
}

static int each(const struct opt_program *program, freeze_fn act, int argc, char **argv)
{
    struct freeze_options o = { 0 };
    struct engine *en = NULL;
    struct engine_info info;
    struct err e;
    int rest, code = command_parse(program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    code = 0;
    if (rest == argc) {
        (void)err_set(&e, ERR_USAGE, "no sandbox is named");
        return command_fail(&e, EXIT_USAGE);
    }
    if (target_open(o.data, &en, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    for (; rest < argc; rest++)
        if (target_get(en, argv[rest], &info, &e) < 0 || act(en, argv[rest], &e) < 0)
            code = command_fail(&e, EXIT_FAILED);
    engine_close(en);
    return code;
}

int pause_command(int argc, char **argv)
{
    return each(&pause_program, pause_one, argc, argv);
}

int resume_command(int argc, char **argv)
{
    return each(&resume_program, engine_resume, argc, argv);
}
