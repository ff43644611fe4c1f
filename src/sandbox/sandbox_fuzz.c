/* What a lying PID 1 can make of us: the input is all it ever sends. A command is started, given input, signals and a new
 * size, and must end exactly once, the same way wherever the stream is cut. */
#include "sandbox/sandbox.h"

#include "base/fd.h"

#include <signal.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (64 * 1024) /* less than a socket holds: writing to it does not block */
#define SEEN_MAX_BYTES  (1024 * 1024)
#define TURNS_MAX       64

struct outcome {
    int started, ended, code;
    enum err_code error;
    struct buf seen[2];
};

static void on_started(void *ctx)
{
    struct outcome *o = ctx;

    assert(o->started++ == 0 && !o->ended);
}

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct outcome *o = ctx;

    assert(o->started && !o->ended && piece.n);
    (void)buf_add_capped(&o->seen[which], piece);
}

static void on_drain(void *ctx, bool is_open)
{
    struct outcome *o = ctx;

    (void)is_open;
    assert(!o->ended);
}

static void on_exit_of(void *ctx, int code, const struct err *e)
{
    struct outcome *o = ctx;

    assert(o->ended++ == 0 && code >= 0 && code <= 255);
    o->code = code;
    o->error = e ? e->code : ERR_NONE;
}

static void turn(struct ev_loop *loop)
{
    for (int i = 0; i < 6; i++)
        ev_loop_turn(loop);
}

static void feed(struct ev_loop *loop, int fd, struct span bytes)
{
    struct err e;

    if (bytes.n && fd_write_all(fd, bytes, &e) < 0)
        return; /* they hung up on it, and rightly */
    turn(loop);
}

static void live(struct span says, size_t cut, struct outcome *o)
{
    static const struct sandbox_exec_events events = { on_started, on_output, on_drain,
                                                       on_exit_of };
    struct sandbox_exec_spec spec = {
        .argv = (char *[]){ (char *)"true", NULL }, .has_tty = true, .events = &events, .ctx = o
    };
    struct ev_loop *loop;
    struct sandbox *box;
    struct sandbox_exec *x;
    struct err e;
    int pair[2];

    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    assert(ev_loop_new(&loop, &e) == 0);
    assert(sandbox_open(loop, pair[0], &box, &e) == 0);
    assert(sandbox_exec(box, &spec, &x, &e) == 0);
    (void)!sandbox_exec_write(x, SPAN("input"));
    sandbox_exec_close_stdin(x);
    sandbox_exec_signal(x, SIGTERM);
    sandbox_exec_resize(x, 80, 25);
    turn(loop);
    feed(loop, pair[1], span_slice(says, 0, cut));
    feed(loop, pair[1], span_skip(says, cut));
    (void)shutdown(pair[1], SHUT_WR);
    for (int i = 0; i < TURNS_MAX && !o->ended; i++)
        ev_loop_turn(loop);
    assert(o->ended == 1);
    sandbox_close(box);
    turn(loop);
    ev_loop_free(loop);
    (void)close(pair[1]);
}

static void outcome_done(struct outcome *o)
{
    buf_done(&o->seen[0]);
    buf_done(&o->seen[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(outcome_done)
    struct outcome whole = { .seen = { BUF_INIT(SEEN_MAX_BYTES), BUF_INIT(SEEN_MAX_BYTES) } };
    OWN(outcome_done)
    struct outcome cut = { .seen = { BUF_INIT(SEEN_MAX_BYTES), BUF_INIT(SEEN_MAX_BYTES) } };
    struct span says;

    (void)signal(SIGPIPE, SIG_IGN);
    if (size < 1 || size > INPUT_MAX_BYTES)
        return 0;
    says = span_of(data + 1, size - 1); /* the first byte says where to cut */
    live(says, says.n, &whole);
    live(says, says.n * data[0] / 256, &cut);
    assert(whole.started == cut.started && whole.code == cut.code);
    assert(!whole.error == !cut.error);
    assert(span_eq(buf_span(&whole.seen[0]), buf_span(&cut.seen[0])));
    assert(span_eq(buf_span(&whole.seen[1]), buf_span(&cut.seen[1])));
    return 0;
}
