/* Targets that are called: what all calls and connections to one of them share, so that a call costs no text of its own. */
#include "http/client_impl.h"

#include "base/hash.h"

#include <stdio.h>

#define NAME_MAX_BYTES 1024 /* of a host; what is longer is no name */

/* As it is used: an IPv6 address may come in brackets. p is NULL where there is none. */
static struct span name_of(const char *name)
{
    struct span s = name ? span_cstr(name) : SPAN_NONE;

    if (s.n > 1 && s.p[0] == '[' && s.p[s.n - 1] == ']')
        s = span_slice(s, 1, s.n - 1);
    return s.n ? span_slice(s, 0, NAME_MAX_BYTES) : SPAN_NONE;
}

static bool is_name(const char *kept, struct span name)
{
    return kept ? span_is(name, kept) : !name.n;
}

static char *name_dup(struct span name)
{
    return name.n ? span_dup(name) : NULL;
}

static enum http_version version_of(const struct http_target *to)
{
    return to->version == HTTP_BY_ALPN && !to->maker ? HTTP_V1 : to->version;
}

static const char *place_of(const struct http_target *to)
{
    return to->plug ? to->place : NULL;
}

static bool is_addr(const struct http_site *s, const struct net_addr *addr)
{
    if (!addr)
        return !s->has_addr;
    return s->has_addr && s->addr.len == addr->len &&
           memcmp(&s->addr.sa, &addr->sa, addr->len) == 0;
}

static bool is_same(const struct http_site *s, const struct http_target *to)
{
    return s->port == to->port && s->version == version_of(to) && s->maker == to->maker &&
           is_name(s->host, name_of(to->host)) && is_name(s->place, name_of(place_of(to))) &&
           is_name(s->peer_name, name_of(to->peer_name)) && is_addr(s, to->addr);
}

/* What differs most among a client's targets; the rest is compared. */
static uint64_t hash_of(const struct http_target *to)
{
    uint64_t h = hash_add(to->port, name_of(to->host));

    h = hash_add(h, name_of(place_of(to)));
    return to->addr ? hash_add(h, span_of(&to->addr->sa, to->addr->len)) : h;
}

/* "host:port"; with_port false: as a Host field has it, without the scheme's own port. */
static char *text_of(const struct http_site *s, const char *host, bool with_port)
{
    struct buf text = BUF_INIT(NAME_MAX_BYTES + 16);
    bool is_bare = !with_port && (!s->port || s->port == (s->maker ? 443 : 80));
    struct err e;

    (void)buf_addf(&text, &e, strchr(host, ':') ? "[%s]" : "%s", host); /* all of it fits */
    if (!is_bare)
        (void)buf_addf(&text, &e, ":%u", s->port);
    return (char *)text.p;
}

static void name_it(struct http_site *s)
{
    char addr[NET_ADDR_TEXT_BYTES] = "";

    s->authority = text_of(s, s->host ? s->host : "localhost", false);
    if (s->host) {
        s->label = text_of(s, s->host, true);
        return;
    }
    if (s->has_addr)
        (void)net_addr_text(&s->addr, addr);
    s->label = own_strdup(addr);
}

static struct http_site *site_new(struct http_client *c, const struct http_target *to,
                                  uint64_t hash)
{
    struct http_site *s = NEW(struct http_site), **bucket = &c->buckets[hash % HTTP_CLIENT_BUCKETS];

    s->loop = c->loop;
    s->hash = hash;
    s->host = name_dup(name_of(to->host));
    s->peer_name = name_dup(name_of(to->peer_name));
    s->place = name_dup(name_of(place_of(to)));
    s->port = to->port;
    s->has_addr = to->addr != NULL;
    if (to->addr)
        s->addr = *to->addr;
    s->maker = to->maker;
    s->version = version_of(to);
    name_it(s);
    s->at = bucket;
    s->next = *bucket;
    if (s->next)
        s->next->at = &s->next;
    *bucket = s;
    return s;
}

struct http_site *http_site_ref(struct http_client *c, const struct http_target *to)
{
    uint64_t hash = hash_of(to);
    struct http_site *s = c->buckets[hash % HTTP_CLIENT_BUCKETS];

    while (s && (s->hash != hash || !is_same(s, to)))
        s = s->next;
    if (!s)
        s = site_new(c, to, hash);
    s->refs++;
    return s;
}

static void site_free(void *obj)
{
    struct http_site *s = obj;

    free(s->host);
    free(s->peer_name);
    free(s->place);
    free(s->label);
    free(s->authority);
    free(s);
}

void http_site_unref(struct http_site *s)
{
    assert(s->refs > 0);
    if (--s->refs)
        return;
    assert(!s->links && !s->idle);
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    ev_free_later(s->loop, s, site_free); /* its label may be in a message that is being told */
}

/* ---- links ---- */

void http_site_add(struct http_site *s, struct http_link *l)
{
    s->refs++;
    l->site = s;
    l->at = &s->links;
    l->next = s->links;
    if (l->next)
        l->next->at = &l->next;
    s->links = l;
}

void http_site_remove(struct http_link *l)
{
    *l->at = l->next;
    if (l->next)
        l->next->at = l->at;
    http_site_unref(l->site);
}

void http_site_keep(struct http_link *l)
{
    struct http_site *s = l->site;

    l->idle_at = &s->idle;
    l->idle_next = s->idle;
    if (l->idle_next)
        l->idle_next->idle_at = &l->idle_next;
    s->idle = l;
    s->idle_count++;
}

void http_site_use(struct http_link *l)
{
    *l->idle_at = l->idle_next;
    if (l->idle_next)
        l->idle_next->idle_at = l->idle_at;
    l->idle_at = NULL;
    l->idle_next = NULL;
    l->site->idle_count--;
}
