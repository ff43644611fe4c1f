/* silica: the command line, all of it. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/log.h"
#include "cli/exit_codes.h"

static int version_command(int argc, char **argv)
{
    struct err e;

    if (argc > 1) {
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[1]);
        return command_fail(&e, EXIT_USAGE);
    }
    printf("silica " SILICA_VERSION "\n");
    return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

static int help_command(int argc, char **argv);

static const struct command commands[] = {
    { "up", "the whole system on this machine: API, pools, node and router", &up_program,
      up_command },
    { "down", "end it", &down_program, down_command },
    { "status", "say what is up, and how full the pools are", &status_program, status_command },
    { "kubeconfig", "print it, or put it into your own", &kubeconfig_program, kubeconfig_command },
    { "env", "print what a shell sets for kubectl and the SDKs", &env_program, env_command },
    { "token", "make a token for one namespace", &token_program, token_command },
    { "in-cluster", "run a command as if it were in a Pod", &in_cluster_program,
      in_cluster_command },
    QUICK_COMMANDS,
    { "rm", "remove sandboxes", &rm_program, rm_command },
    { "apiserver", "serve the Kubernetes API for sandboxes, alone", &apiserver_program,
      apiserver_command },
    { "controller", "keep Sandboxes, claims and pools as they are wished, on any API server",
      &controller_program, controller_command },
    { "router", "pass requests on to the sandboxes they name", &router_program, router_command },
    { "control", NULL, &control_program, control_command },
    { "parts", NULL, &parts_program, parts_command },
    { "node", "make the Pods of an API server real, as sandboxes of this machine", &node_program,
      node_command },
    { "pod-backend", NULL, &pod_backend_program, pod_backend_command },
    { "help", "explain a command", NULL, help_command },
    { "version", "print the version", NULL, version_command },
};

/* The options of every command, for the manual: those of `run` first, in their groups. */
static void all_roff(const struct opt_program *program, struct buf *text)
{
    opt_roff(program, text);
    EACH(c, commands) {
        if (!c->summary || !c->program || c->program == program)
            continue;
        buf_addf_capped(text, ".SS silica %s\n", c->name);
        opt_roff(c->program, text);
    }
}

static const struct command *find(const char *name)
{
    EACH(c, commands) {
        if (strcmp(c->name, name) == 0)
            return c;
    }
    return NULL;
}

bool command_is_known(const char *name)
{
    return find(name);
}

static int unknown(const char *name)
{
    struct err e;

    (void)err_set(&e, ERR_USAGE, "unknown command '%s'", name);
    err_hint(&e, "see `silica --help`; to run a program: silica run -- %s", name);
    return command_fail(&e, EXIT_USAGE);
}

static int overview(void)
{
    printf(
        "silica run -- python3 -c 'print(6 * 7)'     a sandbox of its own, gone when it ends\n"
        "silica up -d                                the API that kubectl and the SDKs speak to\n\n"
        "Usage: silica COMMAND [options]\n\nCommands:\n");
    EACH(c, commands) {
        if (c->summary)
            printf("  %-12s%s\n", c->name, c->summary);
    }
    printf("\n`silica COMMAND --help` explains one, `silica help exit-codes` what they return. "
           "No root, Docker or daemon is needed.\n");
    return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

static int show_exit_codes(void (*make)(struct buf *))
{
    OWN(buf_done) struct buf text = BUF_INIT(16 * 1024);
    struct err e;

    make(&text);
    return fd_write_all(1, buf_span(&text), &e) < 0 ? EXIT_FAILED : 0;
}

static int help_command(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2)
        return overview();
    if (strcmp(argv[1], "exit-codes") == 0)
        return show_exit_codes(exit_codes_text);
    c = find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    if (c->program)
        return command_show(opt_help, c->program);
    printf("silica %s: %s\n", c->name, c->summary);
    return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

static bool is_one_of(const char *arg, const char *a, const char *b)
{
    return strcmp(arg, a) == 0 || strcmp(arg, b) == 0;
}

int main(int argc, char **argv)
{
    const struct command *c;
    struct err e;

    if (fd_fill_stdio(&e) < 0)
        return EXIT_FAILED; /* nobody to tell */
    /* stderr is the command's: what goes on with less than an error is not said there. */
    log_open(2, LOG_ERROR, LOG_TEXT);
    if (argc < 2) {
        (void)err_set(&e, ERR_USAGE, "no command given");
        err_hint(&e, "see `silica --help`");
        return command_fail(&e, EXIT_USAGE);
    }
    if (is_one_of(argv[1], "--help", "-h"))
        return overview();
    if (strcmp(argv[1], "--version") == 0)
        return version_command(1, argv);
    if (strcmp(argv[1], "--help-roff") == 0)
        return command_show(all_roff, &run_program);
    if (strcmp(argv[1], "--exit-codes-roff") == 0)
        return show_exit_codes(exit_codes_roff);
    c = find(argv[1]);
    return c ? c->run(argc - 1, argv + 1) : unknown(argv[1]);
}
