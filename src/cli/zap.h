/* zap: the flags by which public controllers in Go choose their logs, as ours take them too. */
#ifndef SILICA_CLI_ZAP_H
#define SILICA_CLI_ZAP_H

#include "base/err.h"

struct zap_options {
    const char *level;   /* "debug", "info", "error", or a number above 0 for debug */
    const char *encoder; /* "json", "console", or NULL */
    bool is_devel;
};

/* Opens the log on standard error. ERR_INVALID names the flag that is wrong. */
int zap_open(const struct zap_options *o, struct err *e);

#endif
