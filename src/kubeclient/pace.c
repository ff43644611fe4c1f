#include "kubeclient/pace.h"

#include "base/str.h"
#include "base/time.h"

#include <sys/random.h>

#define DOUBLINGS_MAX 20u /* beyond this every pause is the longest */

uint64_t backoff_next_ms(struct backoff *b, uint64_t first_ms, uint64_t max_ms)
{
    uint64_t ms = MIN(first_ms << b->tries, max_ms), random = 0;

    if (b->tries < DOUBLINGS_MAX)
        b->tries++;
    (void)getrandom(&random, sizeof random, GRND_NONBLOCK); /* without it they come back together */
    return ms / 2 + random % (ms / 2 + 1);
}

bool retry_after_ms(struct span value, time_t now, unsigned max_s, uint64_t *ret_ms)
{
    OWN(buf_done) struct buf text = BUF_INIT(TIME_TEXT_BYTES);
    struct err e;
    uint64_t s;
    time_t at;

    value = span_trim(value);
    if (str_u64(value, UINT64_MAX, &s)) {
        *ret_ms = MIN(s, (uint64_t)max_s) * 1000;
        return true;
    }
    if (buf_add(&text, value, &e) < 0 || !time_http_parse(buf_cstr(&text), &at))
        return false;
    *ret_ms = at > now ? MIN((uint64_t)(at - now), (uint64_t)max_s) * 1000 : 0;
    return true;
}

void bucket_init(struct bucket *b, double qps, unsigned burst, uint64_t now_ms)
{
    *b = (struct bucket){ qps, burst ? burst : 1, burst ? burst : 1, now_ms };
}

uint64_t bucket_take_ms(struct bucket *b, uint64_t now_ms)
{
    if (b->qps <= 0)
        return 0;
    b->tokens = MIN(b->burst, b->tokens + (double)(now_ms - b->at_ms) * b->qps / 1000);
    b->at_ms = now_ms;
    b->tokens -= 1;
    return b->tokens >= 0 ? 0 : (uint64_t)(-b->tokens * 1000 / b->qps) + 1;
}
