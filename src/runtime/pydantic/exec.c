/* /health and /exec: a shell command, both outputs in one text. */
#include "runtime/pydantic/routes.h"

#include "base/log.h"
#include "base/str.h"
#include "runtime/exec/exec.h"
#include "runtime/limits.h"
#include "runtime/pydantic/request.h"
#include "runtime/python/answer.h"

#define DEFAULT_TIMEOUT_S 300
/* As timeout(1) reports it, and as the client expects it elsewhere */
#define TIMED_OUT_CODE 124
#define NOT_RUN_CODE   126
/* For output after the shell's end; a server left in the background does not hold the call */
#define DRAIN_MS 2000

struct shell {
    struct http_exchange *x; /* NULL once the client is gone */
    struct exec *exec;
    uint64_t request;
};

void pydantic_health(struct runtime *rt, struct http_exchange *x)
{
    if (rt->is_stopping)
        http_answer(x, 503, "application/json", SPAN("{\"ready\":false}"));
    else
        http_answer(x, 200, "application/json", SPAN("{\"ready\":true}"));
}

static void answer(struct http_exchange *x, struct span output, int64_t code, bool is_truncated)
{
    OWN(buf_done) struct buf body = BUF_INIT(RUNTIME_ANSWER_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "output"), json_out_str(&o, output);
    json_out_key(&o, "exit_code"), json_out_i64(&o, code);
    json_out_key(&o, "truncated"), json_out_bool(&o, is_truncated);
    json_out_object_end(&o);
    python_json(x, 200, &o, &body);
}

static void on_ended(void *ctx, struct exec_result *r)
{
    struct shell *s = ctx;
    int64_t code = r->signal ? 128 + r->signal : r->code;
    struct err e;

    log_info("exec.exit", KV("request", s->request), KV("code", code),
             KV("timed_out", r->is_timed_out), KV("ms", r->ran_ms));
    if (s->x && r->fail.step) {
        const struct spawn_spec none = { .argv = (char *[]){ (char *)"/bin/sh", NULL } };

        (void)spawn_err(&e, &none, r->fail);
        answer(s->x, span_cstr(e.msg), NOT_RUN_CODE, false);
    } else if (s->x) {
        answer(s->x, buf_span(&r->out), r->is_timed_out ? TIMED_OUT_CODE : code, r->is_out_cut);
    }
    free(s);
}

/* Nobody is left to read the answer: what a shell was asked for ends with the one who asked. */
static void on_gone(void *ctx)
{
    struct shell *s = ctx;

    s->x = NULL;
    exec_cancel(s->exec);
}

static void run(struct runtime *rt, struct http_exchange *x, const char *command, uint64_t seconds)
{
    static const struct exec_ops ops = { .on_exit = on_ended };
    const uint64_t max_ms = rt->opt.max_timeout_ms;
    char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)(uintptr_t)command, NULL };
    const struct exec_spec spec = {
        .mode = EXEC_MERGED,
        .argv = argv,
        .cwd = runtime_root(&rt->opt, CONTRACT_PYDANTIC),
        .cwd_fd = -1,
        .deadline_ms = seconds < max_ms / 1000 ? seconds * 1000 : max_ms,
        .drain_ms = DRAIN_MS,
        .out_max = rt->opt.pydantic_output_limit,
    };
    struct shell *s = NEW(struct shell);
    struct err e;

    s->x = x;
    s->request = http_id(x);
    if (exec_start(rt->exec, &spec, &ops, s, &s->exec, &e) < 0) {
        answer(x, span_cstr(e.msg), NOT_RUN_CODE, false);
        free(s);
        return;
    }
    http_on_gone(x, on_gone, s);
    http_eof_is_gone(x);
}

static void handle(struct runtime *rt, struct http_exchange *x, struct json_doc *doc)
{
    struct span command;
    uint64_t seconds;

    if (pydantic_want_str(x, doc, "command", &command) &&
        pydantic_want_u64(x, doc, "timeout_seconds", DEFAULT_TIMEOUT_S, &seconds)) {
        if (span_find(command, '\0') != SIZE_MAX)
            python_detail(x, 422, "'command' holds a NUL character");
        else
            run(rt, x, (const char *)command.p, seconds ? seconds : DEFAULT_TIMEOUT_S);
    }
    json_doc_unref(doc);
}

void pydantic_exec(struct runtime *rt, struct http_exchange *x)
{
    pydantic_request(rt, x, RUNTIME_EXECUTE_MAX_BYTES, handle);
}
