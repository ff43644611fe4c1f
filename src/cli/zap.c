#include "cli/zap.h"

#include "base/log.h"
#include "base/str.h"

#include <string.h>

int zap_open(const struct zap_options *o, struct err *e)
{
    const char *encoder = o->encoder ? o->encoder : o->is_devel ? "console" : "json";
    enum log_level level = LOG_INFO;
    uint64_t verbosity;

    if (strcmp(encoder, "json") != 0 && strcmp(encoder, "console") != 0)
        return err_set(e, ERR_INVALID, "--zap-encoder: '%s' is neither json nor console", encoder);
    if (str_u64(span_cstr(o->level), INT32_MAX, &verbosity) && verbosity > 0)
        level = LOG_DEBUG;
    else if (!log_level_parse(o->level, &level) || level == LOG_OFF)
        return err_set(e, ERR_INVALID,
                       "--zap-log-level: '%s' is not debug, info, error or a number above 0",
                       o->level);
    log_open(2, o->is_devel ? LOG_DEBUG : level, strcmp(encoder, "json") == 0 ? LOG_ZAP : LOG_TEXT);
    return 0;
}
