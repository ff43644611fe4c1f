#include "isolate/cgroup_parent.h"

#include "base/time.h"
#include "isolate/state.h"

#include <poll.h>

#define REMOVE_MS                                                                                  \
    1000 /* for the spawner to be gone, which sits in a group that waits for the next sandbox */

/* What of the limits no group holds. */
static void note_unenforced(struct cgroup_parent *p, bool has_nproc)
{
    const struct cgroup *cg = &p->groups;
    bool has_pids = has_nproc || cgroup_limits_pids(cg) || !p->limits.pids;
    bool has_memory =
        *cg->dirs[CGROUP_MEMORY] || cg->is_v2[CGROUP_MEMORY] || !p->limits.memory_bytes;

    (void)snprintf(p->unenforced, sizeof p->unenforced, "%s%s%s", has_pids ? "" : "pids",
                   has_pids || has_memory ? "" : ", ", has_memory ? "" : CGROUP_PARENT_WATCHED);
}

void cgroup_parent_make(struct cgroup_parent *p, const struct box_limits *limits, bool has_nproc)
{
    OWN(buf_done) struct buf missing = BUF_INIT(BOX_UNENFORCED_MAX_BYTES);
    struct err ignored;

    *p = (struct cgroup_parent){ .limits = *limits };
    cgroup_make(&p->groups, NULL, "all", limits, &missing, &ignored);
    note_unenforced(p, has_nproc);
}

void cgroup_parent_limit(struct cgroup_parent *p, const struct box_limits *limits)
{
    OWN(buf_done) struct buf missing = BUF_INIT(BOX_UNENFORCED_MAX_BYTES);
    struct err ignored;

    p->limits = *limits;
    cgroup_limit(&p->groups, limits, &missing, &ignored);
}

int cgroup_parent_write(const struct cgroup_parent *p, int dir_fd, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &text, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "memory_bytes"), json_out_u64(&o, p->limits.memory_bytes);
    json_out_key(&o, "pids"), json_out_u64(&o, p->limits.pids);
    json_out_key(&o, "unenforced"), json_out_cstr(&o, p->unenforced);
    state_put_cgroups(&o, &p->groups);
    json_out_object_end(&o);
    return json_out_end(&o, e) < 0 ? -1 : dir_write(dir_fd, DIR_LIMITS, buf_span(&text), e);
}

int cgroup_parent_read(int dir_fd, struct cgroup_parent *ret, struct err *e)
{
    static const struct json_limits limits = { .max_bytes = STATE_MAX_BYTES, .max_nodes = 256 };
    OWN(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct cgroup_parent p = { .limits = { 0 } };
    const struct json *root;

    if (dir_read(dir_fd, DIR_LIMITS, &text, e) < 0 ||
        json_parse(buf_span(&text), &limits, &doc, e) < 0)
        return -1;
    root = json_doc_root(doc);
    if (!json_u64(json_get(root, "memory_bytes"), &p.limits.memory_bytes) ||
        !json_u64(json_get(root, "pids"), &p.limits.pids) ||
        !state_copy_text(json_get(root, "unenforced"), p.unenforced, sizeof p.unenforced) ||
        !state_read_cgroups(root, &p.groups))
        return err_set(e, ERR_INVALID, DIR_LIMITS " is not what a keeper writes");
    *ret = p;
    return 0;
}

void cgroup_parent_remove(struct cgroup_parent *p, int dir_fd)
{
    uint64_t end_ms = time_mono_ms() + REMOVE_MS;

    (void)unlinkat(dir_fd, DIR_LIMITS, 0); /* first: nobody joins any more */
    while (!cgroup_remove(&p->groups) && time_mono_ms() < end_ms)
        (void)poll(NULL, 0, 1);
}
