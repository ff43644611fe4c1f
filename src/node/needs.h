/* needs: the other objects that a Pod names: what must be fetched before its containers can be made.
 *
 *     needs_of_pod(pod) -> the caller fetches each and sets it -> env_make, volumes_make look them up
 *
 * Owns:     references to the Pod and to what was set; copies of tokens.
 * Used by:  the lifecycle fills it; env and volumes read it. Does no I/O.
 * Missing:  a need that was not set is one that does not exist. Whether that matters is for who uses it to say: one
 *           reference may be optional and another not.
 */
#ifndef SILICA_NODE_NEEDS_H
#define SILICA_NODE_NEEDS_H

#include "kube/object.h"

enum need_what {
    NEED_CONFIG_MAP,
    NEED_SECRET,
    NEED_CLAIM, /* PersistentVolumeClaim */
    NEED_TOKEN, /* a TokenRequest for the service account `name`, bound to the Pod */
};

#define NEEDS_MAX 256 /* different ones of one Pod; then ERR_LIMIT */
/* What a Pod gets where it does not say how long its token lasts, and the least the API server gives. */
#define NEED_TOKEN_SECONDS     3600
#define NEED_TOKEN_MIN_SECONDS 600

struct need {
    enum need_what what;
    const char *name;     /* in the Pod's namespace; the Pod's memory */
    bool is_optional;     /* all who name it can do without it */
    const char *audience; /* of a token; "": the API server's own */
    uint64_t seconds;     /* of a token */
    struct object *object;
    char *token;
    uint64_t renew_ms; /* of a token: when a new one is to be had, by the caller's clock */
};

struct needs {
    struct object *pod;
    struct need *v;
    size_t n;
};

/* In the order they are named, each once. */
int needs_of_pod(struct object *pod, struct needs *ret, struct err *e);
void needs_done(struct needs *ns);
/* What was fetched; takes a reference of its own. NULL: it is gone. */
void need_set_object(struct need *n, struct object *o);
void need_set_token(struct need *n, const char *token);
/* Tokens of before that are not to be renewed yet, taken over. */
void needs_keep_tokens(struct needs *ns, struct needs *before, uint64_t now_ms);
/* The object of that name, or NULL. */
struct object *needs_object(const struct needs *ns, enum need_what what, const char *name);
const struct need *needs_token(const struct needs *ns, const char *audience, uint64_t seconds);
/* Of spec.volumes' serviceAccountToken: what it asks for. */
void need_read_token(const struct json *source, const char **ret_audience, uint64_t *ret_seconds);
/* "configmaps", as the API calls what is to be fetched; NULL for a token. */
const char *need_resource(enum need_what what);
/* ERR_NOT_FOUND with the public text: configmap "x" not found. */
int need_missing(enum need_what what, const char *name, struct err *e);

#endif
