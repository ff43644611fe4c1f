/* silica run: a command in a new sandbox, which ends with it, or is handed to the keeper (kept.c). */
#include "cli/command.h"

#include "base/str.h"
#include "base/time.h"
#include "cli/kept.h"
#include "cli/payload.h"
#include "cli/report.h"
#include "cli/vars.h"
#include "isolate/cgroup_parent.h"
#include "isolate/dir.h"
#include "isolate/host_check.h"
#include "node/run.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <limits.h>

#define ID_MAX 65535 /* a sandbox has 65,536 ids where the host can give them */

struct run_options {
    struct opt_list binds, env, host_paths;
    const char *cwd, *user, *cpus, *limits, *output, *name, *data, *join;
    uint64_t memory_bytes, pids, timeout_ms;
    bool has_range, is_read_only, is_interactive, has_tty, is_kept, is_detached, is_help;
};

#define AT(field) offsetof(struct run_options, field)

/* clang-format off */
static const struct opt opts[] = {
    /* flag, environment, kind, field, default, min, max, argument, help, heading above it */
    { "--volume", NULL, OPT_LIST, AT(binds), NULL, 0, 0, "SRC:DST[:ro]", "show SRC of the host as DST inside, writable unless :ro; may be repeated", "What is inside", 'v' },
    { "--host-path", NULL, OPT_LIST, AT(host_paths), NULL, 0, 0, "DIR", "show DIR of the host at its own place, read-only; may be repeated" },
    { "--read-only", NULL, OPT_BOOL, AT(is_read_only), NULL, 0, 0, NULL, "nothing can be written but /tmp, the home and writable volumes" },
    { "--env", NULL, OPT_LIST, AT(env), NULL, 0, 0, "NAME[=VALUE]", "set a variable; without =VALUE it is ours; may be repeated", NULL, 'e' },
    { "--workdir", NULL, OPT_STR, AT(cwd), NULL, 0, 0, "DIR", "directory inside to run in; default: the home", NULL, 'w' },
    { "--user", NULL, OPT_STR, AT(user), "1000", 0, 0, "UID[:GID]", "who the command is inside; outside it never has more rights than you", NULL, 'u' },
    { "--range", NULL, OPT_BOOL, AT(has_range), NULL, 0, 0, NULL, "your range of ids of /etc/subuid inside: 0 is you, any other, as the command is, is not" },
    { "--interactive", NULL, OPT_BOOL, AT(is_interactive), NULL, 0, 0, NULL, "accepted for habit: input is always forwarded", "Streams", 'i' },
    { "--tty", NULL, OPT_BOOL, AT(has_tty), NULL, 0, 0, NULL, "give the command a terminal of its own, as large as yours", NULL, 't' },
    { "--output", NULL, OPT_STR, AT(output), "text", 0, 0, "FORMAT", "how to say how it went: text, or json for one line on stderr at the end", NULL, 'o' },
    { "--memory", NULL, OPT_BYTES, AT(memory_bytes), NULL, 1 << 20, 0, "SIZE", "memory of all processes together; beyond it the largest is killed", "Limits", 'm' },
    { "--cpus", NULL, OPT_STR, AT(cpus), NULL, 0, 0, "N", "processors' worth of time, such as 0.5" },
    { "--pids", NULL, OPT_U64, AT(pids), NULL, 1, 4194304, "N", "processes and threads at once" },
    { "--limits", NULL, OPT_STR, AT(limits), "strict", 0, 0, "MODE", "when a limit cannot be enforced here: strict fails, best-effort runs without" },
    { "--timeout", NULL, OPT_MS, AT(timeout_ms), NULL, 1, 0, "TIME", "kill everything inside after this long, and return 124" },
    { "--detach", NULL, OPT_BOOL, AT(is_detached), NULL, 0, 0, NULL, "run it in the background, print the sandbox's name; it goes when the command ends", "Long life", 'd' },
    { "--keep", NULL, OPT_BOOL, AT(is_kept), NULL, 0, 0, NULL, "the sandbox stays when the command has ended, until `silica rm`" },
    { "--name", NULL, OPT_STR, AT(name), NULL, 0, 0, "NAME", "what the sandbox is called; default: a new name" },
    { "--join", NULL, OPT_STR, AT(join), NULL, 0, 0, "NAME", "share that sandbox's network and ids, as containers of one Pod do; with -d or --keep" },
    { "--data", "SILICA_DATA", OPT_STR, AT(data), NULL, 0, 0, "DIR", "where long-lived sandboxes are kept; default: ~/.local/state/silica, root: /var/lib/silica" },
    COMMAND_HELP(AT(is_help), "Help"),
};
/* clang-format on */

const struct opt_program run_program = {
    .name = "silica run",
    .usage = "[options] [IMAGE] -- COMMAND [ARGUMENTS]",
    .example = "silica run -- python3 -c 'print(6 * 7)'\n"
               "silica run -v \"$PWD\":/work -w /work --timeout 1m -- make test\n"
               "silica run -t -- bash\n"
               "silica run -d --name web -- python3 -m http.server",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "IMAGE is 'host', the default: this machine's /usr, read-only, in a root of its own. There is no\n"
        "network inside but loopback. The exit code is the command's, 128+N when signal N killed it; 127 when it\n"
        "was not found, 126 when it cannot be run, 125 when the sandbox failed, 124 after --timeout, 2 for\n"
        "a wrong command line. INT, TERM, HUP, QUIT, USR1 and USR2 are forwarded. Nothing stays behind, but what\n"
        "-d and --keep are for: see `silica ps`, `silica rm`.",
};

/* What a box_spec points to. */
struct run_plan {
    struct box_bind binds[OPT_LIST_MAX];
    struct vars env;
    char *texts[2 * OPT_LIST_MAX]; /* to be freed */
    size_t text_count;
    const char *host_paths[OPT_LIST_MAX + 1];
    char name[32];
};

static void run_plan_done(struct run_plan *p)
{
    vars_done(&p->env);
    for (size_t i = 0; i < p->text_count; i++)
        free(p->texts[i]);
}

static const char *keep(struct run_plan *p, char *text)
{
    assert(p->text_count < LEN(p->texts));
    p->texts[p->text_count++] = text;
    return text;
}

/* ---- from texts to the spec ---- */

/* "SRC:DST[:ro|rw]". */
static int read_bind(struct run_plan *p, const char *text, struct box_bind *ret, struct err *e)
{
    struct span rest = span_cstr(text), source, target, mode = SPAN("rw");
    const char *source_text;
    char *full;

    if (!span_cut(&rest, ':', &source) || !source.n || !span_cut(&rest, ':', &target) || !target.n)
        return err_set(e, ERR_USAGE, "--volume: '%s' is not SRC:DST[:ro]", text);
    if (rest.n)
        mode = rest;
    if (!span_is(mode, "ro") && !span_is(mode, "rw"))
        return err_set(e, ERR_USAGE, "--volume: '%s' ends neither in :ro nor in :rw", text);
    if (target.p[0] != '/')
        return err_set(e, ERR_USAGE, "--volume: '%.*s' inside is not an absolute path",
                       SPAN_ARG(target));
    source_text = keep(p, span_dup(source));
    full = realpath(source_text, NULL);
    if (!full) {
        (void)err_sys(e, "--volume: cannot use '%s' of the host", source_text);
        e->code = ERR_USAGE;
        return -1;
    }
    *ret = (struct box_bind){ .source = keep(p, full),
                              .target = keep(p, span_dup(target)),
                              .is_writable = span_is(mode, "rw") };
    return 0;
}

/* Ours come first; the kernel's exec keeps both of a pair, and what reads them takes ours only where there is no
 * other: so a name that is given replaces ours. */
static int read_env(struct run_plan *p, const struct run_options *o, struct err *e)
{
    static const char *const ours[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, "USER=user",
                                        "LANG=C.UTF-8", BOX_NPM };

    for (size_t i = 0; i < LEN(ours); i++)
        if (!vars_is_given(&o->env, ours[i]))
            vars_add(&p->env, ours[i]);
    if (o->has_tty)
        vars_add_term(&p->env, &o->env);
    return vars_read(&p->env, &o->env, e);
}

static int read_user(const char *text, uid_t *ret_uid, gid_t *ret_gid, struct err *e)
{
    struct span rest = span_cstr(text), uid_text, gid_text;
    uint64_t uid, gid;

    if (!span_cut(&rest, ':', &uid_text) || !str_u64(uid_text, ID_MAX, &uid))
        return err_set(e, ERR_USAGE, "--user: '%s' is not UID[:GID], numbers up to %d", text,
                       ID_MAX);
    gid = uid;
    gid_text = rest;
    if (strchr(text, ':') && !str_u64(gid_text, ID_MAX, &gid))
        return err_set(e, ERR_USAGE, "--user: '%s' is not UID[:GID], numbers up to %d", text,
                       ID_MAX);
    *ret_uid = (uid_t)uid;
    *ret_gid = (gid_t)gid;
    return 0;
}

static int read_cpus(const char *text, uint64_t *ret_milli, struct err *e)
{
    double cpus;

    if (!text)
        return 0;
    if (!str_double(span_cstr(text), &cpus) || cpus < 0.01 || cpus > 4096)
        return err_set(e, ERR_USAGE, "--cpus: '%s' is not a number from 0.01 to 4096", text);
    *ret_milli = (uint64_t)(cpus * 1000);
    return 0;
}

static int read_spec(struct run_plan *p, const struct run_options *o, struct box_spec *spec,
                     struct err *e)
{
    for (size_t i = 0; i < o->binds.n; i++)
        if (read_bind(p, o->binds.v[i], &p->binds[i], e) < 0)
            return -1;
    for (size_t i = 0; i < o->host_paths.n; i++) {
        p->host_paths[i] = o->host_paths.v[i];
        if (p->host_paths[i][0] != '/')
            return err_set(e, ERR_USAGE, "--host-path: '%s' is not an absolute path",
                           p->host_paths[i]);
    }
    if (o->cwd && o->cwd[0] != '/')
        return err_set(e, ERR_USAGE, "--workdir: '%s' is not an absolute path", o->cwd);
    (void)snprintf(p->name, sizeof p->name, "run-%x-%llx", (unsigned)getpid(),
                   (unsigned long long)time_mono_us() & 0xffffff);
    if (o->name && dir_check_name(o->name, e) < 0)
        return err_wrap(e, "--name");
    *spec = (struct box_spec){
        .name = o->name ? o->name : p->name,
        .binds = p->binds,
        .bind_count = o->binds.n,
        .host_paths = p->host_paths,
        .env = p->env.v,
        .cwd = o->cwd,
        .wants_range = o->has_range,
        .is_read_only = o->is_read_only,
        .limits = { .memory_bytes = o->memory_bytes, .pids = o->pids },
        .is_brief = true,
        .runtime = payload_bytes(),
        .runtime_path = payload_path(),
        .runtime_args = sandbox_runtime_args,
    };
    if (read_env(p, o, e) < 0 || read_user(o->user, &spec->uid, &spec->gid, e) < 0 ||
        read_cpus(o->cpus, &spec->limits.cpu_milli, e) < 0)
        return -1;
    return command_choice("--limits", o->limits, "strict", "best-effort", &spec->is_best_effort, e);
}

static int check_life(const struct run_options *o, struct err *e)
{
    struct run_id id;

    if (o->name && run_read(o->name, &id))
        return err_set(e, ERR_USAGE, "--name: '%s' is what a node calls a sandbox of a Pod",
                       o->name);
    if (o->has_tty && o->is_detached)
        return err_set(e, ERR_USAGE, "--tty: there is no terminal in the background");
    if (o->join && !o->is_detached && !o->is_kept)
        return err_set(e, ERR_USAGE, "--join: only with -d or --keep");
    return 0;
}

/* ---- the run ---- */

/* The image and the command: "[IMAGE] -- COMMAND". */
static int read_command(int argc, char **argv, int rest, char ***ret_command, struct err *e)
{
    bool is_command = strcmp(argv[rest - 1], "--") == 0;

    if (!is_command && rest < argc) {
        const char *image = argv[rest];

        if (strcmp(image, "host") != 0) {
            (void)err_set(e, ERR_USAGE, "unknown image '%s': the only one is 'host'", image);
            err_hint(e, "a command follows after --: silica run -- %s", image);
            return -1;
        }
        if (rest + 1 < argc && strcmp(argv[rest + 1], "--") == 0) {
            is_command = true;
            rest += 2;
        }
    }
    if (!is_command || rest >= argc || !*argv[rest]) {
        (void)err_set(e, ERR_USAGE, "no command given");
        err_hint(e, "it follows after --: silica run -- echo hello");
        return -1;
    }
    *ret_command = argv + rest;
    return 0;
}

static int kill_box(void *ctx, struct err *e)
{
    return box_kill(ctx, NULL, e);
}

/* All of it dies while we clear up. */
static void end_box(void *ctx)
{
    struct err ignored;

    (void)box_end(ctx, &ignored); /* box_free tries again */
}

/* A sandbox that asks for no limit shares those of all sandboxes of this data directory, where a keeper is there. */
static bool find_parent(const struct run_options *o, struct cgroup_parent *ret)
{
    OWN(dir_done) struct dir dir = DIR_INIT;
    OWN_MEM char *path = NULL;
    struct err none;

    return !o->memory_bytes && !o->pids && !o->cpus && dir_default(o->data, &path, &none) == 0 &&
           dir_open(&dir, path, false, &none) == 0 && cgroup_parent_read(dir.fd, ret, &none) == 0;
}

static int run(struct box_spec *spec, struct session_spec *session, bool is_json)
{
    struct report report = { .result = { .exit_code = EXIT_FAILED, .has_error = true },
                             .unenforced = "" };
    uint64_t began_ms = time_mono_ms();
    OWN_MEM char *unenforced = NULL;
    struct box *box = NULL;

    session_block_signals();
    if (box_start(spec, &box, &report.result.e) < 0) {
        report.start_ms = time_mono_ms() - began_ms;
        (void)host_check_explain(&report.result.e);
        (void)err_wrap(&report.result.e, "cannot make the sandbox");
    } else {
        report.start_ms = time_mono_ms() - began_ms;
        report.unenforced = unenforced = own_strdup(box_unenforced(box));
        report_unenforced(&report, is_json);
        session->control_fd = box_take_control(box);
        session->kill = kill_box;
        session->ended = end_box;
        session->ctx = box;
        session_run(session, &report.result);
    }
    box_free(box);
    if (spec->parent && cgroup_is_stray(spec->parent))
        (void)box_sweep(); /* its keeper was killed, and we may have been the last in it */
    report_say(&report, is_json);
    return report.result.exit_code;
}

int run_command(int argc, char **argv)
{
    OWN(run_plan_done) struct run_plan plan = { 0 };
    struct run_options o = { 0 };
    struct session_spec session = { 0 };
    struct cgroup_parent parent;
    struct box_spec spec;
    bool is_json = false;
    char **command;
    struct err e;
    int rest, code = command_parse(&run_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (read_command(argc, argv, rest, &command, &e) < 0 ||
        command_choice("--output", o.output, "text", "json", &is_json, &e) < 0 ||
        read_spec(&plan, &o, &spec, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (check_life(&o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    session = (struct session_spec){ .argv = command,
                                     .cwd = o.cwd ? o.cwd : BOX_HOME,
                                     .has_tty = o.has_tty,
                                     .timeout_ms = o.timeout_ms };
    if (o.is_kept || o.is_detached)
        return kept_run(&(struct kept_run){ .spec = &spec,
                                            .session = &session,
                                            .data = o.data,
                                            .join = o.join,
                                            .is_kept = o.is_kept,
                                            .is_detached = o.is_detached,
                                            .is_json = is_json });
    if (find_parent(&o, &parent))
        spec.parent = &parent.groups;
    return run(&spec, &session, is_json);
}
