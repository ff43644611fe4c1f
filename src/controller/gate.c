#include "controller/gate.h"

#include "controller/limits.h"

/* Without libm: the next whole number of milliseconds. */
static uint64_t ceil_ms(double seconds)
{
    double ms = seconds * 1000;
    uint64_t whole;

    if (ms >= 1e15)
        return (uint64_t)1e15;
    whole = (uint64_t)ms;
    return (double)whole < ms ? whole + 1 : whole;
}

/* Claims come in bursts: while members are still leaving, those that are made would only compete with them for the node. */
static bool is_held(struct gate *g, uint64_t delay_ms, size_t active, size_t wish, uint64_t now_ms)
{
    if (g->has_seen && active < g->seen)
        g->held_ms = now_ms + delay_ms;
    if (active >= wish)
        g->held_ms = 0;
    g->has_seen = true;
    g->seen = active;
    return g->held_ms > now_ms;
}

static double capacity(double per_second)
{
    return per_second > 1 ? per_second : 1;
}

static size_t take_tokens(struct gate *g, double per_second, size_t want, uint64_t now_ms,
                          uint64_t *ret_wait_ms)
{
    double most = capacity(per_second);
    size_t grant = want;

    if (!g->has_tokens)
        g->tokens = most;
    else
        g->tokens += (double)(now_ms - g->tokens_at_ms) / 1000 * per_second;
    if (g->tokens > most)
        g->tokens = most;
    g->has_tokens = true;
    g->tokens_at_ms = now_ms;
    if (g->tokens < (double)want)
        grant = (size_t)g->tokens; /* smaller than `want`, so it fits */
    g->tokens -= (double)grant;
    if (want && !grant)
        *ret_wait_ms = ceil_ms((1 - g->tokens) / per_second);
    return grant;
}

size_t gate_open(struct gate *g, const struct gate_rules *rules, size_t active, size_t wish,
                 size_t want, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    size_t grant = want;

    *ret_wait_ms = 0;
    if (rules->delay_ms && is_held(g, rules->delay_ms, active, wish, now_ms)) {
        *ret_wait_ms = g->held_ms - now_ms;
        return 0;
    }
    if (rules->per_second > 0)
        grant = take_tokens(g, rules->per_second, want, now_ms, ret_wait_ms);
    g->seen = active + grant; /* what is made now is not missed if it is not there next time */
    return grant;
}

void gate_refund(struct gate *g, const struct gate_rules *rules, size_t n)
{
    g->seen -= MIN(n, g->seen);
    if (rules->per_second > 0)
        g->tokens = MIN(g->tokens + (double)n, capacity(rules->per_second));
}

bool gate_yields(struct gate *g, const struct gate_demand *d, uint64_t now_ms)
{
    if (!d->claims || d->ready >= d->wish) {
        g->yields_since_ms = 0;
        return false;
    }
    if (d->ready < d->claims + d->wish / GATE_SPARE_PART)
        return false;
    if (!g->yields_since_ms)
        g->yields_since_ms = now_ms;
    return now_ms - g->yields_since_ms < GATE_YIELD_MAX_MS;
}
