#include "http/guard.h"

#include "net/addr.h"

#include <string.h>

#define LABEL_MAX_BYTES 63
#define PORT_MAX_DIGITS 5

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

/* Nothing, or a colon and a port. */
static bool is_port(struct span s)
{
    if (!s.n)
        return true;
    if (s.p[0] != ':' || s.n > 1 + PORT_MAX_DIGITS)
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

/* The host of HOST[:PORT], an IPv6 address in brackets; p NULL: it is no such text. */
static struct span host_of(struct span authority)
{
    bool is_literal = authority.n && authority.p[0] == '[';
    size_t end = span_find(authority, is_literal ? ']' : ':');
    struct span host;

    if (is_literal && end == SIZE_MAX)
        return SPAN_NONE;
    end = end == SIZE_MAX ? authority.n : end + is_literal;
    host = span_slice(authority, 0, end);
    if (!host.n || !is_port(span_skip(authority, end)))
        return SPAN_NONE;
    return !is_literal && host.n > 1 && host.p[host.n - 1] == '.' ? span_slice(host, 0, host.n - 1)
                                                                  : host;
}

static bool is_label(struct span s)
{
    if (!s.n || s.n > LABEL_MAX_BYTES || s.p[0] == '-' || s.p[s.n - 1] == '-')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i], lower = c | 0x20;

        if (c != '-' && !(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z'))
            return false;
    }
    return true;
}

/* Takes the first label off; what is left begins behind its dot. */
static struct span cut_label(struct span *name)
{
    size_t dot = span_find(*name, '.');
    struct span label = span_slice(*name, 0, dot);

    *name = dot == SIZE_MAX ? SPAN_NONE : span_skip(*name, dot + 1);
    return label;
}

static bool is_service(struct span host, const struct guard_names *names)
{
    struct span rest = host, name = cut_label(&rest), space = cut_label(&rest);

    if (!is_label(name) || !is_label(space) || !span_is_nocase(cut_label(&rest), "svc") ||
        (names->service && !span_is_nocase(name, names->service)))
        return false;
    return !rest.p || span_is_nocase(rest, names->cluster_domain);
}

static bool is_localhost(struct span host)
{
    struct span rest = host, label = cut_label(&rest);

    while (rest.p && is_label(label))
        label = cut_label(&rest);
    return !rest.p && span_is_nocase(label, "localhost");
}

bool guard_is_local_host(const struct http_head *rq, const struct guard_names *names)
{
    struct span authority = http_head_authority(rq), host;

    if (!authority.n)
        return true;
    host = net_host_is_ip(authority) ? authority : host_of(authority);
    return host.p && (net_host_is_ip(host) || is_localhost(host) || is_service(host, names) ||
                      is_in(names->allowed, host));
}
