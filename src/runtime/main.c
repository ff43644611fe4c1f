/* silica-runtime: the server inside a sandbox, and its PID 1. */
#include "runtime/runtime.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "net/listen.h"
#include "runtime/copy.h"
#include "runtime/exec/exec.h"
#include "runtime/init.h"
#include "runtime/install.h"
#include "runtime/limits.h"
#include "runtime/owner.h"
#include "runtime/python/answer.h"
#include "runtime/files/path.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

extern char **environ;

#define LISTENERS_MAX (OPT_LIST_MAX + 4)

/* The engine's connection may rest as long as the sandbox lives: a hundred years. */
#define CONTROL_IDLE_MS (100ull * 365 * 24 * 3600 * 1000)

struct listeners {
    struct net_listener *v[LISTENERS_MAX];
    size_t n;
};

static int usage_error(const struct err *e)
{
    fprintf(stderr, "silica-runtime: %s\n", e->msg);
    if (e->hint[0])
        fprintf(stderr, "hint: %s\n", e->hint);
    if (init_exit_status())
        return init_exit_status(); /* the main command: not found, or not to be run */
    return err_map(e->code)->exit_code == 2 ? 2 : 1;
}

static int show(void (*make)(const struct opt_program *, struct buf *))
{
    OWN(buf_done) struct buf text = BUF_INIT(256 * 1024);
    struct err e;

    make(&runtime_program, &text);
    return fd_write_all(1, buf_span(&text), &e) < 0;
}

/* The body of what the HTTP server answers by itself: malformed requests, slow heads. */
static void error_body(void *ctx, int status, const char *message, struct buf *body,
                       const char **ret_type)
{
    struct json_out o;
    struct err e;

    (void)ctx;
    (void)status;
    *ret_type = "application/json";
    json_out_init(&o, body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "detail"), json_out_cstr(&o, message);
    json_out_object_end(&o);
    (void)json_out_end(&o, &e);
}

static int listen_on(struct runtime *rt, struct listeners *ls, const char *text, struct err *e)
{
    struct net_addr addr;

    if (net_addr_parse(text, &addr, e) < 0) {
        e->code = ERR_USAGE;
        return err_wrap(e, "--listen");
    }
    if (ls->n == LISTENERS_MAX)
        return err_set(e, ERR_USAGE, "more than %d listeners", LISTENERS_MAX);
    if (net_listen(rt->loop, &addr, http_server_accept, rt->http, &ls->v[ls->n], e) < 0)
        return -1;
    ls->n++;
    if (!net_addr_is_loopback(&addr))
        rt->is_local_only = false;
    return 0;
}

static int listen_port(struct runtime *rt, struct listeners *ls, const char *host, uint64_t port,
                       struct err *e)
{
    char text[NET_ADDR_TEXT_BYTES];

    (void)snprintf(text, sizeof text, strchr(host, ':') ? "[%s]:%llu" : "%s:%llu", host,
                   (unsigned long long)port);
    return listen_on(rt, ls, text, e);
}

/* Nobody asked for these three by name, so one that is taken is worth a line, not a failure; none at all is one. */
static int listen_defaults(struct runtime *rt, struct listeners *ls, const char *host,
                           struct err *e)
{
    static const uint64_t ports[] = { 8888, 8080, 9090 };

    for (size_t i = 0; i < LEN(ports); i++) {
        if (listen_port(rt, ls, host, ports[i], e) == 0)
            continue;
        if (e->sys != EADDRINUSE)
            return -1;
        log_warn("listen.taken", KV("port", ports[i]), KV("err", e));
    }
    return ls->n ? 0 : -1;
}

static bool is_control_connected(const struct runtime *rt)
{
    int is_listening = 0;
    socklen_t n = sizeof is_listening;

    return rt->opt.control_fd != UINT64_MAX &&
           getsockopt((int)rt->opt.control_fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) == 0 &&
           !is_listening;
}

/* The one connection we served is gone: its owner ended, and nobody else can reach this sandbox. */
static void control_closed(void *ctx)
{
    struct runtime *rt = ctx;

    init_stop(rt);
}

/* A listening socket stands in a directory that only its owner can enter. Should code of the sandbox see that directory,
 * through a volume, it is told by what the kernel says of it: the owner comes from outside our PID namespace, where pids
 * show as 0, and as who made the socket listen. Foreign ids all show alike in here, so the directory's mode it is that
 * keeps other users of the host out. */
static bool is_owner(int listener_fd, int fd)
{
    struct ucred owner, peer;
    socklen_t owner_n = sizeof owner, peer_n = sizeof peer;

    return getsockopt(listener_fd, SOL_SOCKET, SO_PEERCRED, &owner, &owner_n) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_n) == 0 && peer.pid == 0 &&
           peer.uid == owner.uid;
}

static void accept_control(void *ctx, int fd, const struct net_addr *peer)
{
    struct runtime *rt = ctx;

    if (getpid() == 1 && !is_owner((int)rt->opt.control_fd, fd)) {
        log_warn("control.refused", KV("fd", fd));
        (void)close(fd);
        return;
    }
    http_server_accept(rt->http, fd, peer);
}

/* The engine hands PID 1 one end of a pair of streams, or a socket that listens. */
static int serve_control(struct runtime *rt, struct listeners *ls, struct err *e)
{
    struct net_addr peer = { .len = sizeof peer.sa };
    int fd = (int)rt->opt.control_fd;

    rt->is_local_only = false; /* an inherited socket: its other end is the engine */
    if (rt->opt.root && strcmp(rt->opt.root, "/") == 0)
        rt->home = getcwd(NULL, 0); /* as long as the process; NULL does no harm */
    if (is_control_connected(rt)) {
        if (getsockname(fd, (struct sockaddr *)&peer.sa, &peer.len) < 0)
            return err_sys(e, "--control-fd %d", fd);
        if (fd_set_nonblock(fd, e) < 0)
            return err_wrap(e, "--control-fd %d", fd);
        http_server_take(rt->http, fd, NULL, &peer);
        return 0;
    }
    if (net_listen_fd(rt->loop, fd, accept_control, rt, &ls->v[0], e) < 0)
        return -1;
    ls->n = 1;
    return 0;
}

/* --listen wins over sandboxd's flags, these over SANDBOX_PORT, that over the defaults. */
static int listen_all(struct runtime *rt, struct listeners *ls, struct err *e)
{
    const struct runtime_options *o = &rt->opt;
    const char *host = o->listen_host              ? o->listen_host
                       : getpid() == 1 || o->token ? "0.0.0.0"
                                                   : "127.0.0.1";

    rt->is_local_only = !o->token;
    if (o->control_fd != UINT64_MAX)
        return serve_control(rt, ls, e);
    for (size_t i = 0; i < o->listen.n; i++)
        if (listen_on(rt, ls, o->listen.v[i], e) < 0)
            return -1;
    if (o->listen.n)
        return 0;
    if (o->has_rest_flags)
        return listen_port(rt, ls, host, o->rest_port, e) < 0
                   ? -1
                   : listen_port(rt, ls, host, o->grpc_port, e);
    if (o->sandbox_port)
        return listen_port(rt, ls, host, o->sandbox_port, e);
    return listen_defaults(rt, ls, host, e);
}

static int tell_ready(struct runtime *rt, const struct listeners *ls, struct err *e)
{
    OWN(buf_done) struct buf line = BUF_INIT(8192);
    char text[NET_ADDR_TEXT_BYTES];
    struct json_out o;

    json_out_init(&o, &line, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "listen");
    json_out_array_begin(&o);
    for (size_t i = 0; i < ls->n; i++) {
        (void)net_addr_text(net_listener_addr(ls->v[i]), text);
        log_info("runtime.listen", KV("addr", (const char *)text));
        json_out_cstr(&o, text);
    }
    json_out_array_end(&o);
    json_out_object_end(&o);
    if (json_out_end(&o, e) < 0 || buf_addc(&line, '\n', e) < 0)
        return -1;
    if (rt->opt.ready_fd == UINT64_MAX)
        return 0;
    if (fd_write_all((int)rt->opt.ready_fd, buf_span(&line), e) < 0)
        return err_wrap(e, "--ready-fd %llu", (unsigned long long)rt->opt.ready_fd);
    (void)close((int)rt->opt.ready_fd);
    return 0;
}

/* Code inside the sandbox may run as the same user: without this it could read our memory, token included. */
static int protect(struct runtime *rt, struct err *e)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(e, "cannot make the process undumpable");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(e, "cannot become a subreaper");
    (void)mallopt(M_ARENA_MAX,
                  1); /* threads are few and short-lived: one heap, returned when idle */
    (void)signal(SIGPIPE, SIG_IGN);
    if (rt->opt.ready_fd != UINT64_MAX)
        (void)fcntl((int)rt->opt.ready_fd, F_SETFD, FD_CLOEXEC);
    if (rt->opt.control_fd != UINT64_MAX)
        (void)fcntl((int)rt->opt.control_fd, F_SETFD, FD_CLOEXEC);
    if (rt->opt.status_fd != UINT64_MAX)
        (void)fcntl((int)rt->opt.status_fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

static int make_parts(struct runtime *rt, struct err *e)
{
    static const char *const hidden[] = { "SANDBOX_EXEC_TOKEN", "SILICA_RUNTIME_TOKEN_FILE", NULL };
    const struct exec_pool_spec exec = { .running_max = (unsigned)rt->opt.max_commands,
                                         .environ = environ,
                                         .hidden = hidden };
    struct http_server_config http = {
        .on_request = route_request,
        .error_body = error_body,
        .ctx = rt,
        .server_name = "silica",
        .idle_timeout_ms = rt->opt.idle_timeout_ms,
        .stall_timeout_ms = rt->opt.stall_timeout_ms,
        .max_connections = (uint32_t)rt->opt.max_connections,
    };
    static const int signals[] = {
        SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, 0
    };

    if (ev_loop_new(&rt->loop, e) < 0)
        return -1;
    if (ev_children_open(rt->loop, signals, init_signal, rt, &rt->children, e) < 0)
        return -1;
    if (ev_pool_new(rt->loop, "files", RUNTIME_FILE_THREADS, &rt->files, e) < 0)
        return -1;
    if (exec_pool_new(rt->loop, rt->children, &exec, &rt->exec, e) < 0)
        return -1;
    http.file_pool = rt->files;
    if (rt->opt.control_fd != UINT64_MAX && !rt->opt.token) /* frames have no place for one */
        http.on_stranger = owner_take;
    if (is_control_connected(rt)) {
        http.on_closed = control_closed;
        owner_on_closed(control_closed, rt);
        http.idle_timeout_ms = CONTROL_IDLE_MS;
    }
    rt->http = http_server_new(rt->loop, &http);
    return 0;
}

static int serve(struct runtime *rt, char **command, struct err *e)
{
    struct listeners ls = { 0 };

    if (protect(rt, e) < 0)
        return -1;
    if (rt->opt.root && path_root_make(rt->opt.root, 0755, e) < 0)
        return err_wrap(e, "--root");
    if (make_parts(rt, e) < 0 || listen_all(rt, &ls, e) < 0)
        return -1;
    if (*command && init_start(rt, command, e) < 0)
        return -1; /* the exit code says which: init_exit_status() */
    if (tell_ready(rt, &ls, e) < 0)
        return -1;
    rt->started_ms = time_mono_ms();
    ev_loop_run(rt->loop);
    for (size_t i = 0; i < ls.n; i++)
        net_listener_close(ls.v[i]);
    http_server_free(rt->http);
    exec_pool_free(rt->exec);
    ev_pool_free(rt->files);
    ev_children_close(rt->children);
    ev_loop_free(rt->loop);
    return 0;
}

int main(int argc, char **argv)
{
    static struct runtime rt; /* options keep texts that live as long as the process */
    struct err e;
    int rest, code;

    if (fd_fill_stdio(&e) < 0)
        return 1; /* nobody to tell */
    /* Nothing is buffered; and a sanitizer's last look for leaks wants ptrace, which a sandbox lacks. */
    if (copy_main(argc, argv, &code))
        _exit(code);
    if (runtime_options_read(&rt.opt, argc, argv, &rest, &e) < 0)
        return usage_error(&e);
    if (rt.opt.is_help)
        return show(opt_help);
    if (rt.opt.is_roff)
        return show(opt_roff);
    if (rt.opt.is_version) {
        printf("sandboxd, version " SILICA_VERSION
               " (revision: silica-runtime)\nsilica-runtime " SILICA_VERSION "\n");
        return 0;
    }
    if (rt.opt.install)
        return install_program(rt.opt.install, &e) < 0 ? usage_error(&e) : 0;
    if (rest < argc && strcmp(argv[rest - 1], "--") != 0) {
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
        err_hint(&e, "a command to run follows after --: silica-runtime [options] -- COMMAND");
        return usage_error(&e);
    }
    if (serve(&rt, argv + rest, &e) < 0)
        return usage_error(&e);
    init_say_last_words(&rt);
    return init_exit_status();
}
