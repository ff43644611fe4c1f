/* DELETE of /v1/files. A path that is a symlink loses the link, not what it leads to: the reference deletes the target
 * and leaves the link dangling, which nobody can want. */
#include "runtime/sandboxd/rest.h"

#include "runtime/files/file_remove.h"
#include "runtime/job.h"
#include "runtime/sandboxd/answer.h"
#include "runtime/sandboxd/limits.h"
#include "runtime/sandboxd/root.h"

struct delete
{
    struct job job;
    char *path;
    size_t path_n;
    struct buf recursive; /* the query's text */
    bool is_bad_query;
    enum sandboxd_stage stage;
};

static struct delete *of(struct job *j)
{
    return CONTAINER(j, struct delete, job);
}

static void delete_free(struct job *j)
{
    struct delete *d = of(j);

    buf_done(&d->recursive);
    free(d->path);
    free(d);
}

/* As Go reads booleans; nothing looser. */
static bool read_bool(struct span text, bool *ret)
{
    static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
    static const char *const no[] = { "", "0", "f", "F", "FALSE", "false", "False" };

    EACH(word, yes) {
        if (span_is(text, *word))
            return *ret = true;
    }
    EACH(word, no) {
        if (span_is(text, *word)) {
            *ret = false;
            return true;
        }
    }
    return false;
}

/* The order is the contract's: is it inside, is it there, is the query right, may it go. */
static void delete_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct delete *d = of(j);
    bool is_recursive;

    if (root_open(&root, j->rt, &j->err) < 0 ||
        file_remove_find(&root, span_of(d->path, d->path_n), &at, &j->err) < 0)
        return;
    d->stage = SANDBOXD_WORKING;
    if (!read_bool(buf_span(&d->recursive), &is_recursive))
        d->is_bad_query = true;
    else
        (void)file_remove(&at, is_recursive, &j->err);
}

static void delete_answer(struct job *j)
{
    struct delete *d = of(j);

    if (d->is_bad_query)
        sandboxd_errorf(j->x, SANDBOXD_INVALID_ARGUMENT, "recursive \"%s\" must be a boolean",
                        buf_cstr(&d->recursive));
    else if (j->err.code)
        sandboxd_file_error(j->x, d->stage, &j->err);
    else
        http_answer(j->x, 204, NULL, SPAN_NONE);
}

void sandboxd_delete(struct runtime *rt, struct http_exchange *x, struct span path)
{
    struct delete *d = NEW(struct delete);
    struct err e;

    d->path = span_dup(path);
    d->path_n = path.n;
    d->recursive.max = SANDBOXD_QUERY_MAX_BYTES;
    if (rest_query(x, "recursive", &d->recursive, &e) < 0)
        (void)buf_add_capped(&d->recursive, SPAN("..."));
    d->job.run = delete_run;
    d->job.answer = delete_answer;
    d->job.free = delete_free;
    job_start(&d->job, rt, x);
}
