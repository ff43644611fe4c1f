/* silica up: the whole system on this machine. */
#include "cli/up.h"

#include "base/fd.h"
#include "cli/command.h"
#include "cli/limit_options.h"
#include "cli/router_options.h"
#include "ev/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define ARGS_MAX 128

#define ROUTER_WORKERS_USUAL_MAX 4u

#define AT_FIELD(field) offsetof(struct up_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--detach", NULL, OPT_BOOL, AT_FIELD(is_detached), NULL, 0, 0, NULL, "go on in the background; returns when all of it serves", "Running", 'd' },
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "where everything is kept; default: $XDG_STATE_HOME/silica, for root /var/lib/silica" },
    { "--config", "SILICA_CONFIG", OPT_STR, AT_FIELD(config), NULL, 0, 0, "FILE", "these options and more by a file; see --print-config" },
    { "--print-config", NULL, OPT_BOOL, AT_FIELD(is_print), NULL, 0, 0, NULL, "print what would hold, as such a file, and start nothing" },
    { "--install", NULL, OPT_BOOL, AT_FIELD(is_install), NULL, 0, 0, NULL, "write a systemd unit that starts it so, and start nothing; printed where systemd does not run" },
    { "--uninstall", NULL, OPT_BOOL, AT_FIELD(is_uninstall), NULL, 0, 0, NULL, "remove that unit" },
    { "--listen", NULL, OPT_STR, AT_FIELD(listen), NULL, 0, 0, "HOST:PORT", "of the API server; default: loopback, the port of last time, else 6443 or the next free one", "Serving" },
    { "--router-listen", NULL, OPT_STR, AT_FIELD(router_listen), NULL, 0, 0, "HOST:PORT", "of the router; default: loopback, the port of last time, else 8090 or the next free one" },
    { "--router-workers", NULL, OPT_STR, AT_FIELD(router_workers), NULL, 0, 0, "N", "processes of the router; default: one, on machines with four processors or more one for two of them, at most four; 0 or auto: one for each" },
    SERVING_DISK_FLOOR(AT_FIELD(disk_floor_bytes)),
    { "--allow-host", NULL, OPT_LIST, AT_FIELD(allow_hosts), NULL, 0, 0, "NAME", "a name of the router besides addresses, localhost and sandbox-router-svc.NAMESPACE.svc; may be repeated" },
    SERVING_POD_ADDRESSES(AT_FIELD(is_every_address)),
    SERVING_POD_PORT_MIN(AT_FIELD(pod_port_min)),
    SERVING_MAX_PODS(AT_FIELD(max_pods)),
    SERVING_NAMESPACE_MAX(AT_FIELD(namespace_objects), AT_FIELD(namespace_bytes)),
    SERVING_TLS_SAN(AT_FIELD(sans)),
    SERVING_READY_FD(AT_FIELD(ready_fd), "all of it serves"),
    LIMIT_OPTIONS(AT_FIELD(limits), AT_FIELD(all)),
    SERVING_LOG_LEVEL(AT_FIELD(log), "Logs", ": of the parts' logs, in DIR/logs"),
    { "--verbose", NULL, OPT_BOOL, AT_FIELD(is_loud), NULL, 0, 0, NULL, "show these logs here, too", NULL, 'v' },
    COMMAND_HELP(AT_FIELD(is_help), "Help"),
    { "--as-child", NULL, OPT_BOOL, AT_FIELD(is_child), NULL, 0, 0, NULL, NULL },
};
/* clang-format on */

const struct opt_program up_program = {
    .name = "silica up",
    .usage = "[-d] [options]",
    .example = "silica up -d\n"
               "eval \"$(silica env)\"\n"
               "kubectl get sandboxwarmpools        ready when READY is what is wished",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Serves the Kubernetes API for sandboxes with controllers, node and router, from processes that come back.\n"
        "The first start writes a kubeconfig, two templates (python-sandbox-template, simple-sandbox-template) and two\n"
        "pools (python-sandbox-pool, python-sandbox-warmpool); what you change or delete stays so. Ctrl-C, TERM and\n"
        "`silica down` end it. Another --data is another system. See silica status, kubeconfig, env, token.",
};

/* One does for a laptop: the sandboxes need processors, too. */
static int count_workers(struct up_options *o, struct err *e)
{
    unsigned n = router_processors();

    if (o->router_workers)
        return router_workers_parse("--router-workers", o->router_workers, &o->router_worker_count,
                                    e);
    o->router_worker_count = n > 2 ? MIN(n / 2, ROUTER_WORKERS_USUAL_MAX) : 1;
    return 0;
}

static int set_up_log(const struct up_options *o, struct err *e)
{
    enum log_level level;
    enum log_format format;

    if (serving_log_read(&o->log, &level, &format, e) < 0)
        return -1;
    /* In the foreground the terminal is for people: what goes on with less than an error is not said there. */
    log_open(2, o->is_child || o->is_loud ? level : LOG_ERROR, format);
    return 0;
}

/* ---- in the background ---- */

/* Our own words, then `more`, which wins. */
static int copy_args(int argc, char **argv, const char *const *more, char **to, struct err *e)
{
    size_t n = 0;

    if (argc > ARGS_MAX)
        return err_set(e, ERR_USAGE, "more than %d arguments", ARGS_MAX);
    to[n++] = (char *)"/proc/self/exe";
    to[n++] = (char *)"up";
    for (int i = 1; i < argc; i++)
        to[n++] = argv[i];
    for (; *more; more++)
        to[n++] = (char *)*more;
    to[n] = NULL;
    return 0;
}

static int start_child(const struct up_options *o, const struct place *place, int argc, char **argv,
                       const int fds[3], pid_t *ret, struct err *e)
{
    /* Its working directory is none of ours, so a path is said in full. */
    OWN_MEM char *config = o->config ? realpath(o->config, NULL) : NULL;
    const char *const more[] = { "--as-child", "--ready-fd", "1",
                                 "--data",     place->path,  config ? "--config" : NULL,
                                 config,       NULL };
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    char *args[ARGS_MAX + 2 + LEN(more)];
    struct spawn_fail fail;

    if (copy_args(argc, argv, more, args, e) < 0)
        return -1;
    spec.argv = args;
    spec.envp = environ;
    spec.cwd = "/";
    spec.flags = SPAWN_SESSION;
    memcpy(spec.fds, fds, sizeof spec.fds);
    *ret = spawn(&spec, &fail);
    return *ret > 0 ? 0 : spawn_err(e, &spec, fail);
}

/* Lines of its log are for who looks for them; why it failed is a message, and its hint. */
static bool add_messages(struct span words, struct buf *to)
{
    struct span line;
    struct err e;

    while (span_cut(&words, '\n', &line))
        if (!span_starts(line, "ts=") && (buf_add(to, line, &e) < 0 || buf_addc(to, '\n', &e) < 0))
            return false;
    return to->n > 0;
}

/* It wrote why to the file that is its standard error. */
static int pass_on_failure(int log_fd, pid_t pid)
{
    OWN(buf_done) struct buf words = BUF_INIT(64 * 1024), messages = BUF_INIT(64 * 1024);
    int status = 0;
    struct err e;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (lseek(log_fd, 0, SEEK_SET) == 0)
        (void)fd_read_all(log_fd, &words, &e);
    (void)fd_write_all(2, buf_span(add_messages(buf_span(&words), &messages) ? &messages : &words),
                       &e);
    return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

static int greet_from(struct span line, const struct up_options *o, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct up_addresses a = { 0 };
    const struct json *root;
    const char *router;

    if (json_parse(span_trim(line), NULL, &doc, e) < 0)
        return -1;
    root = json_doc_root(doc);
    router = json_cstr(json_get(root, "router"));
    (void)snprintf(a.listen, sizeof a.listen, "%s",
                   json_cstr(json_at(json_get(root, "listen"), 0)));
    (void)snprintf(a.router, sizeof a.router, "%s", router ? router : "");
    (void)snprintf(a.kubeconfig, sizeof a.kubeconfig, "%s",
                   json_cstr(json_get(root, "kubeconfig")));
    up_greet(&a, o->data, true);
    return 0;
}

static int detach(const struct up_options *o, struct place *place, int argc, char **argv)
{
    OWN(buf_done) struct buf line = BUF_INIT(64 * 1024);
    OWN_FD int null_fd = -1, out_fd = -1, ready_fd = -1, log_dir_fd = -1, log_fd = -1;
    int fds[2];
    struct err e;
    pid_t pid;

    null_fd = fd_open_null(&e);
    /* It takes the place itself. This is for one that runs already, whose log must not become ours. */
    if (place_take(place, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    own_fd_close(&place->lock_fd);
    if (null_fd < 0 || place_open_log(place, "up", &log_dir_fd, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    log_fd = openat(log_dir_fd, "log", O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0 || pipe2(fds, O_CLOEXEC) < 0) {
        (void)err_sys(&e, "cannot make the log");
        return command_fail(&e, EXIT_FAILED);
    }
    ready_fd = fds[0];
    out_fd = fds[1];
    if (start_child(o, place, argc, argv, (const int[]){ null_fd, out_fd, log_fd }, &pid, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    own_fd_close(&out_fd);
    if (fd_read_all(ready_fd, &line, &e) < 0 || line.n == 0)
        return pass_on_failure(log_fd, pid);
    if (o->ready_fd != SERVING_NO_FD)
        return fd_write_all((int)o->ready_fd, buf_span(&line), &e) < 0
                   ? command_fail(&e, EXIT_FAILED)
                   : 0;
    return greet_from(buf_span(&line), o, &e) < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}

static int print_config(const struct up_options *o)
{
    OWN(buf_done) struct buf text = BUF_INIT(4 * CONFIG_FILE_MAX_BYTES);
    struct err e;

    if (up_config_print(o, &text, &e) < 0 || fd_write_all(1, buf_span(&text), &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}

static void options_done(struct up_options *o)
{
    config_done(&o->file);
}

int up_command(int argc, char **argv)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(options_done) struct up_options o = { .file = CONFIG_INIT };
    struct err e;
    int code = command_parse(&up_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (up_config_read(&o, argc, argv, &e) < 0 || set_up_log(&o, &e) < 0 ||
        count_workers(&o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_print)
        return print_config(&o);
    if (o.is_install || o.is_uninstall)
        return (o.is_install ? up_unit_install(&o, argc, argv, &e) : up_unit_remove(&e)) < 0
                   ? command_fail(&e, EXIT_FAILED)
                   : 0;
    if (place_open(&place, o.data, true, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    if (o.is_detached && !o.is_child)
        return detach(&o, &place, argc, argv);
    if (place_take(&place, &e) < 0 || up_config_write(&o, &place, &e) < 0 ||
        up_run(&o, &place, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}
