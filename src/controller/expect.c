#include "controller/expect.h"

#include <string.h>

static size_t place_of(const struct expect *x, const char *uid)
{
    for (size_t i = 0; i < x->going_count; i++)
        if (strcmp(x->going[i], uid) == 0)
            return i;
    return SIZE_MAX;
}

static void forget_going(struct expect *x)
{
    while (x->going_count)
        free(x->going[--x->going_count]);
}

void expect_done(struct expect *x)
{
    forget_going(x);
    free(x->going);
    *x = (struct expect){ 0 };
}

bool expect_is_met(const struct expect *x, uint64_t now_ms)
{
    return (!x->creates && !x->going_count) || now_ms - x->raised_ms > EXPECT_MAX_MS;
}

bool expect_creates(struct expect *x, size_t n, uint64_t now_ms)
{
    if (!n || !expect_is_met(x, now_ms))
        return false;
    forget_going(x);
    x->creates = n;
    x->raised_ms = now_ms;
    return true;
}

void expect_created(struct expect *x, size_t n)
{
    x->creates -= MIN(n, x->creates);
}

void expect_delete(struct expect *x, const char *uid, uint64_t now_ms)
{
    if (!*uid || expect_is_going(x, uid))
        return;
    if (x->going_count == x->going_cap) {
        x->going_cap = x->going_cap ? 2 * x->going_cap : 8;
        x->going = own_resize(x->going, x->going_cap, sizeof *x->going);
    }
    x->going[x->going_count++] = own_strdup(uid);
    x->raised_ms = now_ms;
}

void expect_deleted(struct expect *x, const char *uid)
{
    size_t place = place_of(x, uid);

    if (place == SIZE_MAX)
        return;
    free(x->going[place]);
    x->going[place] = x->going[--x->going_count];
}

bool expect_is_going(const struct expect *x, const char *uid)
{
    return place_of(x, uid) != SIZE_MAX;
}
