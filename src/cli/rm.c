/* silica rm: ends and removes long-lived sandboxes. */
#include "cli/command.h"

#include "cli/pod_owner.h"
#include "isolate/engine.h"
#include "node/run.h"

struct rm_options {
    const char *data;
    bool is_forced, is_all, is_help;
};

#define AT(field) offsetof(struct rm_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--force", NULL, OPT_BOOL, AT(is_forced), NULL, 0, 0, NULL, "also one that runs: everything in it is killed", NULL, 'f' },
    { "--all", NULL, OPT_BOOL, AT(is_all), NULL, 0, 0, NULL, "all that are no Pod's, instead of names", NULL, 'a' },
    { "--data", "SILICA_DATA", OPT_STR, AT(data), NULL, 0, 0, "DIR", "where long-lived sandboxes are kept" },
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program rm_program = {
    .name = "silica rm",
    .usage = "[options] NAME...",
    .example = "silica rm -f demo",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "A sandbox that a node made belongs to its Pod and is left alone: kubectl ends it, or silica down --sandboxes.\n"
        "The exit code is 0 when all of them are gone, 1 when one is not there, still runs or is a Pod's.",
};

static bool is_of_a_pod(const char *name)
{
    struct run_id id;

    return run_read(name, &id);
}

static int remove_one(struct engine *en, const char *name, bool is_forced,
                      struct pod_owners *owners, struct err *e)
{
    struct engine_info info;

    if (engine_get(en, name, &info, e) < 0)
        return -1;
    if (is_of_a_pod(name))
        return pod_owners_refuse(owners, engine_dir(en), name, e);
    if (info.pid && !is_forced) {
        (void)err_set(e, ERR_CONFLICT, "sandbox '%s' is %s", name, engine_status_name(info.status));
        err_hint(e, "silica rm -f %s kills it", name);
        return -1;
    }
    return engine_destroy(en, name, e);
}

static int remove_all(struct engine *en, bool is_forced, struct pod_owners *owners)
{
    OWN_MEM struct engine_info *v = NULL;
    size_t n = 0;
    struct err e;
    int code = 0;

    if (engine_list(en, &v, &n, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    for (size_t i = 0; i < n; i++) {
        if (!is_forced && v[i].pid)
            continue;
        if (is_of_a_pod(v[i].name))
            (void)pod_owners_refuse(owners, engine_dir(en), v[i].name, &e);
        else if (engine_destroy(en, v[i].name, &e) == 0 || e.code == ERR_NOT_FOUND)
            continue;
        code = command_fail(&e, EXIT_NO);
    }
    return code;
}

int rm_command(int argc, char **argv)
{
    OWN(pod_owners_done) struct pod_owners owners = POD_OWNERS_INIT;
    struct rm_options o = { 0 };
    struct engine *en = NULL;
    struct err e;
    int rest, code = command_parse(&rm_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    code = 0;
    if ((rest == argc) != o.is_all) {
        (void)err_set(&e, ERR_USAGE, o.is_all ? "--all takes no names" : "no sandbox is named");
        return command_fail(&e, EXIT_USAGE);
    }
    if (engine_open(&(struct engine_spec){ .dir = o.data }, &en, &e) < 0) {
        if (o.is_all && e.code == ERR_NOT_FOUND)
            return 0;
        return command_fail(&e, EXIT_NO);
    }
    if (o.is_all)
        code = remove_all(en, o.is_forced, &owners);
    for (; rest < argc; rest++)
        if (remove_one(en, argv[rest], o.is_forced, &owners, &e) < 0)
            code = command_fail(&e, EXIT_NO);
    engine_close(en);
    return code;
}
