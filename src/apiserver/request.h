/* request: what an API request asks for, read from its method, path and query.
 *
 *     GET /apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes?watch=1  ->  watch sandboxes in "default"
 *
 * Owns:     its texts, decoded, inside itself.
 * Used by:  route.c; what it says is authorised, then done.
 */
#ifndef SILICA_APISERVER_REQUEST_H
#define SILICA_APISERVER_REQUEST_H

#include "base/buf.h"

#define REQUEST_PART_MAX_BYTES                                                                     \
    317 /* a name of 253 with its colons, as RBAC's have them; longer exists nowhere */

enum request_verb {
    VERB_NONE, /* the path names no resource */
    VERB_GET,
    VERB_LIST,
    VERB_WATCH,
    VERB_CREATE,
    VERB_UPDATE,
    VERB_PATCH,
    VERB_DELETE,
    VERB_DELETE_COLLECTION,
};

struct request {
    enum request_verb verb;
    bool has_bad_method; /* the path is a resource's, the method none of its */
    char group[REQUEST_PART_MAX_BYTES + 1];
    char version[64];
    char resource[64];
    char subresource[64];
    char namespace[REQUEST_PART_MAX_BYTES + 1];
    char name[REQUEST_PART_MAX_BYTES + 1];
};

/* is_watch: the query says so. False: the path can be nobody's (too long, an empty part, a bad escape, a slash or NUL
 * written as an escape). */
bool request_read(struct span method, struct span path, bool is_watch, struct request *ret);
/* A value of a query, form-encoded as Go reads it: '+' is a blank. *out is cleared first. False: a bad escape, a NUL, or
 * more than out may hold. */
bool request_decode(struct span raw, struct buf *out);
/* As RBAC spells it: "deletecollection". Of a path that is no resource's: the method in small letters, by the caller. */
const char *request_verb_name(enum request_verb verb);

#endif
