#include "up/part.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "ev/io.h"
#include "ev/spawn.h"
#include "ev/timer.h"
#include "isolate/logfile.h"
#include "up/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

/* One of its two pipes. */
struct ear {
    struct part *part;
    int fd;
    struct ev_io io;
};

struct part {
    struct ev_loop *loop;
    struct ev_children *kids;
    struct part_spec spec;
    char *argv[PART_ARGS_MAX + 2];
    enum part_state state;
    pid_t pid;
    struct ev_child child;
    struct ear out, log;
    struct buf line;       /* begun on its output */
    struct buf words;      /* see part_last_words */
    struct ev_timer timer; /* the pause before the next one, or its patience at the end */
    uint64_t started_ms, wait_ms;
    unsigned restarts;
    bool has_served;
};

static void launch(void *ctx);

struct part *part_new(struct ev_loop *loop, struct ev_children *kids, const struct part_spec *spec)
{
    struct part *p = NEW(struct part);
    size_t n = 0;

    p->loop = loop;
    p->kids = kids;
    p->spec = *spec;
    p->argv[n++] = own_strdup("/proc/self/exe");
    for (size_t i = 0; spec->argv[i]; i++) {
        assert(n <= PART_ARGS_MAX);
        p->argv[n++] = own_strdup(spec->argv[i]);
    }
    p->out = (struct ear){ .part = p, .fd = -1 };
    p->log = (struct ear){ .part = p, .fd = -1 };
    p->line = (struct buf)BUF_INIT(PART_LINE_MAX_BYTES);
    p->words = (struct buf)BUF_INIT(PART_WORDS_MAX_BYTES);
    p->wait_ms = PART_WAIT_MIN_MS;
    return p;
}

static void set_state(struct part *p, enum part_state state)
{
    if (p->state == state)
        return;
    p->state = state;
    log_info("part.state", KV("part", p->spec.name), KV("state", part_state_name(state)),
             KV("pid", p->pid));
    p->spec.on_change(p->spec.ctx, p);
}

/* ---- what it says ---- */

static void hush(struct ear *ear)
{
    ev_io_close(&ear->io);
    own_fd_close(&ear->fd);
}

static void take_lines(struct part *p)
{
    struct span rest = buf_span(&p->line), line;
    size_t end;

    while ((end = span_find(rest, '\n')) != SIZE_MAX) {
        line = span_slice(rest, 0, end);
        rest = span_skip(rest, end + 1);
        if (p->state == PART_STARTING) {
            p->has_served = true;
            set_state(p, PART_SERVING);
        }
        p->spec.on_line(p->spec.ctx, p, line);
    }
    buf_consume(&p->line, p->line.n - rest.n);
}

static void keep_words(struct part *p, struct span piece)
{
    if (p->has_served)
        return;
    if (piece.n > PART_WORDS_MAX_BYTES)
        piece = span_skip(piece, piece.n - PART_WORDS_MAX_BYTES);
    if (p->words.n + piece.n > PART_WORDS_MAX_BYTES)
        buf_clear(&p->words);
    (void)buf_add_capped(&p->words, piece);
}

static void hear(struct part *p, struct ear *ear, struct span piece)
{
    struct err e;

    if (ear == &p->log) {
        if (logfile_add(p->spec.log_fd, "stderr", piece, &e) < 0)
            log_warn("part.log", KV("part", p->spec.name), KV("err", &e));
        if (p->spec.is_loud)
            (void)fd_write_all(2, piece, &e);
        keep_words(p, piece);
        return;
    }
    if (buf_add(&p->line, piece, &e) < 0) { /* nothing of ours says so much in a line */
        log_error("part.line", KV("part", p->spec.name), KV("err", &e));
        buf_clear(&p->line);
        return;
    }
    take_lines(p);
}

static void on_readable(void *ctx, unsigned ready)
{
    struct ear *ear = ctx;
    uint8_t *piece = ev_scratch(ear->part->loop);
    ssize_t n = read(ear->fd, piece, PART_PIECE_BYTES);

    (void)ready;
    if (n > 0)
        hear(ear->part, ear, span_of(piece, (size_t)n));
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        hush(ear);
}

/* The child's end of a pipe, whose other end we listen to; -1. */
static int open_ear(struct part *p, struct ear *ear, struct err *e)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    ear->fd = fds[0];
    if (ev_io_open(&ear->io, p->loop, ear->fd, on_readable, ear, e) < 0) {
        own_fd_close(&ear->fd);
        own_fd_close(&fds[1]);
        return -1;
    }
    ev_io_want(&ear->io, EV_READ);
    return fds[1];
}

/* What it wrote before it died is there still. */
static void hear_out(struct part *p, struct ear *ear)
{
    for (;;) {
        uint8_t *piece = ev_scratch(p->loop);
        ssize_t n = ear->fd >= 0 ? read(ear->fd, piece, PART_PIECE_BYTES) : 0;

        if (n <= 0)
            break;
        hear(p, ear, span_of(piece, (size_t)n));
    }
    hush(ear);
}

/* ---- life ---- */

static void try_again(struct part *p)
{
    p->restarts++;
    ev_timer_start(p->loop, &p->timer, p->wait_ms, launch, p);
    set_state(p, PART_WAITING);
}

static void on_ended(void *ctx)
{
    struct part *p = ctx;
    bool was_steady = time_mono_ms() - p->started_ms >= PART_STEADY_MS;

    hear_out(p, &p->out);
    hear_out(p, &p->log);
    buf_clear(&p->line);
    p->pid = 0;
    ev_timer_stop(p->loop, &p->timer);
    if (p->state == PART_ENDING) {
        set_state(p, PART_ENDED);
        return;
    }
    p->wait_ms = was_steady ? PART_WAIT_MIN_MS : MIN(p->wait_ms * 2, (uint64_t)PART_WAIT_MAX_MS);
    log_warn("part.died", KV("part", p->spec.name), KV("status", p->child.wait_status),
             KV("retry_ms", p->wait_ms));
    try_again(p);
}

static int launch_process(struct part *p, struct err *e)
{
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    OWN_FD int null_fd = fd_open_null(e), out_fd = -1, log_fd = -1;
    struct spawn_fail fail;

    if (null_fd < 0 || (out_fd = open_ear(p, &p->out, e)) < 0 ||
        (log_fd = open_ear(p, &p->log, e)) < 0)
        return -1;
    spec.argv = p->argv;
    spec.envp = environ;
    spec.fds[0] = p->spec.listen_fd >= 0 ? p->spec.listen_fd : null_fd;
    spec.fds[1] = out_fd;
    spec.fds[2] = log_fd;
    spec.flags = SPAWN_GROUP | SPAWN_TIED;
    p->started_ms = time_mono_ms();
    p->pid = spawn(&spec, &fail);
    if (p->pid > 0)
        return 0;
    p->pid = 0;
    return spawn_err(e, &spec, fail);
}

static void launch(void *ctx)
{
    struct part *p = ctx;
    struct err e;

    if (launch_process(p, &e) < 0) {
        hush(&p->out);
        hush(&p->log);
        p->wait_ms = MIN(p->wait_ms * 2, (uint64_t)PART_WAIT_MAX_MS);
        log_error("part.start", KV("part", p->spec.name), KV("err", &e),
                  KV("retry_ms", p->wait_ms));
        keep_words(p, span_cstr(e.msg));
        try_again(p);
        return;
    }
    ev_child_watch(p->kids, &p->child, p->pid, on_ended, p);
    set_state(p, PART_STARTING);
}

void part_start(struct part *p)
{
    assert(p->state == PART_ABSENT);
    launch(p);
}

static void on_impatient(void *ctx)
{
    struct part *p = ctx;

    log_warn("part.kill", KV("part", p->spec.name), KV("pid", p->pid));
    (void)kill(p->pid, SIGKILL);
}

void part_stop(struct part *p, uint64_t patience_ms)
{
    if (p->state == PART_ENDING || p->state == PART_ENDED)
        return;
    ev_timer_stop(p->loop, &p->timer);
    if (!p->pid) {
        set_state(p, PART_ENDED);
        return;
    }
    set_state(p, PART_ENDING);
    (void)kill(p->pid, SIGTERM);
    ev_timer_start(p->loop, &p->timer, patience_ms, on_impatient, p);
}

void part_free(struct part *p)
{
    if (!p)
        return;
    assert(p->state == PART_ABSENT || p->state == PART_ENDED);
    for (size_t i = 0; p->argv[i]; i++)
        free(p->argv[i]);
    own_fd_close(&p->spec.log_fd);
    buf_done(&p->line);
    buf_done(&p->words);
    free(p);
}

/* ---- looking at it ---- */

const char *part_name(const struct part *p)
{
    return p->spec.name;
}

enum part_state part_state(const struct part *p)
{
    return p->state;
}

const char *part_state_name(enum part_state s)
{
    static const char *const names[] = {
        [PART_ABSENT] = "absent",   [PART_STARTING] = "starting", [PART_SERVING] = "serving",
        [PART_WAITING] = "waiting", [PART_ENDING] = "ending",     [PART_ENDED] = "ended",
    };

    return names[s];
}

pid_t part_pid(const struct part *p)
{
    return p->pid;
}

unsigned part_restarts(const struct part *p)
{
    return p->restarts;
}

int part_wait_status(const struct part *p)
{
    return p->child.wait_status;
}

bool part_has_served(const struct part *p)
{
    return p->has_served;
}

struct span part_last_words(const struct part *p)
{
    return buf_span(&p->words);
}
