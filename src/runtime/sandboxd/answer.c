#include "runtime/sandboxd/answer.h"

#include "base/log.h"
#include "runtime/files/path.h"

#include <errno.h>
#include <stdarg.h>

#define MESSAGE_MAX_BYTES (16 * 1024) /* a path or a query value stands in it */

static const struct {
    const char *name;
    int status;
} codes[] = {
    [SANDBOXD_INVALID_ARGUMENT] = { "INVALID_ARGUMENT", 400 },
    [SANDBOXD_PERMISSION_DENIED] = { "PERMISSION_DENIED", 403 },
    [SANDBOXD_NOT_FOUND] = { "NOT_FOUND", 404 },
    [SANDBOXD_CONFLICT] = { "CONFLICT", 409 },
    [SANDBOXD_INTERNAL] = { "INTERNAL", 500 },
    [SANDBOXD_UNAVAILABLE] = { "UNAVAILABLE", 503 },
};

void sandboxd_json_begin(struct json_out *o, struct buf *body)
{
    json_out_init(o, body, JSON_HTML_SAFE);
}

static void send_json(struct http_exchange *x, int status, struct json_out *o, struct buf *body)
{
    struct err e;

    body->max++; /* the newline is not the builder's */
    if (json_out_end(o, &e) == 0 && buf_addc(body, '\n', &e) == 0) {
        http_answer(x, status, "application/json", buf_span(body));
        return;
    }
    log_warn("answer.too-large", KV("request", http_id(x)), KV("err", &e));
    http_answer(
        x, 500, "application/json",
        SPAN(
            "{\"code\":\"INTERNAL\",\"message\":\"the answer is larger than this server sends\"}\n"));
}

void sandboxd_json(struct http_exchange *x, struct json_out *o, struct buf *body)
{
    send_json(x, 200, o, body);
}

void sandboxd_error(struct http_exchange *x, enum sandboxd_code code, const char *message)
{
    OWN(buf_done) struct buf body = BUF_INIT(6 * MESSAGE_MAX_BYTES + 128);
    struct json_out o;

    sandboxd_json_begin(&o, &body);
    json_out_object_begin(&o);
    json_out_key(&o, "code"), json_out_cstr(&o, codes[code].name);
    json_out_key(&o, "message"), json_out_cstr(&o, message);
    json_out_object_end(&o);
    send_json(x, codes[code].status, &o, &body);
}

void sandboxd_errorf(struct http_exchange *x, enum sandboxd_code code, const char *fmt, ...)
{
    OWN(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX_BYTES);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf_capped(&text, fmt, ap);
    va_end(ap);
    sandboxd_error(x, code, buf_cstr(&text));
}

void sandboxd_file_error(struct http_exchange *x, enum sandboxd_stage stage, const struct err *e)
{
    bool is_refused = e->sys == EACCES || e->sys == EPERM;

    if (path_is_escape(e))
        sandboxd_error(x, SANDBOXD_PERMISSION_DENIED,
                       "path traversal outside sandbox root is forbidden");
    else if (e->sys == ENOENT)
        sandboxd_error(x, SANDBOXD_NOT_FOUND, "path does not exist within the sandbox");
    else if (e->code == ERR_UNSUPPORTED)
        sandboxd_error(x, SANDBOXD_PERMISSION_DENIED, e->msg);
    else if (is_refused && stage == SANDBOXD_WORKING)
        sandboxd_error(x, SANDBOXD_PERMISSION_DENIED, "permission denied");
    else if (e->code == ERR_CONFLICT && !e->sys) /* our own verdict, not ENOTDIR */
        sandboxd_error(x, SANDBOXD_CONFLICT, e->msg);
    else
        sandboxd_error(x, SANDBOXD_INTERNAL, e->msg);
}

static void answer_text(struct http_exchange *x, int status, struct span text)
{
    http_answer_field(x, "x-content-type-options", SPAN("nosniff"));
    http_answer(x, status, "text/plain; charset=utf-8", text);
}

void sandboxd_no_route(struct http_exchange *x)
{
    answer_text(x, 404, SPAN("404 page not found\n"));
}

void sandboxd_wrong_method(struct http_exchange *x, const char *allow)
{
    http_answer_field(x, "allow", span_cstr(allow));
    answer_text(x, 405, SPAN("Method Not Allowed\n"));
}
