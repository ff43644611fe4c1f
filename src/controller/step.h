/* step: one write that a decision asks for, as data: tests read it, the driver carries it out.
 *
 * Owns:     nothing: bodies are trees of the pass' edit, texts belong to the objects it looks at.
 * Used by:  the decisions (pod, service, volume, ...) and the drivers of the reconcilers.
 */
#ifndef SILICA_CONTROLLER_STEP_H
#define SILICA_CONTROLLER_STEP_H

#include "kube/client.h"

enum step_verb {
    STEP_NONE,
    STEP_CREATE, /* body: the whole object, without apiVersion and kind */
    STEP_PATCH,  /* body: a merge patch; a resourceVersion in it is a lock */
    STEP_UPDATE, /* body: the whole object with the version it is based on */
    STEP_DELETE, /* of this uid only, and of this version unless it is 0 */
};

struct step {
    enum step_verb verb;
    const struct kind *kind;
    const char *namespace, *name;
    const char *sub; /* "status", or NULL */
    struct json_node *body;
    const char *uid;
    uint64_t version;
    enum kube_propagation propagation;
};

/* The kinds the controllers know; constants. */
struct known_kinds {
    const struct kind *sandbox, *template, *claim, *pool;
    const struct kind *pod, *service, *volume_claim, *policy, *event;
};
const struct known_kinds *known_kinds(void);

/* A merge patch of an object: a tree that has nothing in it yet. */
struct step step_patch(struct json_edit *ed, const struct object *o);
/* The same, that fails with 409 when the object has changed since. */
struct step step_patch_locked(struct json_edit *ed, const struct object *o);
/* The whole object in a tree to be changed; fails with 409 when it has changed since. */
struct step step_update(struct json_edit *ed, const struct object *o);
struct step step_delete(const struct object *o);
/* An object of that kind and name to be made; its body has metadata. */
struct step step_create(struct json_edit *ed, const struct kind *kind, const char *namespace,
                        const char *name);

/* Starts the write. Field managers, preconditions and propagation as the step says. The answer comes to `done`. -1:
 * the body is too large, and nothing was started. */
int step_start(struct kube_client *client, const struct step *step, const char *manager,
               kube_done_fn done, void *ctx, struct kube_call **ret, struct err *e);
/* "create Pod ns/name": for logs, and the beginning of messages. */
const char *step_text(const struct step *step, char *text, size_t size);

#endif
