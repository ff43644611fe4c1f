/* The door: who may come in at all. Token, Origin and Host are judged here, once, for every contract. */
#include "runtime/runtime.h"

#include "base/log.h"
#include "base/str.h"
#include "http/grpc_serve.h"
#include "http/guard.h"
#include "runtime/python/answer.h"

bool gate_is_health(const struct http_exchange *x)
{
    struct span path = http_path(x);
    bool is_get = http_method_is(x, "GET") || http_method_is(x, "HEAD");

    return is_get &&
           (span_is(path, "/") || span_is(path, "/health") || span_is(path, "/v1/health"));
}

static bool has_token(const struct runtime *rt, const struct http_exchange *x)
{
    struct span want = span_cstr(rt->opt.token);
    struct span own = http_field(x, "x-sandbox-token");
    struct span bearer = http_field(x, "authorization");

    if (own.p && str_eq_secret(own, want))
        return true;
    if (bearer.n > 7 && span_is_nocase(span_slice(bearer, 0, 7), "bearer "))
        return str_eq_secret(span_trim(span_skip(bearer, 7)), want);
    return false;
}

/* In the words of the contract whose path it is. */
static void refuse(struct http_exchange *x, enum err_code code, const char *text)
{
    static const struct span no_token =
        BYTES("{\"code\":\"UNAUTHENTICATED\",\"message\":\"a valid token is required\"}\n");
    static const struct span no_entry = BYTES(
        "{\"code\":\"PERMISSION_DENIED\",\"message\":\"this Origin or Host is not allowed\"}\n");
    struct span path = http_path(x);
    int status = err_map(code)->http;
    bool is_token = code == ERR_UNAUTHORIZED;

    log_info("gate.refused", KV("request", http_id(x)), KV("path", path), KV("why", text));
    if (is_token)
        http_answer_field(x, "www-authenticate", SPAN("Bearer"));
    if (grpc_is_call(http_req(x)))
        grpc_refuse(x, grpc_status_of(code), text);
    else if (span_starts(path, "/v1/"))
        http_answer(x, status, "application/json", is_token ? no_token : no_entry);
    else
        python_detail(x, status, is_token ? "Unauthorized" : text);
}

bool gate_admits(struct runtime *rt, struct http_exchange *x)
{
    const struct guard_names names = { .cluster_domain = rt->opt.cluster_domain,
                                       .allowed = &rt->opt.allow_host };

    if (!guard_is_own_origin(http_req(x), &rt->opt.allow_origin)) {
        refuse(x, ERR_DENIED, "a foreign Origin is not allowed; see --allow-origin");
        return false;
    }
    if (rt->is_local_only && !guard_is_local_host(http_req(x), &names)) {
        refuse(x, ERR_DENIED, "this Host is not allowed; see --allow-host");
        return false;
    }
    if (rt->opt.token && !gate_is_health(x) && !has_token(rt, x)) {
        refuse(x, ERR_UNAUTHORIZED, "a valid token is required");
        return false;
    }
    return true;
}
