#include "http/connection_limit.h"

#include "base/hash.h"
#include "http/limits.h"
#include "net/peer.h"

#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

struct connection_client {
    struct connection_client *next; /* in its bucket */
    struct connection_key key;
    size_t count;
    struct connection_slot *first, **last; /* the oldest; where the next one is put */
};

/* ---- who it is ---- */

enum key_kind { KEY_UNKNOWN, KEY_ACCOUNT, KEY_IPV4, KEY_IPV6 };

static void set_address(struct connection_key *key, const struct net_addr *peer)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&peer->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&peer->sa;

    if (peer->sa.ss_family == AF_INET) {
        key->bytes[0] = KEY_IPV4;
        memcpy(key->bytes + 1, &v4->sin_addr, 4);
    } else if (peer->sa.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        key->bytes[0] = KEY_IPV4;
        memcpy(key->bytes + 1, v6->sin6_addr.s6_addr + 12, 4);
    } else if (peer->sa.ss_family == AF_INET6) {
        key->bytes[0] = KEY_IPV6;
        memcpy(key->bytes + 1, &v6->sin6_addr, 8); /* a host has a /64, and all of its addresses */
    }
}

void connection_key_read(int fd, const struct net_addr *peer, struct connection_key *ret)
{
    uid_t uid;

    *ret = (struct connection_key){ .bytes = { KEY_UNKNOWN } };
    if (!net_addr_is_loopback(peer)) {
        set_address(ret, peer);
    } else if (net_peer_uid(fd, peer, &uid)) {
        ret->is_owner = uid == geteuid();
        ret->bytes[0] = KEY_ACCOUNT;
        memcpy(ret->bytes + 1, &uid, sizeof uid);
    }
}

/* ---- the rows ---- */

static struct connection_client **bucket_of(struct connection_limit *l,
                                            const struct connection_key *key)
{
    return &l->buckets[hash_add(0, span_of(key->bytes, sizeof key->bytes)) % CONNECTION_BUCKETS];
}

/* NULL: it has no connection. */
static struct connection_client *find_client(struct connection_limit *l,
                                             const struct connection_key *key)
{
    struct connection_client *c = *bucket_of(l, key);

    while (c && memcmp(c->key.bytes, key->bytes, sizeof key->bytes) != 0)
        c = c->next;
    return c;
}

static struct connection_client *add_client(struct connection_limit *l,
                                            const struct connection_key *key)
{
    struct connection_client **bucket = bucket_of(l, key), *c = NEW(struct connection_client);

    c->key = *key;
    c->last = &c->first;
    c->next = *bucket;
    *bucket = c;
    return c;
}

static void drop_client(struct connection_limit *l, struct connection_client *c)
{
    struct connection_client **at = bucket_of(l, &c->key);

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

static void append(struct connection_client *c, struct connection_slot *slot)
{
    slot->client = c;
    slot->next = NULL;
    slot->at = c->last;
    *c->last = slot;
    c->last = &slot->next;
}

static void unlink_slot(struct connection_slot *slot)
{
    *slot->at = slot->next;
    if (slot->next)
        slot->next->at = slot->at;
    else
        slot->client->last = slot->at;
}

/* ---- making room ---- */

/* Busy ones go to the end of the row: the next search does not look at them again before all others. */
static bool close_oldest_idle(struct connection_limit *l, struct connection_client *c)
{
    for (size_t i = 0; c && c->first && i < MIN(c->count, (size_t)CONNECTION_LOOKS_MAX); i++) {
        struct connection_slot *slot = c->first;

        unlink_slot(slot);
        append(c, slot);
        if (!l->close_idle(slot))
            continue;
        connection_limit_remove(l, slot);
        l->closed++;
        return true;
    }
    return false;
}

/* Runs only while all other clients together are at their ceiling. */
static struct connection_client *largest(const struct connection_limit *l)
{
    struct connection_client *found = NULL;

    for (size_t i = 0; i < CONNECTION_BUCKETS; i++)
        for (struct connection_client *c = l->buckets[i]; c; c = c->next)
            if (!c->key.is_owner && (!found || c->count > found->count))
                found = c;
    return found;
}

static size_t client_max(const struct connection_limit *l)
{
    return MAX(l->max / CONNECTION_CLIENT_PART, (size_t)1);
}

static size_t others_max(const struct connection_limit *l)
{
    return MAX(l->max - l->max / CONNECTION_RESERVE_PART, (size_t)1);
}

static bool make_room(struct connection_limit *l, const struct connection_key *key)
{
    struct connection_client *c = find_client(l, key);

    if (!key->is_owner && c && c->count >= client_max(l))
        return close_oldest_idle(l, c);
    if (!key->is_owner && l->others >= others_max(l))
        return close_oldest_idle(l, largest(l));
    if (l->count >= l->max)
        return close_oldest_idle(l, largest(l)) || close_oldest_idle(l, c);
    return true;
}

bool connection_limit_add(struct connection_limit *l, const struct connection_key *key,
                          struct connection_slot *slot)
{
    struct connection_client *c;

    slot->client = NULL;
    if (!l->max)
        return true;
    if (!make_room(l, key)) {
        l->refused++;
        return false;
    }
    c = find_client(l, key); /* now: its row may have gone with its last connection */
    if (!c)
        c = add_client(l, key);
    append(c, slot);
    c->count++;
    l->count++;
    l->others += !c->key.is_owner;
    return true;
}

void connection_limit_remove(struct connection_limit *l, struct connection_slot *slot)
{
    struct connection_client *c = slot->client;

    if (!c)
        return;
    unlink_slot(slot);
    slot->client = NULL;
    l->count--;
    l->others -= !c->key.is_owner;
    if (--c->count == 0)
        drop_client(l, c);
}
