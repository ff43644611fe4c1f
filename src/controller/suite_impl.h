/* suite_impl: the groups of the suite, and what their tests have in common. Each test has a world of its own. */
#ifndef SILICA_CONTROLLER_SUITE_IMPL_H
#define SILICA_CONTROLLER_SUITE_IMPL_H

#include "controller/suite.h"
#include "controller/world.h"

/* The state of a test is its struct world. */
int suite_set_up(void **state);
int suite_tear_down(void **state);
#define SUITE_TEST(name) cmocka_unit_test_setup_teardown(name, suite_set_up, suite_tear_down)

/* A condition is "True Reason Message", or begins so. */
bool suite_has_condition(const struct object *o, const char *type, const char *text);

/* So many of a kind, and not one more a little later. */
void suite_until_count(struct world *w, const struct kind *kind, size_t n);

/* Each returns the number of tests that failed. */
int suite_sandbox_run(void);
int suite_pool_run(void);
int suite_claim_run(void);
int suite_fault_run(void);

#endif
