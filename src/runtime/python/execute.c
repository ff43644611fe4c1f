/* POST /execute: a command without a shell, its output in one answer. Always 200 once the request is valid: a client
 * that sees a 5xx would run the command again. */
#include "runtime/python/routes.h"

#include "base/log.h"
#include "base/str.h"
#include "runtime/exec/exec.h"
#include "runtime/limits.h"
#include "runtime/exec/pyrepr.h"
#include "runtime/python/answer.h"
#include "runtime/exec/split.h"

/* Of a failure's text: the command stands in it, quoted */
#define REASON_MAX_BYTES (8 * 1024 * 1024)
/* With a limit of the client's own, as its SDK reports it elsewhere */
#define TIMED_OUT_CODE 124

struct execute {
    struct runtime *rt;
    struct http_exchange *x; /* NULL once the client is gone; the command goes on */
    struct split words;
    uint64_t limit_ms;
    bool has_own_limit;
    uint64_t request;
};

static void execute_free(struct execute *c)
{
    split_done(&c->words);
    free(c);
}

/* ---- what is wrong with a request ---- */

static void answer_invalid(struct http_exchange *x, const char *type, const char *loc,
                           const char *msg, const struct json *input)
{
    OWN(buf_done) struct buf text = BUF_INIT(RUNTIME_ANSWER_MAX_BYTES);
    struct err e;

    if (!input || json_write(input, &text, &e) < 0)
        (void)buf_add_capped(&text, SPAN("null"));
    python_invalid(x, &(struct python_invalid){
                          .type = type, .loc = loc, .msg = msg, .input = buf_span(&text) });
}

static void answer_bad_json(struct http_exchange *x, const struct json_error *where,
                            const struct err *e)
{
    char offset[32];

    if (e->code == ERR_LIMIT) {
        python_detail(x, 413, e->msg);
        return;
    }
    if (where->is_encoding) {
        python_detail(x, 400, "There was an error parsing the body");
        return;
    }
    (void)snprintf(offset, sizeof offset, "%zu", where->char_at);
    python_invalid(x, &(struct python_invalid){ .type = "json_invalid",
                                                .loc = offset,
                                                .loc_is_number = true,
                                                .msg = "JSON decode error",
                                                .input = SPAN("{}"),
                                                .ctx_error = where->what });
}

static bool is_json_type(struct span type)
{
    struct span media = span_trim(span_slice(type, 0, span_find(type, ';')));

    return span_is_nocase(media, "application/json") ||
           (media.n > 17 && span_is_nocase(span_slice(media, 0, 12), "application/") &&
            span_is_nocase(span_skip(media, media.n - 5), "+json"));
}

/* A body that does not say it is JSON is taken as a text, and a text is no object. */
static void answer_not_json(struct http_exchange *x, struct span body)
{
    OWN(buf_done) struct buf input = BUF_INIT(RUNTIME_ANSWER_MAX_BYTES);
    struct json_out o;
    struct err e;

    json_out_init(&o, &input, 0);
    json_out_str(&o, body);
    (void)json_out_end(&o, &e);
    python_invalid(x,
                   &(struct python_invalid){
                       .type = "model_attributes_type",
                       .msg = "Input should be a valid dictionary or object to extract fields from",
                       .input = buf_span(&input) });
}

/* ---- the answer ---- */

/* Decoded text: valid UTF-8, and CRLF or CR as LF, as the reference's text mode has it. */
static void decode(struct span raw, struct buf *out)
{
    struct err e;
    size_t from = 0;

    out->max = 3 * raw.n + 1;
    if (span_find(raw, '\r') == SIZE_MAX) {
        (void)str_utf8_lossy(raw, out, &e);
        return;
    }
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != '\r')
            continue;
        (void)str_utf8_lossy(span_slice(raw, from, i), out, &e);
        buf_addc_capped(out, '\n');
        from = i + 1 < raw.n && raw.p[i + 1] == '\n' ? i + 2 : i + 1;
        i = from - 1;
    }
    (void)str_utf8_lossy(span_skip(raw, from), out, &e);
}

struct reply {
    struct span out, err;
    int code;
    bool is_timed_out, is_truncated;
};

static void send_reply(struct http_exchange *x, const struct reply *r)
{
    OWN(buf_done) struct buf body = BUF_INIT(RUNTIME_ANSWER_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "stdout"), json_out_str(&o, r->out);
    json_out_key(&o, "stderr"), json_out_str(&o, r->err);
    json_out_key(&o, "exit_code"), json_out_i64(&o, r->code);
    json_out_key(&o, "timed_out"), json_out_bool(&o, r->is_timed_out);
    if (r->is_truncated)
        json_out_key(&o, "truncated"), json_out_bool(&o, true);
    json_out_object_end(&o);
    python_json(x, 200, &o, &body);
}

static void send_failure(struct http_exchange *x, struct span reason, int code, bool is_timed_out)
{
    OWN(buf_done) struct buf text = BUF_INIT(REASON_MAX_BYTES);

    (void)buf_add_capped(&text, SPAN("Failed to execute command: "));
    (void)buf_add_capped(&text, reason);
    send_reply(
        x, &(struct reply){ .err = buf_span(&text), .code = code, .is_timed_out = is_timed_out });
}

static void answer_spawn_failure(struct execute *c, struct spawn_fail fail)
{
    OWN(buf_done) struct buf text = BUF_INIT(REASON_MAX_BYTES);
    const char *subject = fail.step == SPAWN_STEP_CHDIR ? runtime_root(&c->rt->opt, CONTRACT_PYTHON)
                                                        : c->words.argv[0];
    struct err e;

    /* The reference's runtime finds no program under the empty name: permission denied, not "no such file". */
    int sys = fail.step == SPAWN_STEP_EXEC && !c->words.argv[0][0] ? 13 : fail.sys;

    (void)pyrepr_oserror(sys, span_cstr(subject), &text, &e);
    send_failure(c->x, buf_span(&text), 1, false);
}

static void answer_timeout(struct execute *c)
{
    OWN(buf_done) struct buf text = BUF_INIT(REASON_MAX_BYTES);
    struct err e;

    (void)pyrepr_timeout(c->words.argv, (double)c->limit_ms / 1000, &text, &e);
    send_failure(c->x, buf_span(&text), c->has_own_limit ? TIMED_OUT_CODE : 1, true);
}

static void answer_output(struct execute *c, struct exec_result *r)
{
    OWN(buf_done) struct buf out = BUF_INIT(0), err = BUF_INIT(0);

    decode(buf_span(&r->out), &out);
    decode(buf_span(&r->err), &err);
    err.max += 256;
    if (r->is_out_cut)
        buf_addf_capped(&err, "\n[silica: stdout is cut: %llu of %llu bytes kept]\n",
                        (unsigned long long)r->out.n, (unsigned long long)r->out_bytes);
    if (r->is_err_cut)
        buf_addf_capped(&err, "\n[silica: stderr is cut: %llu of %llu bytes kept]\n",
                        (unsigned long long)r->err.n, (unsigned long long)r->err_bytes);
    send_reply(c->x, &(struct reply){ .out = buf_span(&out),
                                      .err = buf_span(&err),
                                      .code = r->signal ? -r->signal : r->code,
                                      .is_truncated = r->is_out_cut || r->is_err_cut });
}

static void on_ended(void *ctx, struct exec_result *r)
{
    struct execute *c = ctx;

    log_info("execute.exit", KV("request", c->request), KV("program", c->words.argv[0]),
             KV("code", r->signal ? -r->signal : r->code), KV("timed_out", r->is_timed_out),
             KV("ms", r->ran_ms));
    if (!c->x)
        ;
    else if (r->fail.step)
        answer_spawn_failure(c, r->fail);
    else if (r->is_timed_out)
        answer_timeout(c);
    else if (r->is_canceled)
        send_failure(c->x, SPAN("the sandbox is shutting down"), 1, false);
    else
        answer_output(c, r);
    execute_free(c);
}

static void on_gone(void *ctx)
{
    struct execute *c = ctx;

    c->x = NULL;
}

/* ---- the request ---- */

static void run(struct execute *c)
{
    static const struct exec_ops ops = { .on_exit = on_ended };
    const struct exec_spec spec = {
        .mode = EXEC_CAPTURE,
        .argv = c->words.argv,
        .cwd = runtime_root(&c->rt->opt, CONTRACT_PYTHON),
        .cwd_fd = -1,
        .deadline_ms = c->limit_ms,
        .drain_ms = EXEC_FOREVER,
        .out_max = c->rt->opt.output_limit,
        .err_max = c->rt->opt.output_limit,
    };
    struct exec *started;
    struct err e;

    http_on_gone(c->x, on_gone, c);
    if (exec_start(c->rt->exec, &spec, &ops, c, &started, &e) == 0)
        return;
    send_failure(c->x, span_cstr(e.msg), 1, false);
    execute_free(c);
}

static void with_command(struct execute *c, const struct json *request)
{
    const struct json *command = json_get(request, "command"),
                      *limit = json_get(request, "timeout_seconds");
    double seconds;
    struct err e;

    if (!command)
        answer_invalid(c->x, "missing", "command", "Field required", request);
    else if (json_type(command) != JSON_STRING)
        answer_invalid(c->x, "string_type", "command", "Input should be a valid string", command);
    else if (split_command(json_str(command), &c->words, &e) < 0)
        send_failure(c->x, span_cstr(e.msg), 1, false);
    else {
        c->limit_ms = c->rt->opt.exec_timeout_ms;
        if (json_double(limit, &seconds) && seconds > 0) {
            c->has_own_limit = seconds * 1000 <= (double)c->limit_ms;
            if (c->has_own_limit)
                c->limit_ms = MAX((uint64_t)(seconds * 1000), (uint64_t)1);
        }
        run(c);
        return;
    }
    execute_free(c);
}

static void on_body(void *ctx, struct span body, const struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct execute *c = ctx;
    struct json_error where = { 0 };
    const struct json *root;
    struct err bad;

    if (e) {
        python_detail(c->x,
                      e->code == ERR_LIMIT     ? 413
                      : e->code == ERR_TIMEOUT ? 408
                                               : 400,
                      e->msg);
    } else if (body.n == 0) {
        answer_invalid(c->x, "missing", NULL, "Field required", NULL);
    } else if (!is_json_type(http_field(c->x, "content-type"))) {
        answer_not_json(c->x, body);
    } else if (json_parse_at(body, NULL, &where, &doc, &bad) < 0) {
        answer_bad_json(c->x, &where, &bad);
    } else if (root = json_doc_root(doc), json_is_null(root)) {
        answer_invalid(c->x, "missing", NULL, "Field required", NULL);
    } else if (json_type(root) != JSON_OBJECT) {
        answer_invalid(c->x, "model_attributes_type", NULL,
                       "Input should be a valid dictionary or object to extract fields from", root);
    } else {
        with_command(c, root);
        return;
    }
    execute_free(c);
}

static void gone_early(void *ctx)
{
    execute_free(ctx);
}

void python_execute(struct runtime *rt, struct http_exchange *x)
{
    struct execute *c = NEW(struct execute);

    c->rt = rt;
    c->x = x;
    c->request = http_id(x);
    http_on_gone(x, gone_early, c);
    http_body_collect(x, RUNTIME_EXECUTE_MAX_BYTES, on_body, c);
}
