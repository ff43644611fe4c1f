/* condition: a status' list of conditions: what is so, since when, why.
 *
 * Owns:     nothing; lists are trees of the caller's edit, or values of an object.
 * Times:    lastTransitionTime moves only when the status does. A mirrored condition brings its source's.
 */
#ifndef SILICA_CONTROLLER_CONDITION_H
#define SILICA_CONTROLLER_CONDITION_H

#include "base/json_edit.h"

struct condition {
    const char *type;
    const char *status; /* "True", "False", "Unknown" */
    const char *reason;
    const char *message;
    int64_t generation; /* of the object when this was said */
    const char *since;  /* of a mirrored one; NULL: now */
};

/* In the place of the one of its type, else last. `now` as metav1.Time. */
void condition_set(struct json_node *list, const struct condition *c, const char *now);
void condition_remove(struct json_node *list, const char *type);
/* The condition of that type, or NULL. `list` may be NULL. */
const struct json *condition_find(const struct json *list, const char *type);
bool condition_is(const struct json *list, const char *type, const char *status);
/* Its reason; "" when there is no such condition. */
const char *condition_reason(const struct json *list, const char *type);

#endif
