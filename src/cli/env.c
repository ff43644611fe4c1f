/* silica env, silica kubeconfig: how other programs find what is up. */
#include "cli/command.h"

#include "base/fd.h"
#include "up/merge.h"
#include "up/place.h"

#include <stdio.h>
#include <string.h>

struct env_options {
    const char *data, *file;
    bool is_merge, is_unmerge, is_help;
};

#define AT_FIELD(field) offsetof(struct env_options, field)
#define DATA_ROW                                                                                   \
    {                                                                                              \
        "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR",                       \
            "the data directory it was started with"                                               \
    }

/* clang-format off */
static const struct opt env_opts[] = { DATA_ROW, COMMAND_HELP(AT_FIELD(is_help), NULL) };
static const struct opt kubeconfig_opts[] = {
    { "--merge", NULL, OPT_BOOL, AT_FIELD(is_merge), NULL, 0, 0, NULL, "put it into your own kubeconfig as context `silica`, and make that the current one" },
    { "--unmerge", NULL, OPT_BOOL, AT_FIELD(is_unmerge), NULL, 0, 0, NULL, "take it out again" },
    { "--file", NULL, OPT_STR, AT_FIELD(file), NULL, 0, 0, "FILE", "your own kubeconfig; default: the first of $KUBECONFIG, else ~/.kube/config" },
    DATA_ROW,
    COMMAND_HELP(AT_FIELD(is_help), NULL),
};
/* clang-format on */

const struct opt_program env_program = {
    .name = "silica env",
    .usage = "[--data DIR]",
    .example = "eval \"$(silica env)\"",
    .opts = env_opts,
    .opt_count = LEN(env_opts),
    .epilog =
        "Prints what a shell sets so that kubectl and the SDKs find what is up: KUBECONFIG, and SILICA_ROUTER\n"
        "for the SDKs' direct mode.",
};
const struct opt_program kubeconfig_program = {
    .name = "silica kubeconfig",
    .usage = "[--merge | --unmerge] [options]",
    .example = "silica kubeconfig --merge && kubectl --context silica get pods",
    .opts = kubeconfig_opts,
    .opt_count = LEN(kubeconfig_opts),
    .epilog =
        "Without an option it is printed. It lets its owner in as administrator: keep it to yourself, and give\n"
        "others what `silica token` makes.",
};

/* A word as a shell reads it. */
static void print_quoted(const char *name, const char *value)
{
    printf("export %s='", name);
    for (; *value; value++) {
        if (*value == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*value);
    }
    (void)puts("'");
}

int env_command(int argc, char **argv)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    struct env_options o = { 0 };
    int code = command_parse(&env_program, argc, argv, &o, NULL);
    struct err e;

    if (code != COMMAND_GOES_ON)
        return code;
    if (place_open(&place, o.data, false, &e) < 0 || place_read(&place, &info, &e) < 0)
        return command_fail_up(&e);
    print_quoted("KUBECONFIG", info.kubeconfig);
    if (info.router)
        print_quoted("SILICA_ROUTER", info.router);
    return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

static int merge(const struct env_options *o, struct span ours, struct err *e)
{
    OWN_MEM char *file = NULL;

    if (merge_file(o->file, &file, e) < 0)
        return -1;
    if (o->is_merge ? merge_in(file, ours, e) < 0 : merge_out(file, e) < 0)
        return err_wrap(e, "'%s'", file);
    printf(o->is_merge ? "context 'silica' is in '%s', and current\n"
                       : "context 'silica' is not in '%s' any more\n",
           file);
    return 0;
}

int kubeconfig_command(int argc, char **argv)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    OWN(place_done) struct place place = PLACE_INIT;
    struct env_options o = { 0 };
    int code = command_parse(&kubeconfig_program, argc, argv, &o, NULL);
    struct err e;

    if (code != COMMAND_GOES_ON)
        return code;
    if (o.is_merge && o.is_unmerge) {
        (void)err_set(&e, ERR_USAGE, "--merge and --unmerge: one of them");
        return command_fail(&e, EXIT_USAGE);
    }
    /* It stays where it is when silica is down, and works again when it is up: the port is remembered. */
    if (!o.is_unmerge && (place_open(&place, o.data, false, &e) < 0 ||
                          dir_read(place.dir.fd, "kubeconfig", &text, &e) < 0))
        return command_fail_up(&e);
    if (!o.is_merge && !o.is_unmerge)
        return fd_write_all(1, buf_span(&text), &e) < 0 ? command_fail(&e, EXIT_FAILED) : 0;
    return merge(&o, buf_span(&text), &e) < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}
