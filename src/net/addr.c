#include "net/addr.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

int net_addr_split(const char *text, struct span *ret_host, uint16_t *ret_port, struct err *e)
{
    struct span s = span_cstr(text), host, port;
    uint64_t number;
    size_t colon;

    if (span_starts(s, "[")) {
        size_t close = span_find(s, ']');

        host = span_slice(s, 1, close);
        port = close == SIZE_MAX ? SPAN_NONE : span_skip(s, close + 1);
        if (!span_starts(port, ":"))
            return err_set(e, ERR_INVALID, "address '%s': want [IPV6]:PORT", text);
        port = span_skip(port, 1);
    } else {
        colon = span_find(s, ':');
        if (colon == SIZE_MAX)
            return err_set(e, ERR_INVALID, "address '%s': want HOST:PORT", text);
        host = span_slice(s, 0, colon);
        port = span_skip(s, colon + 1);
        if (span_find(port, ':') != SIZE_MAX)
            return err_set(e, ERR_INVALID,
                           "address '%s': an IPv6 host needs brackets, as in [::1]:80", text);
    }
    if (!str_u64(port, 65535, &number))
        return err_set(e, ERR_INVALID, "address '%s': the port must be a number from 0 to 65535",
                       text);
    *ret_host = host;
    *ret_port = (uint16_t)number;
    return 0;
}

static int parse_unix(const char *text, struct net_addr *ret, struct err *e)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&ret->sa;
    const char *path = text + strlen("unix:");
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof un->sun_path)
        return err_set(e, ERR_INVALID, "address '%s': a socket's path has 1 to %zu bytes", text,
                       sizeof un->sun_path - 1);
    *ret = (struct net_addr){ 0 };
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, n + 1);
    ret->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return 0;
}

/* As inet_pton, without a copy: a request that is passed on has two of them. */
static bool parse_ipv4(struct span s, uint8_t ret[4])
{
    size_t at = 0;

    for (int i = 0; i < 4; i++) {
        size_t from = at;
        unsigned n = 0;

        while (at < s.n && at - from < 4 && s.p[at] >= '0' && s.p[at] <= '9')
            n = n * 10 + (s.p[at++] - '0');
        if (at == from || n > 255 || (s.p[from] == '0' && at - from > 1))
            return false;
        ret[i] = (uint8_t)n;
        if (i < 3 && (at == s.n || s.p[at++] != '.'))
            return false;
    }
    return at == s.n;
}

static bool parse_ip(struct span host, struct net_addr *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&ret->sa;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&ret->sa;
    char text[INET6_ADDRSTRLEN];
    uint8_t ip[4];

    if (parse_ipv4(host, ip)) {
        *ret = (struct net_addr){ .sa.ss_family = AF_INET, .len = sizeof *v4 };
        memcpy(&v4->sin_addr, ip, sizeof ip);
        return true;
    }
    if (host.n == 0 || host.n >= sizeof text)
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    *ret = (struct net_addr){ 0 };
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        ret->len = sizeof *v6;
        return true;
    }
    return false;
}

bool net_host_is_ip(struct span host)
{
    struct net_addr scratch;
    uint8_t ip[4];

    if (span_starts(host, "[") && span_ends(host, "]"))
        host = span_slice(host, 1, host.n - 1);
    return parse_ipv4(host, ip) || parse_ip(host, &scratch);
}

bool net_addr_of_ip(struct span ip, uint16_t port, struct net_addr *ret)
{
    struct net_addr a;

    if (!parse_ip(ip, &a))
        return false;
    if (a.sa.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&a.sa)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)&a.sa)->sin6_port = htons(port);
    *ret = a;
    return true;
}

int net_addr_parse(const char *text, struct net_addr *ret, struct err *e)
{
    struct net_addr a;
    struct span host;
    uint16_t port;

    if (span_starts(span_cstr(text), "unix:"))
        return parse_unix(text, ret, e);
    if (net_addr_split(text, &host, &port, e) < 0)
        return -1;
    if (host.n == 0)
        host = SPAN("0.0.0.0");
    else if (span_is(host, "localhost"))
        host = SPAN("127.0.0.1");
    if (!net_addr_of_ip(host, port, &a))
        return err_set(e, ERR_INVALID, "address '%s': the host is not an IP address or localhost",
                       text);
    *ret = a;
    return 0;
}

const char *net_addr_text(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&a->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&a->sa;
    char ip[INET6_ADDRSTRLEN];

    if (a->sa.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof ip))
        (void)snprintf(text, NET_ADDR_TEXT_BYTES, "%s:%u", ip, ntohs(v4->sin_port));
    else if (a->sa.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof ip))
        (void)snprintf(text, NET_ADDR_TEXT_BYTES, "[%s]:%u", ip, ntohs(v6->sin6_port));
    else
        (void)snprintf(text, NET_ADDR_TEXT_BYTES, "unix:%.*s", (int)sizeof un->sun_path,
                       a->len > offsetof(struct sockaddr_un, sun_path) ? un->sun_path : "");
    return text;
}

/* As inet_ntop, which goes through printf: this is written for every request that is passed on. */
static const char *ipv4_text(const struct in_addr *ip, char text[NET_ADDR_TEXT_BYTES])
{
    const uint8_t *byte = (const uint8_t *)&ip->s_addr;
    char *p = text;

    for (int i = 0; i < 4; i++) {
        if (i)
            *p++ = '.';
        if (byte[i] >= 100)
            *p++ = (char)('0' + byte[i] / 100);
        if (byte[i] >= 10)
            *p++ = (char)('0' + byte[i] / 10 % 10);
        *p++ = (char)('0' + byte[i] % 10);
    }
    *p = '\0';
    return text;
}

const char *net_addr_ip_text(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES])
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;

    if (a->sa.ss_family == AF_INET)
        return ipv4_text(&((const struct sockaddr_in *)(const void *)&a->sa)->sin_addr, text);
    if (a->sa.ss_family != AF_INET6 ||
        !inet_ntop(AF_INET6, &v6->sin6_addr, text, NET_ADDR_TEXT_BYTES))
        text[0] = '\0';
    return text;
}

uint16_t net_addr_port(const struct net_addr *a)
{
    if (a->sa.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&a->sa)->sin_port);
    if (a->sa.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&a->sa)->sin6_port);
    return 0;
}

bool net_addr_is_loopback(const struct net_addr *a)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&a->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;

    if (a->sa.ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    if (a->sa.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    return a->sa.ss_family == AF_UNIX;
}

static bool stands_for_ipv4(const struct in6_addr *a)
{
    static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };

    return IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_V4COMPAT(a) ||
           memcmp(a->s6_addr, nat64, sizeof nat64) == 0;
}

void net_addr_unmap(struct net_addr *a)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    struct sockaddr_in v4 = { .sin_family = AF_INET };

    if (a->sa.ss_family != AF_INET6 || !stands_for_ipv4(&v6->sin6_addr))
        return;
    v4.sin_port = v6->sin6_port;
    memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], sizeof v4.sin_addr);
    *a = (struct net_addr){ .len = sizeof v4 };
    memcpy(&a->sa, &v4, sizeof v4);
}

bool net_addr_is_unicast(const struct net_addr *a)
{
    struct net_addr b = *a;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&b.sa;
    uint32_t ip;

    net_addr_unmap(&b);
    if (net_addr_is_loopback(&b))
        return false;
    ip = ntohl(((const struct sockaddr_in *)(const void *)&b.sa)->sin_addr.s_addr);
    if (b.sa.ss_family == AF_INET)
        return ip >> 24 != 0 && ip >> 16 != 0xa9fe && ip >> 28 != 0xe && ip != UINT32_MAX;
    return !IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
           !IN6_IS_ADDR_MULTICAST(&v6->sin6_addr);
}
