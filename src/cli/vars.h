/* vars: the variables that -e and --env give a command.
 *
 * Owns:     texts it had to make; others point into the command line.
 * Used by:  run.c, exec.c.
 */
#ifndef SILICA_CLI_VARS_H
#define SILICA_CLI_VARS_H

#include "base/opt.h"

#define VARS_MAX (OPT_LIST_MAX + 8) /* the caller's, and a few of ours */

struct vars {
    const char *v[VARS_MAX + 1]; /* "NAME=value", NULL-terminated */
    char *made[VARS_MAX];        /* those that are ours to free */
    size_t n, made_n;
};

/* Adds one as it stands. It must live as long as the list. */
void vars_add(struct vars *vs, const char *var);
/* Adds those of the list: "NAME=value" as it stands, "NAME" with our own value, or not at all where it has none. ERR_USAGE:
 * no name. */
int vars_read(struct vars *vs, const struct opt_list *given, struct err *e);
/* Is there a variable of that name in what was given? `var` is "NAME=...". */
bool vars_is_given(const struct opt_list *given, const char *var);
/* TERM for a command with a terminal: what was given, else ours, else one that every program knows. */
void vars_add_term(struct vars *vs, const struct opt_list *given);
void vars_done(struct vars *vs);

#endif
