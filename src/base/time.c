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

uint64_t time_wall_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t time_coarse_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Not gmtime_r: before the first answer that reads /etc/localtime, for a zone it then has no use for. Days are counted in eras
 * of 400 years that begin with March, so that the odd day of a leap year is the last. */
static void read_calendar(time_t t, struct tm *ret)
{
    int64_t day = t / 86400 - (t % 86400 < 0), second = t - day * 86400;
    int64_t since = day + 719468, era = (since >= 0 ? since : since - 146096) / 146097;
    int64_t in_era = since - era * 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153; /* 0 is March */
    bool is_next = month >= 10;              /* January and February are in the next year */

    *ret = (struct tm){ .tm_sec = (int)(second % 60),
                        .tm_min = (int)(second / 60 % 60),
                        .tm_hour = (int)(second / 3600),
                        .tm_mday = (int)(in_year - (153 * month + 2) / 5) + 1,
                        .tm_mon = (int)(is_next ? month - 10 : month + 2),
                        .tm_year = (int)(year + era * 400 + is_next - 1900),
                        .tm_wday = (int)(((day + 4) % 7 + 7) % 7) };
}

/* n digits of v at p; returns the place behind them. */
static char *put_digits(char *p, int v, int n)
{
    for (int i = n; i-- > 0; v /= 10)
        p[i] = (char)('0' + v % 10);
    return p + n;
}

/* Without snprintf: every write of an object tells the time. */
const char *time_rfc3339(char text[TIME_TEXT_BYTES], struct timespec t, bool with_ms)
{
    struct tm tm;
    char *p = text;

    read_calendar(t.tv_sec, &tm);
    if (tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) /* nobody's time */
        p += snprintf(text, 16, "%04d", tm.tm_year + 1900);
    else
        p = put_digits(p, tm.tm_year + 1900, 4);
    *p++ = '-', p = put_digits(p, tm.tm_mon + 1, 2);
    *p++ = '-', p = put_digits(p, tm.tm_mday, 2);
    *p++ = 'T', p = put_digits(p, tm.tm_hour, 2);
    *p++ = ':', p = put_digits(p, tm.tm_min, 2);
    *p++ = ':', p = put_digits(p, tm.tm_sec, 2);
    if (with_ms)
        *p++ = '.', p = put_digits(p, (int)(t.tv_nsec / 1000000), 3);
    *p++ = 'Z';
    *p = '\0';
    return text;
}

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

const char *time_http(char text[TIME_TEXT_BYTES], time_t t)
{
    struct tm tm;

    read_calendar(t, &tm);
    (void)snprintf(text, TIME_TEXT_BYTES, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
                   days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
                   tm.tm_hour, tm.tm_min, tm.tm_sec);
    return text;
}

/* Two or four digits at `at`, within [min, max]; -1 otherwise. */
static int digits_at(const char *text, size_t at, size_t n, int min, int max)
{
    int v = 0;

    for (size_t i = at; i < at + n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        v = v * 10 + (text[i] - '0');
    }
    return v >= min && v <= max ? v : -1;
}

/* Index of the three letters at `text` in a row of such names, or -1. */
static int name_index(const char *names, const char *text)
{
    for (int i = 0; names[3 * i]; i++)
        if (memcmp(names + 3 * i, text, 3) == 0)
            return i;
    return -1;
}

bool time_http_parse(const char *text, time_t *ret)
{
    static const char shape[] = "aaa, 00 aaa 0000 00:00:00 GMT"; /* every field has a fixed width */
    struct tm tm = { 0 };

    if (strlen(text) != sizeof shape - 1)
        return false;
    for (size_t i = 0; shape[i]; i++)
        if (shape[i] != 'a' && shape[i] != '0' && shape[i] != text[i])
            return false;
    tm.tm_mday = digits_at(text, 5, 2, 1, 31);
    tm.tm_mon = name_index(months, text + 8);
    tm.tm_year = digits_at(text, 12, 4, 1, 9999) - 1900;
    tm.tm_hour = digits_at(text, 17, 2, 0, 23);
    tm.tm_min = digits_at(text, 20, 2, 0, 59);
    tm.tm_sec = digits_at(text, 23, 2, 0, 60);
    if (name_index(days, text) < 0 || tm.tm_mday < 0 || tm.tm_mon < 0 || tm.tm_year < -1899 ||
        tm.tm_hour < 0 || tm.tm_min < 0 || tm.tm_sec < 0)
        return false;
    *ret = timegm(&tm);
    return true;
}
