/* box_rig: boxes under test, started for real: by who runs the tests, and where that is root also by an account that has
 * nothing but its uid, by one with a range of ids, and by one with cgroups of its own. What runs inside prints what it sees;
 * the test compares. Only for tests; each names the cases that each of them runs.
 *
 * Used by:  box_test.c (what is seen inside), box_volumes_test.c, box_limits_test.c, box_life_test.c.
 */
#ifndef SILICA_ISOLATE_BOX_RIG_H
#define SILICA_ISOLATE_BOX_RIG_H

#include "isolate/box.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Who runs the cases now. */
struct box_rig {
    bool has_user_namespaces;
    bool is_ranged;   /* we are the account with a range */
    bool has_cgroups; /* memory, pids and cpu can be limited */
};
extern struct box_rig box_rig;

struct box_rig_cases {
    const struct CMUnitTest *tests;
    size_t n;
};
#define BOX_RIG_CASES(array) ((struct box_rig_cases){ array, LEN(array) })

struct box_rig_plan {
    struct box_rig_cases all;
    /* What is true of a box is true of one whose network was made ahead, and whose mounts the yard takes apart. */
    struct box_rig_cases beside_a_yard;
    struct box_rig_cases ranged, handed; /* by an account with a range, with cgroups */
};

/* A box of who runs the case, with these options for its PID 1. */
struct box_spec box_rig_spec(const char *const *args);
/* Skips the case where there are none. */
void box_rig_need_user_namespaces(void);
/* Runs a script as the main command of a box, and fails unless both outputs together are what is wanted. */
void box_rig_expect(const char *name, struct box_spec spec, const char *script, const char *want);
/* Fails unless making it does, for a reason that contains the text. */
void box_rig_expect_error(const char *name, struct box_spec spec, const char *want);
/* For main: not 0 is a failure. */
int box_rig_run(const struct box_rig_plan *plan);

#endif
