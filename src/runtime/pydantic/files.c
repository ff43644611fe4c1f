/* /read, /write, /edit, /ls: files as text and rows. */
#include "runtime/pydantic/routes.h"

#include "base/str.h"
#include "base/time.h"
#include "runtime/files/file_list.h"
#include "runtime/files/file_read.h"
#include "runtime/files/file_write.h"
#include "runtime/job.h"
#include "runtime/limits.h"
#include "runtime/pydantic/request.h"
#include "runtime/pydantic/row.h"
#include "runtime/python/answer.h"

#include <errno.h>

#define DEFAULT_LINES 2000

struct file_job {
    struct job job;
    struct json_doc *doc; /* holds the texts below */
    struct span path, text, replacement;
    uint64_t offset, limit, count;
    bool replace_all;
    struct buf body; /* what run made: an answer, or a file's bytes */
    struct json_out out;
};

static struct file_job *of(struct job *j)
{
    return CONTAINER(j, struct file_job, job);
}

static void file_job_free(struct job *j)
{
    struct file_job *f = of(j);

    json_doc_unref(f->doc);
    buf_done(&f->body);
    free(f);
}

static int open_root(struct job *j, struct path_root *root)
{
    return path_root_open(root, runtime_root(&j->rt->opt, CONTRACT_PYDANTIC), &j->err);
}

static struct file_job *file_job_new(struct json_doc *doc, void (*run)(struct job *),
                                     void (*answer)(struct job *))
{
    struct file_job *f = NEW(struct file_job);

    f->doc = doc;
    f->body.max = RUNTIME_ANSWER_MAX_BYTES;
    f->job.run = run;
    f->job.answer = answer;
    f->job.free = file_job_free;
    return f;
}

/* Sends f->out, or the error. */
static void answer_made(struct job *j)
{
    if (j->err.code)
        pydantic_file_error(j->x, &j->err);
    else
        python_json(j->x, 200, &of(j)->out, &of(j)->body);
}

/* ---- /read ---- */

static void read_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(buf_done) struct buf text = BUF_INIT(FILE_TEXT_MAX_BYTES);
    struct file_read file = FILE_READ_NONE;
    struct file_job *f = of(j);

    if (open_root(j, &root) == 0 &&
        file_read_open(&file, &root, PATH_PYDANTIC, f->path, &j->err) == 0) {
        if (file.is_dir)
            (void)err_errno(&j->err, EISDIR, "cannot read '%.*s'", SPAN_ARG(f->path));
        else
            (void)file_read_lines(file.fd, f->offset, f->limit, &text, &j->err);
    }
    file_read_done(&file);
    json_out_init(&f->out, &f->body, 0);
    json_out_object_begin(&f->out);
    json_out_key(&f->out, "content"), json_out_str(&f->out, buf_span(&text));
    json_out_object_end(&f->out);
}

static void handle_read(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct file_job *f = file_job_new(doc, read_run, answer_made);

    if (pydantic_want_str(x, doc, "path", &f->path) &&
        pydantic_want_u64(x, doc, "offset", 0, &f->offset) &&
        pydantic_want_u64(x, doc, "limit", DEFAULT_LINES, &f->limit))
        job_start(&f->job, rt, x);
    else
        file_job_free(&f->job);
}

void pydantic_read(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_EXECUTE_MAX_BYTES, handle_read);
}

/* ---- /write ---- */

static void write_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(buf_done) struct buf bytes = BUF_INIT(RUNTIME_JSON_MAX_BYTES);
    struct file_write w = FILE_WRITE_NONE;
    struct file_job *f = of(j);
    struct err *e = &j->err;

    if (str_base64_decode(f->text, &bytes, e) < 0) {
        (void)err_wrap(e, "'content_b64'");
        return;
    }
    if (open_root(j, &root) == 0 &&
        file_write_begin(&w, &root, f->path, &file_write_pydantic, e) == 0 &&
        file_write_add(&w, buf_span(&bytes), e) == 0 && file_write_commit(&w, e) == 0)
        f->count = bytes.n;
    json_out_init(&f->out, &f->body, 0);
    json_out_object_begin(&f->out);
    json_out_key(&f->out, "path"), json_out_cstr(&f->out, file_write_path(&w));
    json_out_key(&f->out, "size"), json_out_u64(&f->out, f->count);
    json_out_object_end(&f->out);
    file_write_done(&w);
}

static void handle_write(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct file_job *f = file_job_new(doc, write_run, answer_made);

    if (pydantic_want_str(x, doc, "path", &f->path) &&
        pydantic_want_str(x, doc, "content_b64", &f->text))
        job_start(&f->job, rt, x);
    else
        file_job_free(&f->job);
}

void pydantic_write(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_JSON_MAX_BYTES, handle_write);
}

/* ---- /edit ---- */

static void edit_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct file_job *f = of(j);
    const struct file_edit edit = { f->path, f->text, f->replacement, f->replace_all };

    if (open_root(j, &root) == 0)
        (void)file_edit(&root, &edit, &f->count, &j->err);
    json_out_init(&f->out, &f->body, 0);
    json_out_object_begin(&f->out);
    json_out_key(&f->out, "occurrences"), json_out_u64(&f->out, f->count);
    json_out_object_end(&f->out);
}

static void handle_edit(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct file_job *f = file_job_new(doc, edit_run, answer_made);

    if (pydantic_want_str(x, doc, "path", &f->path) &&
        pydantic_want_str(x, doc, "old_string", &f->text) &&
        pydantic_want_str(x, doc, "new_string", &f->replacement) &&
        pydantic_want_bool(x, doc, "replace_all", false, &f->replace_all))
        job_start(&f->job, rt, x);
    else
        file_job_free(&f->job);
}

void pydantic_edit(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_JSON_MAX_BYTES, handle_edit);
}

/* ---- /ls ---- */

struct listing {
    struct json_out *out;
    const char *root, *dir; /* as configured; the directory below it */
};

static int list_entry(void *ctx, const struct file_entry *entry, struct err *e)
{
    struct listing *l = ctx;
    OWN(buf_done) struct buf rel = BUF_INIT(PATH_REAL_MAX_BYTES);

    if (buf_addf(&rel, e, *l->dir ? "%s/%s" : "%s%s", l->dir, entry->name) < 0)
        return -1;
    pydantic_row(l->out, l->root, buf_cstr(&rel), entry);
    return 0;
}

static void ls_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct file_read dir = FILE_READ_NONE;
    struct file_job *f = of(j);
    struct listing l = { &f->out, "", "" };

    json_out_init(&f->out, &f->body, 0);
    json_out_array_begin(&f->out);
    if (open_root(j, &root) == 0 &&
        file_read_open(&dir, &root, PATH_PYDANTIC, f->path, &j->err) == 0) {
        l.root = root.configured;
        l.dir = dir.at.rel;
        if (dir.is_dir)
            (void)file_list(&root, &dir.at, dir.fd, &file_list_pydantic, list_entry, &l, &j->err);
        else
            (void)err_errno(&j->err, ENOTDIR, "cannot list '%.*s'", SPAN_ARG(f->path));
    }
    file_read_done(&dir);
    json_out_array_end(&f->out);
}

static void handle_ls(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct file_job *f = file_job_new(doc, ls_run, answer_made);

    if (pydantic_want_str(x, doc, "path", &f->path))
        job_start(&f->job, rt, x);
    else
        file_job_free(&f->job);
}

void pydantic_ls(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_EXECUTE_MAX_BYTES, handle_ls);
}
