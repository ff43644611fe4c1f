/* /download, /list and /exists: the blocking part on a worker, the answer from what it found. */
#include "runtime/python/routes.h"

#include "base/str.h"
#include "runtime/file_answer.h"
#include "runtime/files/file_list.h"
#include "runtime/files/file_read.h"
#include "runtime/job.h"
#include "runtime/limits.h"
#include "runtime/exec/pyrepr.h"
#include "runtime/python/answer.h"

#include <errno.h>

struct file_job {
    struct job job;
    struct buf path; /* decoded twice, valid UTF-8 */
    struct file_read file;
    struct buf body; /* /list */
    struct json_out out;
    bool exists;
};

static struct file_job *of(struct job *j)
{
    return CONTAINER(j, struct file_job, job);
}

static void file_job_free(struct job *j)
{
    struct file_job *f = of(j);

    file_read_done(&f->file);
    buf_done(&f->path);
    buf_done(&f->body);
    free(f);
}

/* The second decoding; bytes that are not UTF-8 become U+FFFD and so name nothing that exists. */
static struct file_job *file_job_new(struct span path)
{
    OWN(buf_done) struct buf bytes = BUF_INIT(path.n);
    struct file_job *f = NEW(struct file_job);
    struct err e;

    f->path.max = 3 * path.n + 3;
    f->body.max = RUNTIME_ANSWER_MAX_BYTES;
    f->file = (struct file_read)FILE_READ_NONE;
    (void)str_percent_decode(path, &bytes, &e);
    (void)str_utf8_lossy(buf_span(&bytes), &f->path, &e);
    f->job.free = file_job_free;
    return f;
}

static int open_root(struct job *j, struct path_root *root)
{
    return path_root_open(root, runtime_root(&j->rt->opt, CONTRACT_PYTHON), &j->err);
}

/* ---- /download ---- */

static void download_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct file_job *f = of(j);

    if (open_root(j, &root) < 0)
        return;
    (void)file_read_open(&f->file, &root, PATH_PYTHON, buf_span(&f->path), &j->err);
}

static bool is_url_safe(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];

        if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
              (c && strchr("_.-~/", c))))
            return false;
    }
    return true;
}

static void add_disposition(struct http_exchange *x, struct span path)
{
    OWN(buf_done) struct buf coded = BUF_INIT(3 * path.n + 1);
    struct err e;

    if (is_url_safe(path)) {
        http_answer_fieldf(x, "content-disposition", "attachment; filename=\"%.*s\"",
                           SPAN_ARG(path));
        return;
    }
    (void)str_percent_encode(path, "", &coded, &e);
    http_answer_fieldf(x, "content-disposition", "attachment; filename*=utf-8''%s",
                       buf_cstr(&coded));
}

static void download_answer(struct job *j)
{
    struct file_job *f = of(j);
    struct http_exchange *x = j->x;

    if (j->err.code && path_is_escape(&j->err)) {
        python_denied(x);
        return;
    }
    if (j->err.code && j->err.sys == EACCES) {
        python_message(x, 403, "Permission denied");
        return;
    }
    if (j->err.code || f->file.is_dir) {
        python_message(x, 404, "File not found");
        return;
    }
    add_disposition(x, buf_span(&f->path));
    http_answer_field(x, "etag", span_cstr(f->file.etag));
    file_answer(x, &f->file);
}

void python_download(struct runtime *rt, struct http_exchange *x, struct span path)
{
    struct file_job *f = file_job_new(path);

    f->job.run = download_run;
    f->job.answer = download_answer;
    job_start(&f->job, rt, x);
}

/* ---- /list ---- */

static int list_entry(void *ctx, const struct file_entry *entry, struct err *e)
{
    struct file_job *f = ctx;
    double mtime = (double)entry->modified.tv_sec + (double)entry->modified.tv_nsec / 1e9;

    (void)e;
    json_out_object_begin(&f->out);
    json_out_key(&f->out, "name"), json_out_cstr(&f->out, entry->name);
    json_out_key(&f->out, "size"), json_out_u64(&f->out, entry->size);
    json_out_key(&f->out, "type"), json_out_cstr(&f->out, entry->is_dir ? "directory" : "file");
    json_out_key(&f->out, "mod_time"), json_out_double(&f->out, mtime);
    json_out_object_end(&f->out);
    return 0;
}

static void list_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct file_job *f = of(j);

    if (open_root(j, &root) < 0 ||
        file_read_open(&f->file, &root, PATH_PYTHON, buf_span(&f->path), &j->err) < 0 ||
        !f->file.is_dir)
        return;
    json_out_init(&f->out, &f->body, 0);
    json_out_array_begin(&f->out);
    if (file_list(&root, &f->file.at, f->file.fd, &file_list_python, list_entry, f, &j->err) < 0)
        return;
    json_out_array_end(&f->out);
}

static void list_answer(struct job *j)
{
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    struct file_job *f = of(j);
    struct err e;

    if (j->err.code && path_is_escape(&j->err)) {
        python_denied(j->x);
    } else if (f->file.fd < 0 && (j->err.code == ERR_UNSUPPORTED || j->err.sys != EACCES)) {
        python_message(j->x, 404, "Path is not a directory");
    } else if (j->err.code) {
        (void)pyrepr_oserror(j->err.sys, span_cstr(f->file.at.abs), &text, &e);
        python_message(j->x, 500, "List files failed: %s", buf_cstr(&text));
    } else if (!f->file.is_dir) {
        python_message(j->x, 404, "Path is not a directory");
    } else {
        python_json(j->x, 200, &f->out, &f->body);
    }
}

void python_list(struct runtime *rt, struct http_exchange *x, struct span path)
{
    struct file_job *f = file_job_new(path);

    f->job.run = list_run;
    f->job.answer = list_answer;
    job_start(&f->job, rt, x);
}

/* ---- /exists ---- */

static void exists_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct file_job *f = of(j);

    if (open_root(j, &root) == 0 &&
        path_resolve(&root, PATH_PYTHON, buf_span(&f->path), 0, &at, &j->err) == 0)
        f->exists = at.exists;
}

static void exists_answer(struct job *j)
{
    OWN(buf_done) struct buf body = BUF_INIT(RUNTIME_ANSWER_MAX_BYTES);
    struct file_job *f = of(j);
    struct json_out o;

    if (j->err.code && path_is_escape(&j->err)) {
        python_denied(j->x);
        return;
    }
    json_out_init(&o, &body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "path"), json_out_str(&o, buf_span(&f->path));
    json_out_key(&o, "exists"), json_out_bool(&o, f->exists);
    json_out_object_end(&o);
    python_json(j->x, 200, &o, &body);
}

void python_exists(struct runtime *rt, struct http_exchange *x, struct span path)
{
    struct file_job *f = file_job_new(path);

    f->job.run = exists_run;
    f->job.answer = exists_answer;
    job_start(&f->job, rt, x);
}
