/* validate: whether an object may be stored, told in the public server's words.
 *
 *     validate_object(&(struct validation){ kind, version, object, old, NULL }, &st->causes);
 *     if (st->causes.n)
 *         return status_invalid(st, kind, object_name(object));
 *
 * Custom kinds are held to the rules of their schema (types, required, enum, bounds, patterns, unique
 * keys) and to the rules between versions that their definition has in CEL. Core kinds have rules of
 * their own, by hand. The object went through default_object, so members are what they should be in
 * type for core kinds; below custom kinds anything may stand anywhere. Members whose document is that of `old` passed when
 * that was written, and are not judged again.
 *
 * Owns:     nothing; adds causes.
 * Used by:  create, update and patch, last of all.
 */
#ifndef SILICA_KUBE_VALIDATE_H
#define SILICA_KUBE_VALIDATE_H

#include "kube/cause.h"
#include "kube/kind.h"
#include "kube/object.h"

#define VALIDATE_ANNOTATIONS_MAX_BYTES (256 * 1024)  /* keys and values, as the public server */
#define VALIDATE_DATA_MAX_BYTES        (1024 * 1024) /* of a ConfigMap or Secret, the same */

struct validation {
    const struct kind *kind;
    const struct kind_version *version; /* both objects are in this one */
    const struct object *object;
    const struct object *old; /* NULL: it is created */
    const char *sub;          /* the subresource it is written through; NULL: none */
};

/* Adds a cause for everything that is wrong. */
void validate_object(const struct validation *v, struct causes *c);

#endif
