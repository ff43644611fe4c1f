/* Any lines as the fields of a request: what is accepted keeps its promises, and what is refused says why. */
#include "router/match.h"

#include "http/limits.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct target *t, const struct match_rules *rules)
{
    char text[NET_ADDR_TEXT_BYTES];
    struct net_addr again;

    assert(t->id[0] && t->namespace[0] && !strpbrk(t->id, "./ ") && !strpbrk(t->namespace, "./ "));
    assert(t->port > 0 && t->timeout_ms > 0 && t->timeout_ms <= rules->timeout_ms);
    if (!t->has_ip)
        return;
    assert(rules->is_loopback_allowed || !net_addr_is_loopback(&t->ip));
    assert(net_addr_port(&t->ip) == t->port);
    assert(net_addr_of_ip(span_cstr(net_addr_ip_text(&t->ip, text)), t->port, &again));
    assert(!strchr(text, '.') || again.sa.ss_family == AF_INET || !strstr(text, "::ffff:"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct match_rules rules = { .is_loopback_allowed = size & 1, .timeout_ms = 180000 };
    OWN(http_head_done) struct http_head head;
    struct span rest = span_of(data, size), line;
    struct refusal why = { 0 };
    struct target t;
    struct err e;

    http_head_init(&head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
    while (span_cut(&rest, '\n', &line)) {
        size_t colon = span_find(line, ':');

        if (colon != SIZE_MAX && http_head_add(&head, span_slice(line, 0, colon),
                                               span_trim(span_skip(line, colon + 1)), &e) < 0)
            break;
    }
    if (match_read(&head, &rules, &t, &why))
        check(&t, &rules);
    else
        assert(why.status == 400 && why.detail[0]);
    return 0;
}
