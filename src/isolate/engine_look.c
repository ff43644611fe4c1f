#include "isolate/engine_impl.h"

#include "isolate/cgroup_parent.h"

#include "isolate/lock.h"

#include <sys/socket.h>

static const char *const status_names[] = { "making", "running", "paused", "exited", "lost" };

const char *engine_status_name(enum engine_status s)
{
    return status_names[s];
}

int engine_adopt(struct engine *en, const char *name, struct box **ret, struct err *e)
{
    OWN_FD int fd = -1;
    struct state_run run;

    if (dir_open_box(&en->dir, name, &fd, e) < 0)
        return -1;
    if (state_get_run(fd, name, &run, e) < 0)
        return err_set(e, ERR_CLOSED, "sandbox '%s' does not run yet, or never did", name);
    return box_adopt(&run.box, ret, e);
}

void engine_take_exit(struct engine_info *info, const struct state_exit *x)
{
    info->has_exit = true;
    info->exit_code = x->code;
    info->is_oom = x->is_oom;
    info->is_timed_out = x->end == STATE_TIMED_OUT;
    info->ended_ms = x->ended_ms;
    if (x->end == STATE_LOST)
        info->status = ENGINE_LOST;
}

static void read_spec(int fd, struct engine_info *info)
{
    OWN(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);
    OWN(buf_done) struct buf words = BUF_INIT(sizeof info->command - 1);
    struct spec spec;
    struct err e;

    if (dir_read(fd, DIR_SPEC, &text, &e) < 0 || spec_read(buf_span(&text), &spec, &e) < 0)
        return;
    info->is_kept = spec.is_kept;
    info->limits = spec.box.limits;
    for (const char *const *w = spec.box.command; w && *w; w++)
        (void)(buf_add_capped(&words, span_cstr(words.n ? " " : "")),
               buf_add_capped(&words, span_cstr(*w)));
    (void)snprintf(info->command, sizeof info->command, "%s", buf_cstr(&words));
    spec_done(&spec);
}

/* Does it run, and is it paused? */
static void look_at_processes(int fd, struct engine_info *info)
{
    struct state_run run;
    struct box *box = NULL;
    struct err e;

    if (state_get_run(fd, info->name, &run, &e) < 0)
        return;
    info->status = ENGINE_EXITED;
    info->created_ms = run.created_ms;
    memcpy(info->unenforced, run.unenforced, sizeof info->unenforced);
    if (box_adopt(&run.box, &box, &e) < 0)
        return;
    info->pid = run.box.pid;
    info->status = box_is_paused(box) ? ENGINE_PAUSED : ENGINE_RUNNING;
    box_release(box);
}

int engine_get(struct engine *en, const char *name, struct engine_info *ret, struct err *e)
{
    struct engine_info info = { .status = ENGINE_MAKING };
    struct state_exit x;
    OWN_FD int fd = -1;
    struct err none;

    if (dir_open_box(&en->dir, name, &fd, e) < 0)
        return -1;
    (void)snprintf(info.name, sizeof info.name, "%s", name);
    read_spec(fd, &info);
    look_at_processes(fd, &info);
    if (state_get_exit(fd, &x, &none) == 0)
        engine_take_exit(&info, &x);
    /* Its keeper writes how it ended; one that is dead does not. */
    if (!info.pid && !info.has_exit && !lock_is_taken(&en->dir)) {
        info.status = ENGINE_LOST;
        info.has_exit = true;
        info.exit_code = 128 + SIGKILL;
    }
    *ret = info;
    return 0;
}

struct list {
    struct engine *en;
    struct engine_info *v;
    size_t n, room;
};

static bool add(void *ctx, const char *name)
{
    struct list *l = ctx;
    struct err gone;

    if (l->n == l->room) {
        l->room = l->room ? l->room * 2 : 16;
        l->v = own_resize(l->v, l->room, sizeof *l->v);
    }
    if (engine_get(l->en, name, &l->v[l->n], &gone) == 0)
        l->n++;
    return true;
}

int engine_list(struct engine *en, struct engine_info **ret, size_t *ret_n, struct err *e)
{
    struct list l = { .en = en };

    if (dir_each_box(&en->dir, add, &l, e) < 0) {
        free(l.v);
        return -1;
    }
    *ret = l.v;
    *ret_n = l.n;
    return 0;
}

int engine_control(struct engine *en, const char *name, int *ret_fd, struct err *e)
{
    struct engine_info info;
    OWN_FD int fd = -1;

    if (engine_get(en, name, &info, e) < 0 || dir_open_box(&en->dir, name, &fd, e) < 0)
        return -1;
    if (info.status == ENGINE_PAUSED) {
        (void)err_set(e, ERR_CONFLICT, "sandbox '%s' is paused", name);
        err_hint(e, "silica resume %s", name);
        return -1;
    }
    if (info.status != ENGINE_RUNNING)
        return err_set(e, ERR_CLOSED, "sandbox '%s' does not run: it is %s", name,
                       engine_status_name(info.status));
    return dir_connect(fd, DIR_CONTROL, SOCK_STREAM, ret_fd, e) < 0
               ? err_wrap(e, "sandbox '%s'", name)
               : 0;
}

int engine_socket(struct engine *en, const char *name, int family, int type, int *ret_fd,
                  struct err *e)
{
    struct box *box = NULL;
    int rc;

    if (engine_adopt(en, name, &box, e) < 0)
        return -1;
    rc = box_socket(box, family, type, ret_fd, e);
    box_release(box);
    return rc;
}

int engine_pause(struct engine *en, const char *name, struct err *e)
{
    struct box *box = NULL;
    int rc;

    if (engine_adopt(en, name, &box, e) < 0)
        return -1;
    rc = box_pause(box, e);
    box_release(box);
    return rc;
}

int engine_resume(struct engine *en, const char *name, struct err *e)
{
    struct box *box = NULL;
    int rc;

    if (engine_adopt(en, name, &box, e) < 0)
        return -1;
    rc = box_resume(box, e);
    box_release(box);
    return rc;
}

int engine_stats(struct engine *en, const char *name, struct box_stats *ret, struct err *e)
{
    struct box *box = NULL;
    int rc;

    if (engine_adopt(en, name, &box, e) < 0)
        return -1;
    rc = box_stats(box, ret, e);
    box_release(box);
    return rc;
}

int engine_open_logs(struct engine *en, const char *name, int *ret_dir_fd, struct err *e)
{
    return dir_open_box(&en->dir, name, ret_dir_fd, e);
}

int engine_limit_all(struct engine *en, const struct box_limits *all, struct cgroup_parent *ret,
                     struct err *e)
{
    struct cgroup_parent p;

    if (cgroup_parent_read(en->dir.fd, &p, e) < 0)
        return -1;
    if (memcmp(&p.limits, all, sizeof *all) != 0) {
        cgroup_parent_limit(&p, all);
        if (cgroup_parent_write(&p, en->dir.fd, e) < 0)
            return -1;
    }
    *ret = p;
    return 0;
}
