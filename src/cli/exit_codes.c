#include "cli/exit_codes.h"

#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#define CODE_COLUMNS 8

/* clang-format off */
static const struct row {
    int code; /* -1: see `name` */
    const char *name, *text;
} rows[] = {
    { 0,               NULL,    "It was done." },
    { EXIT_NO,         NULL,    "The answer is no, or a part was not done: a part does not serve, a protection is broken, a sandbox is not there or stays. "
                                "A server that must not go on returns it, too." },
    { EXIT_USAGE,      NULL,    "Wrong usage; the line on standard error names the argument." },
    { EXIT_NOT_UP,     NULL,    "Nothing is up in that data directory (status, env, kubeconfig, token)." },
    { EXIT_PROBLEMS,   NULL,    "All parts serve, and there are problems that waiting does not heal: failed claims, a full disk and the like (status)." },
    { EXIT_TIMED_OUT,  NULL,    "The time of --timeout passed (run, exec)." },
    { EXIT_FAILED,     NULL,    "The command of silica itself failed: a sandbox could not be made, is paused, or broke; a copy failed; a server could not start." },
    { EXIT_CANNOT_RUN, NULL,    "The program was found, and cannot be run (run, exec, in-cluster)." },
    { EXIT_NOT_FOUND,  NULL,    "The program was not found (run, exec, in-cluster)." },
    { -1,              "other", "run, exec and in-cluster return what their program returned, or 128 and the number of the signal that ended it." },
};
/* clang-format on */

static const char *name_of(const struct row *r, char text[CODE_COLUMNS])
{
    if (r->name)
        return r->name;
    (void)snprintf(text, CODE_COLUMNS, "%d", r->code);
    return text;
}

void exit_codes_text(struct buf *out)
{
    char text[CODE_COLUMNS];

    buf_addf_capped(out, "What commands return:\n\n");
    EACH(r, rows)
        buf_addf_capped(out, "  %-*s%s\n", CODE_COLUMNS, name_of(r, text), r->text);
}

void exit_codes_roff(struct buf *out)
{
    char text[CODE_COLUMNS];

    EACH(r, rows) {
        buf_addf_capped(out, ".TP\n.B %s\n", name_of(r, text));
        for (const char *c = r->text; *c; c++)
            buf_addf_capped(out, *c == '-' ? "\\-" : "%c", *c);
        buf_addf_capped(out, "\n");
    }
}
