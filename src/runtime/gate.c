/* The door: who may come in at all. Token, Origin and Host are judged here, once, for every contract. */
#include "runtime/runtime.h"

#include "base/log.h"
#include "base/str.h"
#include "http/grpc_serve.h"
#include "runtime/python/answer.h"

static bool is_in(const struct opt_list *list, struct span s)
{
    for (size_t i = 0; i < list->n; i++)
        if (span_is_nocase(s, list->v[i]) || strcmp(list->v[i], "*") == 0)
            return true;
    return false;
}

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

/* A browser says where a page came from. A page of ours has our own Host; any other has no business here. */
static bool is_own_origin(const struct runtime *rt, const struct http_exchange *x)
{
    struct span origin = http_field(x, "origin");
    size_t scheme = span_find_str(origin, SPAN("://"));

    if (!origin.p || is_in(&rt->opt.allow_origin, origin))
        return true;
    return scheme != SIZE_MAX &&
           span_eq(span_skip(origin, scheme + 3), http_head_authority(http_req(x)));
}

/* Against DNS rebinding: a name that an attacker's resolver points at loopback is neither an address nor one of these. */
static bool is_local_host(const struct runtime *rt, const struct http_exchange *x)
{
    struct span host = http_head_authority(http_req(x));
    size_t colon = SIZE_MAX;

    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] == ':' || host.p[i] == ']')
            colon = host.p[i] == ':' && colon == SIZE_MAX ? i : host.p[i] == ']' ? SIZE_MAX : colon;
    if (colon != SIZE_MAX)
        host = span_slice(host, 0, colon);
    return host.n == 0 || net_host_is_ip(host) || span_is_nocase(host, "localhost") ||
           span_ends(host, ".localhost") || span_ends(host, ".svc") ||
           span_find_str(host, SPAN(".svc.")) != SIZE_MAX || is_in(&rt->opt.allow_host, host);
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
    if (!is_own_origin(rt, x)) {
        refuse(x, ERR_DENIED, "a foreign Origin is not allowed; see --allow-origin");
        return false;
    }
    if (rt->is_local_only && !is_local_host(rt, x)) {
        refuse(x, ERR_DENIED, "this Host is not allowed; see --allow-host");
        return false;
    }
    if (rt->opt.token && !gate_is_health(x) && !has_token(rt, x)) {
        refuse(x, ERR_UNAUTHORIZED, "a valid token is required");
        return false;
    }
    return true;
}
