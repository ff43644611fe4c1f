#include "isolate/keeper_impl.h"

#include "base/lastwords.h"
#include "base/log.h"
#include "base/str.h"
#include "isolate/id_range.h"
#include "base/time.h"
#include "isolate/limits.h"
#include "isolate/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define DOSE_BYTES (16 * 1024) /* of output read at once */
#define DOSE_REST_MS                                                                               \
    4 /* after a full one: 4 MiB a second; the command waits in its pipe meanwhile */
#define DRAIN_DOSES                                                                                \
    8 /* what a pipe may still hold when PID 1 has ended: 64 KiB, and room to spare */
#define CLEAN_STEP_MS    2  /* between two looks whether a cgroup is empty */
#define STATUS_MAX_BYTES 64 /* two short lines of PID 1 */

static const char *const stream_names[] = { "stdout", "stderr" };

/* ---- the table ---- */

static struct kept **bucket_of(struct keeper *k, const char *name)
{
    uint32_t hash = 2166136261u;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return &k->buckets[hash % KEEPER_BUCKETS];
}

struct kept *kept_find(struct keeper *k, const char *name)
{
    struct kept *b = *bucket_of(k, name);

    while (b && strcmp(b->run.box.name, name) != 0)
        b = b->next;
    return b;
}

static void kept_free(void *obj)
{
    struct kept *b = obj;

    buf_done(&b->spec_text);
    buf_done(&b->status_text);
    buf_done(&b->message);
    free(b);
}

static void close_pipe(struct kept_pipe *p)
{
    ev_timer_stop(p->box->keeper->loop, &p->rest);
    ev_io_close(&p->io);
    own_fd_close(&p->fd);
}

static void close_all(struct kept *b)
{
    close_pipe(&b->out[0]);
    close_pipe(&b->out[1]);
    ev_io_close(&b->status_io);
    own_fd_close(&b->status_fd);
    for (int i = 0; i < SPAWNER_FDS; i++)
        own_fd_close(&b->fds[i]);
}

/* Out of the table and gone; its directory is another matter. */
static void forget(struct kept *b)
{
    struct keeper *k = b->keeper;
    struct kept **at = bucket_of(k, b->run.box.name);

    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    ev_timer_stop(k->loop, &b->timeout);
    ev_timer_stop(k->loop, &b->cleaning);
    close_all(b);
    id_range_release(id_ranges_of_machine(), b->ids_base);
    k->box_count--;
    ev_free_later(k->loop, b, kept_free);
    keeper_rest(k);
}

/* ---- who waits for it ---- */

static void answer_waiters(struct kept *b, enum wire_op op, const struct wire_answer *a)
{
    struct client *next;

    for (struct client *c = b->keeper->clients; c; c = next) {
        next = c->next;
        if (c->waits_for == b && c->op == op)
            client_answer(c, a);
    }
}

static void tell_created(struct kept *b, const struct err *e)
{
    struct client *creator = take_ptr(&b->creator);
    struct wire_answer a = { .is_error = e != NULL };

    b->keeper->has_failed = e != NULL;
    if (!creator)
        return;
    if (e)
        a.e = *e;
    a.has_exit = e && b->has_exit;
    a.exit = b->exit;
    memcpy(a.name, b->run.box.name, sizeof a.name);
    memcpy(a.unenforced, b->run.unenforced, sizeof a.unenforced);
    client_answer(creator, &a);
}

static void tell_exit(struct kept *b)
{
    struct wire_answer a = { .has_exit = true, .exit = b->exit };

    memcpy(a.name, b->run.box.name, sizeof a.name);
    answer_waiters(b, WIRE_WAIT, &a);
}

/* ---- output ---- */

static void add_to_log(struct kept *b, const char *stream, struct span piece)
{
    OWN_FD int fd = -1;
    struct err e;

    if (dir_open_box(&b->keeper->dir, b->run.box.name, &fd, &e) == 0 &&
        logfile_add(fd, stream, piece, &e) == 0) {
        b->is_log_broken = false;
        return;
    }
    if (!b->is_log_broken) /* a full disk: what comes meanwhile is dropped, and the command goes on */
        log_warn("box.log", KV("sandbox", (const char *)b->run.box.name), KV("err", &e));
    b->is_log_broken = true;
}

/* Last words come alone, when all else was read, on the stream of errors. Anybody inside could say the same: they are
 * the sandbox's own words either way. What is behind them is output. */
static struct span take_message(struct kept_pipe *p, struct span dose)
{
    struct kept *b = p->box;
    struct span words;
    struct err unused;

    if (!b->has_message || p != &b->out[1] || !lastwords_read(&dose, &words))
        return dose;
    buf_clear(&b->message);
    (void)buf_add(&b->message, words, &unused); /* no more than it has room for */
    return dose;
}

/* One dose; false when there is nothing now, or never again. */
static bool read_dose(struct kept_pipe *p)
{
    struct kept *b = p->box;
    uint8_t *dose = ev_scratch(b->keeper->loop);
    struct span said;
    ssize_t n = read(p->fd, dose, DOSE_BYTES);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_pipe(p);
    if (n <= 0)
        return false;
    said = take_message(p, span_of(dose, (size_t)n));
    if (said.n)
        add_to_log(b, stream_names[p - b->out], said);
    return n == DOSE_BYTES;
}

static void rested(void *ctx)
{
    struct kept_pipe *p = ctx;

    ev_io_want(&p->io, EV_READ);
}

static void on_output(void *ctx, unsigned ready)
{
    struct kept_pipe *p = ctx;

    (void)ready;
    if (!read_dose(p))
        return;
    ev_io_want(&p->io, 0);
    ev_timer_start(p->box->keeper->loop, &p->rest, DOSE_REST_MS, rested, p);
}

/* What a command wrote before it ended is in the log before its end is told: who follows the log stops there. */
static void catch_up(struct kept_pipe *p)
{
    for (int i = 0; i < DRAIN_DOSES && p->fd >= 0 && read_dose(p); i++)
        continue;
}

/* PID 1 has ended and all of its namespace with it. Should somebody else hold the other end still, we do not wait for it. */
static void drain(struct kept_pipe *p)
{
    catch_up(p);
    close_pipe(p);
}

/* ---- the end ---- */

static void record_exit(struct kept *b)
{
    OWN_FD int fd = -1;
    struct err e;

    b->exit.is_oom = b->exit.code != 0 && (b->is_over_memory || cgroup_ran_out(&b->run.box.cgroup));

    if (dir_open_box(&b->keeper->dir, b->run.box.name, &fd, &e) < 0 ||
        (b->message.n && dir_write(fd, DIR_MESSAGE, buf_span(&b->message), &e) < 0) ||
        state_put_exit(fd, &b->exit, &e) < 0)
        log_error("box.exit", KV("sandbox", (const char *)b->run.box.name), KV("err", &e));
}

static void remove_dir(struct kept *b, struct wire_answer *ret)
{
    if (dir_remove_box(&b->keeper->dir, b->run.box.name, &ret->e) == 0)
        return;
    ret->is_error = true;
    log_error("box.remove", KV("sandbox", (const char *)b->run.box.name), KV("err", &ret->e));
}

/* The last task of a group is still leaving it when its death has been told. */
static void clean(void *ctx)
{
    struct kept *b = ctx;
    struct wire_answer a = { 0 };

    if (!cgroup_remove(&b->run.box.cgroup) && ev_now_ms(b->keeper->loop) < b->clean_until_ms) {
        ev_timer_start(b->keeper->loop, &b->cleaning, CLEAN_STEP_MS, clean, b);
        return;
    }
    if (!b->is_kept || b->is_removing)
        remove_dir(b, &a);
    memcpy(a.name, b->run.box.name, sizeof a.name);
    answer_waiters(b, WIRE_REMOVE, &a);
    forget(b);
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void say_not_started(struct kept *b)
{
    bool is_command = b->exit.code == 127 || b->exit.code == 126; /* as a shell has it */
    struct err e;

    b->has_exit = is_command;
    (void)err_set(&e, is_command ? ERR_INVALID : ERR_CLOSED, "sandbox '%s' %s", b->run.box.name,
                  is_command ? "cannot run its command" : "ended while it was started");
    b->is_kept = false; /* it never was */
    tell_created(b, &e);
}

static void box_ended(void *ctx)
{
    struct kept *b = ctx;

    drain(&b->out[0]);
    drain(&b->out[1]);
    if (!b->has_exit) {
        bool is_late = b->exit.end == STATE_TIMED_OUT;

        b->exit.code = is_late ? 124 : code_of(b->child.wait_status);
        b->exit.ended_ms = time_wall_ms();
        b->has_exit = true;
    }
    if (b->state == KEPT_STARTED)
        say_not_started(b);
    b->state = KEPT_ENDED;
    ev_timer_stop(b->keeper->loop, &b->timeout);
    close_all(b);
    if (b->is_kept && !b->is_removing)
        record_exit(b);
    tell_exit(b);
    b->clean_until_ms = ev_now_ms(b->keeper->loop) + BOX_FREEZE_TIMEOUT_MS;
    ev_timer_start(b->keeper->loop, &b->cleaning, 0, clean, b);
}

void kept_kill(struct kept *b)
{
    struct err ignored;

    if (b->state != KEPT_STARTED && b->state != KEPT_UP)
        return; /* not yet, or not any more */
    if (!cgroup_kill(&b->run.box.cgroup))
        (void)kill(b->run.box.pid,
                   SIGKILL); /* a child that was not reaped: the number is its own */
    if (*b->run.box.cgroup.dirs[CGROUP_FREEZER]) /* v1 does not let the frozen die */
        (void)cgroup_freeze(&b->run.box.cgroup, false, &ignored);
}

static void on_timeout(void *ctx)
{
    struct kept *b = ctx;

    if (!b->has_exit)
        b->exit.end = STATE_TIMED_OUT;
    kept_kill(b);
}

/* ---- the beginning ---- */

static void go_up(struct kept *b)
{
    b->state = KEPT_UP;
    if (b->timeout_ms)
        ev_timer_start(b->keeper->loop, &b->timeout, b->timeout_ms, on_timeout, b);
    if (b->is_removing || b->keeper->is_stopping)
        kept_kill(b);
    tell_created(b, NULL);
}

/* "exit N": its command has ended, and PID 1 stays. */
static void take_exit(struct kept *b, struct span number)
{
    uint64_t code;

    if (b->has_exit || !str_u64(number, 255, &code))
        return;
    b->has_exit = true;
    b->exit.code = (int)code;
    b->exit.ended_ms = time_wall_ms();
    ev_timer_stop(b->keeper->loop, &b->timeout);
    catch_up(&b->out[0]);
    catch_up(&b->out[1]);
    record_exit(b);
    tell_exit(b);
}

static void on_status(void *ctx, unsigned ready)
{
    struct kept *b = ctx;
    char text[STATUS_MAX_BYTES];
    struct span rest, line;
    ssize_t n = read(b->status_fd, text, sizeof text);

    (void)ready;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* the end: it said all it had to, or PID 1 is ending */
        ev_io_close(&b->status_io);
        own_fd_close(&b->status_fd);
        return;
    }
    (void)buf_add_capped(&b->status_text, span_of(text, (size_t)n));
    for (rest = buf_span(&b->status_text); span_find(rest, '\n') != SIZE_MAX;) {
        (void)span_cut(&rest, '\n', &line);
        if (span_starts(line, "started") && b->state == KEPT_STARTED)
            go_up(b);
        else if (span_starts(line, "exit "))
            take_exit(b, span_skip(line, 5));
    }
    buf_consume(&b->status_text, b->status_text.n - rest.n);
}

/* It could not be made: nothing of it stays. */
static void give_up(struct kept *b, const struct err *e)
{
    struct wire_answer a = { 0 };

    tell_created(b, e);
    remove_dir(b, &a);
    answer_waiters(b, WIRE_REMOVE, &a);
    a = (struct wire_answer){ .is_error = true, .e = *e };
    answer_waiters(b, WIRE_WAIT, &a);
    forget(b);
}

static int record_run(struct kept *b, struct err *e)
{
    OWN_FD int fd = -1;

    return dir_open_box(&b->keeper->dir, b->run.box.name, &fd, e) < 0
               ? -1
               : state_put_run(fd, &b->run, e);
}

void kept_made(struct kept *b, const struct spawner_answer *answer)
{
    struct err e;

    if (!answer->is_made) {
        give_up(b, &answer->e);
        return;
    }
    for (int i = 0; i < SPAWNER_FDS; i++)
        own_fd_close(&b->fds[i]);
    buf_done(&b->spec_text);
    b->run.box = answer->box;
    b->run.created_ms = time_wall_ms();
    memcpy(b->run.unenforced, answer->unenforced, sizeof b->run.unenforced);
    b->state = KEPT_STARTED;
    ev_child_watch(b->keeper->kids, &b->child, b->run.box.pid, box_ended, b);
    if (record_run(b, &e) < 0) {
        (void)err_wrap(&e, "sandbox '%s'", b->run.box.name);
        tell_created(b, &e);
        b->is_kept = false;
        kept_kill(b);
    } else if (!b->has_command || b->is_removing || b->keeper->is_stopping) {
        go_up(b);
    } else {
        ev_io_want(&b->status_io, EV_READ);
    }
}

void kept_disown(struct kept *b)
{
    b->creator = NULL;
    b->is_removing = true;
    kept_kill(b);
}

void kept_kill_all(struct keeper *k)
{
    for (size_t i = 0; i < LEN(k->buckets); i++)
        for (struct kept *b = k->buckets[i]; b; b = b->next)
            kept_kill(b);
}

/* ---- asked for ---- */

static int open_pipe(struct kept *b, int which, struct err *e)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe for the output");
    b->out[which].fd = fds[0];
    b->fds[SPAWNER_OUT + which] = fds[1];
    if (ev_io_open(&b->out[which].io, b->keeper->loop, fds[0], on_output, &b->out[which], e) < 0)
        return -1;
    ev_io_want(&b->out[which].io, EV_READ);
    return 0;
}

static int open_status(struct kept *b, struct err *e)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe for PID 1");
    b->status_fd = fds[0];
    b->fds[SPAWNER_STATUS] = fds[1];
    /* Read once it is made: PID 1 is quick, and may be heard before the spawner. */
    return ev_io_open(&b->status_io, b->keeper->loop, fds[0], on_status, b, e);
}

static int open_join(struct kept *b, const char *name, struct err *e)
{
    struct kept *other = kept_find(b->keeper, name);

    if (!other || other->state != KEPT_UP)
        return err_set(e, ERR_NOT_FOUND, "there is no sandbox '%s' to join", name);
    id_range_share(id_ranges_of_machine(), other->ids_base);
    id_range_release(id_ranges_of_machine(), b->ids_base); /* when it was tried before */
    b->ids_base = other->ids_base;
    b->fds[SPAWNER_JOIN] = (int)syscall(SYS_pidfd_open, other->run.box.pid, 0);
    if (b->fds[SPAWNER_JOIN] < 0)
        return err_sys(e, "cannot reach sandbox '%s'", name);
    return 0;
}

/* Volumes of its that are memory are where they were made. */
static int open_cellar(struct kept *b, const struct box_spec *spec, struct err *e)
{
    bool is_wanted = false;

    for (size_t i = 0; i < spec->bind_count; i++)
        is_wanted = is_wanted || spec->binds[i].memory;
    if (!is_wanted)
        return 0;
    if (b->keeper->cellar_fd < 0)
        return err_set(e, ERR_NOT_FOUND, "there are no volumes in memory");
    b->fds[SPAWNER_CELLAR] = fcntl(b->keeper->cellar_fd, F_DUPFD_CLOEXEC, 0);
    return b->fds[SPAWNER_CELLAR] < 0 ? err_sys(e, "cannot reach volumes in memory") : 0;
}

static int prepare(struct kept *b, const struct spec *spec, struct err *e)
{
    OWN_FD int fd = -1;

    if (!spec->join && !b->ids_base &&
        id_range_take(id_ranges_of_machine(), b->run.box.name, spec->box.uid, &b->ids_base, e) < 0)
        return -1;
    if (dir_open_box(&b->keeper->dir, b->run.box.name, &fd, e) < 0 ||
        dir_write(fd, DIR_SPEC, buf_span(&b->spec_text), e) < 0 ||
        dir_listen(fd, DIR_CONTROL, SOCK_STREAM, &b->fds[SPAWNER_CONTROL], e) < 0)
        return -1;
    if ((spec->join && open_join(b, spec->join, e) < 0) || open_cellar(b, &spec->box, e) < 0)
        return -1;
    if (!b->has_command)
        return 0;
    return open_pipe(b, 0, e) < 0 || open_pipe(b, 1, e) < 0 ? -1 : open_status(b, e);
}

bool kept_retry(struct kept *b, struct err *e)
{
    OWN(spec_done) struct spec spec = { 0 };

    close_all(b); /* the dead one's sandbox may have written to these */
    b->state = KEPT_QUEUED;
    if (++b->tries < SPAWNER_TRIES && !b->is_removing)
        return spec_read(buf_span(&b->spec_text), &spec, e) == 0 && prepare(b, &spec, e) == 0;
    (void)err_set(e, ERR_UNAVAILABLE, "the process that makes sandboxes was killed over '%s'",
                  b->run.box.name);
    return false;
}

int kept_create(struct keeper *k, struct wire_ask *ask, struct client *creator, struct err *e)
{
    OWN_FD int fd = -1;
    struct kept *b, **bucket = bucket_of(k, ask->name);

    if (k->is_stopping)
        return err_set(e, ERR_UNAVAILABLE, "the keeper is ending");
    if (dir_make_box(&k->dir, ask->name, &fd, e) < 0)
        return -1;
    b = NEW(struct kept);
    b->keeper = k;
    b->is_kept = ask->spec.is_kept;
    b->has_command = ask->spec.box.command != NULL;
    b->has_message = ask->spec.box.message_path != NULL;
    b->message.max = LASTWORDS_MAX_BYTES;
    b->timeout_ms = ask->spec.timeout_ms;
    b->share = memory_share(&ask->spec.box);
    b->status_fd = b->out[0].fd = b->out[1].fd = -1;
    b->out[0].box = b->out[1].box = b;
    b->status_text.max = STATUS_MAX_BYTES;
    for (int i = 0; i < SPAWNER_FDS; i++)
        b->fds[i] = -1;
    memcpy(b->run.box.name, ask->name, sizeof b->run.box.name);
    b->next = *bucket;
    *bucket = b;
    k->box_count++;
    buf_move(&b->spec_text, &ask->spec_text);
    if (prepare(b, &ask->spec, e) < 0) {
        struct wire_answer ignored = { 0 };

        remove_dir(b, &ignored);
        forget(b);
        return err_wrap(e, "sandbox '%s'", ask->name);
    }
    b->creator = creator;
    spawner_enqueue(k, b);
    return 0;
}
