#include "kube/backoff.h"

#include "base/time.h"

#include <sys/random.h>

uint64_t backoff_ms(uint64_t first_ms, uint64_t most_ms, unsigned failures)
{
    uint64_t ms = MIN(first_ms, most_ms);

    for (unsigned i = 1; i < failures && ms < most_ms; i++)
        ms = ms > most_ms / 2 ? most_ms : ms * 2;
    return ms;
}

uint64_t backoff_jitter_ms(uint64_t ms, double jitter)
{
    uint32_t random;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)time_mono_us() * 2654435761u; /* early boot; spread, not secrecy */
    return ms + (uint64_t)((double)ms * jitter * ((double)random / 4294967296.0));
}

uint64_t backoff_next_ms(struct backoff *b)
{
    if (b->failures < UINT32_MAX)
        b->failures++;
    return backoff_jitter_ms(backoff_ms(b->first_ms, b->most_ms, b->failures), b->jitter);
}

void backoff_reset(struct backoff *b)
{
    b->failures = 0;
}

void bucket_init(struct bucket *b, double per_second, double burst, uint64_t now_ms)
{
    *b = (struct bucket){ per_second, burst, burst, now_ms };
}

static void refill(struct bucket *b, uint64_t now_ms)
{
    if (now_ms > b->at_ms) {
        b->tokens += (double)(now_ms - b->at_ms) * b->per_second / 1000.0;
        b->tokens = MIN(b->tokens, b->burst);
        b->at_ms = now_ms;
    }
}

uint64_t bucket_reserve_ms(struct bucket *b, uint64_t now_ms)
{
    double wait_ms;

    if (b->per_second <= 0)
        return 0;
    refill(b, now_ms);
    b->tokens -= 1;
    if (b->tokens >= 0)
        return 0;
    wait_ms = -b->tokens * 1000.0 / b->per_second;
    return (uint64_t)wait_ms + ((double)(uint64_t)wait_ms < wait_ms); /* never before it is there */
}

bool bucket_take(struct bucket *b, uint64_t now_ms)
{
    if (b->per_second <= 0)
        return true;
    refill(b, now_ms);
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}
