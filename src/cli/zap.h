/* zap: the flags by which public controllers in Go choose their logs, as ours take them too. */
#ifndef SILICA_CLI_ZAP_H
#define SILICA_CLI_ZAP_H

#include "base/opt.h"

struct zap_options {
    const char *level;   /* "debug", "info", "error", or a number above 0 for debug */
    const char *encoder; /* "json", "console", or NULL */
    bool is_devel;
};

/* clang-format off */
/* Rows of an option table; `group` is the heading above them, or NULL. */
#define ZAP_OPTS(at, group) \
    { "--zap-log-level", NULL, OPT_STR, (at) + offsetof(struct zap_options, level), "info", 0, 0, "LEVEL", "debug, info, error, or a number above 0 for debug", group }, \
    { "--zap-encoder", NULL, OPT_STR, (at) + offsetof(struct zap_options, encoder), NULL, 0, 0, "FORMAT", "json, or console for our own format; default: json" }, \
    { "--zap-devel", NULL, OPT_BOOL, (at) + offsetof(struct zap_options, is_devel), NULL, 0, 0, NULL, "console and debug" }
/* clang-format on */

/* Opens the log on standard error. ERR_INVALID names the flag that is wrong. */
int zap_open(const struct zap_options *o, struct err *e);

#endif
