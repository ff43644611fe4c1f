/* testwho: the same tests, run by accounts of several kinds. Only for tests; wants root to start from.
 *
 * Used by:  box_rig.c, engine_test.c.
 */
#ifndef SILICA_ISOLATE_TESTWHO_H
#define SILICA_ISOLATE_TESTWHO_H

#include "base/own.h"

#define TESTWHO_NOBODY 65534
#define TESTWHO_RANGED 64999 /* nobody's uid */

/* In the calling process, for good: an account that is in no file: no range of ids, no groups. False: it cannot be. */
bool testwho_be(unsigned id);
/* In a child: fn(), whose result comes back; not 0 is a failure. */
int testwho_run_as_nobody(int (*fn)(void));
/* The same by an account with a range of ids in /etc/subuid; 0 where there is no newuidmap. */
int testwho_run_as_ranged(int (*fn)(void));

#endif
