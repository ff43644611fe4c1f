/* problems: what of claims and pools does not get better by waiting, and which command heals it.
 *
 * Owns:     nothing; texts are in the row.
 * Used by:  status.c.
 */
#ifndef SILICA_CLI_PROBLEMS_H
#define SILICA_CLI_PROBLEMS_H

#include "base/buf.h"
#include "kube/object.h"

struct problem {
    char text[400]; /* what is wrong */
    char heal[400]; /* a command, or what to apply */
};

bool problem_of_claim(const struct object *claim, struct problem *ret);
/* templates: those that there are, a line each. */
void problem_add_template(struct buf *templates, const struct object *o);
bool problem_of_pool(const struct object *pool, const struct buf *templates, struct problem *ret);
/* It is down because that was asked for: no problem, but worth a line. */
bool problem_is_suspended(const struct object *claim);

#endif
