#include "runtime/python/answer.h"

#include "base/log.h"
#include "runtime/limits.h"

#include <stdarg.h>

#define TEXT_MAX_BYTES (64 * 1024)

void python_json(struct http_exchange *x, int status, struct json_out *o, struct buf *body)
{
    struct err e;

    if (json_out_end(o, &e) == 0) {
        http_answer(x, status, "application/json", buf_span(body));
        return;
    }
    log_warn("answer.too-large", KV("request", http_id(x)), KV("err", &e));
    http_answer(x, 500, "application/json",
                SPAN("{\"message\":\"the answer is larger than this server sends\"}"));
}

static void one_member(struct http_exchange *x, int status, const char *name, struct span text)
{
    OWN(buf_done) struct buf body = BUF_INIT(6 * TEXT_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, name), json_out_str(&o, text);
    json_out_object_end(&o);
    python_json(x, status, &o, &body);
}

void python_message(struct http_exchange *x, int status, const char *fmt, ...)
{
    OWN(buf_done) struct buf text = BUF_INIT(TEXT_MAX_BYTES);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf_capped(&text, fmt, ap);
    va_end(ap);
    one_member(x, status, "message", buf_span(&text));
}

void python_detail(struct http_exchange *x, int status, const char *text)
{
    one_member(x, status, "detail", span_cstr(text));
}

void python_denied(struct http_exchange *x)
{
    python_message(x, 403, "Access denied");
}

void python_not_found(struct http_exchange *x)
{
    python_detail(x, 404, "Not Found");
}

void python_method_not_allowed(struct http_exchange *x, const char *allow)
{
    http_answer_field(x, "allow", span_cstr(allow));
    python_detail(x, 405, "Method Not Allowed");
}

void python_invalid(struct http_exchange *x, const struct python_invalid *v)
{
    OWN(buf_done) struct buf body = BUF_INIT(RUNTIME_ANSWER_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "detail");
    json_out_array_begin(&o);
    json_out_object_begin(&o);
    json_out_key(&o, "type"), json_out_cstr(&o, v->type);
    json_out_key(&o, "loc");
    json_out_array_begin(&o);
    json_out_cstr(&o, "body");
    if (v->loc && v->loc_is_number)
        json_out_raw(&o, span_cstr(v->loc));
    else if (v->loc)
        json_out_cstr(&o, v->loc);
    json_out_array_end(&o);
    json_out_key(&o, "msg"), json_out_cstr(&o, v->msg);
    json_out_key(&o, "input"), json_out_raw(&o, v->input);
    if (v->ctx_error) {
        json_out_key(&o, "ctx");
        json_out_object_begin(&o);
        json_out_key(&o, "error");
        if (strcmp(v->ctx_error, "{}") == 0)
            json_out_raw(&o, SPAN("{}"));
        else
            json_out_cstr(&o, v->ctx_error);
        json_out_object_end(&o);
    }
    json_out_object_end(&o);
    json_out_array_end(&o);
    json_out_object_end(&o);
    python_json(x, 422, &o, &body);
}
