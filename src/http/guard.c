#include "http/guard.h"

#include "net/addr.h"

#include <string.h>

static bool is_in(const struct opt_list *list, struct span s)
{
    for (size_t i = 0; i < list->n; i++)
        if (span_is_nocase(s, list->v[i]) || strcmp(list->v[i], "*") == 0)
            return true;
    return false;
}

bool guard_is_own_origin(const struct http_head *rq, const struct opt_list *allowed)
{
    struct span origin = http_head_get(rq, "origin");
    size_t scheme = span_find_str(origin, SPAN("://"));

    if (!origin.p || is_in(allowed, origin))
        return true;
    return scheme != SIZE_MAX && span_eq(span_skip(origin, scheme + 3), http_head_authority(rq));
}

bool guard_is_local_host(const struct http_head *rq, const struct opt_list *allowed)
{
    struct span host = http_head_authority(rq);
    size_t colon = SIZE_MAX;

    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] == ':' || host.p[i] == ']')
            colon = host.p[i] == ':' && colon == SIZE_MAX ? i : host.p[i] == ']' ? SIZE_MAX : colon;
    if (colon != SIZE_MAX)
        host = span_slice(host, 0, colon);
    return host.n == 0 || net_host_is_ip(host) || span_is_nocase(host, "localhost") ||
           span_ends(host, ".localhost") || span_ends(host, ".svc") ||
           span_find_str(host, SPAN(".svc.")) != SIZE_MAX || is_in(allowed, host);
}
