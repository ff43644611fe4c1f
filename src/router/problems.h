/* problems: what of the objects does not get better by waiting, and which command heals it.
 *
 * Owns:     nothing; texts are in the row.
 * Used by:  page.c and `silica status`.
 * Trust:    tenants make the objects, and sandboxes have a say in their statuses: no control characters come out, and no name
 *           that a shell would read as something else comes into a command.
 */
#ifndef SILICA_ROUTER_PROBLEMS_H
#define SILICA_ROUTER_PROBLEMS_H

#include "base/buf.h"
#include "kube/object.h"

struct problem {
    char text[400]; /* what is wrong */
    char heal[400]; /* a command, or what to apply */
};

bool problem_of_claim(const struct object *claim, struct problem *ret);
/* Of one that no claim and no pool has. */
bool problem_of_sandbox(const struct object *sandbox, struct problem *ret);
/* What there is by name, a line each: for those that refer to it. */
void problem_add_name(struct buf *names, const struct object *o);
bool problem_of_pool(const struct object *pool, const struct buf *templates, struct problem *ret);
/* A RoleBinding or ClusterRoleBinding. roles: Roles and ClusterRoles. */
bool problem_of_binding(const struct object *binding, const struct buf *roles, struct problem *ret);
/* A claim or sandbox is down because that was asked for: no problem, but worth a line. */
bool problem_is_suspended(const struct object *o);
/* Control characters become spaces: a terminal shows the text. */
void problem_drop_controls(char *text);
/* A claim or a pool has it: it is told there. */
bool problem_is_owned(const struct object *sandbox);

#endif
