#include "base/time.h"

uint64_t time_mono_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t time_mono_ms(void)
{
    return time_mono_us() / 1000;
}

const char *time_rfc3339(char text[TIME_TEXT_BYTES], struct timespec t, bool with_ms)
{
    struct tm tm;
    size_t n;

    (void)gmtime_r(&t.tv_sec, &tm);
    n = strftime(text, TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    if (with_ms)
        (void)snprintf(text + n, TIME_TEXT_BYTES - n, ".%03dZ", (int)(t.tv_nsec / 1000000));
    else
        (void)snprintf(text + n, TIME_TEXT_BYTES - n, "Z");
    return text;
}

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

const char *time_http(char text[TIME_TEXT_BYTES], time_t t)
{
    struct tm tm;

    (void)gmtime_r(&t, &tm); /* not strftime's %a and %b: those follow the locale */
    (void)snprintf(text, TIME_TEXT_BYTES, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday,
                   tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return text;
}

bool time_http_parse(const char *text, time_t *ret)
{
    struct tm tm = { 0 };
    char month[4] = "";
    const char *at;
    int used = 0;

    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &tm.tm_mday, month, &tm.tm_year,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used) != 6 ||
        used == 0 || text[used])
        return false;
    at = strstr(months, month);
    if (strlen(month) != 3 || !at || (at - months) % 3)
        return false;
    tm.tm_mon = (int)(at - months) / 3;
    tm.tm_year -= 1900;
    *ret = timegm(&tm);
    return true;
}
