#include "router/trust.h"

#include "base/str.h"

#include <netinet/in.h>
#include <string.h>

/* The bytes of an address, 4 or 16. */
static struct span bytes_of(const struct net_addr *a)
{
    if (a->sa.ss_family == AF_INET)
        return span_of(&((const struct sockaddr_in *)(const void *)&a->sa)->sin_addr, 4);
    if (a->sa.ss_family == AF_INET6)
        return span_of(&((const struct sockaddr_in6 *)(const void *)&a->sa)->sin6_addr, 16);
    return SPAN_NONE;
}

static bool read_range(struct span text, struct trust_range *ret)
{
    size_t slash = span_find(text, '/');
    uint64_t bits;

    if (!net_addr_of_ip(span_slice(text, 0, slash), 0, &ret->base))
        return false;
    ret->bits = (unsigned)bytes_of(&ret->base).n * 8;
    if (slash == SIZE_MAX)
        return true;
    if (!str_u64(span_skip(text, slash + 1), ret->bits, &bits))
        return false;
    ret->bits = (unsigned)bits;
    return true;
}

int trust_add(struct trust *t, const char *text, struct err *e)
{
    struct span rest = span_cstr(text), one;

    while (span_cut(&rest, ',', &one)) {
        one = span_trim(one);
        if (one.n == 0)
            continue;
        if (t->n == TRUST_MAX)
            return err_set(e, ERR_USAGE, "more than %d ranges of proxies", TRUST_MAX);
        if (!read_range(one, &t->ranges[t->n]))
            return err_set(e, ERR_USAGE, "'%.*s' is no range of addresses, as in 10.0.0.0/8",
                           SPAN_ARG(one));
        t->n++;
    }
    return 0;
}

static bool is_in(const struct trust_range *r, struct span a)
{
    struct span base = bytes_of(&r->base);
    size_t whole = r->bits / 8;
    unsigned rest = r->bits % 8;

    if (base.n != a.n || memcmp(base.p, a.p, whole) != 0)
        return false;
    return rest == 0 || (base.p[whole] ^ a.p[whole]) >> (8 - rest) == 0;
}

bool trust_has(const struct trust *t, const struct net_addr *a)
{
    struct span bytes = bytes_of(a);

    for (size_t i = 0; i < t->n; i++)
        if (is_in(&t->ranges[i], bytes))
            return true;
    return false;
}
