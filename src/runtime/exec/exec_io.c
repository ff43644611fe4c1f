#include "runtime/exec/exec_inside.h"

#include "base/log.h"
#include "ev/limits.h"

#include <errno.h>
#include <sys/ioctl.h>

/* Then the others have their turn: a command that floods us is one of many */
#define READS_PER_TURN 16

bool exec_out_is_open(const struct exec *x)
{
    return x->out[0].fd >= 0 || x->out[1].fd >= 0;
}

static void close_now(void *obj)
{
    int fd = (int)(intptr_t)obj;

    own_fd_close(&fd);
}

/* When the command has ended its owner waits for the answer, which goes out in the next turn: what closing the last
 * end of a pipe costs, the kernel's freeing of it, comes right behind that. */
static void close_end(struct exec *x, int *fd)
{
    int spent = take_fd(fd);

    if (spent < 0)
        return;
    if (x->state >= EXEC_DRAINING)
        ev_free_later(x->pool->loop, (void *)(intptr_t)spent, close_now);
    else
        own_fd_close(&spent);
}

void exec_out_close(struct exec *x, size_t which)
{
    ev_io_close(&x->out[which].io);
    close_end(x, &x->out[which].fd);
}

/* Keeps what fits under both ceilings. */
static void keep(struct exec *x, struct exec_out *o, struct span piece)
{
    size_t room = SIZE_MAX, held = x->out[0].kept.n + x->out[1].kept.n;

    if (x->both_max)
        room = x->both_max > held ? x->both_max - held : 0;
    if (buf_add_capped(&o->kept, span_slice(piece, 0, room)) || piece.n > room)
        o->is_cut = true;
}

static void take(struct exec *x, size_t which, struct span piece)
{
    struct exec_out *o = &x->out[which];

    o->total += piece.n;
    if (!x->ops)
        return; /* nobody wants it any more */
    if (!exec_is_streamed(x)) {
        keep(x, o, piece);
        return;
    }
    exec_tell_started(x);
    if (x->ops)
        x->ops->on_output(x->ctx, (enum exec_stream)which, piece);
}

void exec_out_read(struct exec *x, size_t which)
{
    struct exec_out *o = &x->out[which];
    uint8_t *scratch = ev_scratch(x->pool->loop);
    size_t most = exec_is_streamed(x) && x->ops ? MIN(x->chunk_max, (size_t)EV_SCRATCH_BYTES)
                                                : EV_SCRATCH_BYTES;

    for (int i = 0; i < READS_PER_TURN && o->fd >= 0 && !x->is_paused; i++) {
        ssize_t n = read(o->fd, scratch, most);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) { /* EIO is how a terminal says that its last user is gone */
            exec_out_close(x, which);
            return;
        }
        o->last_bytes -= MIN((uint64_t)n, o->last_bytes);
        take(x, which, span_of(scratch, (size_t)n)); /* may pause, cancel, detach, close stdin */
        if (o->has_last && !o->last_bytes)
            exec_out_close(x, which);
    }
}

void exec_out_limit(struct exec *x, size_t which)
{
    struct exec_out *o = &x->out[which];
    int n = 0;

    if (o->fd < 0 || ioctl(o->fd, FIONREAD, &n) < 0)
        return;
    o->has_last = true;
    o->last_bytes = (uint64_t)n;
    if (n == 0)
        exec_out_close(x, which);
}

static void on_out(struct exec *x, size_t which)
{
    exec_out_read(x, which);
    if (x->out[which].fd < 0)
        exec_settle(x);
}

static void on_stdout(void *ctx, unsigned ready)
{
    (void)ready;
    on_out(ctx, EXEC_STDOUT);
}

static void on_stderr(void *ctx, unsigned ready)
{
    (void)ready;
    on_out(ctx, EXEC_STDERR);
}

void exec_out_open(struct exec *x)
{
    static const ev_io_fn fns[2] = { on_stdout, on_stderr };
    struct err e;

    for (size_t i = 0; i < 2; i++) {
        struct exec_out *o = &x->out[i];

        if (o->fd < 0)
            continue;
        if (!ev_io_is_open(&o->io) && ev_io_open(&o->io, x->pool->loop, o->fd, fns[i], x, &e) < 0) {
            log_warn("exec.output", KV("pid", x->pid), KV("err", &e));
            exec_out_close(x, i); /* the command sees a closed pipe: better than one nobody reads */
            continue;
        }
        ev_io_want(&o->io, x->is_paused ? 0 : EV_READ);
    }
}

void exec_pause(struct exec *x)
{
    if (x->is_paused || !exec_is_streamed(x))
        return;
    x->is_paused = true;
    for (size_t i = 0; i < 2; i++)
        ev_io_want(&x->out[i].io, 0);
}

/* Takes the first of the queue out; its owner hears of it. */
static void end_write(struct exec *x, const struct err *e)
{
    struct exec_in *w = x->in_head;

    x->in_head = w->next;
    if (!x->in_head)
        x->in_tail = NULL;
    x->in_bytes -= w->bytes.n;
    if (w->done)
        w->done(w->ctx, e);
    buf_done(&w->bytes);
    free(w);
}

void exec_in_close(struct exec *x)
{
    struct err e;

    ev_post_cancel(&x->in_task);
    ev_io_close(&x->in_io);
    close_end(x, &x->in_fd);
    x->is_in_closing = true;
    if (x->in_head)
        (void)err_set(&e, ERR_CLOSED, "failed to write stdin: it was closed");
    while (x->in_head)
        end_write(x, &e);
}

static void on_in(void *ctx, unsigned ready);

/* The pipe is full: told when there is room. */
static void await_room(struct exec *x)
{
    struct err e;

    if (!ev_io_is_open(&x->in_io) &&
        ev_io_open(&x->in_io, x->pool->loop, x->in_fd, on_in, x, &e) < 0) {
        log_warn("exec.input", KV("pid", x->pid), KV("err", &e));
        exec_in_close(x);
        return;
    }
    ev_io_want(&x->in_io, EV_WRITE);
}

static void flush(void *ctx)
{
    struct exec *x = ctx;

    while (x->in_fd >= 0 && x->in_head) {
        struct exec_in *w = x->in_head;
        struct span rest = span_skip(buf_span(&w->bytes), w->sent);
        ssize_t n = rest.n ? write(x->in_fd, rest.p, rest.n) : 0;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            await_room(x);
            return;
        }
        if (n < 0) {
            struct err e;

            (void)err_sys(&e, "failed to write stdin");
            e.code = ERR_CLOSED;
            end_write(x, &e);
            exec_in_close(x);
            return;
        }
        w->sent += (size_t)n;
        if (w->sent == w->bytes.n)
            end_write(x, NULL);
    }
    if (x->in_fd < 0)
        return;
    ev_io_want(&x->in_io, 0);
    if (x->is_in_closing)
        exec_in_close(x);
}

static void on_in(void *ctx, unsigned ready)
{
    (void)ready;
    flush(ctx);
}

static void flush_soon(struct exec *x)
{
    if (x->state == EXEC_RUNNING && (!x->in_task.is_queued || x->in_task.is_canceled))
        ev_post(x->pool->loop, &x->in_task, flush, x);
}

void exec_in_begin(struct exec *x)
{
    if (x->is_in_closing && x->mode == EXEC_PTY)
        exec_out_close(x, EXEC_STDOUT);
    if (x->is_in_closing && (x->mode == EXEC_PTY || !x->in_head))
        exec_in_close(x);
    else if (x->in_head)
        flush_soon(x);
}

int exec_write(struct exec *x, struct span bytes, exec_write_fn done, void *ctx, struct err *e)
{
    struct exec_in *w;

    if (!exec_is_streamed(x))
        return err_set(e, ERR_UNSUPPORTED, "this command has no stdin to write to");
    if (x->is_in_closing || x->state > EXEC_RUNNING)
        return err_set(e, ERR_CLOSED, "failed to write stdin: it is closed");
    if (bytes.n > EXEC_STDIN_MAX_BYTES - x->in_bytes)
        return err_set(e, ERR_LIMIT, "%zu bytes wait for the command to read; at most %d may",
                       x->in_bytes, EXEC_STDIN_MAX_BYTES);
    w = NEW(struct exec_in);
    *w = (struct exec_in){ .bytes = BUF_INIT(EXEC_STDIN_MAX_BYTES), .done = done, .ctx = ctx };
    if (buf_add(&w->bytes, bytes, e) < 0) {
        free(w);
        return -1;
    }
    if (x->in_tail)
        x->in_tail->next = w;
    else
        x->in_head = w;
    x->in_tail = w;
    x->in_bytes += w->bytes.n;
    flush_soon(x);
    return 0;
}

void exec_write_forget(struct exec *x, void *ctx)
{
    for (struct exec_in *w = x->in_head; w; w = w->next) {
        if (w->ctx != ctx || !w->done)
            continue;
        w->done = NULL;
        x->in_bytes -= w->bytes.n - w->sent;
        w->bytes.n = w->sent; /* the rest is not sent; flush sees it finished */
    }
}

int exec_close_stdin(struct exec *x, struct err *e)
{
    if (!exec_is_streamed(x))
        return err_set(e, ERR_UNSUPPORTED, "this command has no stdin to close");
    if (x->is_in_closing || x->state > EXEC_RUNNING)
        return err_set(e, ERR_CLOSED, "stdin is closed already");
    x->is_in_closing = true;
    if (x->state == EXEC_RUNNING)
        exec_in_begin(x); /* closes now, or goes on sending; before it runs, on_spawned does this */
    return 0;
}
