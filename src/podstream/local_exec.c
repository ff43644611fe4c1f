#include "podstream/local_exec.h"

#include "base/fd.h"
#include "ev/io.h"
#include "ev/limits.h"
#include "ev/spawn.h"
#include "ev/timer.h"
#include "net/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#define STDIN_MAX_BYTES  (64 << 20)  /* queued; callers stop at the next number */
#define STDIN_HIGH_BYTES (64 * 1024) /* is_full from here on */
#define TERMINAL_WAIT_MS                                                                           \
    100 /* for what an ended process wrote: the kernel passes it on when it likes */

struct local_exec {
    struct pod_backend backend;
    struct ev_loop *loop;
    struct ev_children *kids;
    const char *pod;
    char *const *main_argv;
    struct pod_process *processes;
};

/* One output. Once the process has ended only what is in the pipe then is read: others may hold it and write on. */
struct local_pipe {
    struct pod_process *process;
    enum pod_output which;
    int fd; /* -1 once closed */
    struct ev_io io;
    size_t left;
};

struct pod_process {
    struct pod_process *next, **at;
    struct local_exec *owner;
    const struct pod_process_events *events; /* NULL: nobody listens */
    void *ctx;
    pid_t pid;
    struct ev_child child;
    struct local_pipe outs[2];
    int in_fd;
    struct ev_io in;
    struct buf queue;
    bool is_terminal, is_paused, is_in_ended, was_full, has_ended;
    struct ev_task settle;
    struct ev_timer terminal_wait;
};

static void settle(void *ctx);
static void bury(struct pod_process *p);

static struct local_exec *of(struct pod_backend *b)
{
    return CONTAINER(b, struct local_exec, backend);
}

/* ---- output ---- */

static void close_out(struct local_pipe *o)
{
    if (ev_io_is_open(&o->io))
        ev_io_close(&o->io);
    own_fd_close(&o->fd);
}

static void settle_soon(struct pod_process *p)
{
    if (!p->settle.is_queued)
        ev_post(p->owner->loop, &p->settle, settle, p);
}

/* One read. False when there is nothing now. */
static bool read_once(struct local_pipe *o)
{
    struct pod_process *p = o->process;
    size_t want = p->has_ended ? MIN(o->left, (size_t)EV_SCRATCH_BYTES) : EV_SCRATCH_BYTES;
    uint8_t *scratch = ev_scratch(p->owner->loop);
    ssize_t n = want ? read(o->fd, scratch, want) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) { /* EIO: nobody is left at the terminal */
        close_out(o);
        return false;
    }
    o->left -= MIN((size_t)n, o->left);
    if (p->events)
        p->events->on_output(p->ctx, o->which, span_of(scratch, (size_t)n));
    return true;
}

static void on_readable(void *ctx, unsigned ready)
{
    struct local_pipe *o = ctx;

    (void)ready;
    (void)read_once(o);
    if (o->process->has_ended)
        settle_soon(o->process);
}

/* The process has ended: gives what it left in its pipes, then tells. Waits while the client is slow. */
static void settle(void *ctx)
{
    struct pod_process *p = ctx;
    const struct pod_process_events *events;
    int status = p->child.wait_status;

    EACH(o, p->outs) {
        while (o->fd >= 0 && !p->is_paused && o->left && read_once(o))
            ;
        if (o->fd >= 0 && o->left && (p->is_paused || p->is_terminal))
            return;
        close_out(o);
    }
    if (!p->has_ended || !p->events)
        return;
    events = take_ptr(&p->events);
    events->on_exit(p->ctx, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
                    NULL);
    bury(p);
}

static void process_free(void *obj)
{
    struct pod_process *p = obj;

    buf_done(&p->queue);
    free(p);
}

static void bury(struct pod_process *p)
{
    EACH(o, p->outs)
        close_out(o);
    if (ev_io_is_open(&p->in))
        ev_io_close(&p->in);
    own_fd_close(&p->in_fd);
    ev_post_cancel(&p->settle);
    ev_timer_stop(p->owner->loop, &p->terminal_wait);
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    ev_free_later(p->owner->loop, p, process_free);
}

/* Somebody else holds the terminal, or it would have ended by itself. */
static void terminal_over(void *ctx)
{
    struct pod_process *p = ctx;

    if (p->is_paused) {
        ev_timer_start(p->owner->loop, &p->terminal_wait, TERMINAL_WAIT_MS, terminal_over, p);
        return;
    }
    p->outs[POD_STDOUT].left = 0;
    settle_soon(p);
}

static void on_ended(void *ctx)
{
    struct pod_process *p = ctx;

    p->has_ended = true;
    if (!p->events) {
        bury(p);
        return;
    }
    EACH(o, p->outs) {
        int n = 0;

        if (o->fd >= 0)
            (void)ioctl(o->fd, FIONREAD, &n);
        o->left = p->is_terminal ? SIZE_MAX : (size_t)MAX(n, 0);
    }
    if (p->is_terminal)
        ev_timer_start(p->owner->loop, &p->terminal_wait, TERMINAL_WAIT_MS, terminal_over, p);
    settle_soon(p);
}

/* ---- input ---- */

static void end_input(struct pod_process *p)
{
    /* A terminal has one end for both directions: it is told by its end-of-file character. */
    const uint8_t eof = 4;

    if (p->is_terminal)
        (void)!write(p->in_fd, &eof, 1);
    if (ev_io_is_open(&p->in))
        ev_io_close(&p->in);
    own_fd_close(&p->in_fd);
}

static void on_writable(void *ctx, unsigned ready)
{
    struct pod_process *p = ctx;
    ssize_t n = p->queue.n ? write(p->in_fd, p->queue.p, p->queue.n) : 0;

    (void)ready;
    if (n > 0)
        buf_consume(&p->queue, (size_t)n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) { /* nobody reads it any more */
        buf_done(&p->queue);
        end_input(p);
    } else if (p->queue.n == 0) {
        ev_io_want(&p->in, 0);
        if (p->is_in_ended)
            end_input(p);
    }
    if (p->was_full && p->queue.n < STDIN_HIGH_BYTES) {
        p->was_full = false;
        if (p->events)
            p->events->on_drain(p->ctx);
    }
}

static int local_write(struct pod_process *p, struct span bytes, struct err *e)
{
    if (p->in_fd < 0 || p->is_in_ended)
        return 0;
    if (buf_add(&p->queue, bytes, e) < 0)
        return err_wrap(e, "input that cannot be queued");
    p->was_full |= p->queue.n >= STDIN_HIGH_BYTES;
    ev_io_want(&p->in, EV_WRITE);
    return 0;
}

static bool local_is_full(const struct pod_process *p)
{
    return p->queue.n >= STDIN_HIGH_BYTES;
}

static void local_close_stdin(struct pod_process *p)
{
    p->is_in_ended = true;
    if (p->in_fd >= 0 && p->queue.n == 0)
        end_input(p);
}

static void local_resize(struct pod_process *p, uint16_t cols, uint16_t rows)
{
    const struct winsize size = { .ws_col = cols, .ws_row = rows };

    if (p->is_terminal && p->outs[POD_STDOUT].fd >= 0)
        (void)ioctl(p->outs[POD_STDOUT].fd, TIOCSWINSZ, &size);
}

static void local_pause(struct pod_process *p, bool is_paused)
{
    p->is_paused = is_paused;
    EACH(o, p->outs) {
        if (ev_io_is_open(&o->io))
            ev_io_want(&o->io, is_paused ? 0 : EV_READ);
    }
    if (!is_paused && p->has_ended)
        settle_soon(p);
}

static void local_leave(struct pod_process *p)
{
    p->events = NULL;
    if (p->has_ended) {
        bury(p);
        return;
    }
    EACH(o, p->outs)
        close_out(o);
    buf_done(&p->queue);
    if (p->in_fd >= 0) {
        p->is_terminal = false; /* hung up, not ended */
        end_input(p);
    }
}

/* ---- starting ---- */

/* fds[] become the command's; ours stay in the process. */
static int open_terminal(struct pod_process *p, int fds[3], struct err *e)
{
    OWN_FD int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof name) != 0)
        return err_sys(e, "cannot make a terminal");
    fds[0] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    p->in_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (fds[0] < 0 || p->in_fd < 0)
        return err_sys(e, "cannot open a terminal");
    fds[1] = fds[2] = fds[0];
    p->outs[POD_STDOUT].fd = take_fd(&master);
    return 0;
}

static int open_pipes(struct pod_process *p, bool has_stdin, int fds[3], struct err *e)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };

    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
        (has_stdin && pipe2(in, O_CLOEXEC) < 0))
        (void)err_sys(e, "cannot make pipes");
    fds[0] = has_stdin ? in[0] : fd_open_null(e);
    fds[1] = out[1];
    fds[2] = err[1];
    p->in_fd = in[1];
    p->outs[POD_STDOUT].fd = out[0];
    p->outs[POD_STDERR].fd = err[0];
    return fds[0] < 0 || out[0] < 0 || err[0] < 0 ? -1 : 0;
}

static int watch(struct pod_process *p, struct err *e)
{
    struct ev_loop *loop = p->owner->loop;

    if (p->in_fd >= 0 && ev_io_open(&p->in, loop, p->in_fd, on_writable, p, e) < 0)
        return -1;
    EACH(o, p->outs) {
        if (o->fd < 0)
            continue;
        if (ev_io_open(&o->io, loop, o->fd, on_readable, o, e) < 0)
            return -1;
        ev_io_want(&o->io, EV_READ);
    }
    return 0;
}

static struct pod_process *process_new(struct local_exec *x,
                                       const struct pod_process_events *events, void *ctx)
{
    struct pod_process *p = NEW(struct pod_process);

    p->owner = x;
    p->events = events;
    p->ctx = ctx;
    p->in_fd = -1;
    p->queue.max = STDIN_MAX_BYTES;
    for (int i = 0; i < 2; i++)
        p->outs[i] = (struct local_pipe){ .process = p, .which = (enum pod_output)i, .fd = -1 };
    p->at = &x->processes;
    p->next = x->processes;
    if (p->next)
        p->next->at = &p->next;
    x->processes = p;
    return p;
}

static int run(struct pod_process *p, const struct pod_request *r, struct err *e)
{
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    int got = -1;

    spec.argv = r->verb == POD_EXEC ? r->argv : p->owner->main_argv;
    spec.envp = environ;
    spec.flags = SPAWN_SESSION | (r->has_tty ? SPAWN_TTY : 0);
    p->is_terminal = r->has_tty;
    if ((r->has_tty ? open_terminal(p, spec.fds, e) : open_pipes(p, r->has_stdin, spec.fds, e)) ==
        0) {
        p->pid = spawn(&spec, &fail);
        got = p->pid < 0 ? spawn_err(e, &spec, fail) : watch(p, e);
    }
    for (int i = 0; i < 3; i++) {
        if (i == 0 || spec.fds[i] != spec.fds[0])
            own_fd_close(&spec.fds[i]);
    }
    if (p->pid > 0)
        ev_child_watch(p->owner->kids, &p->child, p->pid, on_ended, p);
    return got;
}

static int local_start(struct pod_backend *b, const struct pod_request *r,
                       const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                       struct err *e)
{
    struct pod_process *p = process_new(of(b), events, ctx);

    if (run(p, r, e) == 0) {
        *ret = p;
        return 0;
    }
    if (p->pid > 0)
        local_leave(p);
    else
        bury(p);
    return -1;
}

static int local_admit(struct pod_backend *b, const struct pod_request *r, struct err *e)
{
    if (!of(b)->pod)
        return 0;
    if (!span_is(span_cstr(r->pod), of(b)->pod))
        return err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", r->pod);
    if (r->container[0] && !span_is(span_cstr(r->container), "main"))
        return err_set(e, ERR_INVALID, "container %s is not valid for pod %s", r->container,
                       r->pod);
    return 0;
}

/* ---- ports ---- */

struct pod_dial {
    struct dial *dial;
    pod_dial_fn done; /* NULL: called off */
    void *ctx;
};

static void dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    OWN_MEM struct pod_dial *d = ctx;

    if (d->done)
        d->done(d->ctx, e ? -1 : r->fd, e);
    else if (!e)
        (void)close(r->fd);
}

static struct pod_dial *local_dial(struct pod_backend *b, const struct pod_request *r,
                                   uint16_t port, pod_dial_fn done, void *ctx)
{
    const struct dial_spec spec = { .host = "127.0.0.1",
                                    .port = port,
                                    .timeout_ms = POD_DIAL_TIMEOUT_MS };
    struct pod_dial *d = NEW(struct pod_dial);

    (void)r;
    d->done = done;
    d->ctx = ctx;
    d->dial = dial_start(of(b)->loop, &spec, dialed, d);
    return d;
}

static void local_dial_cancel(struct pod_dial *d)
{
    d->done = NULL;
    dial_cancel(d->dial);
}

static const struct pod_backend_ops ops = {
    .admit = local_admit,
    .start = local_start,
    .write = local_write,
    .is_full = local_is_full,
    .close_stdin = local_close_stdin,
    .resize = local_resize,
    .pause = local_pause,
    .leave = local_leave,
    .dial = local_dial,
    .dial_cancel = local_dial_cancel,
};

/* ---- life ---- */

struct pod_backend *local_exec_new(struct ev_loop *loop, struct ev_children *kids, const char *pod,
                                   char *const *main_argv)
{
    struct local_exec *x = NEW(struct local_exec);

    x->backend.ops = &ops;
    x->loop = loop;
    x->kids = kids;
    x->pod = pod;
    x->main_argv = main_argv;
    return &x->backend;
}

void local_exec_free(struct pod_backend *b)
{
    struct local_exec *x = of(b);

    for (struct pod_process *p = x->processes; p; p = p->next) {
        p->events = NULL;
        (void)kill(
            -p->pid,
            SIGKILL); /* its session's first group; we have not reaped it, so it is still its */
    }
    while (x->processes)
        ev_loop_turn(x->loop);
    free(x);
}
