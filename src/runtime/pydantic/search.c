/* /glob and /grep: files by name, lines by content. The contract leaves the shape of /grep open; ours takes `pattern`,
 * `path`, `glob`, `literal` and `ignore_case`, and answers rows of path, line_number and line. */
#include "runtime/pydantic/routes.h"

#include "base/time.h"
#include "runtime/files/file_glob.h"
#include "runtime/files/file_grep.h"
#include "runtime/job.h"
#include "runtime/limits.h"
#include "runtime/pydantic/request.h"
#include "runtime/pydantic/row.h"
#include "runtime/python/answer.h"

/* One worker at most for so long; what was found by then is answered, and marked as cut */
#define SEARCH_MAX_MS 30000

struct search {
    struct job job;
    struct json_doc *doc; /* holds the texts below */
    struct span path, pattern, glob;
    bool is_literal, ignore_case, is_cut;
    const char *root; /* as configured; while running */
    struct buf body;
    struct json_out out;
};

static struct search *of(struct job *j)
{
    return CONTAINER(j, struct search, job);
}

static void search_free(struct job *j)
{
    struct search *s = of(j);

    json_doc_unref(s->doc);
    buf_done(&s->body);
    free(s);
}

static void answer(struct job *j)
{
    struct search *s = of(j);

    if (j->err.code) {
        pydantic_file_error(j->x, &j->err);
        return;
    }
    if (s->is_cut)
        http_answer_field(j->x, "x-truncated", SPAN("true"));
    python_json(j->x, 200, &s->out, &s->body);
}

static struct search *search_new(struct json_doc *doc, void (*run)(struct job *))
{
    struct search *s = NEW(struct search);

    s->doc = doc;
    s->body.max = RUNTIME_ANSWER_MAX_BYTES;
    s->job.run = run;
    s->job.answer = answer;
    s->job.free = search_free;
    return s;
}

/* An optional string; absent, null and empty are the same. */
static bool want_text(struct http_exchange *x, struct json_doc *doc, const char *name,
                      struct span *ret)
{
    const struct json *v = json_get(json_doc_root(doc), name);

    return !v || json_is_null(v) || pydantic_want_str(x, doc, name, ret);
}

static void glob_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(file_glob_done) struct file_glob g = FILE_GLOB_NONE;
    struct search *s = of(j);

    json_out_init(&s->out, &s->body, 0);
    json_out_array_begin(&s->out);
    if (path_root_open(&root, runtime_root(&j->rt->opt, CONTRACT_PYDANTIC), &j->err) == 0 &&
        file_glob(&g, &root, s->path, s->pattern, time_mono_ms() + SEARCH_MAX_MS, &j->err) == 0) {
        s->is_cut = g.is_cut;
        for (size_t i = 0; i < g.n; i++) {
            const struct file_entry entry = { .name = g.rows[i].name,
                                              .size = g.rows[i].size,
                                              .modified = g.rows[i].modified };

            pydantic_row(&s->out, root.configured, g.rows[i].rel, &entry);
        }
    }
    json_out_array_end(&s->out);
}

static void handle_glob(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct search *s = search_new(doc, glob_run);

    s->path = SPAN("/");
    if (pydantic_want_str(x, doc, "pattern", &s->pattern) && want_text(x, doc, "path", &s->path))
        job_start(&s->job, rt, x);
    else
        search_free(&s->job);
}

void pydantic_glob(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_EXECUTE_MAX_BYTES, handle_glob);
}

static int grep_row(void *ctx, const struct file_grep_row *row, struct err *e)
{
    struct search *s = ctx;
    OWN(buf_done) struct buf path = BUF_INIT(PATH_REAL_MAX_BYTES + PATH_TEXT_MAX_BYTES);

    if (buf_addf(&path, e, "%s/%s", s->root, row->rel) < 0)
        return -1;
    json_out_object_begin(&s->out);
    json_out_key(&s->out, "path"), json_out_str(&s->out, buf_span(&path));
    json_out_key(&s->out, "line_number"), json_out_u64(&s->out, row->line);
    json_out_key(&s->out, "line"), json_out_str(&s->out, row->text);
    json_out_object_end(&s->out);
    return 0;
}

static void grep_run(struct job *j)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct search *s = of(j);
    const struct file_grep_how how = {
        s->path, s->pattern, s->glob, s->is_literal, s->ignore_case, time_mono_ms() + SEARCH_MAX_MS
    };

    json_out_init(&s->out, &s->body, 0);
    json_out_array_begin(&s->out);
    if (path_root_open(&root, runtime_root(&j->rt->opt, CONTRACT_PYDANTIC), &j->err) == 0) {
        s->root = root.configured;
        (void)file_grep(&root, &how, grep_row, s, &s->is_cut, &j->err);
    }
    json_out_array_end(&s->out);
}

static void handle_grep(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct search *s = search_new(doc, grep_run);

    s->path = SPAN("/");
    if (pydantic_want_str(x, doc, "pattern", &s->pattern) && want_text(x, doc, "path", &s->path) &&
        want_text(x, doc, "glob", &s->glob) &&
        pydantic_want_bool(x, doc, "literal", false, &s->is_literal) &&
        pydantic_want_bool(x, doc, "ignore_case", false, &s->ignore_case))
        job_start(&s->job, rt, x);
    else
        search_free(&s->job);
}

void pydantic_grep(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_EXECUTE_MAX_BYTES, handle_grep);
}
