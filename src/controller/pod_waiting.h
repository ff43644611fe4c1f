/* pod_waiting: which container keeps a Pod from being ready, and why: an image that is not there, a crash, a wrong name.
 *
 * Owns:     nothing; no I/O. A container that is only being made is no reason.
 */
#ifndef SILICA_CONTROLLER_POD_WAITING_H
#define SILICA_CONTROLLER_POD_WAITING_H

#include "base/json_edit.h"
#include "kube/object.h"

#define POD_WAITING_BYTES 700 /* of such a text; messages of nodes are cut to fit */

/* `container "c": ErrImagePull: the node's message`; "": none of them waits for more than its start. */
const char *pod_waiting(const struct object *pod, char text[POD_WAITING_BYTES]);
/* The waiting containers of one list of the status, and no more of each than pod_waiting reads; NULL: there are none. */
struct json_node *pod_waiting_keep(const struct json *statuses, struct json_edit *ed);

#endif
