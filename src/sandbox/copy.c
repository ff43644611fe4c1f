#include "sandbox/copy.h"

#include "archive/limits.h"
#include "archive/unpack.h"
#include "sandbox/limits.h"
#include "sandbox/line.h"

#define SELF   "/proc/self/exe" /* PID 1 has just forked there: its own program, in any root */
#define PREFIX "silica-runtime: "

struct sandbox_copy {
    struct ev_loop *loop;
    struct sandbox_exec *exec; /* NULL once it has ended */
    struct pack *pack;         /* inward */
    struct unpack *unpack;     /* outward */
    bool is_read;              /* inward: all of ours was sent */
    bool is_cut;               /* inward: it will never be */
    struct buf said;           /* standard error of the other side, as much as anybody reads */
    struct err why;            /* our side failed, or it was called off; code ERR_NONE: not so */
    sandbox_copy_fn on_done;
    void *ctx;
};

static void copy_free(void *obj)
{
    struct sandbox_copy *c = obj;

    pack_free(c->pack);
    unpack_free(c->unpack);
    buf_done(&c->said);
    free(c);
}

void sandbox_copy_command(bool is_out, const char *inside, const char *top, const char *ret[5])
{
    ret[0] = SELF;
    ret[1] = is_out ? "pack" : "unpack";
    ret[2] = inside;
    ret[3] = is_out ? NULL : top;
    ret[4] = NULL;
}

/* ---- inward: our archive is the command's input ---- */

static void cut(struct sandbox_copy *c)
{
    c->is_cut = true;
    if (c->exec)
        sandbox_exec_close_stdin(c->exec); /* an archive without its end: the other side gives up */
}

static void send_more(struct sandbox_copy *c)
{
    OWN(buf_done) struct buf piece = BUF_INIT(4 * ARCHIVE_PIECE_BYTES);
    size_t took;
    int more = 1;

    while (more > 0 && !c->is_read && !c->is_cut && !sandbox_exec_is_full(c->exec)) {
        buf_clear(&piece);
        more = pack_read(c->pack, &piece, &c->why);
        if (more < 0) {
            cut(c);
            return;
        }
        took = sandbox_exec_write(c->exec, buf_span(&piece));
        assert(took == piece.n); /* a piece fits into a queue that is not full */
        c->is_read = more == 0;
        if (c->is_read)
            sandbox_exec_close_stdin(c->exec);
    }
}

static void on_started(void *ctx)
{
    struct sandbox_copy *c = ctx;

    if (c->pack)
        send_more(c);
}

static void on_drain(void *ctx, bool is_open)
{
    struct sandbox_copy *c = ctx;

    if (is_open && c->pack)
        send_more(c);
}

/* ---- outward: its output is an archive ---- */

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct sandbox_copy *c = ctx;

    if (which == SANDBOX_STDERR)
        (void)buf_add_capped(&c->said, piece);
    else if (c->unpack && !c->why.code && unpack_feed(c->unpack, piece, &c->why) < 0)
        sandbox_exec_cancel(c->exec);
}

/* ---- the end ---- */

/* What the other side said, a line at a time and fit for a terminal. */
static void take_line(struct span *rest, struct buf *line)
{
    struct span raw = SPAN_NONE;

    (void)span_cut(rest, '\n', &raw);
    if (span_starts(raw, PREFIX))
        raw = span_skip(raw, strlen(PREFIX));
    line_clean_text(raw, line);
}

static void failed_inside(const struct sandbox_copy *c, int code, struct err *e)
{
    OWN(buf_done) struct buf first = BUF_INIT(sizeof e->msg - 1);
    OWN(buf_done) struct buf second = BUF_INIT(sizeof e->hint - 1);
    struct span rest = buf_span(&c->said);

    take_line(&rest, &first);
    take_line(&rest, &second);
    if (first.n)
        (void)err_set(e, ERR_CONFLICT, "in the sandbox: %s", buf_cstr(&first));
    else
        (void)err_set(e, ERR_CONFLICT, "in the sandbox: the copy ended with code %d", code);
    if (span_starts(buf_span(&second), "hint: "))
        err_hint(e, "%s", buf_cstr(&second) + strlen("hint: "));
}

/* The other side says all is well. Is it? */
static int check_whole(struct sandbox_copy *c, struct err *e)
{
    if (c->unpack)
        return unpack_finish(c->unpack, e);
    if (!c->is_read)
        return err_set(e, ERR_PROTOCOL, "the sandbox did not read all of it");
    return 0;
}

static void on_exit_of(void *ctx, int code, const struct err *e)
{
    struct sandbox_copy *c = ctx;
    OWN(buf_done) struct buf note = BUF_INIT(sizeof c->why.msg - 1);
    struct span said = buf_span(&c->said);

    c->exec = NULL;
    if (!c->why.code && e)
        c->why = *e;
    else if (!c->why.code && code)
        failed_inside(c, code, &c->why);
    else if (!c->why.code)
        (void)check_whole(c, &c->why);
    take_line(&said, &note);
    c->on_done(c->ctx, buf_cstr(&note), c->why.code ? &c->why : NULL);
    ev_free_later(c->loop, c, copy_free);
}

void sandbox_copy_cancel(struct sandbox_copy *c)
{
    bool is_first = !c->why.code;

    if (!c->exec)
        return;
    if (is_first)
        (void)err_set(&c->why, ERR_CANCELED, "the copy was called off");
    if (is_first && c->pack && !c->is_read)
        cut(c);
    else
        sandbox_exec_cancel(c->exec);
}

/* ---- the start ---- */

static int open_ours(struct sandbox_copy *c, const struct sandbox_copy_spec *spec, struct err *e)
{
    struct unpack_spec to = { spec->outside, pack_top(spec->inside), spec->max_bytes,
                              spec->max_entries };

    return spec->is_out ? unpack_open(&to, &c->unpack, e) : pack_open(spec->outside, &c->pack, e);
}

static int start(struct sandbox *s, struct sandbox_copy *c, const struct sandbox_copy_spec *spec,
                 struct err *e)
{
    static const struct sandbox_exec_events events = { on_started, on_output, on_drain,
                                                       on_exit_of };
    OWN_MEM char *top = span_dup(pack_top(spec->outside));
    const char *argv[5];
    struct sandbox_exec_spec exec = {
        .argv = (char **)(uintptr_t)argv, .cwd = spec->cwd, .events = &events, .ctx = c
    };

    sandbox_copy_command(spec->is_out, spec->inside, top, argv);
    return sandbox_exec(s, &exec, &c->exec, e);
}

int sandbox_copy(struct sandbox *s, const struct sandbox_copy_spec *spec, struct sandbox_copy **ret,
                 struct err *e)
{
    struct sandbox_copy *c = NEW(struct sandbox_copy);

    c->loop = sandbox_loop(s);
    c->on_done = spec->on_done;
    c->ctx = spec->ctx;
    c->said.max = SANDBOX_SAID_MAX_BYTES;
    if (open_ours(c, spec, e) < 0 || start(s, c, spec, e) < 0) {
        copy_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

const struct archive_counts *sandbox_copy_counts(const struct sandbox_copy *c)
{
    return c->unpack ? unpack_counts(c->unpack) : pack_counts(c->pack);
}
