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

/* So many of a kind, and not one more a little later. Of Events, those that are not about Pods. */
void suite_until_count(struct world *w, const struct kind *kind, size_t n);

/* ---- a template "t", a pool "p" of it, claims ---- */

#define SUITE_READY "True DependenciesReady Pod is Ready"

/* more: what its spec has besides, after a comma; or "". */
void suite_make_template(struct world *w, const char *more);
void suite_make_pool(struct world *w, unsigned replicas);
/* Both, and so many that wait. */
void suite_open_pool(struct world *w, unsigned replicas, const char *more);
void suite_until_full(struct world *w, unsigned replicas);
void suite_until_size(struct world *w, const char *pool, unsigned replicas);
void suite_make_claim(struct world *w, const char *name, const char *more);
/* The sandbox that the claim's status names, and that is its own. */
struct object *suite_sandbox_of(struct world *w, const struct object *claim);

/* ---- what others do meanwhile: `first` of a fault ---- */

struct suite_meddler {
    struct world *w;
    char name[64]; /* of the object that was met first */
};
/* Somebody writes the same object first: the call behind it meets a real conflict. */
void suite_write_first(void *ctx, const struct kube_request *rq);
void suite_delete_first(void *ctx, const struct kube_request *rq);

/* Waits for a Warning about an object, by its reason and a part of its note; returns how often it was given. */
int64_t suite_until_warned(struct world *w, const struct object *about, const char *reason,
                           const char *note);

/* Each returns the number of tests that failed. */
int suite_sandbox_run(void);
int suite_pool_run(void);
int suite_claim_run(void);
int suite_fault_run(void);
int suite_input_run(void);
int suite_adopt_run(void);
int suite_config_run(void);

#endif
