#include "apiserver/addresses.h"

#include "apiserver/op.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define COUNT       65536 /* 10.96.0.0/16 */
#define PREFIX      (10 << 8 | 96)
#define FIRST_GIVEN 16 /* those before are asked for by name */

struct addresses {
    struct store *store;
    unsigned kind;
    uint64_t version; /* of the head that was counted */
    uint64_t failed_commits;
    uint16_t *taken; /* Services that name the address; NULL: nothing was counted yet */
};

struct addresses *addresses_new(struct store *st)
{
    struct addresses *a = NEW(struct addresses);

    a->store = st;
    a->kind = op_number(kind_find("", "v1", "services"));
    return a;
}

void addresses_free(struct addresses *a)
{
    if (!a)
        return;
    free(a->taken);
    free(a);
}

/* The place of its address among those that are given here, or -1. */
static int place_of(const struct object *service)
{
    const char *text = object_text(service, "spec.clusterIP");
    struct in_addr at;
    uint32_t n;

    if (!text || inet_pton(AF_INET, text, &at) != 1)
        return -1;
    n = ntohl(at.s_addr);
    return n >> 16 == PREFIX ? (int)(n & 0xffff) : -1;
}

static void add(struct addresses *a, const struct object *service, bool is_more)
{
    int at = place_of(service);

    if (at >= 0 && (is_more ? a->taken[at] < UINT16_MAX : a->taken[at] > 0))
        a->taken[at] = (uint16_t)(a->taken[at] + (is_more ? 1 : -1));
}

static void on_event(void *ctx, const struct store_event *ev)
{
    struct addresses *a = ctx;

    if (ev->before)
        add(a, ev->before, false);
    if (ev->type != EVENT_DELETED)
        add(a, ev->now, true);
}

static void count(struct addresses *a)
{
    struct shelf_key from = { a->kind, "", "" };
    struct shelf *shelf = store_snapshot(a->store, STORE_HEAD, NULL);
    struct shelf_walk walk;
    struct object *o;
    unsigned kind;

    free(a->taken);
    a->taken = own_array(COUNT, sizeof *a->taken);
    shelf_walk_init(&walk, shelf, &from, false);
    while ((o = shelf_walk_next(&walk, &kind)) && kind == a->kind)
        add(a, o, true);
    shelf_unref(shelf);
}

static void follow(struct addresses *a)
{
    struct store_stats stats;

    store_stats(a->store, &stats);
    if (!a->taken || stats.failed_commits != a->failed_commits ||
        !store_changes(a->store, a->kind, a->version, on_event, a))
        count(a);
    a->failed_commits = stats.failed_commits;
    a->version = store_version(a->store, STORE_HEAD);
}

bool addresses_pick(struct addresses *a, char text[ADDRESSES_TEXT_BYTES])
{
    uint16_t from;

    follow(a);
    if (getrandom(&from, sizeof from, 0) != sizeof from)
        abort();
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned n = (from + i) % COUNT;

        if (n < FIRST_GIVEN || (n & 0xff) == 0xff || a->taken[n])
            continue;
        (void)snprintf(text, ADDRESSES_TEXT_BYTES, "10.96.%u.%u", n >> 8, n & 0xff);
        return true;
    }
    return false;
}
