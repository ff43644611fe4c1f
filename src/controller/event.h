/* event: tells people what a controller did to an object: events.k8s.io/v1 Events.
 *
 * Owns:     each Event until the API server has answered. An Event that cannot be written is a line in the log: nothing
 *           waits for it, and nothing is tried again.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_EVENT_H
#define SILICA_CONTROLLER_EVENT_H

#include "controller/step.h"

#include <time.h>

struct event {
    const struct object *about;
    const char *controller; /* "sandbox-controller" */
    bool is_warning;
    const char *reason, *action;
    const char *note; /* cut at what the API takes */
};

void event_emit(struct kube_client *client, const struct event *event);
/* The Event as it is created; `now` makes its name. */
struct step event_step(const struct event *event, struct timespec now, struct json_edit *ed);

#endif
