/* silica: the command line. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/log.h"

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
    { "run", "run a command in a new sandbox", &run_program, run_command },
    { "exec", "run one more command in a sandbox", &exec_program, exec_command },
    { "cp", "copy files into a sandbox, or out of it", &cp_program, cp_command },
    { "ps", "list long-lived sandboxes", &ps_program, ps_command },
    { "stats", "say what sandboxes use", &stats_program, stats_command },
    { "logs", "show what a sandbox's command said", &logs_program, logs_command },
    { "pause", "hold all processes of a sandbox", &pause_program, pause_command },
    { "resume", "let them go on", &resume_program, resume_command },
    { "rm", "remove sandboxes", &rm_program, rm_command },
    { "keeper", NULL, &keeper_program, keeper_command },
    { "doctor", "say which protections sandboxes have on this host", &doctor_program,
      doctor_command },
    { "apiserver", "serve the Kubernetes API for sandboxes, alone", &apiserver_program,
      apiserver_command },
    { "help", "explain a command", NULL, help_command },
    { "version", "print the version", NULL, version_command },
};

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

/* The options of every command, for the manual: those of `run` first, in their groups. */
static void all_roff(const struct opt_program *program, struct buf *text)
{
    struct err e;

    opt_roff(program, text);
    EACH(c, commands) {
        if (!c->summary || !c->program || c->program == program)
            continue;
        (void)buf_addf(text, &e, ".SS silica %s\n", c->name);
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

static int unknown(const char *name)
{
    struct err e;

    (void)err_set(&e, ERR_USAGE, "unknown command '%s'", name);
    err_hint(&e, "see `silica --help`; to run a program: silica run -- %s", name);
    return command_fail(&e, EXIT_USAGE);
}

static int overview(void)
{
    printf("silica run -- python3 -c 'print(6 * 7)'     a sandbox of its own, gone when it ends\n\n"
           "Usage: silica COMMAND [options]\n\nCommands:\n");
    EACH(c, commands) {
        if (c->summary)
            printf("  %-12s%s\n", c->name, c->summary);
    }
    printf("\n`silica COMMAND --help` explains one. No root, Docker or daemon is needed.\n");
    return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

static int help_command(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2)
        return overview();
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
    c = find(argv[1]);
    return c ? c->run(argc - 1, argv + 1) : unknown(argv[1]);
}
