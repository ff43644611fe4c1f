/* sandbox_status: what a Sandbox says of itself, from what its reconciler saw and did.
 *
 *     facts -> conditions (Suspended, Finished, PodScheduled, Ready), addresses, service -> a patch, or nothing to write
 *
 * Owns:     nothing. Does no I/O, reads no clock. Reasons and messages are part of the contract.
 * Used by:  the Sandbox reconciler.
 */
#ifndef SILICA_CONTROLLER_SANDBOX_STATUS_H
#define SILICA_CONTROLLER_SANDBOX_STATUS_H

#include "controller/step.h"

struct sandbox_facts {
    const struct object *sandbox;
    const struct object *pod; /* the one that was found, made or is refused; NULL: none */
    bool has_pod_failed;      /* the step about the Pod failed: with no pod, nothing is known */
    const char *conflict;     /* several Pods are its own: the text; else NULL */
    const char *fault;        /* what else failed, joined by newlines; NULL: nothing */
    bool is_invalid;          /* the API server will never take its Pod as it is written */
    bool is_service_known;    /* the step about the Service was done; else its status stays */
    bool is_service_required; /* see service.h */
    bool is_service_shown;
    bool has_service;
    const char *cluster_domain; /* "cluster.local" */
    const char *now;            /* metav1.Time */
};

/* The status of a sandbox that lives, as a tree made from the one it has. */
struct json_node *sandbox_status(const struct sandbox_facts *f, struct json_edit *ed);
/* The first pass of an expiry: it says so. The second, once all is gone: only conditions are left. */
struct json_node *sandbox_status_expired(const struct object *sandbox, const char *now,
                                         struct json_edit *ed);
struct json_node *sandbox_status_ended(const struct object *sandbox, const char *now,
                                       struct json_edit *ed);

/* What it says is what it said, but for the generations that it was seen in. */
bool sandbox_status_is_renumbered(const struct object *sandbox, struct json_node *status);

/* The write that makes the status this; STEP_NONE when it says nothing new, or nothing that cannot wait: a node's name
 * alone waits for readiness. */
struct step sandbox_status_step(const struct object *sandbox, struct json_node *status,
                                struct json_edit *ed);

#endif
