/* event: tells people what a controller did to an object: events.k8s.io/v1 Events.
 *
 * Owns:     each Event until the API server has answered, and for some minutes what it warned of. An Event that cannot be
 *           written is a line in the log: nothing waits for it, and nothing is tried again.
 * Series:   as the public recorder's: a warning that is given again (of the same object, controller, reason and action) is
 *           counted in the Event that is there. The count is written when it has doubled, and once it has been quiet for
 *           EVENT_SERIES_MS; what is said later begins another Event. So what goes wrong a thousand times makes one Event and
 *           some ten writes. What went well is not counted: it happens once to an object.
 * When:     warnings at once; what went well when claims do not need the time.
 * Life:     events_close writes what waits and forgets everything; calls under way end by themselves.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_EVENT_H
#define SILICA_CONTROLLER_EVENT_H

#include "controller/step.h"

#include <time.h>

struct events;
struct shared;

struct event {
    const struct object *about;
    const char *controller; /* "sandbox-controller" */
    bool is_warning;
    const char *reason, *action;
    const char *note; /* cut at what the API takes */
};

/* Shared and its client must outlive it. */
struct events *events_new(struct shared *shared);
void events_close(struct events *events);

/* Everything is copied. */
void event_emit(struct events *events, const struct event *event);
/* The Event as it is created; `now` makes its name. */
struct step event_step(const struct event *event, struct timespec now, struct json_edit *ed);

#endif
