/* event: tells people what happened to a Pod: core/v1 Events, as the kubelet writes them.
 *
 * Owns:     each Event until the API server has answered. One that cannot be written is a line in the log: nothing waits
 *           for it, and nothing is tried again.
 * Repeats:  the same again is not told again for as long as the caller says so; counting is the caller's.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_EVENT_H
#define SILICA_NODE_EVENT_H

#include "kube/client.h"

struct event_spec {
    const struct object *about;
    const char *node;      /* our name */
    const char *container; /* which of the Pod's; NULL: the Pod itself */
    bool is_init;          /* with container */
    bool is_warning;
    const char *reason;
    const char *message; /* cut at what the API takes */
};

void node_event(struct kube_client *client, const struct event_spec *spec);

#endif
