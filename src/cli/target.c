#include "cli/target.h"

#include "base/near.h"

int target_open(const char *data, struct engine **ret, struct err *e)
{
    if (engine_open(&(struct engine_spec){ .dir = data }, ret, e) == 0)
        return 0;
    if (e->code == ERR_NOT_FOUND) {
        (void)err_set(e, ERR_NOT_FOUND, "there are no long-lived sandboxes");
        err_hint(e, "silica run --keep -d --name NAME -- COMMAND makes one");
    }
    return -1;
}

/* ---- near names ---- */

static void hint_near(struct engine *en, const char *name, struct err *e)
{
    OWN_MEM struct engine_info *v = NULL;
    struct near near = { .name = name };
    struct err ignored;
    size_t n = 0;

    if (engine_list(en, &v, &n, &ignored) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        near_try(&near, v[i].name);
    if (near_hint(&near, e))
        return;
    if (n)
        err_hint(e, "silica ps -a lists them");
    else
        err_hint(e, "there are none; silica run --keep -d --name NAME -- COMMAND makes one");
}

/* ---- one sandbox ---- */

int target_get(struct engine *en, const char *name, struct engine_info *ret, struct err *e)
{
    if (engine_get(en, name, ret, e) == 0)
        return 0;
    if (e->code != ERR_NOT_FOUND && e->code != ERR_INVALID)
        return -1;
    (void)err_set(e, ERR_NOT_FOUND, "there is no sandbox '%.200s'", name);
    hint_near(en, name, e);
    return -1;
}

static int refuse(const struct engine_info *info, struct err *e)
{
    switch (info->status) {
    case ENGINE_PAUSED:
        (void)err_set(e, ERR_CONFLICT, "sandbox '%s' is paused", info->name);
        err_hint(e, "silica resume %s", info->name);
        return -1;
    case ENGINE_EXITED:
        (void)err_set(e, ERR_CLOSED, "sandbox '%s' has ended, with code %d", info->name,
                      info->exit_code);
        err_hint(e, "silica logs %s shows what it said; silica rm %s removes it", info->name,
                 info->name);
        return -1;
    case ENGINE_LOST:
        (void)err_set(e, ERR_CLOSED, "sandbox '%s' is lost: its keeper was killed", info->name);
        err_hint(e, "silica rm %s removes what is left", info->name);
        return -1;
    case ENGINE_MAKING:
        return err_set(e, ERR_UNAVAILABLE, "sandbox '%s' is still being made", info->name);
    case ENGINE_RUNNING:
        return 0;
    }
    return 0;
}

int target_control(struct engine *en, const char *name, int *ret_fd, struct err *e)
{
    struct engine_info info;

    if (target_get(en, name, &info, e) < 0 || refuse(&info, e) < 0)
        return -1;
    return engine_control(en, name, ret_fd, e);
}

void target_explain(struct engine *en, const char *name, struct err *e)
{
    struct engine_info info;
    struct err why;

    if ((e->code == ERR_TIMEOUT || e->code == ERR_CLOSED) &&
        engine_get(en, name, &info, &why) == 0 && refuse(&info, &why) < 0)
        *e = why;
}
