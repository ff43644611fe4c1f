/* event: tells people what happened to a Pod: core/v1 Events, as the kubelet writes them.
 *
 * Owns:     each Event until the API server has answered. One that cannot be written is a line in the log: nothing waits
 *           for it, and nothing is tried again.
 * When:     in the order of what happened. Warnings at once; what went well EVENTS_WAIT_MS later: a write is a commit of the
 *           server's, and the status that somebody waits for would stand behind it.
 * Repeats:  the same again is not told again for as long as the caller says so; counting is the caller's.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_EVENT_H
#define SILICA_NODE_EVENT_H

#include "kube/client.h"

struct event_spec {
    const struct object *about; /* NULL: our Node */
    const char *node;           /* our name */
    const char *container;      /* which of the Pod's; NULL: the Pod itself */
    bool is_init;               /* with container */
    bool is_warning;
    const char *reason;
    const char *message; /* cut at what the API takes */
};

struct node_events;

/* The client outlives it. */
struct node_events *node_events_open(struct kube_client *client);
void node_event(struct node_events *events, const struct event_spec *spec);
/* Sends what waits. */
void node_events_send(struct node_events *events);
/* The same, and the end. Tolerates NULL. */
void node_events_close(struct node_events *events);

#endif
