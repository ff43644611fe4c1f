/* service: the headless Service of a sandbox.
 *
 *     spec.service true: it is kept, with the ports of the containers; unset: one that is there stays; false: it goes
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  the Sandbox reconciler.
 */
#ifndef SILICA_CONTROLLER_SERVICE_H
#define SILICA_CONTROLLER_SERVICE_H

#include "controller/step.h"

struct service_verdict {
    struct step step;
    bool is_required; /* readiness waits for it: it is wanted, or unset and there */
    bool is_shown;    /* status.service and serviceFQDN name it */
    bool exists;      /* once the step is done */
};

/* `have` is the Service of the sandbox's name, or NULL. ERR_CONFLICT: it belongs to somebody else. */
int service_decide(const struct object *sandbox, const struct object *have, struct json_edit *ed,
                   struct service_verdict *ret, struct err *e);

/* The ports of a Pod's containers and sidecars as a Service lists them: each port and protocol once, sorted, named after
 * the first container that names it. NULL: there are none. */
struct json_node *service_ports(struct json_edit *ed, const struct json *pod_spec);

#endif
