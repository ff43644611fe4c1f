/* silica in-cluster: a command that finds what a Pod of a cluster would: the account of its namespace, the API server by
 * variables, sandboxes by name. */
#include "cli/in_cluster.h"

#include "base/fd.h"
#include "cli/command.h"
#include "cli/grant.h"
#include "cli/in_cluster_addresses.h"
#include "cli/in_cluster_hosts.h"
#include "cli/in_cluster_router.h"
#include "ev/child.h"
#include "ev/spawn.h"
#include "ev/timer.h"
#include "isolate/dir.h"
#include "kube/informer.h"
#include "kubeclient/kubeconfig.h"
#include "net/addr.h"
#include "up/names.h"
#include "up/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define HOSTS_MAX_BYTES (4 << 20)
#define ENV_MAX         4096
#define TOKEN_LIFE_S    (7 * 24 * 3600)
#define LISTEN_MOST_MS  30000 /* for the node to listen at the addresses of Pods */

struct in_cluster_options {
    const char *data, *namespace, *role, *inside;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct in_cluster_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--namespace", NULL, OPT_STR, AT_FIELD(namespace), "default", 0, 0, "NS", "the namespace it is in; made when it is not there", NULL, 'n' },
    { "--role", NULL, OPT_STR, AT_FIELD(role), "edit", 0, 0, "ROLE", "what it may do there: view, edit, admin or another ClusterRole" },
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory of what is up" },
    COMMAND_HELP(AT_FIELD(is_help), NULL),
    { "--inside", NULL, OPT_STR, AT_FIELD(inside), NULL, 0, 0, "DIR", NULL },
};
/* clang-format on */

const struct opt_program in_cluster_program = {
    .name = "silica in-cluster",
    .usage = "[-n NS] -- COMMAND [ARG...]",
    .example = "silica in-cluster -n team-a -- python3 agent.py",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "COMMAND finds what a Pod of that namespace would find: the token of a service account below /var/run/secrets,\n"
        "KUBERNETES_SERVICE_HOST and _PORT, sandboxes as NAME.NS.svc.cluster.local, which listen while it runs, and the\n"
        "router, at port 8080, as sandbox-router-svc.NS.svc.cluster.local. All else is this machine.",
};

struct session {
    const struct in_cluster_options *o;
    const struct place *place;
    struct api api;
    struct ev_children *kids;
    struct informer *pods;            /* of sandboxes */
    struct in_cluster_router *router; /* NULL: it has no address here */
    struct in_cluster_addresses *addresses;
    struct ev_timer patience; /* with the node */
    bool has_names, has_addresses;
    struct ev_child child;
    char **command;
    char dir[4200], host[128], port[16];
    int hosts_fd;
    pid_t pid;
    int code;
    struct err e;
    bool has_failed;
};

/* ---- names ---- */

/* Its Service is in every namespace; these are the ones whose name programs know. */
static void add_router(const struct session *s, struct buf *text)
{
    const char *const spaces[] = { UP_NAMESPACE, "default", s->o->namespace };
    const char *ip = in_cluster_router_ip(s->router);
    struct err e;

    /* Whole lines: one that finds no room is left out, after some ten thousand. */
    (void)buf_addf(text, &e, "%s " UP_ROUTER_SVC "\n", ip);
    EACH(space, spaces) {
        /* As above: it fits, or is left out whole. */
        (void)buf_addf(text, &e, "%s %s.%s.svc.cluster.local %s.%s.svc %s.%s\n", ip, UP_ROUTER_SVC,
                       *space, UP_ROUTER_SVC, *space, UP_ROUTER_SVC, *space);
    }
}

/* In place: the file that the command sees is this one, and no other can be put there. */
static int write_hosts(struct session *s, struct err *e)
{
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    OWN(buf_done) struct buf text = BUF_INIT(HOSTS_MAX_BYTES);
    struct object *o;

    if (fd_read_file("/etc/hosts", &text, e) < 0)
        buf_clear(&text);
    if (buf_addf(&text, e, "\n127.0.0.1 kubernetes.default.svc kubernetes.default\n") < 0)
        return -1;
    if (s->router)
        add_router(s, &text);
    informer_walk_all(&w, s->pods);
    while ((o = informer_walk_next(&w)))
        in_cluster_hosts_add(&text, o);
    if (pwrite(s->hosts_fd, text.p, text.n, 0) != (ssize_t)text.n ||
        ftruncate(s->hosts_fd, (off_t)text.n) < 0)
        return err_sys(e, "cannot write the names of sandboxes");
    return 0;
}

static void fail(struct session *s)
{
    s->has_failed = true;
    ev_loop_stop(s->api.loop);
}

static void look(struct session *s)
{
    if (informer_is_synced(s->pods) && s->pid && write_hosts(s, &s->e) < 0)
        fail(s);
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    (void)o, (void)is_initial;
    look(ctx);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old, (void)now;
    look(ctx);
}

static void on_delete(void *ctx, struct object *last)
{
    (void)last;
    look(ctx);
}

/* ---- the command ---- */

static void on_ended(void *ctx)
{
    struct session *s = ctx;
    int status = s->child.wait_status;

    s->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ev_loop_stop(s->api.loop);
}

static bool is_replaced(const char *variable)
{
    return strncmp(variable, "KUBECONFIG=", 11) == 0 ||
           strncmp(variable, "KUBERNETES_SERVICE_", 19) == 0;
}

static int start(struct session *s, struct err *e)
{
    char host[160], port[64], https[64], *env[ENV_MAX + 4], *argv[ENV_MAX];
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    struct spawn_fail why;
    size_t n = 0, words = 0;

    (void)snprintf(host, sizeof host, "KUBERNETES_SERVICE_HOST=%s", s->host);
    (void)snprintf(port, sizeof port, "KUBERNETES_SERVICE_PORT=%s", s->port);
    (void)snprintf(https, sizeof https, "KUBERNETES_SERVICE_PORT_HTTPS=%s", s->port);
    env[n++] = host, env[n++] = port, env[n++] = https;
    for (char **v = environ; *v && n < ENV_MAX; v++)
        if (!is_replaced(*v))
            env[n++] = *v;
    env[n] = NULL;
    argv[words++] = (char *)"/proc/self/exe", argv[words++] = (char *)"in-cluster";
    argv[words++] = (char *)"--inside", argv[words++] = s->dir, argv[words++] = (char *)"--";
    for (char **word = s->command; *word && words + 1 < LEN(argv); word++)
        argv[words++] = *word;
    argv[words] = NULL;
    spec.argv = argv;
    spec.envp = env;
    s->pid = spawn(&spec, &why);
    if (s->pid < 0)
        return spawn_err(e, &spec, why);
    ev_child_watch(s->kids, &s->child, s->pid, on_ended, s);
    return 0;
}

/* Names lead to addresses, and there is something to be reached there. */
static void begin(struct session *s)
{
    if (!s->has_names || !s->has_addresses || s->has_failed)
        return;
    if (write_hosts(s, &s->e) < 0 || start(s, &s->e) < 0)
        fail(s);
}

static void on_synced(void *ctx)
{
    struct session *s = ctx;

    s->has_names = true;
    begin(s);
}

static void on_listening(void *ctx)
{
    struct session *s = ctx;

    ev_timer_stop(s->api.loop, &s->patience);
    s->has_addresses = true;
    begin(s);
}

static void on_deaf(void *ctx)
{
    struct session *s = ctx;

    (void)err_set(&s->e, ERR_TIMEOUT,
                  "the node does not listen at the addresses of the Pods of namespace '%s'",
                  s->o->namespace);
    err_hint(
        &s->e,
        "Events PortTaken of the Pods say who else has a port; `silica status` says what runs");
    fail(s);
}

/* The terminal tells the command itself of INT and QUIT; what is for us alone is passed on. */
static void on_signal(void *ctx, int number)
{
    struct session *s = ctx;

    if (s->pid > 0 && (number == SIGTERM || number == SIGHUP))
        (void)kill(s->pid, number);
    if (s->pid > 0)
        return;
    s->code = 128 + number; /* it has not begun */
    ev_loop_stop(s->api.loop);
}

/* ---- files ---- */

static int write_account(struct session *s, const char *kubeconfig, struct err *e)
{
    OWN(buf_done) struct buf token = BUF_INIT(GRANT_TOKEN_MAX_BYTES);
    const struct grant grant = { s->o->namespace, "silica-in-cluster", s->o->role, TOKEN_LIFE_S };
    struct kubeconfig k = { 0 };
    OWN_FD int dir_fd = -1;
    char path[4300];
    int rc = -1;

    (void)snprintf(path, sizeof path, "%s/account", s->dir);
    if (mkdir(path, 0700) < 0)
        return err_sys(e, "cannot make '%s'", path);
    dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_sys(e, "cannot open '%s'", path);
    if (grant_token(&s->api, &grant, &token, e) == 0 &&
        kubeconfig_load(&(struct kubeconfig_choice){ .file = kubeconfig }, &k, e) == 0 &&
        dir_write(dir_fd, "token", buf_span(&token), e) == 0 &&
        dir_write(dir_fd, "ca.crt", buf_span(&k.ca_pem), e) == 0)
        rc = dir_write(dir_fd, "namespace", span_cstr(s->o->namespace), e);
    kubeconfig_done(&k);
    return rc;
}

static void remove_files(const struct session *s)
{
    static const char *const files[] = { "account/token", "account/ca.crt", "account/namespace",
                                         "hosts" };
    static const char *const dirs[] = { "account", "run", "" };
    char path[4400];

    EACH(file, files) {
        (void)snprintf(path, sizeof path, "%s/%s", s->dir, *file);
        (void)unlink(path);
    }
    EACH(dir, dirs) {
        (void)snprintf(path, sizeof path, "%s/%s", s->dir, *dir);
        (void)rmdir(path);
    }
}

static int make_files(struct session *s, const struct place *place, const struct place_info *info,
                      struct err *e)
{
    OWN_MEM char *host = NULL;
    char path[4300];
    struct span name;
    uint16_t port;

    if (net_addr_split(info->listen, &name, &port, e) < 0)
        return -1;
    host = span_dup(name);
    (void)snprintf(s->host, sizeof s->host, "%s", host);
    (void)snprintf(s->port, sizeof s->port, "%u", port);
    (void)snprintf(s->dir, sizeof s->dir, "%s/in-cluster.XXXXXX", place->path);
    if (!mkdtemp(s->dir))
        return err_sys(e, "cannot make a directory in '%s'", place->path);
    (void)snprintf(path, sizeof path, "%s/hosts", s->dir);
    /* mode: that of /etc/hosts, which it becomes; its directory is mkdtemp's */
    s->hosts_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (s->hosts_fd < 0)
        return err_sys(e, "cannot make '%s'", path);
    return write_account(s, info->kubeconfig, e);
}

/* ---- the whole ---- */

static int run(struct session *s, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, 0 };
    static const struct informer_listener listener = {
        .on_add = on_add, .on_update = on_update, .on_delete = on_delete, .on_synced = on_synced
    };
    const struct informer_spec spec = { .kind = kind_find("", NULL, "pods"),
                                        .labels = "agents.x-k8s.io/sandbox-name-hash" };

    if (ev_children_open(s->api.loop, signals, on_signal, s, &s->kids, e) < 0 ||
        informer_new(s->api.client, &spec, &s->pods, e) < 0)
        return -1;
    informer_listen(s->pods, &listener, s);
    informer_start(s->pods);
    ev_timer_start(s->api.loop, &s->patience, LISTEN_MOST_MS, on_deaf, s);
    s->addresses =
        in_cluster_addresses_open(s->api.loop, s->place->dir.fd, s->o->namespace, on_listening, s);
    ev_loop_run(s->api.loop);
    ev_timer_stop(s->api.loop, &s->patience);
    in_cluster_addresses_close(s->addresses);
    informer_close(s->pods);
    if (!s->has_failed)
        return 0;
    *e = s->e;
    return -1;
}

/* Without it a command may still find all that it looks for. */
static void open_router(struct session *s, const struct place_info *info)
{
    struct err e;

    if (info->router && in_cluster_router_open(s->api.loop, info->router, &s->router, &e) < 0) {
        (void)err_wrap(&e, "no address for " UP_ROUTER_SVC);
        (void)command_fail(&e, 0);
    }
}

static int outside(const struct in_cluster_options *o, char **command)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    struct session s = {
        .o = o, .place = &place, .api = API_INIT, .command = command, .hosts_fd = -1
    };
    struct err e;
    int rc = -1;

    if (place_open(&place, o->data, false, &e) == 0 && place_read(&place, &info, &e) == 0 &&
        api_open(&s.api, info.kubeconfig, &e) == 0 && make_files(&s, &place, &info, &e) == 0) {
        open_router(&s, &info);
        rc = run(&s, &e);
    }
    in_cluster_router_close(s.router);
    if (*s.dir)
        remove_files(&s);
    own_fd_close(&s.hosts_fd);
    if (s.kids)
        ev_children_close(s.kids);
    api_done(&s.api);
    return rc < 0 ? command_fail(&e, EXIT_FAILED) : s.code;
}

static int inside(const char *dir, char **command)
{
    struct err e;

    if (in_cluster_enter(dir, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    (void)execvp(command[0], command);
    (void)err_sys(&e, "cannot run '%s'", command[0]);
    return command_fail(&e, e.sys == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

int in_cluster_command(int argc, char **argv)
{
    struct in_cluster_options o = { 0 };
    struct err e;
    int rest, code = command_parse(&in_cluster_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (rest == argc) {
        (void)err_set(&e, ERR_USAGE, "no command given");
        err_hint(&e, "silica in-cluster -- COMMAND");
        return command_fail(&e, EXIT_USAGE);
    }
    return o.inside ? inside(o.inside, argv + rest) : outside(&o, argv + rest);
}
