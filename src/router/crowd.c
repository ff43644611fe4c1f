#include "router/crowd.h"

#include <stdio.h>

/* An address as everybody writes it; what is none stays as it came, cut to fit. */
static void set_name(char ret[NET_ADDR_TEXT_BYTES], struct span text, const struct net_addr *addr)
{
    if (!addr || !*net_addr_ip_text(addr, ret))
        (void)snprintf(ret, NET_ADDR_TEXT_BYTES, "%.*s", SPAN_ARG(text));
}

void crowd_name(const struct http_head *req, const struct net_addr *peer,
                const struct trust *proxies, char ret[NET_ADDR_TEXT_BYTES])
{
    bool is_first = true, is_ip;
    struct span list, one;
    struct net_addr addr;
    size_t iter = 0;

    set_name(ret, SPAN("unknown"), peer);
    if (!trust_has(proxies, peer))
        return;
    while ((list = http_head_next(req, "x-forwarded-for", &iter)).p) {
        while (span_cut(&list, ',', &one)) {
            one = span_trim(one);
            is_ip = net_addr_of_ip(one, 0, &addr);
            if (one.n == 0 || (!is_first && is_ip && trust_has(proxies, &addr)))
                continue;
            set_name(ret, one, is_ip ? &addr : NULL);
            is_first = false;
        }
    }
}
