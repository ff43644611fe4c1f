/* id_range: the ranges of host ids that root's sandboxes have. A range is taken, and no two sandboxes of the machine have one
 * at the same time, whichever data directory, daemon or `silica run` they belong to.
 *
 * A range is a byte of one file of root's, and taking it is a lock on that byte. The lock belongs to the open file, so the
 * kernel gives the range back when its holder ends, however that happens. The holder is the process that a sandbox ends with:
 * the keeper, or `silica run`. The name's own range is tried first, so that a sandbox of the same name has the same ids again
 * where it can: files on a file system that cannot map ids stay its own.
 *
 * Owns:     the open file, and which bytes of it this process has locked.
 * Used by:  keeper_box.c for what is kept, box.c for the rest.
 * Limits:   IDS_SLOTS ranges, then ERR_BUSY. Root in a user namespace that has too few ids has none to give.
 * Trust:    processes that take no lock (a keeper of an older release, another mount namespace's root) are seen by their
 *           ids: a range in which root, user 1000 or the user that is asked for runs something is not free.
 * Cost:     2-5 us; 25 us where 5,000 ranges are taken, since the kernel keeps the locks of a file in one list.
 */
#ifndef SILICA_ISOLATE_ID_RANGE_H
#define SILICA_ISOLATE_ID_RANGE_H

#include "isolate/limits.h"

#include "base/err.h"

#include <sys/types.h>

struct id_ranges;

/* Those of the machine. */
struct id_ranges *id_ranges_of_machine(void);
/* With a file in this directory, which is made where it is missing. For tests. */
struct id_ranges *id_ranges_new(const char *dir);
void id_ranges_free(struct id_ranges *r);

/* The first id of a range, and the range that a name tries first. */
uint32_t id_range_base(size_t slot);
size_t id_range_of_name(const char *name);

/* *ret_base: the first of IDS_COUNT ids, held until it is released; 0 where the caller has no ranges to give, since it is not
 * root or has too few ids. uid: of the sandbox's commands, inside. */
int id_range_take(struct id_ranges *r, const char *name, uid_t uid, uint32_t *ret_base,
                  struct err *e);
/* One sandbox more has it: one that joins. It is released once for each. 0 is no range. */
void id_range_share(struct id_ranges *r, uint32_t base);
void id_range_release(struct id_ranges *r, uint32_t base);

#endif
