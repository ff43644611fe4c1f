#include "cli/sandbox_check.h"

#include "isolate/engine.h"
#include "isolate/host_check.h"
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <unistd.h>

/* The keeper ends it then: a check that is killed leaves nothing. */
#define CHECK_LIFE_MS 10000

static int make_one(struct engine *en, struct err *e)
{
    static const char *const env[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, NULL };
    char name[32];
    const struct box_spec spec = {
        .name = name,
        .env = env,
        .uid = 1000,
        .gid = 1000,
        .is_best_effort = true,
        .runtime_args = sandbox_runtime_args,
    };
    const struct engine_create create = { .box = &spec, .timeout_ms = CHECK_LIFE_MS };
    struct engine_created made;

    (void)snprintf(name, sizeof name, "check-%d", (int)getpid());
    if (engine_create(en, &create, &made, e) < 0)
        return host_check_explain(e);
    return engine_destroy(en, name, e) < 0 && e->code != ERR_NOT_FOUND ? -1 : 0;
}

int sandbox_check(const char *data, const struct box_limits *all, struct err *e)
{
    struct engine *en = NULL;
    const struct engine_spec spec = {
        .dir = data,
        .starts_keeper = true,
        .renews_keeper = true, /* a new build's cures hold from this start on */
        .all = *all,
    };
    int rc = engine_open(&spec, &en, e);

    if (rc == 0)
        rc = make_one(en, e);
    engine_close(en);
    return rc < 0 ? err_wrap(e, "no sandbox can be made here") : 0;
}
