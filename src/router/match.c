#include "router/match.h"

#include "base/str.h"
#include "kube/names.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PORT_DEFAULT 8888

void refusal_set(struct refusal *r, int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    r->status = status;
    (void)vsnprintf(r->detail, sizeof r->detail, fmt, ap);
    va_end(ap);
}

static bool refuse(struct refusal *why, const char *text)
{
    refusal_set(why, 400, "%s", text);
    return false;
}

/* The only value of a field; p NULL when it is absent. False: there are several. */
static bool one_value(const struct http_head *head, const char *name, struct span *ret)
{
    size_t iter = 0;

    *ret = http_head_next(head, name, &iter);
    return !ret->p || !http_head_next(head, name, &iter).p;
}

static bool read_label(struct span s, char ret[TARGET_NAME_BYTES])
{
    if (s.n >= TARGET_NAME_BYTES || !names_check(NAMES_DNS_LABEL, s, NULL))
        return false;
    memcpy(ret, s.p, s.n);
    ret[s.n] = '\0';
    return true;
}

static bool read_names(const struct http_head *head, struct target *t, struct refusal *why)
{
    struct span id, namespace;

    if (!one_value(head, "x-sandbox-id", &id))
        return refuse(why, "Invalid sandbox ID format.");
    if (id.n == 0)
        return refuse(why, "X-Sandbox-ID header is required.");
    if (!read_label(id, t->id))
        return refuse(why, "Invalid sandbox ID format.");
    if (!one_value(head, "x-sandbox-namespace", &namespace))
        return refuse(why, "Invalid namespace format.");
    if (!read_label(namespace.n ? namespace : SPAN("default"), t->namespace))
        return refuse(why, "Invalid namespace format.");
    return true;
}

static bool read_port(const struct http_head *head, struct target *t)
{
    struct span port;
    uint64_t n = PORT_DEFAULT;

    if (!one_value(head, "x-sandbox-port", &port) ||
        (port.n && (port.n > 5 || !str_u64(port, 65535, &n) || n == 0)))
        return false;
    t->port = (uint16_t)n;
    return true;
}

/* ::ffff:127.0.0.1 is where 127.0.0.1 is, whatever it looks like. */
static void unwrap(struct net_addr *a)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    struct sockaddr_in v4 = { .sin_family = AF_INET };

    if (a->sa.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return;
    v4.sin_port = v6->sin6_port;
    memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], sizeof v4.sin_addr);
    *a = (struct net_addr){ .len = sizeof v4 };
    memcpy(&a->sa, &v4, sizeof v4);
}

/* Could a Pod be there? Not where only this machine, this link or nobody is. */
static bool is_pod_address(const struct net_addr *a, bool is_loopback_allowed)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    uint32_t ip = ntohl(((const struct sockaddr_in *)(const void *)&a->sa)->sin_addr.s_addr);

    if (net_addr_is_loopback(a))
        return is_loopback_allowed;
    if (a->sa.ss_family == AF_INET)
        return ip != 0 && ip >> 16 != 0xa9fe && ip >> 28 != 0xe && ip != UINT32_MAX;
    return !IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
           !IN6_IS_ADDR_MULTICAST(&v6->sin6_addr);
}

static bool read_ip(const struct http_head *head, bool is_loopback_allowed, struct target *t)
{
    struct span ip;

    if (!one_value(head, "x-sandbox-pod-ip", &ip))
        return false;
    if (ip.n == 0)
        return true;
    if (!net_addr_of_ip(ip, t->port, &t->ip))
        return false;
    unwrap(&t->ip);
    t->has_ip = is_pod_address(&t->ip, is_loopback_allowed);
    return t->has_ip;
}

/* What cannot be read is as if it were not there: the contract's, as clients send "inf" and the like. */
static uint64_t read_timeout(const struct http_head *head, uint64_t most_ms)
{
    struct span text = span_trim(http_head_get(head, "x-sandbox-timeout"));
    double seconds;

    if (!text.n || !str_double(text, &seconds) || !(seconds > 0) ||
        seconds * 1000 >= (double)most_ms)
        return most_ms;
    return MAX((uint64_t)(seconds * 1000), (uint64_t)1);
}

bool match_read(const struct http_head *head, const struct match_rules *rules, struct target *ret,
                struct refusal *why)
{
    struct target t = { .timeout_ms = read_timeout(head, rules->timeout_ms) };
    struct span uid = http_head_get(head, "x-sandbox-uid");
    bool is_right = read_names(head, &t, why);

    if (is_right && !read_port(head, &t))
        is_right = refuse(why, "Invalid port format.");
    if (is_right && !read_ip(head, rules->is_loopback_allowed, &t))
        is_right = refuse(why, "Invalid target IP address.");
    if (uid.n < sizeof t.uid)
        memcpy(t.uid, uid.n ? uid.p : (const uint8_t *)"", uid.n);
    *ret = t;
    return is_right;
}

bool match_is_ours(struct span name)
{
    static const char *const ours[] = { "id", "namespace", "port", "pod-ip", "timeout", "uid" };

    if (!span_starts(name, "x-sandbox-"))
        return false;
    name = span_skip(name, strlen("x-sandbox-"));
    EACH(o, ours) {
        if (span_is(name, *o))
            return true;
    }
    return false;
}
