#include "runtime/job.h"

static void gone(void *ctx)
{
    struct job *j = ctx;

    j->x = NULL;
}

static void run(void *ctx)
{
    struct job *j = ctx;

    j->run(j);
}

static void done(void *ctx)
{
    struct job *j = ctx;

    if (j->x && j->work.is_canceled)
        http_answer_abort(j->x);
    else if (j->x)
        j->answer(j);
    j->free(j);
}

void job_start(struct job *j, struct runtime *rt, struct http_exchange *x)
{
    j->rt = rt;
    j->x = x;
    http_on_gone(x, gone, j);
    ev_pool_submit(rt->files, &j->work, run, done, j);
}
