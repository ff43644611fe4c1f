#include "controller/pod_waiting.h"

#include <stdio.h>
#include <string.h>

static const struct json *waiting_of(const struct json *status)
{
    const struct json *waiting = json_get(json_get(status, "state"), "waiting");
    const char *reason = json_cstr(json_get(waiting, "reason"));

    if (!reason || !*reason || strcmp(reason, "ContainerCreating") == 0 ||
        strcmp(reason, "PodInitializing") == 0)
        return NULL;
    return waiting;
}

const char *pod_waiting(const struct object *pod, char text[POD_WAITING_BYTES])
{
    static const char *const lists[] = { "status.initContainerStatuses",
                                         "status.containerStatuses" };
    const struct json *waiting;
    const char *message, *name;

    EACH(list, lists) {
        JSON_EACH(status, object_at(pod, *list))
        {
            waiting = waiting_of(status);
            if (!waiting)
                continue;
            message = json_cstr(json_get(waiting, "message"));
            name = json_cstr(json_get(status, "name"));
            (void)snprintf(text, POD_WAITING_BYTES, "container \"%s\": %s%s%s", name ? name : "",
                           json_cstr(json_get(waiting, "reason")), message && *message ? ": " : "",
                           message ? message : "");
            return text;
        }
    }
    text[0] = '\0';
    return text;
}

struct json_node *pod_waiting_keep(const struct json *statuses, struct json_edit *ed)
{
    struct json_node *kept = NULL, *one;

    JSON_EACH(status, statuses)
    {
        if (!waiting_of(status))
            continue;
        if (!kept)
            kept = json_edit_array(ed);
        one = json_edit_object(ed);
        json_node_append(kept, one);
        json_node_set(one, "name", json_edit_view(ed, json_get(status, "name")));
        json_node_set(one, "state", json_edit_view(ed, json_get(status, "state")));
    }
    return kept;
}
