#include "router/crowd.h"

#include <stdio.h>
#include <string.h>

struct crowd_client {
    struct keymap_node node;
    char name[NET_ADDR_TEXT_BYTES];
    uint64_t count;
};

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

bool crowd_enter(struct crowd *c, const char *name, struct crowd_client **ret)
{
    struct keymap_node *found;
    struct crowd_client *client;

    *ret = NULL;
    if (!c->max)
        return true;
    found = keymap_get(&c->clients, "", name);
    if (found) {
        client = CONTAINER(found, struct crowd_client, node);
    } else {
        client = NEW(struct crowd_client);
        (void)snprintf(client->name, sizeof client->name, "%s", name);
        keymap_add(&c->clients, &client->node, "", client->name);
    }
    if (client->count >= c->max)
        return false;
    client->count++;
    *ret = client;
    return true;
}

void crowd_leave(struct crowd *c, struct crowd_client *client)
{
    if (!client || --client->count)
        return;
    keymap_remove(&c->clients, &client->node);
    free(client);
}

void crowd_done(struct crowd *c)
{
    assert(c->clients.count == 0);
    keymap_done(&c->clients);
}
