#include "runtime/pydantic/request.h"

#include "runtime/files/path.h"
#include "runtime/python/answer.h"

#include <errno.h>
#include <stdarg.h>

struct request {
    struct runtime *rt;
    struct http_exchange *x;
    pydantic_handle_fn handle;
};

static void refuse(struct http_exchange *x, int status, const char *fmt, ...) PRINTF(3, 4);

static void refuse(struct http_exchange *x, int status, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    python_detail(x, status, text);
}

static void on_body(void *ctx, struct span body, const struct err *e)
{
    struct json_limits limits = { .max_bytes = INT32_MAX };
    struct request *r = ctx;
    struct http_exchange *x = r->x;
    struct json_doc *doc = NULL;
    struct err bad;

    if (e)
        refuse(x, e->code == ERR_LIMIT ? 413 : e->code == ERR_TIMEOUT ? 408 : 400, "%s", e->msg);
    else if (json_parse(body, &limits, &doc, &bad) < 0)
        refuse(x, bad.code == ERR_LIMIT ? 413 : 400, "the body is not JSON: %s", bad.msg);
    else if (json_type(json_doc_root(doc)) != JSON_OBJECT)
        refuse(x, 422, "the body must be a JSON object, not %s",
               json_type_name(json_doc_root(doc)));
    else
        r->handle(r->rt, x, json_doc_ref(doc));
    json_doc_unref(doc);
    free(r);
}

static void on_gone(void *ctx)
{
    free(ctx);
}

void pydantic_request(struct runtime *rt, struct http_exchange *x, size_t max_bytes,
                      pydantic_handle_fn handle)
{
    struct request *r = NEW(struct request);

    *r = (struct request){ rt, x, handle };
    http_on_gone(x, on_gone, r);
    http_body_collect(x, max_bytes, on_body, r);
}

bool pydantic_want_str(struct http_exchange *x, const struct json_doc *doc, const char *name,
                       struct span *ret)
{
    const struct json *v = json_get(json_doc_root(doc), name);

    if (json_type(v) != JSON_STRING) {
        refuse(x, 422,
               v ? "'%s' must be a string, not %s"
                 : "'%s' is required: a string is missing, there is %s",
               name, json_type_name(v));
        return false;
    }
    *ret = json_str(v);
    return true;
}

bool pydantic_want_u64(struct http_exchange *x, const struct json_doc *doc, const char *name,
                       uint64_t otherwise, uint64_t *ret)
{
    const struct json *v = json_get(json_doc_root(doc), name);

    *ret = otherwise;
    if (!v || json_is_null(v) || json_u64(v, ret))
        return true;
    refuse(x, 422, "'%s' must be a whole number that is not negative", name);
    return false;
}

bool pydantic_want_bool(struct http_exchange *x, const struct json_doc *doc, const char *name,
                        bool otherwise, bool *ret)
{
    const struct json *v = json_get(json_doc_root(doc), name);

    *ret = otherwise;
    if (!v || json_is_null(v) || json_bool(v, ret))
        return true;
    refuse(x, 422, "'%s' must be true or false", name);
    return false;
}

void pydantic_file_error(struct http_exchange *x, const struct err *e)
{
    int status = 500;

    if (path_is_escape(e))
        status = 403;
    else if (e->code == ERR_DENIED || e->sys == EACCES || e->sys == EPERM)
        status = 403;
    else if (e->code == ERR_NOT_FOUND)
        status = 404;
    else if (e->code == ERR_LIMIT)
        status = 413;
    else if (e->code == ERR_NO_SPACE)
        status = 507;
    else if (e->code == ERR_INVALID || e->code == ERR_CONFLICT || e->code == ERR_UNSUPPORTED)
        status = 400;
    refuse(x, status, "%s", e->msg);
}
