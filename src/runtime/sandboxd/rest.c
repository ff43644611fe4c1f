/* The REST door: which handler a path below /v1 goes to. Paths are compared as they came; only what follows /v1/files/
 * is decoded, once. Nothing is cleaned on the way (the reference redirects to the cleaned path, and its own clients
 * refuse redirects): dot segments reach the handler like encoded ones, and the path rules judge them. */
#include "runtime/sandboxd/rest.h"

#include "base/str.h"
#include "base/time.h"
#include "runtime/sandboxd/answer.h"
#include "runtime/sandboxd/limits.h"
#include "runtime/sandboxd/routes.h"

#define PATH_MAX_BYTES (64 * 1024) /* the head's own ceiling */

int rest_query(const struct http_exchange *x, const char *name, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf spaced = BUF_INIT(SANDBOXD_QUERY_MAX_BYTES);

    if (buf_add(&spaced, http_query_get(x, name), e) < 0)
        return -1;
    for (size_t i = 0; i < spaced.n; i++)
        if (spaced.p[i] == '+')
            spaced.p[i] = ' ';
    return str_percent_decode(buf_span(&spaced), out, e);
}

static void health(struct runtime *rt, struct http_exchange *x)
{
    OWN(buf_done) struct buf body = BUF_INIT(256);
    struct json_out o;

    if (rt->is_stopping) {
        sandboxd_error(x, SANDBOXD_UNAVAILABLE, "sandboxd is shutting down");
        return;
    }
    sandboxd_json_begin(&o, &body);
    json_out_object_begin(&o);
    json_out_key(&o, "status"), json_out_cstr(&o, "ok");
    json_out_key(&o, "uptime_seconds"), json_out_u64(&o, (time_mono_ms() - rt->started_ms) / 1000);
    json_out_object_end(&o);
    sandboxd_json(x, &o, &body);
}

static bool is_read(const struct http_exchange *x)
{
    return http_method_is(x, "GET") || http_method_is(x, "HEAD");
}

static void files(struct runtime *rt, struct http_exchange *x, struct span raw)
{
    OWN(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);
    struct err e;

    if (str_percent_decode(raw, &path, &e) < 0)
        sandboxd_error(x, SANDBOXD_INVALID_ARGUMENT, "the path is too long");
    else if (is_read(x))
        sandboxd_get(rt, x, buf_span(&path));
    else if (http_method_is(x, "PUT"))
        sandboxd_put(rt, x, buf_span(&path));
    else if (http_method_is(x, "DELETE"))
        sandboxd_delete(rt, x, buf_span(&path));
    else
        sandboxd_wrong_method(x, "DELETE, GET, HEAD, PUT");
}

/* clang-format off */
static const struct route {
    const char *path;
    void (*handle)(struct runtime *rt, struct http_exchange *x);
} routes[] = {
    { "/v1/health",   health },
    { "/v1/metadata", sandboxd_metadata },
};
/* clang-format on */

void sandboxd_rest(struct runtime *rt, struct http_exchange *x)
{
    struct span path = http_path(x);

    if (span_starts(path, "/v1/files/")) {
        files(rt, x, span_skip(path, strlen("/v1/files/")));
        return;
    }
    if (span_is(path, "/v1/files")) {
        files(rt, x, SPAN_NONE);
        return;
    }
    EACH(r, routes) {
        if (!span_is(path, r->path))
            continue;
        if (is_read(x))
            r->handle(rt, x);
        else
            sandboxd_wrong_method(x, "GET, HEAD");
        return;
    }
    sandboxd_no_route(x);
}
