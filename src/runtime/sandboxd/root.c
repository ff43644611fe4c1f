#include "runtime/sandboxd/root.h"

#define ROOT_MODE 0755

static bool was_seen, was_lost;

int root_open(struct path_root *root, const struct runtime *rt, struct err *e)
{
    const char *text = runtime_root(&rt->opt, CONTRACT_SANDBOXD);
    struct err why;

    if (path_root_open(root, text, &why) == 0)
        return 0;
    if (why.code == ERR_NOT_FOUND && path_root_make(text, ROOT_MODE, &why) == 0 &&
        path_root_open(root, text, &why) == 0)
        return 0;
    /* Whatever it was, it says nothing about the path that was asked for. */
    return err_set(e, ERR_INTERNAL, "%s", why.msg);
}

bool root_is_known(const struct runtime *rt)
{
    return was_seen || (rt->opt.root && !was_lost);
}

void root_set_known(bool is_known)
{
    was_seen = is_known;
    was_lost = !is_known;
}
