#include "controller/defer.h"

#include "base/hash.h"

#include <string.h>

#define SLOTS 1024 /* few objects wait at a time */

struct waiting {
    struct waiting *next;
    uint64_t since_ms;
    char uid[];
};

struct defer {
    struct waiting *slots[SLOTS];
};

struct defer *defer_new(void)
{
    return NEW(struct defer);
}

static void drop(struct waiting **at)
{
    struct waiting *w = *at;

    *at = w->next;
    free(w);
}

void defer_free(struct defer *d)
{
    if (!d)
        return;
    EACH(slot, d->slots) {
        while (*slot)
            drop(slot);
    }
    free(d);
}

static struct waiting **place_of(struct defer *d, const char *uid)
{
    struct waiting **at = &d->slots[hash_add(0, span_cstr(uid)) % SLOTS];

    while (*at && strcmp((*at)->uid, uid) != 0)
        at = &(*at)->next;
    return at;
}

uint64_t defer_left_ms(struct defer *d, const char *uid, uint64_t window_ms, uint64_t now_ms)
{
    struct waiting **at = place_of(d, uid);
    size_t n = strlen(uid) + 1;

    if (!*at) {
        *at = own_new(sizeof **at + n);
        (*at)->since_ms = now_ms;
        memcpy((*at)->uid, uid, n);
    }
    if (now_ms - (*at)->since_ms < window_ms)
        return window_ms - (now_ms - (*at)->since_ms);
    drop(at);
    return 0;
}

void defer_forget(struct defer *d, const char *uid)
{
    struct waiting **at = place_of(d, uid);

    if (*at)
        drop(at);
}
