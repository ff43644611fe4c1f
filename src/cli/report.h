/* report: how a run went, told on stderr when it is over: a message where it failed, or one line of JSON in any case.
 *
 * Used by:  run.c, kept.c.
 */
#ifndef SILICA_CLI_REPORT_H
#define SILICA_CLI_REPORT_H

#include "cli/session.h"

struct report {
    struct session_result result;
    const char *name;       /* of a sandbox that stays, or NULL */
    const char *unenforced; /* limits that do not hold, or "" */
    uint64_t start_ms;      /* until the sandbox was there */
};

void report_say(const struct report *r, bool is_json);
/* Before the command runs, for people. */
void report_unenforced(const struct report *r, bool is_json);

#endif
