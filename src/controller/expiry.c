#include "controller/expiry.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "kube/time.h"

#include <string.h>

struct expiry expiry_of(const struct json *shutdown_time, struct timespec now)
{
    struct timespec end;
    int64_t left_ms;

    if (!kube_time_parse(json_str(shutdown_time), &end))
        return (struct expiry){ 0 };
    left_ms = (end.tv_sec - now.tv_sec) * 1000 + (end.tv_nsec - now.tv_nsec + 999999) / 1000000;
    if (left_ms <= 0)
        return (struct expiry){ .is_set = true, .is_over = true };
    return (struct expiry){ .is_set = true,
                            .wait_ms = MAX((uint64_t)left_ms, (uint64_t)EXPIRY_MIN_WAIT_MS) };
}

bool expiry_is_marked(const struct object *sandbox)
{
    const struct json *conditions = object_at(sandbox, "status.conditions");

    return strcmp(condition_reason(conditions, COND_READY), REASON_EXPIRED) == 0;
}

bool expiry_deletes(const struct object *sandbox)
{
    const char *policy = object_text(sandbox, "spec.shutdownPolicy");

    return policy && strcmp(policy, "Delete") == 0;
}
