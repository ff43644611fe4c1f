/* GET and HEAD of /v1/files: a file's bytes, or a directory's entries. */
#include "runtime/sandboxd/rest.h"

#include "base/time.h"
#include "runtime/file_answer.h"
#include "runtime/files/file_list.h"
#include "runtime/files/file_read.h"
#include "runtime/job.h"
#include "runtime/limits.h"
#include "runtime/sandboxd/answer.h"
#include "runtime/sandboxd/root.h"

#include <errno.h>

struct get {
    struct job job;
    char *path; /* decoded once */
    size_t path_n;
    struct file_read file;
    struct buf body; /* of a listing */
    struct json_out out;
    enum sandboxd_stage stage; /* where job.err happened */
};

static struct get *of(struct job *j)
{
    return CONTAINER(j, struct get, job);
}

static void get_free(struct job *j)
{
    struct get *g = of(j);

    file_read_done(&g->file);
    buf_done(&g->body);
    free(g->path);
    free(g);
}

static int list_entry(void *ctx, const struct file_entry *entry, struct err *e)
{
    struct get *g = ctx;
    char time[TIME_TEXT_BYTES], mode[8];

    (void)e;
    (void)snprintf(mode, sizeof mode, "%04o", (unsigned)entry->mode & 0777);
    json_out_object_begin(&g->out);
    json_out_key(&g->out, "name"), json_out_cstr(&g->out, entry->name);
    json_out_key(&g->out, "size"), json_out_u64(&g->out, entry->size);
    json_out_key(&g->out, "type"), json_out_cstr(&g->out, entry->is_dir ? "directory" : "file");
    json_out_key(&g->out, "modified_at"),
        json_out_cstr(&g->out, time_rfc3339(time, entry->modified, false));
    json_out_key(&g->out, "mode"), json_out_cstr(&g->out, mode);
    json_out_object_end(&g->out);
    return 0;
}

/* The parameter as it was sent, not cleaned, but for a slash in front. */
static void write_path(struct get *g)
{
    OWN(buf_done) struct buf path = BUF_INIT(g->path_n + 1);
    struct err e;

    if (!g->path_n || g->path[0] != '/')
        /* Sized for both. */
        (void)buf_addc(&path, '/', &e);
    /* Sized for both. */
    (void)buf_add(&path, span_of(g->path, g->path_n), &e);
    json_out_str(&g->out, buf_span(&path));
}

static int list(struct get *g, const struct path_root *root, struct err *e)
{
    sandboxd_json_begin(&g->out, &g->body);
    json_out_object_begin(&g->out);
    json_out_key(&g->out, "path"), write_path(g);
    json_out_key(&g->out, "entries");
    json_out_array_begin(&g->out);
    if (file_list(root, &g->file.at, g->file.fd, &file_list_sandboxd, list_entry, g, e) < 0)
        return -1;
    json_out_array_end(&g->out);
    json_out_object_end(&g->out);
    return 0;
}

/* A file that was found and cannot be opened is "permission denied"; a directory like that, or one on the way, is an
 * internal error: so the contract has it. */
static enum sandboxd_stage stage_of(struct get *g, const struct path_root *root)
{
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct err e;

    if (path_resolve(root, PATH_SANDBOXD, span_of(g->path, g->path_n), 0, &at, &e) == 0 &&
        !(at.exists && S_ISDIR(at.st.st_mode)))
        return SANDBOXD_WORKING;
    return SANDBOXD_RESOLVING;
}

static void get_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct get *g = of(j);
    struct span path = span_of(g->path, g->path_n);

    if (root_open(&root, j->rt, &j->err) < 0)
        return;
    if (file_read_open(&g->file, &root, PATH_SANDBOXD, path, &j->err) < 0)
        g->stage = stage_of(g, &root);
    else if (g->file.is_dir && list(g, &root, &j->err) < 0)
        g->stage = SANDBOXD_RESOLVING;
}

static void get_answer(struct job *j)
{
    struct get *g = of(j);

    if (j->err.code)
        sandboxd_file_error(j->x, g->stage, &j->err);
    else if (g->file.is_dir)
        sandboxd_json(j->x, &g->out, &g->body);
    else
        file_answer(j->x, &g->file);
}

void sandboxd_get(struct runtime *rt, struct http_exchange *x, struct span path)
{
    struct get *g = NEW(struct get);

    g->path = span_dup(path);
    g->path_n = path.n;
    g->file = (struct file_read)FILE_READ_NONE;
    g->body.max = RUNTIME_ANSWER_MAX_BYTES;
    g->job.run = get_run;
    g->job.answer = get_answer;
    g->job.free = get_free;
    job_start(&g->job, rt, x);
}
