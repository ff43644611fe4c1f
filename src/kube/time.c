#include "kube/time.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* n digits at *s, which moves on. */
static bool digits(struct span *s, size_t n, int min, int max, int *ret)
{
    uint64_t v;

    if (s->n < n || !str_u64(span_slice(*s, 0, n), (uint64_t)max, &v) || (int)v < min)
        return false;
    *s = span_skip(*s, n);
    *ret = (int)v;
    return true;
}

static bool mark(struct span *s, const char *any_of)
{
    for (; *any_of; any_of++) {
        if (s->n && s->p[0] == (uint8_t)*any_of) {
            *s = span_skip(*s, 1);
            return true;
        }
    }
    return false;
}

static bool fraction(struct span *s, long *ret_ns)
{
    long ns = 0, unit = 100000000;
    size_t n = 0;

    for (; n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++) {
        ns += unit * (s->p[n] - '0');
        unit /= 10;
    }
    *s = span_skip(*s, n);
    *ret_ns = ns;
    return n > 0;
}

/* "Z" or "+01:00", in seconds east of UTC. */
static bool offset(struct span *s, int *ret_s)
{
    bool is_west = s->n && s->p[0] == '-';
    int h, m;

    *ret_s = 0;
    if (mark(s, "Z"))
        return true;
    if (!mark(s, "+-") || !digits(s, 2, 0, 23, &h) || !mark(s, ":") || !digits(s, 2, 0, 59, &m))
        return false;
    *ret_s = (is_west ? -1 : 1) * (h * 3600 + m * 60);
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && is_leap);
}

bool kube_time_parse(struct span s, struct timespec *ret)
{
    int year, month, day, hour, minute, second, east;
    long ns = 0;
    struct tm tm;

    if (!digits(&s, 4, 0, 9999, &year) || !mark(&s, "-") || !digits(&s, 2, 1, 12, &month) ||
        !mark(&s, "-") || !digits(&s, 2, 1, 31, &day) || !mark(&s, "T") ||
        !digits(&s, 2, 0, 23, &hour) || !mark(&s, ":") || !digits(&s, 2, 0, 59, &minute) ||
        !mark(&s, ":") || !digits(&s, 2, 0, 59, &second))
        return false;
    if (day > days_in(year, month) || (mark(&s, ".") && !fraction(&s, &ns)) || !offset(&s, &east) ||
        s.n)
        return false;
    tm = (struct tm){ .tm_year = year - 1900,
                      .tm_mon = month - 1,
                      .tm_mday = day,
                      .tm_hour = hour,
                      .tm_min = minute,
                      .tm_sec = second };
    *ret = (struct timespec){ timegm(&tm) - east, ns };
    return true;
}

const char *kube_time_text(char text[TIME_TEXT_BYTES], time_t t)
{
    return time_rfc3339(text, (struct timespec){ t, 0 }, false);
}

const char *kube_microtime_text(char text[TIME_TEXT_BYTES], struct timespec t)
{
    char seconds[TIME_TEXT_BYTES];
    const char *whole = time_rfc3339(seconds, (struct timespec){ t.tv_sec, 0 }, false);

    /* "...00Z" becomes "...00.123456Z". */
    snprintf(text, TIME_TEXT_BYTES, "%.19s.%06ldZ", whole, t.tv_nsec / 1000);
    return text;
}

/* "7m30s", or "7m" when the rest is nothing. */
static const char *two(char text[KUBE_AGE_BYTES], int64_t big, char unit, int64_t small,
                       char small_unit)
{
    if (small)
        snprintf(text, KUBE_AGE_BYTES, "%" PRId64 "%c%" PRId64 "%c", big, unit, small, small_unit);
    else
        snprintf(text, KUBE_AGE_BYTES, "%" PRId64 "%c", big, unit);
    return text;
}

const char *kube_age_text(char text[KUBE_AGE_BYTES], int64_t seconds)
{
    int64_t minutes = seconds / 60, hours = seconds / 3600, days = hours / 24;

    if (seconds < -1)
        return "<invalid>";
    if (seconds < 0)
        return "0s";
    if (seconds < 120)
        return two(text, seconds, 's', 0, 's');
    if (minutes < 10)
        return two(text, minutes, 'm', seconds % 60, 's');
    if (minutes < 180)
        return two(text, minutes, 'm', 0, 's');
    if (hours < 8)
        return two(text, hours, 'h', minutes % 60, 'm');
    if (hours < 48)
        return two(text, hours, 'h', 0, 'm');
    if (hours < 24 * 8)
        return two(text, days, 'd', hours % 24, 'h');
    if (days < 365 * 2)
        return two(text, days, 'd', 0, 'h');
    if (days < 365 * 8)
        return two(text, days / 365, 'y', days % 365, 'd');
    return two(text, days / 365, 'y', 0, 'd');
}
