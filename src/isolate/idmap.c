#include "isolate/idmap.h"

#include "isolate/holder.h"
#include "isolate/mounts.h"

int idmap_hold(struct idmap *m, const struct plan *plan, struct err *e)
{
    OWN_FD int map_fd = -1;

    m->n = plan->n;
    for (size_t i = 0; i < plan->n; i++)
        m->tree_fds[i] = -1;
    for (size_t i = 0; i < plan->n; i++) {
        if (!(plan->rows[i].flags & PLAN_IDMAP) || plan->rows[i].memory)
            continue; /* those of the cellar are held there */
        if (map_fd < 0)
            map_fd = holder_open_map(&plan->ids, e);
        if (map_fd < 0)
            return err_wrap(e, "volumes");
        m->tree_fds[i] = mounts_hold_row(&plan->rows[i], map_fd);
    }
    return 0;
}

void idmap_done(struct idmap *m)
{
    for (size_t i = 0; i < m->n; i++)
        own_fd_close(&m->tree_fds[i]);
    m->n = 0;
}
