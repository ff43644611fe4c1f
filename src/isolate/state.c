#include "isolate/state.h"

#include "isolate/dir.h"

static const char *const end_names[] = { "ended", "timeout", "lost" };
static const char *const kind_names[CGROUP_KINDS] = { "v2", "memory", "pids", "cpu", "freezer" };
static const struct json_limits limits = { .max_bytes = STATE_MAX_BYTES, .max_nodes = 256 };

const char *state_end_name(enum state_end end)
{
    return end_names[end];
}

void state_put_cgroups(struct json_out *o, const struct cgroup *cg)
{
    json_out_key(o, "cgroups");
    json_out_object_begin(o);
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        if (*cg->dirs[kind])
            json_out_key(o, kind_names[kind]), json_out_cstr(o, cg->dirs[kind]);
    json_out_object_end(o);
    json_out_key(o, "in_v2");
    json_out_array_begin(o);
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        if (cg->is_v2[kind])
            json_out_cstr(o, kind_names[kind]);
    json_out_array_end(o);
}

int state_put_run(int box_fd, const struct state_run *run, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &text, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "pid"), json_out_i64(&o, run->box.pid);
    json_out_key(&o, "start_ticks"), json_out_u64(&o, run->box.start_ticks);
    json_out_key(&o, "created_ms"), json_out_u64(&o, run->created_ms);
    json_out_key(&o, "unenforced"), json_out_cstr(&o, run->unenforced);
    state_put_cgroups(&o, &run->box.cgroup);
    json_out_object_end(&o);
    return json_out_end(&o, e) < 0 ? -1 : dir_write(box_fd, DIR_STATE, buf_span(&text), e);
}

bool state_copy_text(const struct json *v, char *into, size_t room)
{
    struct span s = json_str(v);

    if (!s.p || s.n >= room || memchr(s.p, 0, s.n))
        return false;
    memcpy(into, s.p, s.n);
    into[s.n] = '\0';
    return true;
}

bool state_read_cgroups(const struct json *root, struct cgroup *cg)
{
    const struct json *dirs = json_get(root, "cgroups");

    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        const struct json *dir = json_get(dirs, kind_names[kind]);

        if (dir && (!state_copy_text(dir, cg->dirs[kind], sizeof cg->dirs[kind]) ||
                    !cgroup_is_ours(cg->dirs[kind])))
            return false;
        JSON_EACH(name, json_get(root, "in_v2"))
        if (span_is(json_str(name), kind_names[kind]))
            cg->is_v2[kind] = true;
    }
    return true;
}

int state_parse_run(struct span text, const char *name, struct state_run *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct state_run run = { 0 };
    const struct json *root;
    uint64_t pid;

    if (json_parse(text, &limits, &doc, e) < 0)
        return err_wrap(e, DIR_STATE);
    root = json_doc_root(doc);
    if (!json_u64(json_get(root, "pid"), &pid) || pid < 1 || pid > INT32_MAX ||
        !json_u64(json_get(root, "start_ticks"), &run.box.start_ticks) ||
        !json_u64(json_get(root, "created_ms"), &run.created_ms) ||
        !state_copy_text(json_get(root, "unenforced"), run.unenforced, sizeof run.unenforced) ||
        !state_read_cgroups(root, &run.box.cgroup))
        return err_set(e, ERR_INVALID, DIR_STATE " is not what a keeper writes");
    run.box.pid = (pid_t)pid;
    (void)snprintf(run.box.name, sizeof run.box.name, "%s", name);
    *ret = run;
    return 0;
}

int state_get_run(int box_fd, const char *name, struct state_run *ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);

    return dir_read(box_fd, DIR_STATE, &text, e) < 0
               ? -1
               : state_parse_run(buf_span(&text), name, ret, e);
}

int state_put_exit(int box_fd, const struct state_exit *x, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &text, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "end"), json_out_cstr(&o, state_end_name(x->end));
    json_out_key(&o, "code"), json_out_i64(&o, x->code);
    json_out_key(&o, "ended_ms"), json_out_u64(&o, x->ended_ms);
    if (x->is_oom)
        json_out_key(&o, "oom"), json_out_bool(&o, true);
    json_out_object_end(&o);
    return json_out_end(&o, e) < 0 ? -1 : dir_write(box_fd, DIR_EXIT, buf_span(&text), e);
}

int state_read_exit(const struct json *root, struct state_exit *ret, struct err *e)
{
    struct state_exit x = { 0 };
    uint64_t code;
    size_t end;

    for (end = 0; end < LEN(end_names); end++)
        if (span_is(json_str(json_get(root, "end")), end_names[end]))
            break;
    if (end == LEN(end_names) || !json_u64(json_get(root, "code"), &code) || code > 255 ||
        !json_u64(json_get(root, "ended_ms"), &x.ended_ms))
        return err_set(e, ERR_INVALID, "not the end of a sandbox as a keeper tells it");
    x.end = (enum state_end)end;
    x.code = (int)code;
    (void)json_bool(json_get(root, "oom"), &x.is_oom); /* keepers did not always tell */
    *ret = x;
    return 0;
}

int state_parse_exit(struct span text, struct state_exit *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (json_parse(text, &limits, &doc, e) < 0 || state_read_exit(json_doc_root(doc), ret, e) < 0)
        return err_wrap(e, DIR_EXIT);
    return 0;
}

int state_get_exit(int box_fd, struct state_exit *ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);

    return dir_read(box_fd, DIR_EXIT, &text, e) < 0 ? -1
                                                    : state_parse_exit(buf_span(&text), ret, e);
}
