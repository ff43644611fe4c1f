#include "runtime/owner.h"

#include "base/log.h"
#include "net/conn.h"
#include "proto/process.pb-c.h"
#include "proto/talk.h"
#include "runtime/sandboxd/command.h"

#define OUT_BYTES                                                                                  \
    (128 * 1024)       /* of frames that wait for the end of the turn; more go out at once */
#define SIGNALS_MAX 64 /* as Linux numbers them */

struct owner {
    struct owner *next;
    struct runtime *rt;
    struct conn *conn;
    struct talk talk;
    size_t preface; /* bytes of it that came */
    struct buf out;
    struct ev_task flush;
    struct call *calls;
    bool is_over;
};

/* One command. */
struct call {
    struct call *next;
    struct runtime *rt;
    struct owner *owner; /* NULL once it is gone, or called it off */
    uint32_t id;
    struct talk_start start; /* until it was started */
    struct command command;
    struct exec *exec;
    size_t used; /* output under way */
};

/* One list per process, like PID 1 itself. */
static struct {
    struct owner *list;
    ev_fn closed, finished;
    void *closed_ctx, *finished_ctx;
} all;

/* ---- sending ---- */

static void flush_now(void *ctx)
{
    struct owner *o = ctx;

    ev_post_cancel(&o->flush);
    if (o->is_over || !o->out.n)
        return;
    conn_write(o->conn, buf_span(&o->out));
    buf_clear(&o->out);
}

/* What happens in one turn leaves in one piece: most commands are started, read and over in one. */
static void flush_soon(struct owner *o)
{
    if (o->out.n > OUT_BYTES)
        flush_now(o);
    else if (!o->flush.is_queued || o->flush.is_canceled)
        ev_post(o->rt->loop, &o->flush, flush_now, o);
}

static void send_frame(struct call *c, enum talk_kind kind, struct span bytes)
{
    struct err e;

    if (!c->owner)
        return;
    (void)talk_add(&c->owner->out, kind, c->id, bytes, &e); /* fits: OUT_BYTES and a frame */
    flush_soon(c->owner);
}

/* ---- a command ---- */

static void call_free(void *obj)
{
    struct call *c = obj;

    talk_start_done(&c->start);
    command_done(&c->command);
    free(c);
}

/* Off the list: its number is unknown from now on. */
static void leave(struct call *c)
{
    struct owner *o = take_ptr(&c->owner);
    struct call **at;

    if (!o)
        return;
    for (at = &o->calls; *at != c; at = &(*at)->next)
        ;
    *at = c->next;
}

static void end(struct call *c)
{
    leave(c);
    ev_free_later(c->rt->loop, c, call_free);
}

static void fail(struct call *c, const struct command_fail *why)
{
    uint8_t bytes[1 + TALK_WORDS_MAX_BYTES] = { (uint8_t)why->status };
    size_t n = strnlen(why->text, TALK_WORDS_MAX_BYTES);

    memcpy(bytes + 1, why->text, n);
    send_frame(c, TALK_FAILED, span_of(bytes, 1 + n));
    end(c);
}

static void on_started(void *ctx, pid_t pid)
{
    struct call *c = ctx;

    log_info("process.start", KV("process", (unsigned)c->id),
             KV("program", (const char *)c->command.program), KV("pid", (int)pid));
    send_frame(c, TALK_STARTED, SPAN_NONE);
}

/* A piece may be as long as they come, and the next one must fit, too. */
static bool is_full(const struct call *c)
{
    return c->used > TALK_WINDOW_BYTES - TALK_PIECE_MAX_BYTES || conn_is_full(c->owner->conn);
}

static void on_output(void *ctx, enum exec_stream which, struct span piece)
{
    struct call *c = ctx;

    if (!c->owner)
        return;
    c->used += piece.n;
    send_frame(c, which == EXEC_STDOUT ? TALK_OUT : TALK_ERR, piece);
    if (is_full(c))
        exec_pause(c->exec);
}

static void on_ended(void *ctx, struct exec_result *r)
{
    struct call *c = ctx;
    uint8_t code = (uint8_t)(r->signal ? 128 + r->signal : r->code);
    struct command_fail why;

    c->exec = NULL;
    log_info("process.exit", KV("process", (unsigned)c->id),
             KV("program", (const char *)c->command.program), KV("code", (int)code),
             KV("failed", (bool)r->fail.step), KV("canceled", r->is_canceled), KV("ms", r->ran_ms));
    if (r->fail.step) {
        command_spawn_failed(&c->command, r->fail, &why);
        fail(c, &why);
        return;
    }
    send_frame(c, TALK_EXIT, span_of(&code, 1));
    end(c);
}

/* The texts are cut in place: "NAME=value" at its first '=', which talk_read_start saw. */
static void cut_vars(struct talk_start *start, Process__V1__ProcessConfig__EnvVarsEntry *vars,
                     Process__V1__ProcessConfig__EnvVarsEntry **list)
{
    for (size_t i = 0; i < start->env_count; i++) {
        char *eq = strchr(start->env[i], '=');

        *eq = '\0';
        process__v1__process_config__env_vars_entry__init(&vars[i]);
        vars[i].key = start->env[i];
        vars[i].value = eq + 1;
        list[i] = &vars[i];
    }
}

static void run(void *ctx)
{
    static const struct exec_ops ops = { on_started, on_output, on_ended };
    struct call *c = ctx;
    struct talk_start *start = &c->start;
    OWN_MEM Process__V1__ProcessConfig__EnvVarsEntry *vars = NULL;
    OWN_MEM Process__V1__ProcessConfig__EnvVarsEntry **list = NULL;
    Process__V1__ProcessConfig config = PROCESS__V1__PROCESS_CONFIG__INIT;
    struct exec_spec spec = {
        .mode = start->has_tty ? EXEC_PTY : EXEC_STREAM,
        .drain_ms = EXEC_SO_FAR, /* the owner goes on, whatever is left in the background */
        .chunk_max = MIN((size_t)c->rt->opt.chunk_size, (size_t)TALK_PIECE_MAX_BYTES),
        .cols = start->cols,
        .rows = start->rows,
    };
    struct command_fail why;

    if (!c->owner) { /* it was looking the directory up meanwhile */
        end(c);
        return;
    }
    if (start->env_count) {
        vars = own_array(start->env_count, sizeof *vars);
        list = own_array(start->env_count, sizeof *list);
        cut_vars(start, vars, list);
    }
    config.command = start->argv;
    config.n_command = start->argc;
    config.env_vars = list;
    config.n_env_vars = start->env_count;
    if (command_start(&c->command, &config, &spec, &ops, c, &c->exec, &why) < 0)
        fail(c, &why);
    talk_start_done(start);
}

static struct call *find(const struct owner *o, uint32_t id)
{
    struct call *c = o->calls;

    while (c && c->id != id)
        c = c->next;
    return c;
}

static int begin(struct owner *o, const struct talk_frame *f, struct err *e)
{
    Process__V1__ProcessConfig config = PROCESS__V1__PROCESS_CONFIG__INIT;
    struct command_fail why;
    struct call *c;

    if (find(o, f->call))
        return err_set(e, ERR_PROTOCOL, "command %u runs already", f->call);
    c = NEW(struct call);
    c->rt = o->rt;
    c->command.cwd_fd = -1;
    if (talk_read_start(f->bytes, &c->start, e) < 0) {
        call_free(c);
        return -1;
    }
    c->owner = o;
    c->id = f->call;
    c->next = o->calls;
    o->calls = c;
    config.command = c->start.argv;
    config.n_command = c->start.argc;
    if (c->start.cwd)
        config.cwd = c->start.cwd;
    if (command_init(&c->command, o->rt,
                     c->start.has_tty ? "failed to start command with PTY"
                                      : "failed to start command",
                     &config, &why) < 0)
        fail(c, &why);
    else if (command_needs_lookup(&c->command))
        command_look_up(&c->command, run, c);
    else
        run(c);
    return 0;
}

/* The owner does not want it any more, or is not there. */
static void abandon(struct call *c)
{
    leave(c);
    if (c->exec)
        exec_cancel(c->exec); /* on_ended follows; else `run` does, when it has looked */
}

/* ---- what the owner says of it ---- */

static void on_written(void *ctx, const struct err *e)
{
    send_frame(ctx, e ? TALK_SHUT : TALK_TAKEN, SPAN_NONE);
}

static void resume(struct call *c)
{
    if (c->exec && !is_full(c))
        exec_resume(c->exec);
}

static int about(struct call *c, const struct talk_frame *f, struct err *e)
{
    uint32_t number = talk_number(f);
    struct err odd;

    switch (f->kind) {
    case TALK_INPUT:
        if (!c->exec || exec_write(c->exec, f->bytes, on_written, c, &odd) < 0)
            send_frame(c, TALK_SHUT, SPAN_NONE);
        break;
    case TALK_END:
        if (c->exec)
            (void)exec_close_stdin(c->exec, &odd); /* closed already is as well */
        break;
    case TALK_SIGNAL:
        if (number == 0 || number > SIGNALS_MAX)
            return err_set(e, ERR_PROTOCOL, "no signal has the number %u", number);
        if (c->exec)
            exec_signal(c->exec, (int)number);
        break;
    case TALK_RESIZE:
        if (c->exec)
            (void)exec_resize(c->exec, (uint16_t)(number >> 16), (uint16_t)number, &odd);
        break;
    case TALK_CREDIT:
        if (number > c->used)
            return err_set(e, ERR_PROTOCOL, "credit for more than was sent");
        c->used -= number;
        resume(c);
        break;
    case TALK_CANCEL:
        abandon(c);
        break;
    case TALK_START:
    case TALK_STARTED:
    case TALK_OUT:
    case TALK_ERR:
    case TALK_TAKEN:
    case TALK_SHUT:
    case TALK_EXIT:
    case TALK_FAILED:
        break; /* START is for begin(); the others are ours, and talk_feed lets none through */
    }
    return 0;
}

/* ---- the connection ---- */

static void owner_free(void *obj)
{
    struct owner *o = obj;

    talk_done(&o->talk);
    buf_done(&o->out);
    free(o);
}

/* True when all of the preface is there, and nothing else was; *in is what follows. */
static bool take_preface(struct owner *o, struct span *in, struct err *e)
{
    struct span piece = span_slice(*in, 0, TALK_PREFACE_BYTES - o->preface);

    if (!span_eq(piece, span_of(TALK_PREFACE + o->preface, piece.n))) {
        (void)err_set(e, ERR_PROTOCOL, "neither HTTP nor a preface that we know");
        return false;
    }
    o->preface += piece.n;
    *in = span_skip(*in, piece.n);
    return true;
}

static int take_frame(struct owner *o, const struct talk_frame *f, struct err *e)
{
    struct call *c;

    if (f->kind == TALK_START)
        return begin(o, f, e);
    c = find(o, f->call);
    return c ? about(c, f, e) : 0; /* it has ended meanwhile, and the owner hears of that */
}

static void on_read(void *ctx, struct span in)
{
    struct owner *o = ctx;
    enum feed verdict = FEED_DONE;
    struct talk_frame f;
    size_t used;
    struct err e;

    if (o->preface < TALK_PREFACE_BYTES && !take_preface(o, &in, &e))
        verdict = FEED_BAD;
    while (verdict == FEED_DONE && o->preface == TALK_PREFACE_BYTES && !o->is_over) {
        verdict = talk_feed(&o->talk, in, &used, &f, &e);
        in = span_skip(in, used);
        if (verdict == FEED_DONE && take_frame(o, &f, &e) < 0)
            verdict = FEED_BAD;
    }
    if (verdict != FEED_BAD)
        return;
    log_warn("owner.nonsense", KV("err", &e));
    conn_close(o->conn);
}

static void on_eof(void *ctx)
{
    struct owner *o = ctx;

    conn_close(o->conn);
}

static void on_drain(void *ctx)
{
    struct owner *o = ctx;

    for (struct call *c = o->calls, *next; c; c = next) {
        next = c->next;
        resume(c);
    }
}

static void tell_finished(void)
{
    ev_fn done = all.finished;

    if (all.list || !done)
        return;
    all.finished = NULL;
    done(all.finished_ctx);
}

static void on_close(void *ctx, const struct err *e)
{
    struct owner *o = ctx;
    struct owner **at = &all.list;

    if (e)
        log_debug("owner.lost", KV("err", e));
    o->is_over = true;
    ev_post_cancel(&o->flush);
    while (o->calls)
        abandon(o->calls);
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    ev_free_later(o->rt->loop, o, owner_free);
    if (all.closed)
        all.closed(all.closed_ctx);
    tell_finished();
}

void owner_take(void *runtime, struct conn *conn, struct span first)
{
    static const struct conn_events events = { on_read, on_eof, on_drain, on_close };
    struct runtime *rt = runtime;
    struct owner *o = NEW(struct owner);

    o->rt = rt;
    o->conn = conn;
    o->out.max = OUT_BYTES + TALK_HEAD_BYTES + TALK_PIECE_MAX_BYTES;
    talk_init(&o->talk, TALK_OWNER);
    o->next = all.list;
    all.list = o;
    conn_set_events(conn, &events, o);
    on_read(o, first);
}

void owner_on_closed(ev_fn fn, void *ctx)
{
    all.closed = fn;
    all.closed_ctx = ctx;
}

void owner_finish(ev_fn done, void *ctx)
{
    all.finished = done;
    all.finished_ctx = ctx;
    for (struct owner *o = all.list; o; o = o->next) {
        flush_now(o);
        conn_finish(o->conn);
    }
    tell_finished();
}
