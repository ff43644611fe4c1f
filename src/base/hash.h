/* hash: texts that peers choose, as numbers that they cannot foresee.
 *
 * Owns:     one secret for each process: nobody can send a thousand names that meet in one slot of a table.
 *           So a hash means nothing outside the process, nor after its end.
 * Threads:  any.
 */
#ifndef SILICA_BASE_HASH_H
#define SILICA_BASE_HASH_H

#include "base/buf.h"

/* Goes on from h, or begins with 0. Lengths count: ("ab", "c") and ("a", "bc") differ. */
uint64_t hash_add(uint64_t h, struct span text);

#endif
