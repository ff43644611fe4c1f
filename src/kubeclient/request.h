/* request: a kube_request as the HTTP request that says it: method, target, body.
 *
 * Owns:     a struct rest_request owns its texts.
 * Used by:  rest and watch. Does no I/O.
 * Errors:   ERR_INVALID: the request cannot be said: a name that is no part of a path, a verb without what it needs.
 */
#ifndef SILICA_KUBECLIENT_REQUEST_H
#define SILICA_KUBECLIENT_REQUEST_H

#include "kube/client.h"

struct rest_request {
    const char *method;
    const char *content_type; /* NULL: no body */
    struct buf path;          /* without what the server's URL has before it */
    struct buf query;         /* "?a=b", or empty */
    size_t version_at; /* in the query: from here on it holds for the first page of a list only */
    struct buf body;
    bool is_read; /* saying it twice changes nothing */
};

#define REST_REQUEST_INIT                                                                          \
    {                                                                                              \
        .path = BUF_INIT(REST_TARGET_MAX_BYTES), .query = BUF_INIT(REST_TARGET_MAX_BYTES),         \
        .body = BUF_INIT(REST_OBJECT_MAX_BYTES)                                                    \
    }
void rest_request_done(struct rest_request *r);

int rest_request_make(const struct kube_request *rq, struct rest_request *ret, struct err *e);
/* Path and query of a page of a list behind `next` (NULL: the first), of `limit` objects (0: all of them). */
int rest_request_page(const struct rest_request *r, uint64_t limit, const char *next,
                      struct buf *target, struct err *e);
/* The request of a watch that goes on behind `version` and ends by itself after so many seconds. Version 0 would mean
 * another thing: whatever is there now, as if it had just been made. */
int rest_request_watch(const struct kube_watch_spec *spec, uint64_t version, unsigned seconds,
                       struct rest_request *ret, struct err *e);
/* The version a request is said in; NULL: the kind has no such version. */
const struct kind_version *rest_version(const struct kind *kind, const char *version);

#endif
