#include "isolate/engine_impl.h"

#include "base/fd.h"
#include "base/time.h"
#include "ev/spawn.h"
#include "isolate/lock.h"
#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#define RETRY_MS 5

/* ---- a keeper to talk to ---- */

/* Its stdin is the end of a pipe that it closes when it listens. */
static int start_keeper(struct engine *en, struct err *e)
{
    const char *asan = getenv("ASAN_OPTIONS");
    char variable[256];
    char memory[32], pids[32];
    char *argv[] = { en->program,
                     (char[]){ "keeper" },
                     (char[]){ "--data" },
                     en->path,
                     (char[]){ "--total-memory" },
                     memory,
                     (char[]){ "--total-pids" },
                     pids,
                     NULL };
    char *envp[] = { (char[]){ "PATH=" SPAWN_DEFAULT_PATH }, NULL, NULL };
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    OWN_FD int null_fd = fd_open_null(e);
    OWN_FD int ready_fd = -1;
    OWN_FD int theirs = -1;
    struct pollfd ready;
    struct spawn_fail fail;
    int fds[2];

    (void)snprintf(memory, sizeof memory, "%llu", (unsigned long long)en->all.memory_bytes);
    (void)snprintf(pids, sizeof pids, "%llu", (unsigned long long)en->all.pids);
    if (null_fd < 0)
        return -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    ready_fd = fds[0];
    theirs = fds[1];
    if (asan && snprintf(variable, sizeof variable, "ASAN_OPTIONS=%s", asan) < (int)sizeof variable)
        envp[1] = variable;
    spec.argv = argv;
    spec.envp = envp;
    spec.cwd = "/";
    spec.fds[0] = theirs;
    spec.fds[1] = spec.fds[2] = null_fd;
    spec.flags = SPAWN_SESSION;
    if (spawn(&spec, &fail) < 0)
        return spawn_err(e, &spec, fail);
    own_fd_close(&theirs);
    ready = (struct pollfd){ .fd = ready_fd, .events = POLLIN };
    (void)poll(&ready, 1, KEEPER_START_MS); /* ready or dead: the socket tells which */
    return 0;
}

static int set_deadline(int fd, uint64_t ms, struct err *e)
{
    struct timeval t = { .tv_sec = (time_t)(ms / 1000),
                         .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) < 0)
        return err_sys(e, "cannot set a deadline");
    return 0;
}

static int say_gone(const struct engine *en, struct err *e)
{
    (void)err_set(e, ERR_UNAVAILABLE, "the keeper of '%s' has gone", en->path);
    err_hint(e, "its sandboxes end with it; 'silica doctor --clean' clears up");
    return -1;
}

static int receive(struct engine *en, struct wire_answer *ret, int *ret_fd, struct err *e)
{
    size_t fd_count = ret_fd ? 1 : 0;
    OWN(buf_done) struct buf text = BUF_INIT(WIRE_MAX_BYTES);
    struct iovec part;
    size_t n;

    if (buf_reserve(&text, WIRE_MAX_BYTES, e) < 0)
        return -1;
    part = (struct iovec){ text.p, WIRE_MAX_BYTES };
    if (packet_receive(en->fd, &part, 1, &n, ret_fd, ret_fd ? &fd_count : NULL, e) < 0) {
        if (e->code == ERR_BUSY)
            return err_set(e, ERR_TIMEOUT, "the keeper does not answer");
        return e->code == ERR_CLOSED ? say_gone(en, e) : -1;
    }
    if (ret_fd && !fd_count)
        *ret_fd = -1;
    return wire_read_answer(span_of(text.p, n), ret, e);
}

/* Connected and greeted: what is asked from here on is answered, unless the keeper is killed. */
static int try_connect(struct engine *en, struct err *e)
{
    struct wire_answer hello;

    own_fd_close(&en->fd);
    if (dir_connect(en->dir.fd, DIR_ENGINE, SOCK_SEQPACKET, &en->fd, e) < 0)
        return -1;
    if (set_deadline(en->fd, KEEPER_START_MS, e) == 0 && receive(en, &hello, NULL, e) == 0) {
        if (hello.is_hello)
            return 0;
        (void)err_set(e, ERR_PROTOCOL, "the keeper does not say hello");
    }
    own_fd_close(&en->fd);
    return -1;
}

static bool is_worth_a_try(const struct err *e)
{
    return e->code == ERR_UNAVAILABLE || e->code == ERR_NOT_FOUND;
}

int engine_connect(struct engine *en, bool starts_it, struct err *e)
{
    uint64_t end_ms = time_mono_ms() + KEEPER_START_MS;

    if (en->fd >= 0)
        return 0;
    while (try_connect(en, e) < 0) {
        if (!is_worth_a_try(e))
            return err_wrap(e, "keeper");
        if (!starts_it) {
            (void)err_set(e, ERR_UNAVAILABLE, "'%s' has no keeper", en->path);
            return -1;
        }
        if (time_mono_ms() > end_ms) {
            (void)err_wrap(e, "the keeper does not start");
            err_hint(e, "see " DIR_KEEPER_LOG " in '%s'", en->path);
            return -1;
        }
        if (start_keeper(en, e) < 0)
            return err_wrap(e, "cannot start the keeper");
        (void)poll(NULL, 0, RETRY_MS);
    }
    return 0;
}

int engine_ask(struct engine *en, struct span packet, uint64_t timeout_ms, struct wire_answer *ret,
               struct err *e)
{
    return engine_ask_fd(en, packet, timeout_ms, ret, NULL, e);
}

int engine_ask_fd(struct engine *en, struct span packet, uint64_t timeout_ms,
                  struct wire_answer *ret, int *ret_fd, struct err *e)
{
    struct iovec part = { (void *)(uintptr_t)packet.p, packet.n };
    struct wire_answer a;

    if (set_deadline(en->fd, timeout_ms, e) < 0)
        return -1;
    if (packet_send(en->fd, &part, 1, NULL, 0, e) < 0 || receive(en, &a, ret_fd, e) < 0) {
        own_fd_close(&en->fd); /* an answer that comes late is not the next one's */
        return e->code == ERR_CLOSED ? say_gone(en, e) : -1;
    }
    *ret = a;
    if (!a.is_error)
        return 0;
    *e = a.e;
    return -1;
}

/* ---- life ---- */

static int start(struct engine *en, bool renews_it, struct err *e)
{
    if (renews_it)
        engine_renew(en);
    return engine_connect(en, true, e);
}

int engine_open(const struct engine_spec *spec, struct engine **ret, struct err *e)
{
    struct engine *en = NEW(struct engine);

    en->fd = -1;
    en->starts_keeper = spec->starts_keeper;
    en->all = spec->all;
    en->dir = (struct dir)DIR_INIT;
    en->program = own_strdup(spec->program ? spec->program : "/proc/self/exe");
    if (dir_default(spec->dir ? spec->dir : getenv("SILICA_DATA"), &en->path, e) == 0 &&
        dir_open(&en->dir, en->path, spec->starts_keeper, e) == 0 &&
        (!spec->starts_keeper || start(en, spec->renews_keeper, e) == 0)) {
        *ret = en;
        return 0;
    }
    engine_close(en);
    return -1;
}

void engine_close(struct engine *en)
{
    if (!en)
        return;
    own_fd_close(&en->fd);
    dir_done(&en->dir);
    free(en->path);
    free(en->program);
    free(en);
}

const char *engine_dir(const struct engine *en)
{
    return en->path;
}

int engine_keeper_fd(const struct engine *en)
{
    return en->fd;
}

int engine_create(struct engine *en, const struct engine_create *c, struct engine_created *ret,
                  struct err *e)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct spec spec = {
        .box = *c->box,
        .is_kept = c->is_kept,
        .ends_with_command = c->ends_with_command,
        .timeout_ms = c->timeout_ms,
        .join = c->join,
    };
    struct wire_answer a = { 0 };
    OWN_FD int fd = -1;

    *ret = (struct engine_created){ .exit_code = 0 };
    if (dir_check_name(c->box->name, e) < 0 || wire_write_create(&spec, &packet, e) < 0)
        return -1;
    if (engine_connect(en, en->starts_keeper, e) < 0 ||
        engine_ask(en, buf_span(&packet), ENGINE_CREATE_MS, &a, e) < 0) {
        ret->exit_code = a.has_exit ? a.exit.code : 0;
        return -1;
    }
    memcpy(ret->unenforced, a.unenforced, sizeof ret->unenforced);
    if (!c->is_kept || c->ends_with_command) /* the latter is on record with who wants it to run */
        return 0;
    /* What is kept is promised to be there after a loss of power too, as one that ended. */
    return dir_open_box(&en->dir, c->box->name, &fd, e) < 0 ? -1 : dir_sync(fd, DIR_SPEC, e);
}

static int destroy_ourselves(struct engine *en, const char *name, struct err *e)
{
    OWN_FD int lock_fd = -1;
    OWN_FD int fd = -1;
    struct state_run run;
    struct box *box = NULL;
    struct err ended;

    if (lock_take(&en->dir, &lock_fd, e) < 0 || dir_open_box(&en->dir, name, &fd, e) < 0)
        return -1;
    if (state_get_run(fd, name, &run, &ended) == 0) {
        if (box_adopt(&run.box, &box, &ended) == 0 && box_kill(box, NULL, e) < 0) {
            box_release(box);
            return -1;
        }
        box_release(box);
        cgroup_done(&run.box.cgroup);
    }
    return dir_remove_box(&en->dir, name, e);
}

int engine_destroy(struct engine *en, const char *name, struct err *e)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct engine_info info;
    struct wire_answer a;

    if (engine_get(en, name, &info, e) < 0)
        return -1;
    if (engine_connect(en, false, e) < 0)
        return e->code == ERR_UNAVAILABLE ? destroy_ourselves(en, name, e) : -1;
    if (wire_write_ask(WIRE_REMOVE, name, &packet, e) < 0)
        return -1;
    return engine_ask(en, buf_span(&packet), 2 * BOX_KILL_TIMEOUT_MS, &a, e);
}

int engine_wait(struct engine *en, const char *name, uint64_t timeout_ms, struct engine_info *ret,
                struct err *e)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct engine_info info;
    struct wire_answer a;

    if (engine_get(en, name, &info, e) < 0)
        return -1;
    if (!info.has_exit) {
        if (engine_connect(en, false, e) < 0 || wire_write_ask(WIRE_WAIT, name, &packet, e) < 0 ||
            engine_ask(en, buf_span(&packet), timeout_ms, &a, e) < 0)
            return -1;
        engine_take_exit(&info, &a.exit);
    }
    *ret = info;
    return 0;
}

int engine_signal(struct engine *en, const char *name, int number, struct err *e)
{
    struct box *box = NULL;
    int rc;

    if (engine_adopt(en, name, &box, e) < 0)
        return -1;
    rc = box_is_paused(box) ? box_resume(box, e) : 0; /* what stands still hears nothing */
    if (rc == 0)
        rc = box_signal(box, number, e);
    box_release(box);
    return rc;
}

int engine_stop(struct engine *en, const char *name, uint64_t grace_ms, struct err *e)
{
    struct box *box = NULL;
    struct pollfd ended;
    int rc = 0;

    if (engine_adopt(en, name, &box, e) < 0)
        return e->code == ERR_CLOSED ? 0 : -1;
    ended = (struct pollfd){ .fd = box_pidfd(box), .events = POLLIN };
    if (box_is_paused(box))
        (void)box_resume(box, e); /* what stands still cannot end by itself */
    if (box_signal(box, SIGTERM, e) < 0 ||
        poll(&ended, 1, (int)MIN(grace_ms, (uint64_t)INT32_MAX)) <= 0)
        rc = box_kill(box, NULL, e);
    box_release(box);
    return rc;
}

int engine_sweep(struct engine *en, struct engine_swept *ret, struct err *e)
{
    OWN_FD int lock_fd = -1;
    struct sweep_count count = { 0 };

    if (lock_take(&en->dir, &lock_fd, e) < 0) {
        if (e->code != ERR_EXISTS)
            return -1;
    } else {
        sweep(&en->dir, &count);
        /* Of a keeper that was killed, perhaps while it wrote; one that starts writes its own. */
        (void)unlinkat(en->dir.fd, DIR_LIMITS, 0);
        (void)unlinkat(en->dir.fd, DIR_LIMITS ".new", 0);
    }
    *ret = (struct engine_swept){ count.killed, count.lost, count.removed };
    return 0;
}
