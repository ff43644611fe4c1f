/* sandbox_pass: one look at one Sandbox, as the two files that carry it out share it: sandbox_pass.c and sandbox_end.c.
 *
 *     VOLUMES -> POD (-> LOOKUP -> POD) -> NOTE -> SERVICE -> STATUS
 *     an expired one: MARK, and in the next pass END_POD -> END_SERVICE -> END_STATUS or END_SANDBOX
 *
 * An error in one part does not skip the others; it is told in the status, and the pass is tried again.
 */
#ifndef SILICA_CONTROLLER_SANDBOX_PASS_H
#define SILICA_CONTROLLER_SANDBOX_PASS_H

#include "controller/pass.h"
#include "controller/sandbox.h"
#include "controller/service.h"

enum sandbox_state {
    AT_VOLUMES,
    AT_POD,
    AT_LOOKUP, /* the name of the Pod is taken, though no Pod is in the copy */
    AT_NOTE,
    AT_SERVICE,
    AT_STATUS,
    AT_MARK,
    AT_END_POD,
    AT_END_SERVICE,
    AT_END_STATUS,
    AT_END_SANDBOX,
    AT_OVER,
};

struct sandbox_pass {
    struct pass pass;
    struct sandboxes *r;
    enum sandbox_state state;
    struct object *sandbox; /* ours */
    size_t volume;          /* the template that comes next */
    struct object *found;   /* by the lookup; ours, or NULL */
    bool has_looked_up;
    struct object *pod; /* the sandbox's after its step; ours, or NULL */
    bool has_pod_failed, is_invalid;
    unsigned pod_patches, service_patches;
    char conflict[480];
    const char *note; /* what the annotation becomes; NULL: it stays */
    const char *note_if_failed;
    struct service_verdict service;
    bool is_service_known;
    bool is_marking; /* that it has expired: the end comes in the next pass */
};

/* Writes the status, or goes on to the end when there is nothing to be written. */
void sandbox_pass_write(struct sandbox_pass *p, struct json_node *status);
/* Its own Pods, borrowed; how many of at most `most`. */
size_t sandbox_pass_own(const struct sandbox_pass *p, struct object **ret, size_t most);
/* The Service of its name; borrowed, or NULL. */
struct object *sandbox_pass_service(const struct sandbox_pass *p);

/* sandbox_end.c: each state does something, and gets its answer. */
void end_pod(struct sandbox_pass *p);
void end_service(struct sandbox_pass *p);
void end_sandbox(struct sandbox_pass *p);
void end_status(struct sandbox_pass *p);

#endif
