/* env: the environment of one container, as the kubelet makes it, and the words of its command.
 *
 *     needs_of_pod -> (fetched) -> env_make -> env_words(command), env_words(args)
 *
 * Order:    later ones win: base (the image's and ours), envFrom in its order, env in its order; variables of Services
 *           fill what is still free. $(NAME) sees envFrom, the env before it, and Services; not base.
 * Owns:     all texts of an env. Does no I/O: what it needs was fetched before (needs.h).
 * Used by:  the lifecycle, for each start of a container.
 * Missing:  what is not there and not optional is an error, worded as the kubelet words it, for the waiting reason
 *           CreateContainerConfigError. Keys that are no names of variables are left out, with a note.
 */
#ifndef SILICA_NODE_ENV_H
#define SILICA_NODE_ENV_H

#include "node/downward.h"
#include "node/needs.h"
#include "node/notes.h"

#define ENV_VARS_MAX 4096 /* then ERR_LIMIT; each is compared with those before it */
/* Names and values together; then ERR_LIMIT. They travel in a sandbox's spec with all else of it (SPEC_MAX_BYTES). */
#define ENV_MAX_BYTES   (88 * 1024)
#define WORDS_MAX_BYTES (32 * 1024) /* of command and arguments, each: the same */

struct env_var {
    char *text; /* "NAME=value" */
    size_t name_n;
    bool is_base; /* not seen by $(NAME) */
};

struct env {
    struct env_var *vars;
    size_t n;
    size_t bytes;
    const char **v; /* the texts, NULL-terminated: what a box_spec takes; made by env_make */
};

struct env_spec {
    struct downward downward; /* with the Pod */
    const struct json *container;
    const struct needs *needs;
    const char *const *base; /* NULL-terminated NAME=value; may be NULL */
    /* Services that may become variables: those of the Pod's namespace, and `kubernetes` of default. Others are passed
     * over. */
    struct object *const *services;
    size_t service_count;
};

/* *ret is to be done with after success. */
int env_make(const struct env_spec *spec, struct env *ret, struct notes *notes, struct err *e);
void env_done(struct env *env);
/* The value of a variable, or p == NULL. */
struct span env_get(const struct env *env, const char *name);

/* A list of texts ($(NAME) expanded) as argv: NULL-terminated, one block, the caller's to free; `words` that is no list gives
 * no words. ERR_INVALID: a word that cannot be one (a NUL inside). */
int env_words(const struct env *env, const struct json *words, char ***ret, struct err *e);
/* Expands with names that must be known (subPathExpr). ERR_NOT_FOUND: missing value for "NAME". */
int env_expand_strict(const struct env *env, struct span text, struct buf *out, struct err *e);

/* For env_services.c: sets a variable unless it is there and `is_free_only`. */
int env_set(struct env *env, struct span name, struct span value, bool is_free_only, struct err *e);
/* Variables of Services. */
int env_add_services(struct env *env, const struct env_spec *spec, struct err *e);

#endif
