/* silica exec: one more command in a sandbox that runs. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/str.h"
#include "cli/session.h"
#include "cli/target.h"
#include "cli/vars.h"

#define STATUS_MAX_BYTES (16 * 1024) /* of /proc/PID/status */

struct exec_options {
    struct opt_list env;
    const char *cwd, *user, *data;
    uint64_t timeout_ms;
    bool is_interactive, has_tty, is_help;
};

#define AT(field) offsetof(struct exec_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--env", NULL, OPT_LIST, AT(env), NULL, 0, 0, "NAME[=VALUE]", "set a variable; without =VALUE it is ours; may be repeated", NULL, 'e' },
    { "--workdir", NULL, OPT_STR, AT(cwd), NULL, 0, 0, "DIR", "directory inside to run in; default: the home", NULL, 'w' },
    { "--user", NULL, OPT_STR, AT(user), NULL, 0, 0, "UID[:GID]", "must be who the sandbox is: it has one user", NULL, 'u' },
    { "--interactive", NULL, OPT_BOOL, AT(is_interactive), NULL, 0, 0, NULL, "accepted for habit: input is always forwarded", NULL, 'i' },
    { "--tty", NULL, OPT_BOOL, AT(has_tty), NULL, 0, 0, NULL, "give the command a terminal of its own, as large as yours", NULL, 't' },
    { "--timeout", NULL, OPT_MS, AT(timeout_ms), NULL, 1, 0, "TIME", "kill the command after this long, and return 124; the sandbox stays" },
    TARGET_DATA_OPT(AT(data)),
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program exec_program = {
    .name = "silica exec",
    .usage = "[options] NAME -- COMMAND [ARGUMENTS]",
    .example = "silica exec demo -- python3 --version\n"
               "silica exec -t demo -- bash",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Streams, signals and the exit code are as with `silica run`. What the command leaves in the background\n"
        "goes on in the sandbox; its output is no longer read, so send it to a file.",
};

/* ---- who the sandbox is ---- */

/* A number that follows `key` in a text of /proc. */
static bool number_after(struct span text, const char *key, uint64_t *ret)
{
    size_t at = span_find_str(text, span_cstr(key));
    struct span rest = at == SIZE_MAX ? SPAN_NONE : span_trim(span_skip(text, at + strlen(key)));
    size_t n = 0;

    while (n < rest.n && rest.p[n] >= '0' && rest.p[n] <= '9')
        n++;
    return str_u64(span_slice(rest, 0, n), UINT32_MAX, ret);
}

/* PID 1 and all it starts have one id; as the sandbox numbers it. */
static int id_inside(pid_t pid, const char *key, const char *map, uint64_t *ret, struct err *e)
{
    OWN(buf_done) struct buf status = BUF_INIT(STATUS_MAX_BYTES), rows = BUF_INIT(STATUS_MAX_BYTES);
    unsigned long long inside, outside, count;
    char path[64];
    uint64_t id;
    int used;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (fd_read_file(path, &status, e) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, map);
    if (fd_read_file(path, &rows, e) < 0)
        return -1;
    if (!number_after(buf_span(&status), key, &id))
        return err_set(e, ERR_INTERNAL, "the kernel does not say who PID 1 is");
    for (const char *p = buf_cstr(&rows);
         sscanf(p, "%llu %llu %llu%n", &inside, &outside, &count, &used) == 3; p += used)
        if (id >= outside && id - outside < count) {
            *ret = inside + (id - outside);
            return 0;
        }
    return err_set(e, ERR_INTERNAL, "the kernel does not say who PID 1 is");
}

static int check_user(struct engine *en, const char *name, const char *text, struct err *e)
{
    struct span rest = span_cstr(text), uid_text;
    struct engine_info info;
    uint64_t uid, gid, want_uid, want_gid;

    if (!text)
        return 0;
    if (!span_cut(&rest, ':', &uid_text) || !str_u64(uid_text, UINT32_MAX, &want_uid) ||
        (strchr(text, ':') && !str_u64(rest, UINT32_MAX, &want_gid)))
        return err_set(e, ERR_USAGE, "--user: '%s' is not UID[:GID]", text);
    if (target_get(en, name, &info, e) < 0)
        return -1;
    if (!info.pid)
        return 0; /* it has ended, which target_control says better */
    if (id_inside(info.pid, "Uid:", "uid_map", &uid, e) < 0 ||
        id_inside(info.pid, "Gid:", "gid_map", &gid, e) < 0)
        return -1;
    if (uid == want_uid && (!strchr(text, ':') || gid == want_gid))
        return 0;
    (void)err_set(e, ERR_UNSUPPORTED, "sandbox '%s' is user %llu:%llu and has no other", name,
                  (unsigned long long)uid, (unsigned long long)gid);
    err_hint(e, "silica run --user %s makes one that is", text);
    return -1;
}

/* ---- the command ---- */

/* "NAME [--] COMMAND...". */
static int read_command(int argc, char **argv, int rest, char ***ret_command, struct err *e)
{
    int at = rest + 1;

    if (rest >= argc || strcmp(argv[rest - 1], "--") == 0) {
        (void)err_set(e, ERR_USAGE, "no sandbox is named");
        err_hint(e, "silica exec NAME -- COMMAND");
        return -1;
    }
    if (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0) {
        (void)err_set(e, ERR_USAGE, "unexpected argument '%s'", argv[at]);
        err_hint(e, "options come before the name, a command after --");
        return -1;
    }
    if (at < argc && strcmp(argv[at], "--") == 0)
        at++;
    if (at >= argc || !*argv[at]) {
        (void)err_set(e, ERR_USAGE, "no command given");
        err_hint(e, "it follows after --: silica exec %s -- echo hello", argv[rest]);
        return -1;
    }
    *ret_command = argv + at;
    return 0;
}

static int run(struct engine *en, const char *name, struct session_spec *spec)
{
    struct session_result result;
    struct err e;

    session_block_signals();
    if (target_control(en, name, &spec->control_fd, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    session_run(spec, &result);
    if (result.has_error && result.exit_code == EXIT_FAILED)
        target_explain(en, name, &result.e);
    return result.has_error ? command_fail(&result.e, result.exit_code) : result.exit_code;
}

int exec_command(int argc, char **argv)
{
    OWN(vars_done) struct vars vars = { 0 };
    struct exec_options o = { 0 };
    struct engine *en = NULL;
    struct session_spec spec = { 0 };
    struct err e;
    int rest, code = command_parse(&exec_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (read_command(argc, argv, rest, (char ***)(uintptr_t)&spec.argv, &e) < 0 ||
        vars_read(&vars, &o.env, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.has_tty)
        vars_add_term(&vars, &o.env);
    if (o.cwd && o.cwd[0] != '/') {
        (void)err_set(&e, ERR_USAGE, "--workdir: '%s' is not an absolute path", o.cwd);
        return command_fail(&e, EXIT_USAGE);
    }
    spec.env = (char **)(uintptr_t)vars.v;
    spec.cwd = o.cwd ? o.cwd : BOX_HOME;
    spec.has_tty = o.has_tty;
    spec.timeout_ms = o.timeout_ms;
    if (target_open(o.data, &en, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    code = check_user(en, argv[rest], o.user, &e) < 0
               ? command_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED)
               : run(en, argv[rest], &spec);
    engine_close(en);
    return code;
}
