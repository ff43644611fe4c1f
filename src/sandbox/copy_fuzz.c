/* What a lying PID 1 can make of a copy: the input is all it ever sends. First byte: where the stream is cut. The copy ends
 * exactly once, the same way however it is cut; what it made is below the destination, under the name that was asked for,
 * and nothing temporary stays. */
#include "sandbox/copy.h"

#include "base/fd.h"
#include "base/scratch.h"

#include <signal.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (64 * 1024) /* less than a socket holds: writing to it does not block */
#define TURNS_MAX       64

struct outcome {
    int ended;
    enum err_code error;
    unsigned made;
};

static void on_done(void *ctx, const char *note, const struct err *e)
{
    struct outcome *o = ctx;

    assert(o->ended++ == 0);
    for (const char *p = note; *p; p++)
        assert((uint8_t)*p >= ' ' && *p != 0x7f);
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

static void check_made(const struct scratch *s, struct outcome *o)
{
    o->made = scratch_count(s, "out");
    assert(scratch_count(s, "") == 1);
    assert(o->made == (scratch_has(s, "out/t") ? 1 : 0));
    assert(o->error || o->made);
}

static void live(struct span says, size_t cut, struct outcome *o)
{
    struct sandbox_copy_spec spec = { .is_out = true,
                                      .inside = "/t",
                                      .max_bytes = 1024 * 1024,
                                      .max_entries = 64,
                                      .on_done = on_done,
                                      .ctx = o };
    struct sandbox_copy *copy;
    struct scratch s;
    struct ev_loop *loop;
    struct sandbox *box;
    struct err e;
    int pair[2];

    scratch_make(&s);
    scratch_dir(&s, "out");
    spec.outside = scratch_path(&s, "out");
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    assert(ev_loop_new(&loop, &e) == 0);
    assert(sandbox_open(loop, pair[0], &box, &e) == 0);
    assert(sandbox_copy(box, &spec, &copy, &e) == 0);
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
    check_made(&s, o);
    scratch_remove(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = { 0 }, cut = { 0 };
    struct span says;

    (void)signal(SIGPIPE, SIG_IGN);
    if (size < 1 || size > INPUT_MAX_BYTES)
        return 0;
    says = span_of(data + 1, size - 1);
    live(says, says.n, &whole);
    live(says, says.n * data[0] / 256, &cut);
    assert(!whole.error == !cut.error);
    assert(whole.made == cut.made);
    return 0;
}
