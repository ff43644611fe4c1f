/* root: the directory all paths and commands of this contract are below. With --root it exists since the start; the
 * default is created when it is first needed, as nobody may ever ask for it.
 */
#ifndef SILICA_RUNTIME_SANDBOXD_ROOT_H
#define SILICA_RUNTIME_SANDBOXD_ROOT_H

#include "runtime/files/path.h"
#include "runtime/runtime.h"

/* Opens it, created where missing. On a worker. -1: ERR_INTERNAL, without an errno. */
int root_open(struct path_root *root, const struct runtime *rt, struct err *e);

/* On the loop. Known to have been there: then a command can start in it without a trip to a worker. */
bool root_is_known(const struct runtime *rt);
void root_set_known(bool is_known);

#endif
