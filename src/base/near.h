/* near: which of the names that there are was meant by one that is none of them.
 *
 *     struct near near = { .name = given };
 *     for (...)
 *         near_try(&near, known[i]);
 *     near_hint(&near, e);                   "did you mean 'router-listen'?"
 *
 * Owns:     nothing; names are borrowed.
 * Used by:  who tells people that there is no such thing.
 */
#ifndef SILICA_BASE_NEAR_H
#define SILICA_BASE_NEAR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define NEAR_LETTERS_MAX    3   /* to change, add or drop; more is another name */
#define NEAR_NAME_MAX_BYTES 256 /* longer ones are near nothing */

struct near {
    const char *name;
    const char *best; /* NULL: nothing is near */
    size_t away;      /* letters between the two */
};

void near_try(struct near *n, const char *known);
/* False where nothing is near: then there is no hint. */
bool near_hint(const struct near *n, struct err *e);

#endif
