#include "runtime/sandboxd/root.h"

#define ROOT_MODE 0755

static bool was_seen;

int root_open(struct path_root *root, const struct runtime *rt, struct err *e)
{
    const char *text = runtime_root(&rt->opt, CONTRACT_SANDBOXD);

    if (path_root_open(root, text, e) == 0)
        return 0;
    if (e->code == ERR_NOT_FOUND && path_root_make(text, ROOT_MODE, e) == 0 &&
        path_root_open(root, text, e) == 0)
        return 0;
    e->code = ERR_INTERNAL; /* whatever it was, it says nothing about the path that was asked for */
    e->sys = 0;
    return -1;
}

bool root_is_known(const struct runtime *rt)
{
    return was_seen || rt->opt.root;
}

void root_set_known(bool is_known)
{
    was_seen = is_known;
}
