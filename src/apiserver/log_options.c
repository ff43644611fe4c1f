#include "apiserver/log_options.h"

#include "base/str.h"
#include "kube/time.h"

#include <string.h>
#include <time.h>

static const struct kind log_options = { .group = "", .name = "PodLogOptions" };

/* There without a value means yes. */
static bool is_set(struct call *c, const char *name)
{
    const char *text = call_query(c, name);

    return text && strcmp(text, "0") != 0 && !span_is_nocase(span_cstr(text), "false");
}

/* *ret_is_given; -1: not a number at all. */
static int read_number(struct call *c, const char *name, int64_t *ret, bool *ret_is_given)
{
    const char *text = call_query(c, name);

    *ret_is_given = text && *text;
    if (!*ret_is_given || str_i64(span_cstr(text), INT64_MIN, INT64_MAX, ret))
        return 0;
    return call_not_a_number(c, text);
}

static void refuse_number(struct call *c, const char *name, int64_t n, const char *why)
{
    char shown[32];

    (void)snprintf(shown, sizeof shown, "%lld", (long long)n);
    causes_add_shown(&c->status.causes, CAUSE_INVALID, AT(NULL, name), shown, "%s", why);
}

/* A number that is passed on as it is, if it is not below min. */
static int add_number(struct call *c, const char *name, int64_t min, const char *why,
                      struct buf *out)
{
    bool is_given;
    struct err e;
    int64_t n;

    if (read_number(c, name, &n, &is_given) < 0)
        return -1;
    if (is_given && n < min)
        refuse_number(c, name, n, why);
    if (is_given && n >= min && buf_addf(out, &e, "&%s=%lld", name, (long long)n) < 0)
        return status_of_err(&c->status, &e);
    return 0;
}

/* Seconds before now, or a time in whole seconds: either way the pod side gets a time in UTC, as logs have it. */
static int add_since(struct call *c, struct buf *out)
{
    const char *given = call_query(c, "sinceTime");
    bool has_time = given && *given, has_seconds;
    char text[TIME_TEXT_BYTES] = "";
    struct timespec now, since;
    int64_t seconds;
    struct err e;

    if (has_time && !kube_time_parse(span_cstr(given), &since))
        return status_bad_request(&c->status, "sinceTime: not a time as RFC 3339 has it: \"%s\"",
                                  given);
    if (read_number(c, "sinceSeconds", &seconds, &has_seconds) < 0)
        return -1;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (has_time && has_seconds)
        causes_add(&c->status.causes, CAUSE_FORBIDDEN, AT(NULL, "[]"), NULL,
                   "at most one of `sinceTime` or `sinceSeconds` may be specified");
    else if (has_seconds && seconds < 1)
        refuse_number(c, "sinceSeconds", seconds, "must be greater than 0");
    else if (has_seconds && seconds < now.tv_sec) /* else: before there was a clock */
        (void)kube_microtime_text(text,
                                  (struct timespec){ now.tv_sec - (time_t)seconds, now.tv_nsec });
    else if (has_time)
        (void)kube_time_text(text, since.tv_sec);
    if (*text && buf_addf(out, &e, "&since=%s", text) < 0)
        return status_of_err(&c->status, &e);
    return 0;
}

static int add_stream(struct call *c, struct buf *out)
{
    const char *text = call_query(c, "stream");
    struct err e;

    if (!text || !*text || strcmp(text, "All") == 0)
        return 0;
    if (strcmp(text, "Stdout") != 0 && strcmp(text, "Stderr") != 0)
        causes_add_text(&c->status.causes, CAUSE_NOT_SUPPORTED, AT(NULL, "stream"), span_cstr(text),
                        "supported values: \"All\", \"Stderr\", \"Stdout\"");
    else if (buf_addf(out, &e, "&stream=%s", text) < 0)
        return status_of_err(&c->status, &e);
    text = call_query(c, "tailLines");
    if (text && *text)
        causes_add(&c->status.causes, CAUSE_FORBIDDEN, AT(NULL, "[]"), NULL,
                   "`tailLines` and specific `stream` are mutually exclusive for now");
    return 0;
}

int log_options_read(struct call *c, struct buf *out)
{
    static const char *const flags[] = { "follow", "previous", "timestamps" };
    struct err e;

    EACH(flag, flags) {
        if (is_set(c, *flag) && buf_addf(out, &e, "&%s=true", *flag) < 0)
            return status_of_err(&c->status, &e);
    }
    if (add_number(c, "tailLines", 0, "must be greater than or equal to 0", out) < 0 ||
        add_number(c, "limitBytes", 1, "must be greater than 0", out) < 0 ||
        add_since(c, out) < 0 || add_stream(c, out) < 0)
        return -1;
    return c->status.causes.n ? status_invalid(&c->status, &log_options, c->op.name) : 0;
}
