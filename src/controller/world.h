/* world: what a test of the controllers stands in: an API behind a client, controllers at work on it, and something that
 * makes Pods run.
 *
 * Owns:     the controllers and the stand-in for nodes. The client and the loop are whoever's runs the suite; the loop is
 *           driven by the calls here, each of which fails the test when it does not get what it wants in time.
 * Texts:    JSON with single quotes, as testobject.h has it.
 * Tests only: needs cmocka.
 */
#ifndef SILICA_CONTROLLER_WORLD_H
#define SILICA_CONTROLLER_WORLD_H

#include "controller/controller.h"
#include "controller/step.h"
#include "kube/client_suite.h"

/* A deadline for what is never slow: only a failing test waits this long. */
#define WORLD_PATIENCE_MS 20000

struct world {
    const struct client_suite *suite;
    struct kube_client *client;
    struct faults *faults; /* what is to go wrong with its calls; nothing, unless a test says so */
    struct controller *controller;
    struct world_nodes *nodes; /* NULL: the suite's nodes_pid makes Pods run */
    struct controller_config
        config; /* of the next world_start; changed by tests of what operators set */
    bool is_done;
    char namespace[64]; /* of this test, made for it */
};

/* With controllers at work. */
void world_open(struct world *w, const struct client_suite *suite);
void world_close(struct world *w);
/* The controllers end as if by a signal, and others begin. */
void world_stop(struct world *w);
void world_start(struct world *w);

/* From now on Pods are left alone as they are made, or are made to run again: held ones too. */
void world_hold_pods(struct world *w, bool is_held);

/* One call, to its end. The object is kept by the test; NULL: refused, with *ret_code why (or the test fails). */
struct object *world_call(struct world *w, const struct kube_request *rq, int *ret_code);
struct object *world_create(struct world *w, const struct kind *kind, const char *fmt, ...)
    PRINTF(3, 4);
/* NULL when it is not there. */
struct object *world_get(struct world *w, const struct kind *kind, const char *name);
struct object *world_patch(struct world *w, const struct kind *kind, const char *name,
                           const char *sub, const char *fmt, ...) PRINTF(5, 6);
void world_delete(struct world *w, const struct kind *kind, const char *name);

typedef bool (*world_fn)(struct world *w, const struct object *o, const void *arg);
/* Until is(o) holds for the object of that name (NULL while there is none); `what` is told when it never does. */
struct object *world_until(struct world *w, const struct kind *kind, const char *name,
                           const char *what, world_fn is, const void *arg);
/* Until a condition is "True Reason Message", or begins so. */
struct object *world_until_condition(struct world *w, const struct kind *kind, const char *name,
                                     const char *type, const char *text);
void world_until_gone(struct world *w, const struct kind *kind, const char *name);
struct object *world_until_there(struct world *w, const struct kind *kind, const char *name);
/* Objects of the namespace; the first of them in *ret_first when there is one. */
size_t world_count(struct world *w, const struct kind *kind, const char *labels,
                   struct object **ret_first);
typedef void (*world_each_fn)(void *ctx, const struct object *o);
/* Each object of the namespace, borrowed for the call. */
void world_each(struct world *w, const struct kind *kind, world_each_fn fn, void *ctx);
/* The sum of a metric over all its labels, or of those that the name goes on with; 0: there is none. */
uint64_t world_metric(struct world *w, const char *name);
/* A little time passes: for what must not happen. */
void world_idle(struct world *w, uint64_t ms);

#endif
