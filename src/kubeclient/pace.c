#include "kubeclient/pace.h"

#include "base/str.h"
#include "base/time.h"

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
