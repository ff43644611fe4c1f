#include "isolate/sweep.h"

#include "base/log.h"
#include "base/time.h"
#include "isolate/limits.h"
#include "isolate/spec.h"
#include "isolate/state.h"

struct sweeper {
    const struct dir *dir;
    struct sweep_count count;
};

static void end_processes(struct sweeper *s, struct state_run *run)
{
    struct box *box = NULL;
    struct err e;

    if (box_adopt(&run->box, &box, &e) == 0) {
        s->count.killed++;
        if (box_kill(box, NULL, &e) < 0)
            log_error("sweep.kill", KV("sandbox", (const char *)run->box.name), KV("err", &e));
        box_release(box);
    }
    cgroup_done(&run->box.cgroup);
}

static bool is_kept(int box_fd)
{
    OWN(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);
    struct spec spec;
    struct err e;
    bool is_kept;

    if (dir_read(box_fd, DIR_SPEC, &text, &e) < 0 || spec_read(buf_span(&text), &spec, &e) < 0)
        return false; /* it never got so far */
    is_kept = spec.is_kept;
    spec_done(&spec);
    return is_kept;
}

static bool sweep_box(void *ctx, const char *name)
{
    struct sweeper *s = ctx;
    OWN_FD int fd = -1;
    struct state_run run;
    struct state_exit x = { .end = STATE_LOST, .code = 137 };
    bool has_run;
    struct err e;

    if (dir_open_box(s->dir, name, &fd, &e) < 0)
        return true;
    has_run = state_get_run(fd, name, &run, &e) == 0;
    if (has_run)
        end_processes(s, &run);
    if (!has_run || !is_kept(fd)) {
        if (dir_remove_box(s->dir, name, &e) < 0)
            log_error("sweep.remove", KV("sandbox", name), KV("err", &e));
        s->count.removed++;
        return true;
    }
    if (state_get_exit(fd, &x, &e) == 0)
        return true; /* its end is on record */
    x = (struct state_exit){ .end = STATE_LOST, .code = 137, .ended_ms = time_wall_ms() };
    if (state_put_exit(fd, &x, &e) < 0)
        log_error("sweep.exit", KV("sandbox", name), KV("err", &e));
    s->count.lost++;
    return true;
}

void sweep(const struct dir *d, struct sweep_count *ret)
{
    struct sweeper s = { .dir = d };
    struct err e;

    (void)unlinkat(d->fd, DIR_ENGINE, 0); /* nobody listens on it */
    if (dir_each_box(d, sweep_box, &s, &e) < 0)
        log_error("sweep", KV("err", &e));
    *ret = s.count;
}
