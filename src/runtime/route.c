/* Which handler a request goes to. The paths of the contracts do not collide, so one table serves them all; what no
 * contract knows gets contract A's 404, and below /v1/ contract B's. */
#include "runtime/runtime.h"

#include "base/str.h"
#include "http/grpc_serve.h"
#include "runtime/pydantic/routes.h"
#include "runtime/python/answer.h"
#include "runtime/python/routes.h"
#include "runtime/sandboxd/routes.h"

#define PATH_MAX_BYTES (64 * 1024) /* the head's own ceiling */

static void python_health(struct runtime *rt, struct http_exchange *x)
{
    (void)rt;
    http_answer(x, 200, "application/json",
                SPAN("{\"status\":\"ok\",\"message\":\"Sandbox Runtime is active.\"}"));
}

struct fixed {
    const char *path;
    const char *method;
    void (*handle)(struct runtime *rt, struct http_exchange *x);
};

/* clang-format off */
static const struct fixed fixed_routes[] = {
    { "/",        "GET",  python_health },
    { "/execute", "POST", python_execute },
    { "/upload",  "POST", python_upload },
    { "/health",  "GET",  pydantic_health },
    { "/exec",    "POST", pydantic_exec },
    { "/read",    "POST", pydantic_read },
    { "/write",   "POST", pydantic_write },
    { "/edit",    "POST", pydantic_edit },
    { "/ls",      "POST", pydantic_ls },
    { "/glob",    "POST", pydantic_glob },
    { "/grep",    "POST", pydantic_grep },
};

static const struct rest {
    const char *prefix; /* without the slash that may follow */
    void (*handle)(struct runtime *rt, struct http_exchange *x, struct span path);
} rest_routes[] = {
    { "/download", python_download },
    { "/list",     python_list },
    { "/exists",   python_exists },
};
/* clang-format on */

/* `/list` and `/list/` are the same to us: the reference redirects, and its own clients refuse redirects. */
static bool match_rest(struct span path, const char *prefix, struct span *ret_rest)
{
    if (!span_starts(path, prefix))
        return false;
    *ret_rest = span_skip(path, strlen(prefix));
    if (ret_rest->n && ret_rest->p[0] != '/')
        return false;
    *ret_rest = span_skip(*ret_rest, 1);
    return true;
}

static void route_decoded(struct runtime *rt, struct http_exchange *x, struct span path)
{
    struct span rest;

    if (path.n > 1 && (span_is(path, "/execute/") || span_is(path, "/upload/")))
        path.n--;
    EACH(r, fixed_routes) {
        if (!span_is(path, r->path))
            continue;
        if (http_method_is(x, r->method))
            r->handle(rt, x);
        else
            python_method_not_allowed(x, r->method);
        return;
    }
    EACH(r, rest_routes) {
        if (!match_rest(path, r->prefix, &rest))
            continue;
        if (http_method_is(x, "GET"))
            r->handle(rt, x, rest);
        else
            python_method_not_allowed(x, "GET");
        return;
    }
    python_not_found(x);
}

void route_request(void *ctx, struct http_exchange *x)
{
    OWN(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);
    struct runtime *rt = ctx;
    struct err e;

    if (!gate_admits(rt, x))
        return;
    if (grpc_is_call(http_req(x))) {
        sandboxd_grpc(rt, x);
        return;
    }
    if (span_starts(http_path(x), "/v1/") || span_is(http_path(x), "/v1")) {
        sandboxd_rest(rt, x);
        return;
    }
    if (str_percent_decode(http_path(x), &path, &e) < 0)
        python_detail(x, 414, "the path is too long");
    else
        route_decoded(rt, x, buf_span(&path));
}
